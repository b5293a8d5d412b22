//! The tools for background commands: `bash_background` starts one, `job_output` shows what it printed or lists them all,
//! `job_stop` ends one.
//!
//! A job is named to the model by the last digits of its id, as to people.
//! Not here: when the model hears of an end (`session::machine`), how a job runs (the shim).

mod input;
mod notice;
mod reading;

use std::time::Duration;

use proto::event::Outcome;
use proto::ids::{CallId, JobId};

pub use input::{BackgroundInput, JobInput, parse_background, parse_output, parse_stop};
pub use notice::{Cause, Report, TAIL_BYTES, lost, outcome, report, silence_text};

use super::{Part, ToolResult, failure};
use crate::shell::jobs::JobInfo;
use crate::shell::{Shell, ShellError};
use crate::store::job::JobStart;

/// Name of the tool that starts a background command.
pub const BACKGROUND: &str = "bash_background";

/// Name of the tool that shows what it printed.
pub const OUTPUT: &str = "job_output";

/// Name of the tool that ends it.
pub const STOP: &str = "job_stop";

/// How long a background command may run when nothing is said: a long build or test run, and a forgotten server is not
/// for ever.
pub const DEADLINE: Duration = Duration::from_secs(60 * 60);

/// The longest time that may be asked for.
pub const DEADLINE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a stopped job is waited for: its grace and the kernel's time.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// A background command that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Its id.
    pub job: JobId,
    /// The command.
    pub command: String,
    /// What it is for.
    pub description: String,
    /// Where it began.
    pub cwd: String,
    /// How long it may run.
    pub deadline: Duration,
    /// After how much silence that is told.
    pub silence: Option<Duration>,
    /// Whether it ran in the foreground before.
    pub moved: bool,
}

/// One line for people.
#[must_use]
pub fn title(input: &JobInput) -> String {
    match input {
        JobInput::List => "list background commands".to_owned(),
        JobInput::Output { job, .. } => format!("output of job {job}"),
        JobInput::Stop { job } => format!("stop job {job}"),
    }
}

/// Starts a background command, or finds out that this call has.
///
/// # Errors
/// [`ShellError::Lost`] when it is not known whether it began.
pub async fn start(
    call: CallId,
    input: &BackgroundInput,
    shell: &Shell,
) -> Result<(ToolResult, Option<NewJob>), ShellError> {
    let job = JobId(call.0);
    match shell.start_job(job, &input.command, input.deadline, input.silence).await {
        Ok(cwd) => {
            let text = format!(
                "[job {} runs in the background for at most {}; you are told when it ends. job_output shows what it prints, \
                 job_stop ends it.]",
                job.short(),
                span(input.deadline)
            );
            let result = ToolResult {
                content: vec![Part::Text(text)],
                is_error: false,
                outcome: Outcome::Background { job },
                diff: None,
            };
            let new = NewJob {
                job,
                command: input.command.clone(),
                description: input.description.clone(),
                cwd,
                deadline: input.deadline,
                silence: input.silence,
                moved: false,
            };
            Ok((result, Some(new)))
        }
        Err(ShellError::Lost) => Err(ShellError::Lost),
        Err(error) => Ok((failure(&format!("Not run: {error}.")), None)),
    }
}

/// Does one of the other two.
///
/// # Errors
/// [`ShellError::Lost`].
pub async fn run(call: CallId, input: &JobInput, shell: &Shell, known: &[JobStart]) -> Result<ToolResult, ShellError> {
    let jobs = match shell.jobs().await {
        Ok(jobs) => jobs,
        Err(ShellError::Lost) => return Err(ShellError::Lost),
        Err(error) => return Ok(failure(&format!("Not done: {error}."))),
    };
    let (digits, what) = match input {
        JobInput::List => return Ok(done(reading::list(&jobs, known))),
        JobInput::Output { job, .. } | JobInput::Stop { job } => (job, input),
    };
    let info = match find(digits, &jobs) {
        Ok(info) => info,
        Err(text) => return Ok(failure(&format!("{text}\n{}", reading::list(&jobs, known)))),
    };
    match what {
        JobInput::List => Ok(done(String::new())),
        JobInput::Output { since, wait, .. } => reading::output(call, &info, *since, *wait, shell).await,
        JobInput::Stop { .. } => stop(call, &info, shell).await,
    }
}

async fn stop(call: CallId, info: &JobInfo, shell: &Shell) -> Result<ToolResult, ShellError> {
    let was_over = info.end.is_some();
    match shell.stop_job(info.job).await {
        Ok(()) => {}
        Err(ShellError::Lost) => return Err(ShellError::Lost),
        Err(error) => return Ok(failure(&format!("Not stopped: {error}."))),
    }
    if was_over {
        let left = match info.processes {
            0 => "it has left nothing behind".to_owned(),
            count => format!("{count} processes that it had left behind were ended"),
        };
        return Ok(done(format!("[job {} was over already; {left}]", info.job.short())));
    }
    reading::output(call, info, None, STOP_WAIT, shell).await
}

/// The job that digits name.
fn find(digits: &str, jobs: &[JobInfo]) -> Result<JobInfo, String> {
    let digits = digits.trim().trim_start_matches("job ").replace('-', "").to_lowercase();
    let fits = |info: &&JobInfo| !digits.is_empty() && info.job.0.simple().to_string().ends_with(&digits);
    let mut found = jobs.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(info), None) => Ok(info.clone()),
        (Some(_), Some(_)) => Err(format!("Several jobs end with `{digits}`. Give all eight digits.")),
        (None, _) => Err(format!("There is no job `{digits}` in this session.")),
    }
}

fn done(text: String) -> ToolResult {
    ToolResult { content: vec![Part::Text(text)], is_error: false, outcome: Outcome::Done {}, diff: None }
}

/// A time as a model reads it.
fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds >= 3600 && seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        seconds if seconds >= 10 => format!("{seconds} s"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests;
