//! `mode`: how much a session may do without asking.

use proto::mode::{MODES, Mode};
use proto::request::{Request, SetMode, ShowSession};
use proto::response::SessionInfo;

use super::open;
use super::session::{label, selector};
use crate::cli::ModeArgs;
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::session::mode_style;
use crate::render::{Line, Style};

pub(super) async fn run(args: ModeArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let (named, mode) = sort_out(args.session, args.mode);
    let session = selector(named, &mut connection, context).await?;
    let info = match mode {
        Some(mode) => set(&mut connection, session, mode, args.yes_really).await?,
        None => crate::answer!(connection, Request::ShowSession(ShowSession { session }), Session)?,
    };
    if args.json {
        screen.json(&info)?;
    } else {
        let line = Line::new().text(Style::Dim, &format!("session {}: ", label(&info)));
        let line = line.text(mode_style(info.mode), info.mode.name());
        screen.out_line(&line.text(Style::Plain, &format!(" ({})", info.mode.meaning())))?;
    }
    Ok(Exit::Done)
}

/// A lone mode's name is the mode.
fn sort_out(session: Option<String>, mode: Option<Mode>) -> (Option<String>, Option<Mode>) {
    match (session, mode) {
        (Some(word), None) => match MODES.into_iter().find(|mode| mode.name() == word) {
            Some(mode) => (None, Some(mode)),
            None => (Some(word), None),
        },
        both => both,
    }
}

/// Switches a session's mode.
pub(super) async fn set(
    connection: &mut Connection,
    session: String,
    mode: Mode,
    confirmed: bool,
) -> Result<SessionInfo, CtlError> {
    crate::answer!(connection, Request::SetMode(SetMode { session, mode, confirmed }), Session)
}
