//! What the model asks of the tools for background commands.

use std::time::Duration;

use proto::json::JsonText;
use proto::shim::request::COMMAND_MAX;
use serde_json::{Map, Value};

use super::{DEADLINE, DEADLINE_MAX};
use crate::tools::params::{number, object, optional, required};

/// The longest wait of `job_output`: a model that wants more asks again, and sees meanwhile what is printed.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// A command for the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundInput {
    /// The command.
    pub command: String,
    /// What it is for; may be empty.
    pub description: String,
    /// How long it may run.
    pub deadline: Duration,
    /// After how much silence that is told.
    pub silence: Option<Duration>,
}

/// Something about jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobInput {
    /// Which there are.
    List,
    /// What one printed.
    Output {
        /// Its digits.
        job: String,
        /// From this byte on; else the last part.
        since: Option<u64>,
        /// How long to wait for its end.
        wait: Duration,
    },
    /// One is to end.
    Stop {
        /// Its digits.
        job: String,
    },
}

/// Understands the input of `bash_background`.
///
/// # Errors
/// Text for the model that says how to call the tool.
pub fn parse_background(input: &JsonText) -> Result<BackgroundInput, String> {
    let input = object(input.as_str(), || "`command`".to_owned())?;
    let command = required(&input, "command", "what to run")?;
    if command.trim().is_empty() {
        return Err("The parameter `command` is empty. Nothing was run.".to_owned());
    }
    if command.contains('\0') {
        return Err("The command contains a NUL character, which bash cannot take. It was not run.".to_owned());
    }
    if command.len() > COMMAND_MAX {
        return Err(format!("The command is {} bytes long; at most {COMMAND_MAX} can be run.", command.len()));
    }
    let description = optional(&input, "description")?.unwrap_or_default();
    let deadline = seconds(&input, "deadline_seconds", "how long it may run")?.unwrap_or(DEADLINE).min(DEADLINE_MAX);
    let silence = seconds(&input, "silence_seconds", "after how much silence you are told")?;
    Ok(BackgroundInput { command, description, deadline, silence })
}

/// Understands the input of `job_output`.
///
/// # Errors
/// As above.
pub fn parse_output(input: &JsonText) -> Result<JobInput, String> {
    let input = object(input.as_str(), || "`job`, or nothing to list all".to_owned())?;
    let Some(job) = optional(&input, "job")?.filter(|job| !job.trim().is_empty()) else { return Ok(JobInput::List) };
    let since = number(&input, "since", "the byte of the output from which on it is shown")?;
    let wait = number(&input, "wait_seconds", "how long to wait for the job's end")?.unwrap_or(0);
    Ok(JobInput::Output { job, since, wait: Duration::from_secs(wait).min(WAIT_MAX) })
}

/// Understands the input of `job_stop`.
///
/// # Errors
/// As above.
pub fn parse_stop(input: &JsonText) -> Result<JobInput, String> {
    let input = object(input.as_str(), || "`job`".to_owned())?;
    Ok(JobInput::Stop { job: required(&input, "job", "the job's digits")? })
}

/// A number of seconds, more than none.
fn seconds(input: &Map<String, Value>, name: &str, meaning: &str) -> Result<Option<Duration>, String> {
    match number(input, name, meaning)? {
        Some(0) => Err(format!("The parameter `{name}` must be more than 0: {meaning}.")),
        Some(seconds) => Ok(Some(Duration::from_secs(seconds).min(DEADLINE_MAX))),
        None => Ok(None),
    }
}
