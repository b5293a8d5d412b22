//! The task of one tool call: assess it, or run it.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use proto::approval::Subject;
use proto::ids::{CallId, SessionId};
use proto::json::JsonText;
use proto::mode::Mode;
use proto::shim::reply::Facts;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::Context;
use super::deeds::OUTPUT_QUEUE_MAX;
use super::machine::{Assessment, Input, Runnable};
use super::news::News;
use super::ruling::{self, Basis, Ruled};
use crate::faults::{self, Point};
use crate::policy::{Reported, ShellFacts};
use crate::shell::recover::{self, Remains};
use crate::shell::{Shell, ShellError, ShellLimits};
use crate::store::entry::Expect;
use crate::store::job::JobStart;
use crate::tools::call::{self, Ended, Parsed, Prospect, RunSpec};
use crate::tools::{ToolResult, bash, output};

/// How long a command may run when the model asked in the same reply to start the shell anew behind it: calls run in
/// order, and a restart does not wait for a deadline.
const RESTART_PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of a lost command's output that the model is shown: the end says how far it came.
const CAPTURED_BYTES_MAX: u64 = 8 * 1024;

/// A call for the shell.
#[derive(Clone, Debug)]
pub(super) struct CallJob {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: JsonText,
    /// What earlier commands may have done to the shell.
    pub facts: ShellFacts,
    /// The session's mode.
    pub mode: Mode,
    /// The session's own rules.
    pub session_rules: Vec<String>,
    /// The session's background commands, for the tools that speak of them.
    pub jobs: Vec<JobStart>,
    /// A restart of the shell stands behind it in the same reply.
    pub restart_follows: bool,
    /// Run it; else only find out what it would do.
    pub run: Option<RunOrder>,
}

/// A call that may run.
#[derive(Clone, Debug)]
pub(super) struct RunOrder {
    /// The shim that the log says runs it.
    pub shim: Option<Uuid>,
    /// What must hold at the run.
    pub expect: Expect,
    /// Whether it may have been started before, by an earlier daemon.
    pub again: bool,
}

/// Does the job and tells the session.
pub(super) async fn run(
    job: CallJob,
    shell: Shell,
    context: Arc<Context>,
    workspace: PathBuf,
    session: SessionId,
    news: mpsc::Sender<News>,
) {
    let work = async {
        match &job.run {
            None => assess(&job, &shell, &workspace, &context).await,
            Some(order) => execute(&job, order, &shell, &context, session, &news).await,
        }
    };
    // A fault of ours ends this call, not the session.
    let input = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(call = %job.call, "a tool call's task panicked");
        fault(&job)
    });
    faults::reach(Point::CallOver);
    let _ = news.send(News::Happened(Box::new(input))).await;
}

async fn assess(job: &CallJob, shell: &Shell, workspace: &Path, context: &Arc<Context>) -> Input {
    let found = match call::parse(&job.tool, &job.input) {
        Ok(parsed) => match call::prospect(job.call, &parsed, shell).await {
            Ok(prospect) => {
                let (job, workspace, context) = (job.clone(), workspace.to_owned(), Arc::clone(context));
                // Rule files and repositories are read from the disk.
                let ruled =
                    tokio::task::spawn_blocking(move || runnable(&job, &parsed, prospect, &workspace, &context));
                match ruled.await {
                    Ok(runnable) => Assessment::Runnable(Box::new(runnable)),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                }
            }
            Err(result) => Assessment::Settled(result),
        },
        Err(result) => Assessment::Settled(result),
    };
    Input::CallAssessed { call: job.call, assessment: Box::new(found) }
}

fn runnable(job: &CallJob, parsed: &Parsed, prospect: Prospect, workspace: &Path, context: &Context) -> Runnable {
    let Prospect { mut subject, mut digest, expect, repeatable, facts } = prospect;
    let cwd = match &expect {
        Expect::Directory(cwd) => PathBuf::from(cwd),
        Expect::Nothing | Expect::File { .. } => workspace.to_owned(),
    };
    let told = facts.is_some();
    let facts = facts.map_or_else(|| job.facts.clone(), |facts| reported(&facts));
    let basis = Basis {
        workspace,
        cwd: &cwd,
        facts: &facts,
        config: &context.paths.config,
        files: &context.rules,
        session_rules: &job.session_rules,
        mode: job.mode,
        read_only: context.config().policy.read_only,
    };
    let Ruled { ruling, parts, proposal, problems } = ruling::rule(parsed, &basis);
    if let Subject::Command(command) = &mut subject {
        command.parts = parts;
        digest = call::bound_digest(&digest, &facts.fingerprint());
    }
    let mode = job.mode;
    Runnable { ruling, mode, subject, digest, expect, repeatable, facts, told, proposal, problems }
}

fn reported(facts: &Facts) -> ShellFacts {
    ShellFacts::reported(&Reported {
        functions: &facts.functions,
        aliases: &facts.aliases,
        rebound: &facts.rebound,
        variables: &facts.variables,
        traps: &facts.traps,
        options: &facts.options,
        attributes: &facts.attributes,
    })
}

async fn execute(
    job: &CallJob,
    order: &RunOrder,
    shell: &Shell,
    context: &Context,
    session: SessionId,
    news: &mpsc::Sender<News>,
) -> Input {
    if order.shim.is_some_and(|shim| shim != shell.instance()) {
        return what_remains(session, job.call, shell.limits(), context);
    }
    let parsed = match call::parse(&job.tool, &job.input) {
        Ok(parsed) => parsed,
        Err(result) => return ended(job.call, result, 0),
    };
    let deadline = context.config().shell.deadline.get();
    let deadline = if job.restart_follows { deadline.min(RESTART_PATIENCE) } else { deadline };
    let spec =
        RunSpec { call: job.call, expect: order.expect.clone(), again: order.again, deadline, jobs: job.jobs.clone() };
    faults::reach(Point::CallToRun);
    match run_with_output(&spec, &parsed, shell, news).await {
        Ok(Ended { result, duration, job: new }) => {
            if let Some(new) = new {
                let started = Input::JobStarted { call: job.call, new: Box::new(new) };
                let _ = news.send(News::Happened(Box::new(started))).await;
            }
            ended(job.call, result, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
        }
        Err(ShellError::Lost) => what_remains(session, job.call, shell.limits(), context),
        Err(error) => ended(job.call, call::shell_failure(&error), 0),
    }
}

/// Runs the call while its output goes to the session as it comes.
async fn run_with_output(
    spec: &RunSpec,
    parsed: &Parsed,
    shell: &Shell,
    news: &mpsc::Sender<News>,
) -> Result<Ended, ShellError> {
    let (sender, mut output) = mpsc::channel(OUTPUT_QUEUE_MAX);
    let run = call::run(spec, parsed, shell, sender);
    tokio::pin!(run);
    let result = loop {
        tokio::select! {
            Some(chunk) = output.recv() => {
                let _ = news.send(News::Output { call: spec.call, chunk }).await;
            }
            result = &mut run => break result,
        }
    };
    while let Ok(chunk) = output.try_recv() {
        let _ = news.send(News::Output { call: spec.call, chunk }).await;
    }
    result
}

/// What a dead shim left of a call: its result, or the fact that nobody knows.
fn what_remains(session: SessionId, call: CallId, limits: &ShellLimits, context: &Context) -> Input {
    let result = match recover::remains(session, call, &context.paths.sessions()) {
        Ok(Remains::Ended(run)) => return ended(call, bash::render(&run, limits), run.end.duration_ms),
        Ok(Remains::NotBegun) => call::not_begun(),
        Ok(Remains::Unknown { spool }) => call::unknown(&spool.map(|path| captured(&path)).unwrap_or_default()),
        Err(error) => {
            tracing::warn!(%session, %call, %error, "the dead shim's journal cannot be read");
            call::unknown("")
        }
    };
    ended(call, result, 0)
}

/// The last part of what a command wrote before its shim died.
pub(super) fn captured(spool: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let mut bytes = Vec::new();
    let read = std::fs::File::open(spool).and_then(|mut file| {
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(CAPTURED_BYTES_MAX)))?;
        file.take(CAPTURED_BYTES_MAX).read_to_end(&mut bytes)
    });
    match read {
        Ok(_) => output::clean(&bytes),
        Err(_) => String::new(),
    }
}

fn ended(call: CallId, result: ToolResult, duration_ms: u64) -> Input {
    Input::CallEnded { call, result: Box::new(result), duration_ms }
}

/// What the machine hears when the task itself failed.
fn fault(job: &CallJob) -> Input {
    match &job.run {
        Some(_) => ended(job.call, call::unknown(""), 0),
        None => {
            let result =
                crate::tools::failure("Not run: agentd failed while it looked at this call; its log says how.");
            Input::CallAssessed { call: job.call, assessment: Box::new(Assessment::Settled(result)) }
        }
    }
}

/// What the machine hears of a call whose shell cannot be started.
pub(super) fn no_shell(job: &CallJob, error: &str) -> Input {
    let result = crate::tools::failure(&format!("Not run: the session's shell cannot be started ({error})."));
    match &job.run {
        Some(_) => ended(job.call, result, 0),
        None => Input::CallAssessed { call: job.call, assessment: Box::new(Assessment::Settled(result)) },
    }
}
