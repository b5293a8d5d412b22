//! `export`: a session's transcript as a document.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use jiff::tz::TimeZone;
use proto::event::Event;
use proto::ids::Seq;
use proto::request::{ReadLog, Request, ShowSession};

use super::open;
use super::session::selector;
use crate::cli::ExportArgs;
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::export::{html, markdown};
use crate::render::{notes, sanitize};

/// Rows asked for at once; the daemon gives fewer when they are large.
const PAGE_ROWS: u32 = 500;

/// A transcript may hold what nobody else should read.
const FILE_MODE: u32 = 0o600;

pub(super) async fn run(args: ExportArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let info = crate::answer!(connection, Request::ShowSession(ShowSession { session }), Session)?;
    let events = rows(&mut connection, &info.id.to_string()).await?;
    let zone = TimeZone::system();
    let text = if args.html {
        html::page(&info, &events, &zone)
    } else if args.json {
        let text = json(&info, &events)?;
        if context.tty.stdout && args.output.is_none() { sanitize::json(&text) } else { text }
    } else {
        markdown::document(&info, &events, &zone)
    };
    match &args.output {
        None => std::io::stdout().write_all(text.as_bytes()).map_err(CtlError::output)?,
        Some(path) => {
            let failed = |source| CtlError::Export { path: path.clone(), source };
            let mut options = std::fs::OpenOptions::new();
            let file = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(path);
            file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
            screen.line(&notes::remark(&format!("written to {}", path.display())))?;
        }
    }
    Ok(Exit::Done)
}

async fn rows(connection: &mut Connection, session: &str) -> Result<Vec<Event>, CtlError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let since = events.last().map_or(Seq(0), |event| event.seq);
        let request = ReadLog { session: session.to_owned(), since, limit: PAGE_ROWS };
        let page = crate::answer!(connection, Request::ReadLog(request), Log)?;
        let more = page.more && !page.events.is_empty();
        events.extend(page.events);
        if !more {
            return Ok(events);
        }
    }
}

/// The session, then its rows, one object a line.
fn json(info: &proto::response::SessionInfo, events: &[Event]) -> Result<String, CtlError> {
    let mut lines = vec![serde_json::json!({ "session": info })];
    lines.extend(events.iter().map(|event| serde_json::json!({ "event": { "session": info.id, "event": event } })));
    let lines: Result<Vec<String>, _> = lines.iter().map(serde_json::to_string).collect();
    lines.map(|lines| lines.join("\n") + "\n").map_err(|error| CtlError::Output(error.into()))
}
