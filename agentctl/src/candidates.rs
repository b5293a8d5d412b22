//! What a shell completes that only the daemon knows: sessions, approvals and background commands. No daemon is started
//! for it, and nothing is printed when there is none.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
use proto::handshake::Role;
use proto::job::ListJobs;
use proto::request::{ListApprovals, ListSessions, Request};
use tokio::time::timeout;

use crate::cli::GlobalArgs;
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::render::{sanitize, session};
use crate::start;

/// How long a shell waits for its candidates: longer feels like a hang.
const WAIT: Duration = Duration::from_millis(400);

/// Longest explanation beside a candidate.
const HELP_CHARS: usize = 60;

/// Completes sessions, by name where they have one.
pub(crate) fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| fitting(typed, block_on(list_sessions)))
}

/// Completes open approvals.
pub(crate) fn approvals() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| fitting(typed, block_on(list_approvals)))
}

/// Completes background commands, those that run first.
pub(crate) fn jobs() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| fitting(typed, block_on(list_jobs)))
}

type Found = Vec<(String, String)>;

fn fitting(typed: &OsStr, found: Found) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    found
        .into_iter()
        .filter(|(name, _)| name.starts_with(&*typed))
        .map(|(name, help)| {
            let help: String = sanitize::line(&help).chars().take(HELP_CHARS).collect();
            CompletionCandidate::new(sanitize::line(&name)).help((!help.is_empty()).then(|| help.into()))
        })
        .collect()
}

/// Asks the daemon; nothing when there is none, or it does not answer in time.
fn block_on(ask: impl AsyncFnOnce(&mut Connection) -> Result<Found, CtlError>) -> Found {
    let found = || {
        let socket = std::env::var_os("AGENTD_SOCKET").filter(|path| !path.is_empty()).map(PathBuf::from);
        let context = Context::from_process(&GlobalArgs { socket, ..GlobalArgs::default() })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CtlError::Setup)?;
        runtime.block_on(async {
            let asked = async {
                let mut connection = start::try_connect(&context, Role::Observer).await?;
                ask(&mut connection).await
            };
            timeout(WAIT, asked).await.unwrap_or_else(|_| Ok(Vec::new()))
        })
    };
    found().unwrap_or_else(|_: CtlError| Vec::new())
}

async fn list_sessions(connection: &mut Connection) -> Result<Found, CtlError> {
    let request = Request::ListSessions(ListSessions { archived: false, cwd: None });
    let sessions = crate::answer!(connection, request, Sessions)?.sessions;
    Ok(sessions
        .into_iter()
        .map(|info| {
            let about = format!("{} · {}", session::state(&info).1, info.title);
            (info.name.unwrap_or_else(|| info.id.short()), about)
        })
        .collect())
}

async fn list_approvals(connection: &mut Connection) -> Result<Found, CtlError> {
    let request = Request::ListApprovals(ListApprovals { session: None });
    let approvals = crate::answer!(connection, request, Approvals)?.approvals;
    Ok(approvals.iter().map(|asked| (asked.id.short(), session::approval_title(asked))).collect())
}

async fn list_jobs(connection: &mut Connection) -> Result<Found, CtlError> {
    let jobs = crate::answer!(connection, Request::ListJobs(ListJobs { session: None }), Jobs)?.jobs;
    Ok(jobs.into_iter().map(|job| (job.job.short(), job.command)).collect())
}
