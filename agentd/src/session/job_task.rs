//! The tasks around background commands: what became of them, ending and moving them, looking at them.

use std::sync::Arc;
use std::time::Duration;

use proto::event::Outcome;
use proto::ids::{CallId, JobId, SessionId};
use proto::job::{Environment, Job, JobOutput, READ_BYTES_MAX, READ_WAIT_MS_MAX, Variable};
use proto::response::{ErrorCode, WireError};
use tokio::sync::mpsc;

use super::Context;
use super::call_task::captured;
use super::command::Reply;
use super::file_task::unreachable_shell;
use super::machine::Input;
use super::news::News;
use crate::shell::jobs::{JobInfo, JobRead};
use crate::shell::recover::{self, Remains};
use crate::shell::{RunEnd, Shell, ShellError};
use crate::store::job::{JobEnd, JobStart};
use crate::tools::background::{DEADLINE, TAIL_BYTES, lost, outcome, report};

/// What a client wants to see of background commands.
#[derive(Debug)]
pub(super) enum Look {
    /// All of them.
    List(Reply<Vec<Job>>),
    /// The output of one.
    Read { known: Box<Known>, since: u64, max: u64, wait_ms: u64, reply: Reply<JobOutput> },
    /// The shell's environment.
    Env(Reply<Environment>),
}

/// What the log says of a job.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub start: JobStart,
    pub end: Option<JobEnd>,
}

/// Finds out what became of those jobs that the log says run, and tells the session what it does not know.
pub(super) async fn sync(running: Vec<JobStart>, shell: Shell, news: mpsc::Sender<News>) {
    let jobs = match shell.jobs().await {
        Ok(jobs) => jobs,
        Err(error) => {
            // Gone: its end is news of its own. Older than jobs: it has none.
            tracing::debug!(%error, "the shell does not tell of its jobs");
            return;
        }
    };
    for info in jobs {
        let Some(start) = running.iter().find(|start| start.job == info.job) else { continue };
        let input = match &info.end {
            Some(end) => {
                let tail = tail_of(&info, end, &shell).await;
                Input::JobEnded { job: info.job, report: Box::new(report(start, end, &tail)) }
            }
            None if info.silent => Input::JobSilent { job: info.job, output_bytes: info.output_bytes },
            None => continue,
        };
        let _ = news.send(News::Happened(Box::new(input))).await;
    }
}

async fn tail_of(info: &JobInfo, end: &RunEnd, shell: &Shell) -> Vec<u8> {
    let offset = end.output_bytes.saturating_sub(TAIL_BYTES);
    let read = JobRead { job: info.job, offset, max: TAIL_BYTES, wait: Duration::ZERO, until_end: false, asker: None };
    match shell.read_job(read).await {
        Ok(piece) => piece.bytes.to_vec(),
        Err(_) => Vec::new(),
    }
}

/// What is known of jobs whose shim is gone.
pub(super) async fn settle(gone: Vec<JobStart>, session: SessionId, context: Arc<Context>, news: mpsc::Sender<News>) {
    for start in gone {
        let job = start.job;
        let sessions = context.paths.sessions();
        let look = move || match recover::remains(session, CallId(job.0), &sessions) {
            Ok(Remains::Ended(run)) => {
                let tail = if run.tail().is_empty() { run.head() } else { run.tail() };
                let tail = &tail[tail.len().saturating_sub(usize::try_from(TAIL_BYTES).unwrap_or(0))..];
                report(&start, &run.end, tail)
            }
            Ok(Remains::Unknown { spool }) => {
                let tail = spool.as_ref().map(|path| captured(path)).unwrap_or_default();
                lost(&start, spool.map(|path| path.display().to_string()), tail.as_bytes())
            }
            Ok(Remains::NotBegun) => lost(&start, None, b""),
            Err(error) => {
                tracing::warn!(%session, %job, %error, "the dead shim's journal cannot be read");
                lost(&start, None, b"")
            }
        };
        // The journal is read from the disk.
        let Ok(found) = tokio::task::spawn_blocking(look).await else { continue };
        let _ = news.send(News::Happened(Box::new(Input::JobEnded { job, report: Box::new(found) }))).await;
    }
}

/// Begins to end a job; its end is news of its own.
pub(super) async fn stop(job: JobId, shell: Shell) {
    if let Err(error) = shell.stop_job(job).await {
        tracing::info!(%job, %error, "the job could not be stopped");
    }
}

/// Moves a running command; the call's end is news of its own.
pub(super) async fn background(call: CallId, job: JobId, shell: Shell, news: mpsc::Sender<News>) {
    if let Err(error) = shell.background(call, job, DEADLINE).await {
        let text = format!("The command was not moved to the background: {error}.");
        let _ = news.send(News::Happened(Box::new(Input::Noticed { text }))).await;
    }
}

/// Looks, and tells who asked. Without a shell only the log speaks.
pub(super) async fn look(look: Look, session: SessionId, known: Vec<Known>, shell: Option<Shell>) {
    match look {
        Look::List(reply) => {
            let infos = match &shell {
                Some(shell) => shell.jobs().await.unwrap_or_default(),
                None => Vec::new(),
            };
            let view = |known: &Known| job(session, known, infos.iter().find(|info| info.job == known.start.job));
            // A client that is gone does not wait.
            let _ = reply.send(Ok(known.iter().map(view).collect()));
        }
        Look::Read { known, since, max, wait_ms, reply } => {
            let answer = match &shell {
                Some(shell) => read(session, &known, since, max, wait_ms, shell).await,
                None => Err(no_shell("its output went with it")),
            };
            let _ = reply.send(answer);
        }
        Look::Env(reply) => {
            let answer = match &shell {
                Some(shell) => shell.env().await.map_err(|error| asked(&error)),
                None => Err(no_shell("it gets one with its next call")),
            };
            let _ = reply.send(answer.map(|env| Environment {
                session,
                variables: env.variables.into_iter().map(|(name, value)| Variable { name, value }).collect(),
                removed: env.removed,
            }));
        }
    }
}

async fn read(
    session: SessionId,
    known: &Known,
    since: u64,
    max: u64,
    wait_ms: u64,
    shell: &Shell,
) -> Result<JobOutput, WireError> {
    let id = known.start.job;
    let read = JobRead {
        job: id,
        offset: since,
        max: max.min(READ_BYTES_MAX),
        wait: Duration::from_millis(wait_ms.min(READ_WAIT_MS_MAX)),
        until_end: false,
        asker: None,
    };
    let piece = shell.read_job(read).await.map_err(|error| match error {
        ShellError::Refused { .. } => WireError {
            code: ErrorCode::NotFound,
            message: format!("the output of job {} is not kept any more", id.short()),
            hint: known
                .end
                .as_ref()
                .and_then(|end| end.spool.as_ref())
                .map(|path| format!("look into {path}"))
                .unwrap_or_default(),
        },
        ShellError::Lost | ShellError::Launch(_) | ShellError::Protocol(_) => asked(&error),
    })?;
    let infos = shell.jobs().await.map_err(|error| asked(&error))?;
    Ok(JobOutput {
        job: job(session, known, infos.iter().find(|info| info.job == id)),
        offset: piece.offset,
        bytes: piece.bytes.len() as u64,
        text: String::from_utf8_lossy(&piece.bytes).into_owned(),
        total: piece.total,
        over: piece.over,
    })
}

fn asked(error: &ShellError) -> WireError {
    unreachable_shell(&error.to_string())
}

fn no_shell(hint: &str) -> WireError {
    WireError { code: ErrorCode::Conflict, message: "the session has no shell at the moment".into(), hint: hint.into() }
}

/// A job as clients see it: what the log says, and what the shell knows beyond.
fn job(session: SessionId, known: &Known, info: Option<&JobInfo>) -> Job {
    let Known { start, end } = known;
    let ended = end.as_ref();
    let found: Option<Outcome> = ended
        .map(|end| end.outcome.clone())
        .or_else(|| info.and_then(|info| info.end.as_ref()).map(|end| outcome(end.end)));
    Job {
        session,
        job: start.job,
        call: start.call,
        command: start.command.clone(),
        description: start.description.clone(),
        cwd: start.cwd.clone(),
        started_at: start.started_at,
        running_ms: ended.map_or_else(|| info.map_or(0, |info| info.running_ms), |end| end.duration_ms),
        deadline_ms: start.deadline_ms,
        quiet_ms: info.map_or(0, |info| info.quiet_ms),
        output_bytes: info.map_or_else(|| ended.map_or(0, |end| end.output_bytes), |info| info.output_bytes),
        processes: info.map_or(0, |info| info.processes),
        spool: info.and_then(|info| info.spool.clone()).or_else(|| ended.and_then(|end| end.spool.clone())),
        outcome: found,
    }
}
