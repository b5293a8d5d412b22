//! Which session is meant, and making one.

use proto::request::{ApproveMode, CreateSession, ListSessions, Request};
use proto::response::{SessionInfo, SessionState};

use crate::cli::{ApproveArg, AskArgs};
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;

/// The provider that plays scenarios.
const SCRIPTED: &str = "scripted";

/// The scenario for `AGENTD_PROVIDER=scripted` without a named one: it ships inside the daemon.
const DEMO: &str = "demo";

/// The selector as given, else the newest session of this directory.
pub(super) async fn selector(
    named: Option<String>,
    connection: &mut Connection,
    context: &Context,
) -> Result<String, CtlError> {
    match named {
        Some(named) => Ok(named),
        None => match here(connection, context).await?.first() {
            Some(info) => Ok(info.id.to_string()),
            None => Err(CtlError::NoSessionHere { cwd: context.cwd.clone() }),
        },
    }
}

async fn here(connection: &mut Connection, context: &Context) -> Result<Vec<SessionInfo>, CtlError> {
    let request = Request::ListSessions(ListSessions { archived: false, cwd: Some(context.cwd_text()?) });
    Ok(crate::answer!(connection, request, Sessions)?.sessions)
}

/// The session `ask` continues, if there is one that fits what was asked for.
pub(super) async fn idle_one(
    args: &AskArgs,
    connection: &mut Connection,
    context: &Context,
) -> Result<Option<SessionInfo>, CtlError> {
    if args.new || args.name.is_some() || args.scenario.is_some() {
        return Ok(None);
    }
    let scripted = scenario(args, context).is_some();
    let fits = |info: &SessionInfo| {
        let model = args.model.as_ref().is_none_or(|model| *model == info.model);
        info.state == SessionState::Idle && info.queued.is_empty() && model && (info.provider == SCRIPTED) == scripted
    };
    Ok(here(connection, context).await?.into_iter().find(fits))
}

/// Makes a session of this directory with this environment.
pub(super) async fn create(
    args: &AskArgs,
    connection: &mut Connection,
    context: &Context,
) -> Result<SessionInfo, CtlError> {
    let request = Request::CreateSession(CreateSession {
        cwd: context.cwd_text()?,
        env: context.vars.clone(),
        name: args.name.clone(),
        model: args.model.clone().or_else(|| context.var("ANTHROPIC_MODEL").map(str::to_owned)),
        scenario: scenario(args, context),
        endpoint: context.endpoint(),
        mode: args.mode.unwrap_or_default(),
    });
    crate::answer!(connection, request, Session)
}

/// The scenario: as named, from the environment, or the demo when the environment asks for the scripted provider.
/// A file becomes an absolute path, for the daemon's directory is another.
fn scenario(args: &AskArgs, context: &Context) -> Option<String> {
    let scripted = || (context.var("AGENTD_PROVIDER") == Some(SCRIPTED)).then_some(DEMO);
    let named = args.scenario.as_deref().or_else(|| context.var("AGENTD_SCENARIO")).or_else(scripted)?;
    let file = context.cwd.join(named);
    let is_file = named.contains('/') || file.is_file();
    Some(if is_file { file.display().to_string() } else { named.to_owned() })
}

/// What the prompt says about approvals.
pub(super) fn approve_mode(approve: Option<ApproveArg>, can_ask: bool) -> ApproveMode {
    match approve {
        Some(ApproveArg::All) => ApproveMode::All,
        Some(ApproveArg::None | ApproveArg::Rules) => ApproveMode::Deny,
        None if can_ask => ApproveMode::Ask,
        None => ApproveMode::Deny,
    }
}

/// `ab12cd34`, or `ab12cd34 "name"`.
pub(super) fn label(info: &SessionInfo) -> String {
    match &info.name {
        Some(name) => format!("{} \"{name}\"", info.id.short()),
        None => info.id.short(),
    }
}
