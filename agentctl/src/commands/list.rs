//! `ls`, `show`, `status`: what there is.

use proto::ids::Timestamp;
use proto::request::{ListSessions, Request, ShowSession, Status};

use super::open;
use super::session::selector;
use crate::cli::{JsonArgs, LsArgs, SessionJsonArgs};
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::session;
use crate::screen::Screen;

pub(super) async fn sessions(args: &LsArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let request = Request::ListSessions(ListSessions { archived: args.all, cwd: None });
    let sessions = crate::answer!(connection, request, Sessions)?.sessions;
    if args.json {
        sessions.iter().try_for_each(|info| screen.json(info))?;
    } else if sessions.is_empty() {
        screen.line(&crate::render::notes::remark("no sessions; agentctl ask \"…\" starts one"))?;
    } else {
        let home = context.var("HOME").unwrap_or_default();
        let columns = out_columns(&screen, context);
        for line in session::list(&sessions, home, Timestamp::now(), columns) {
            screen.out_line(&line)?;
        }
    }
    Ok(Exit::Done)
}

/// A table is cut only for a terminal: a file or pipe wants all of it.
pub(super) fn out_columns(screen: &Screen, context: &Context) -> usize {
    if context.tty.stdout { screen.columns() } else { usize::MAX }
}

pub(super) async fn show(args: &SessionJsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session.clone(), &mut connection, context).await?;
    let info = crate::answer!(connection, Request::ShowSession(ShowSession { session }), Session)?;
    if args.json {
        screen.json(&info)?;
    } else {
        for line in session::show(&info, Timestamp::now(), &jiff::tz::TimeZone::system()) {
            screen.out_line(&line)?;
        }
    }
    Ok(Exit::Done)
}

pub(super) async fn status(args: &JsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let status = crate::answer!(connection, Request::Status(Status {}), Status)?;
    if args.json {
        screen.json(&status)?;
    } else {
        for line in session::status(&status, Timestamp::now()) {
            screen.out_line(&line)?;
        }
    }
    Ok(Exit::Done)
}
