//! `log`: the rows of a session, and with `-f` those to come.

use jiff::tz::TimeZone;
use proto::event::Event;
use proto::ids::{Seq, SessionId};
use proto::request::{Attach, ReadLog, Request, ShowSession};
use proto::response::{EventFrame, ServerFrame};

use super::open;
use super::session::selector;
use crate::cli::LogArgs;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render;
use crate::screen::Screen;

/// Rows asked for at a time: a page stays well under a frame, and a long log streams.
const PAGE: u32 = 500;

pub(super) async fn run(args: &LogArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, screen) = open(context).await?;
    let session = selector(args.session.clone(), &mut connection, context).await?;
    let session = crate::answer!(connection, Request::ShowSession(ShowSession { session }), Session)?.id;
    let mut printer = Printer { screen, session, json: args.json, zone: TimeZone::system(), last: Seq(args.since) };
    loop {
        let request = ReadLog { session: session.to_string(), since: printer.last, limit: PAGE };
        let page = crate::answer!(connection, Request::ReadLog(request), Log)?;
        page.events.iter().try_for_each(|event| printer.print(event))?;
        if !page.more || page.events.is_empty() {
            break;
        }
    }
    if !args.follow {
        return Ok(Exit::Done);
    }
    let attach = Attach { session: session.to_string(), since: printer.last, endpoint: context.endpoint() };
    crate::answer!(connection, Request::Attach(attach), Attached)?;
    loop {
        match connection.next().await? {
            Some(ServerFrame::Event(frame)) => printer.print(&frame.event)?,
            Some(ServerFrame::Lagged(_)) => {
                let attach = Attach { session: session.to_string(), since: printer.last, endpoint: context.endpoint() };
                crate::answer!(connection, Request::Attach(attach), Attached)?;
            }
            Some(
                ServerFrame::Live(_) | ServerFrame::CaughtUp(_) | ServerFrame::Presence(_) | ServerFrame::Response(_),
            ) => {}
            Some(ServerFrame::Goodbye(_)) | None => return Err(CtlError::Gone),
        }
    }
}

struct Printer {
    screen: Screen,
    session: SessionId,
    json: bool,
    zone: TimeZone,
    last: Seq,
}

impl Printer {
    fn print(&mut self, event: &Event) -> Result<(), CtlError> {
        if event.seq <= self.last {
            return Ok(());
        }
        self.last = event.seq;
        if self.json {
            let frame = EventFrame { session: self.session, event: event.clone() };
            return self.screen.json(&ServerFrame::Event(frame));
        }
        render::log::row(event, &self.zone).iter().try_for_each(|line| self.screen.out_line(line))
    }
}
