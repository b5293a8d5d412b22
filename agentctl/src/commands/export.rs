//! `export`: a whole session for people (Markdown) or programs (JSON lines), page by page, however long it is.

use jiff::tz::TimeZone;
use proto::ids::Seq;
use proto::request::{ReadLog, Request, ShowSession};
use proto::response::{EventFrame, ServerFrame};

use super::open;
use super::session::selector;
use crate::cli::keeping::ExportArgs;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::export::Markdown;

/// Rows asked for at a time.
const PAGE: u32 = 500;

pub(super) async fn run(args: ExportArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let info = crate::answer!(connection, Request::ShowSession(ShowSession { session }), Session)?;
    let session = info.id;
    let mut markdown = Markdown::new(TimeZone::system());
    if !args.json {
        screen.text(&markdown.head(&info))?;
    }
    let mut last = Seq(0);
    loop {
        let request = ReadLog { session: session.to_string(), since: last, limit: PAGE };
        let page = crate::answer!(connection, Request::ReadLog(request), Log)?;
        for event in page.events {
            last = event.seq;
            if args.json {
                screen.json(&ServerFrame::Event(EventFrame { session, event }))?;
            } else {
                screen.text(&markdown.event(&event))?;
            }
        }
        if !page.more {
            return Ok(Exit::Done);
        }
    }
}
