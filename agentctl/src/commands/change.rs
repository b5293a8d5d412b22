//! `interrupt`, `retry`, `rename`, `archive`, `rm`, `shutdown`: what changes a session or the daemon and says so in a line.

use std::path::PathBuf;
use std::time::Duration;

use proto::handshake::Role;
use proto::request::{ChangeSession, Interrupt, Request, Restart, Retry, SessionChange, Shutdown, Status};

use tokio::time::{Instant, sleep};

use super::open;
use super::session::selector;
use crate::cli::{JsonArgs, RenameArgs, RequiredSessionArgs, SessionJsonArgs, ShutdownArgs};
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::notes;
use crate::screen::Screen;
use crate::socket::is_absent;
use crate::start;

/// How long a daemon that has closed its connections is waited for: what it still does then takes a tenth of a second.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Pause between two looks whether it is gone.
const STOP_PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn interrupt(args: SessionJsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let done = crate::answer!(connection, Request::Interrupt(Interrupt { session }), Done)?;
    if args.json {
        screen.json(&done)?;
    } else {
        screen.line(&notes::remark("interrupting"))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn retry(args: SessionJsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let request = Request::Retry(Retry { session, endpoint: context.endpoint() });
    let done = crate::answer!(connection, request, Done)?;
    if args.json {
        screen.json(&done)?;
    } else {
        screen.line(&notes::remark("trying again"))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn rename(args: RenameArgs, context: &Context) -> Result<Exit, CtlError> {
    let says = format!("renamed to {}", args.name);
    let change =
        Change { session: args.session, change: SessionChange::Rename { name: args.name }, json: args.json, says };
    apply(change, context).await
}

pub(super) async fn archive(args: RequiredSessionArgs, context: &Context) -> Result<Exit, CtlError> {
    let says = "archived; agentctl ls --all still lists it".to_owned();
    apply(Change { session: args.session, change: SessionChange::Archive {}, json: args.json, says }, context).await
}

pub(super) async fn remove(args: RequiredSessionArgs, context: &Context) -> Result<Exit, CtlError> {
    let says = "removed with its log".to_owned();
    apply(Change { session: args.session, change: SessionChange::Remove {}, json: args.json, says }, context).await
}

struct Change {
    session: String,
    change: SessionChange,
    json: bool,
    says: String,
}

async fn apply(change: Change, context: &Context) -> Result<Exit, CtlError> {
    let (mut connection, mut screen) = open(context).await?;
    let request = Request::ChangeSession(ChangeSession { session: change.session, change: change.change });
    let info = crate::answer!(connection, request, Session)?;
    if change.json {
        screen.json(&info)?;
    } else {
        screen.line(&notes::remark(&format!("session {}: {}", info.id.short(), change.says)))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn restart(args: &JsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let mut screen = Screen::standard(context.tty);
    let mut connection = start::try_connect(context, Role::Driver).await?;
    crate::answer!(connection, Request::Restart(Restart {}), Done)?;
    while connection.next().await.is_ok_and(|frame| frame.is_some()) {}
    // Its socket is open all along: this waits until the new program accepts.
    let mut connection = start::try_connect(context, Role::Driver).await?;
    let status = crate::answer!(connection, Request::Status(Status {}), Status)?;
    if args.json {
        screen.json(&status)?;
    } else {
        screen.line(&notes::remark(&format!("agentd {} serves; what ran goes on", status.release)))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn shutdown(args: &ShutdownArgs, context: &Context) -> Result<Exit, CtlError> {
    let mut screen = Screen::standard(context.tty);
    // A daemon is not started to be stopped.
    let mut connection = match start::try_connect(context, Role::Driver).await {
        Err(CtlError::Unreachable { source, .. }) if is_absent(&source) => {
            screen.line(&notes::remark("agentd is not running"))?;
            return Ok(Exit::Done);
        }
        other => other?,
    };
    let request = Request::Shutdown(Shutdown { stop_shells: args.stop_shells });
    let done = crate::answer!(connection, request, Done)?;
    while connection.next().await.is_ok_and(|frame| frame.is_some()) {}
    // The next command must not meet a dying daemon that still holds its lock.
    if let Some(process) = connection.pid.map(|pid| PathBuf::from(format!("/proc/{pid}"))) {
        let until = Instant::now() + STOP_WAIT;
        while process.exists() && Instant::now() < until {
            sleep(STOP_PAUSE).await;
        }
    }
    if args.json {
        screen.json(&done)?;
    } else if args.stop_shells {
        screen.line(&notes::remark("agentd stopped, and the sessions' shells with it"))?;
    } else {
        screen.line(&notes::remark("agentd stopped; running commands go on, the next agentd finds them"))?;
    }
    Ok(Exit::Done)
}
