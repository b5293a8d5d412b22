//! Every request by name, and what it needs.

use std::sync::atomic::Ordering;

use proto::approval::Decider;
use proto::handshake::Role;
use proto::ids::{Seq, SessionId};
use proto::mode::Mode;
use proto::request::{PROMPT_BYTES_MAX, Request, SessionChange, UNDO_STEPS_MAX, Undo};
use proto::response::{
    Approvals, Attached, DaemonStatus, Done, ErrorCode, LogPage, Response, SessionState, Sessions, WireError,
};

use super::connection::Connection;
use super::subscription::{Destination, Source};
use super::{convert, jobs, subscription};
use crate::config::ProviderKind;
use crate::session::finding::{Found, resting};
use crate::session::select::check_name;
use crate::session::storage_error;
use crate::shell::Accounting;
use crate::store::entry::{Prompt, UndoOrder};

/// Most rows in one page of a log.
const LOG_PAGE_MAX: u32 = 1_000;

/// Sessions one connection may be attached to: an overview of all of them, not more.
const ATTACHED_MAX: usize = 64;

/// A subscription whose response has not been sent yet: its rows come after.
pub(super) struct PendingPump {
    session: SessionId,
    since: Seq,
    source: Source,
}

/// What a request may do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Power {
    /// Look.
    Watch,
    /// Answer approvals.
    Approve,
    /// Anything.
    Drive,
}

fn power(request: &Request) -> Power {
    match request {
        Request::Hello(_)
        | Request::Status(_)
        | Request::ListSessions(_)
        | Request::ShowSession(_)
        | Request::ReadLog(_)
        | Request::Attach(_)
        | Request::Detach(_)
        | Request::ListApprovals(_)
        | Request::Usage(_)
        | Request::SessionDiff(_)
        | Request::Search(_)
        | Request::ListJobs(_)
        | Request::ReadJob(_)
        | Request::ShowEnv(_) => Power::Watch,
        Request::AnswerApproval(_) => Power::Approve,
        Request::CreateSession(_)
        | Request::SendPrompt(_)
        | Request::WithdrawPrompt(_)
        | Request::Interrupt(_)
        | Request::ChangeSession(_)
        | Request::ForkSession(_)
        | Request::Prune(_)
        | Request::Undo(_)
        | Request::Retry(_)
        | Request::Configure(_)
        | Request::Compact(_)
        | Request::Steer(_)
        | Request::Rerun(_)
        | Request::StopJob(_)
        | Request::Background(_)
        | Request::Restart(_)
        | Request::SetMode(_)
        | Request::Shutdown(_) => Power::Drive,
    }
}

fn may(role: Role, power: Power) -> bool {
    match role {
        Role::Driver => true,
        Role::Approver => power != Power::Drive,
        Role::Observer => power == Power::Watch,
    }
}

/// Serves one request.
///
/// # Errors
/// What failed, for the client.
pub(super) async fn serve(connection: &mut Connection, request: Request) -> Result<Response, WireError> {
    if !may(connection.role, power(&request)) {
        return Err(error(ErrorCode::Forbidden, "this connection may only watch", "connect as driver"));
    }
    let server = std::sync::Arc::clone(&connection.server);
    let registry = &server.registry;
    match request {
        Request::Hello(hello) => {
            connection.client = hello.client;
            Ok(done())
        }
        Request::Status(_) => status(connection).await,
        Request::CreateSession(create) => {
            let session = registry.create(create).await?;
            Ok(Response::Session(session.info().await?))
        }
        Request::ListSessions(list) => {
            let sessions = registry.list(list.archived, list.cwd.as_deref()).await?;
            Ok(Response::Sessions(Sessions { sessions }))
        }
        Request::ShowSession(show) => {
            let session = registry.look(&show.session).await?;
            Ok(Response::Session(session.info().await?))
        }
        Request::ReadLog(read) => {
            let session = registry.select(&read.session).await?.id;
            let limit = read.limit.clamp(1, LOG_PAGE_MAX);
            let store = &registry.context().store;
            let rows = store.rows(session, read.since, limit + 1).await.map_err(|e| storage_error(&e))?;
            let more = rows.len() > limit as usize;
            let events = rows.iter().take(limit as usize).map(convert::event).collect();
            Ok(Response::Log(LogPage { session, events, more }))
        }
        Request::Attach(attach) => {
            registry.offer(&attach.endpoint);
            let session = registry.look(&attach.session).await?;
            attach_to(connection, session, attach.since).await
        }
        Request::Detach(detach) => {
            let session = registry.select(&detach.session).await?;
            if let Some(pump) = connection.attached.remove(&session.id) {
                pump.abort();
            }
            Ok(done())
        }
        Request::SendPrompt(send) => {
            registry.offer(&send.endpoint);
            if send.text.trim().is_empty() {
                return Err(error(ErrorCode::BadRequest, "the prompt is empty", "say what to do"));
            }
            if send.text.len() > PROMPT_BYTES_MAX {
                let message = format!("the prompt is {} bytes long, the limit is {PROMPT_BYTES_MAX}", send.text.len());
                return Err(error(ErrorCode::Limit, &message, "put the text in a file and name the file"));
            }
            let session = registry.find(&send.session).await?;
            let prompt = Prompt { prompt: send.prompt, text: send.text, approve: send.approve, by: connection.name() };
            session.prompt(prompt).await.map(Response::Accepted)
        }
        Request::WithdrawPrompt(withdraw) => {
            let session = registry.find(&withdraw.session).await?;
            session.withdraw(withdraw.prompt, connection.name()).await.map(|()| done())
        }
        Request::Interrupt(interrupt) => {
            let session = registry.find(&interrupt.session).await?;
            session.interrupt(connection.name()).await.map(|()| done())
        }
        Request::Retry(retry) => {
            registry.offer(&retry.endpoint);
            let session = registry.find(&retry.session).await?;
            session.retry(connection.name()).await.map(|()| done())
        }
        Request::Usage(query) => super::model_wishes::usage(registry, query).await,
        Request::Configure(configure) => super::model_wishes::configure(registry, configure, connection.name()).await,
        Request::Compact(compact) => super::model_wishes::compact(registry, compact, connection.name()).await,
        Request::Steer(steer) => super::model_wishes::steer(registry, steer, connection.name()).await,
        Request::Rerun(rerun) => super::model_wishes::rerun(registry, rerun, connection.name()).await,
        Request::ListApprovals(list) => {
            let mut approvals = Vec::new();
            let only = match &list.session {
                Some(selector) => Some(registry.find(selector).await?.id()),
                None => None,
            };
            for info in registry.list(true, None).await? {
                if only.is_none_or(|id| id == info.id) {
                    approvals.extend(info.approvals);
                }
            }
            approvals.sort_by_key(|approval| approval.asked_at);
            Ok(Response::Approvals(Approvals { approvals }))
        }
        Request::AnswerApproval(answer) => {
            let (session, approval) = registry.find_approval(&answer.approval).await?;
            let by = Decider::Client { name: connection.name() };
            session.answer(approval, answer.digest, answer.verdict, by).await.map(Response::Answered)
        }
        Request::ChangeSession(change) => {
            let by = connection.name();
            match change.change {
                SessionChange::Rename { name } => {
                    let session = registry.find(&change.session).await?;
                    check_name(&name)?;
                    registry.check_free(&name).await?;
                    session.rename(name, by).await?;
                    Ok(Response::Session(session.info().await?))
                }
                SessionChange::Archive {} => {
                    let session = registry.find(&change.session).await?;
                    session.archive(by).await?;
                    Ok(Response::Session(session.info().await?))
                }
                // Not found like the others: one whose log cannot be read can be removed, too.
                SessionChange::Remove {} => {
                    let session = registry.select(&change.session).await?;
                    registry.remove(&session).await.map(Response::Session)
                }
            }
        }
        Request::Search(search) => registry.search(&search.text, search.limit).await.map(Response::Hits),
        Request::ForkSession(fork) => {
            let session = registry.fork(fork, connection.name()).await?;
            Ok(Response::Session(session.info().await?))
        }
        Request::Prune(prune) => registry.prune(&prune).await.map(Response::Pruned),
        Request::Undo(undo) => take_back(connection, undo).await,
        Request::SessionDiff(diff) => {
            let session = registry.find(&diff.session).await?;
            session.changes().await.map(Response::Changes)
        }
        Request::ListJobs(list) => jobs::list(registry, list.session.as_deref()).await,
        Request::ReadJob(read) => jobs::read(registry, &read).await,
        Request::StopJob(stop) => jobs::stop(registry, &stop.job, connection.name()).await,
        Request::Background(background) => {
            let session = registry.find(&background.session).await?;
            session.background(connection.name()).await.map(Response::Moving)
        }
        Request::ShowEnv(show) => {
            let session = registry.find(&show.session).await?;
            session.env().await.map(Response::Environment)
        }
        Request::Restart(_) => {
            let refused = |sentence: String| error(ErrorCode::Conflict, &sentence, "this agentd goes on serving");
            server.successor.check().await.map_err(refused)?;
            tracing::info!(by = %connection.name(), "asked to restart in place");
            server.restart.store(true, Ordering::Relaxed);
            server.stop.cancel();
            Ok(done())
        }
        Request::SetMode(set) => {
            if set.mode == Mode::Bypass && !set.confirmed {
                let message = "in the mode bypass nothing is asked any more";
                let hint = "confirm it: `agentctl mode SESSION bypass --yes-really`, or `confirmed` in the request";
                return Err(error(ErrorCode::BadRequest, message, hint));
            }
            let session = registry.find(&set.session).await?;
            session.set_mode(set.mode, connection.name()).await?;
            Ok(Response::Session(session.info().await?))
        }
        Request::Shutdown(shutdown) => {
            server.stop_shells.store(shutdown.stop_shells, Ordering::Relaxed);
            tracing::info!(by = %connection.name(), stop_shells = shutdown.stop_shells, "asked to stop");
            server.stop.cancel();
            Ok(done())
        }
    }
}

async fn take_back(connection: &Connection, undo: Undo) -> Result<Response, WireError> {
    if undo.steps == 0 || undo.steps > UNDO_STEPS_MAX {
        let message = format!("{} edits cannot be taken back at once", undo.steps);
        return Err(error(ErrorCode::BadRequest, &message, &format!("give a number from 1 to {UNDO_STEPS_MAX}")));
    }
    let session = connection.server.registry.find(&undo.session).await?;
    if undo.preview {
        return session.preview_undo(undo.undo, undo.steps).await.map(Response::Undone);
    }
    let order = UndoOrder { undo: undo.undo, steps: undo.steps, newest: undo.newest, by: connection.name() };
    session.undo(order).await.map(Response::Undone)
}

async fn attach_to(connection: &mut Connection, session: Found, since: Seq) -> Result<Response, WireError> {
    if connection.attached.len() >= ATTACHED_MAX && !connection.attached.contains_key(&session.id()) {
        let message = format!("this connection is attached to {ATTACHED_MAX} sessions, the limit");
        return Err(error(ErrorCode::Limit, &message, "detach from one first"));
    }
    if let Some(pump) = connection.attached.remove(&session.id()) {
        pump.abort();
    }
    let client = connection.attendee();
    let (id, info, source) = match session {
        Found::Awake(session) => {
            let subscription = session.attach(client).await?;
            (session.id(), subscription.info.clone(), Source::Awake(Box::new(subscription)))
        }
        Found::Resting(row) => (row.id, resting(&row), Source::Resting { row, client }),
    };
    if since > info.head {
        let message = format!("the session has {} events, not {since}", info.head);
        return Err(error(ErrorCode::BadRequest, &message, "attach from 0"));
    }
    connection.pending.push(PendingPump { session: id, since, source });
    Ok(Response::Attached(Attached { session: info }))
}

/// Starts the pumps of subscriptions whose response is on its way.
pub(super) fn start_pumps(connection: &mut Connection) {
    while connection.pumps.try_join_next().is_some() {}
    for pending in std::mem::take(&mut connection.pending) {
        let id = pending.session;
        let server = std::sync::Arc::clone(&connection.server);
        let to = Destination { codec: connection.codec, frames: connection.frames.clone() };
        let pump = subscription::pump(server, id, pending.since, pending.source, to);
        connection.attached.insert(id, connection.pumps.spawn(pump));
    }
}

async fn status(connection: &Connection) -> Result<Response, WireError> {
    let server = &connection.server;
    let context = server.registry.context();
    let sessions = server.registry.list(false, None).await?;
    let config = context.config();
    let state = server.config_files.borrow().clone();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Response::Status(DaemonStatus {
        release: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: server.started_at,
        sessions: count(sessions.len()),
        working: count(sessions.iter().filter(|info| info.state != SessionState::Idle).count()),
        approvals: count(sessions.iter().map(|info| info.approvals.len()).sum()),
        clients: server.clients(),
        socket: context.paths.socket.display().to_string(),
        database: context.store.path().display().to_string(),
        config_files: state.files,
        warnings: state.warnings,
        model: config.model.name.clone(),
        base_url: config.model.base_url.clone(),
        key_source: match (config.model.provider, context.keys.source(&config.model.base_url)) {
            (ProviderKind::Compat, "none") => "not needed",
            (ProviderKind::Compat | ProviderKind::Anthropic, source) => source,
        }
        .to_owned(),
        accounting: match crate::shell::accounting_available() {
            Accounting::Cgroup => "cgroup",
            Accounting::Marks => "subreaper",
        }
        .to_owned(),
        bypass: count(sessions.iter().filter(|info| info.mode == Mode::Bypass).count()),
    }))
}

pub(super) fn done() -> Response {
    Response::Done(Done {})
}

pub(super) fn error(code: ErrorCode, message: &str, hint: &str) -> WireError {
    WireError { code, message: message.into(), hint: hint.into() }
}
