//! Background commands as a client asks for them and sees them, and the environment of a session's shell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Outcome;
use crate::ids::{CallId, JobId, SessionId, Timestamp};

/// Lists background commands: those that run, and the last ones that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListJobs {
    /// Only this session's; else of all sessions that this daemon serves at the moment.
    #[serde(default)]
    pub session: Option<String>,
}

/// Part of a job's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadJob {
    /// The job: its id, or the id's last digits.
    pub job: String,
    /// From this byte of the output on.
    #[serde(default)]
    pub since: u64,
    /// At most so many bytes, and at most [`READ_BYTES_MAX`].
    pub max: u64,
    /// How long to wait for more output or the end, in milliseconds, at most [`READ_WAIT_MS_MAX`].
    #[serde(default)]
    pub wait_ms: u64,
}

/// Most bytes of output in one answer: well under a frame, whatever JSON makes of them.
pub const READ_BYTES_MAX: u64 = 256 * 1024;

/// Longest wait of one request: a client that still cares asks again.
pub const READ_WAIT_MS_MAX: u64 = 10_000;

/// Ends a job and exactly its processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopJob {
    /// The job: its id, or the id's last digits.
    pub job: String,
}

/// Moves the running command to the background; the turn goes on without its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Id, its last digits, or name.
    pub session: String,
}

/// The environment of the session's shell, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowEnv {
    /// Id, its last digits, or name.
    pub session: String,
}

/// A background command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Its session.
    pub session: SessionId,
    /// Its id.
    pub job: JobId,
    /// The call that started it, or that ran it in the foreground before.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// What the model says it is for; may be empty.
    pub description: String,
    /// The directory it began in.
    pub cwd: String,
    /// When it became a job.
    pub started_at: Timestamp,
    /// How long it has run, or ran, in milliseconds.
    pub running_ms: u64,
    /// How long it may run, in milliseconds.
    pub deadline_ms: u64,
    /// Since when it has printed nothing, in milliseconds; 0 when it is over.
    pub quiet_ms: u64,
    /// All output so far, in bytes.
    pub output_bytes: u64,
    /// Its processes: while it runs, its own; after its end, those that it left behind.
    pub processes: u32,
    /// The file with the output, if it is in a file.
    pub spool: Option<String>,
    /// How it ended; absent while it runs.
    pub outcome: Option<Outcome>,
}

/// To `list_jobs`: those that run first, then the last ones that ran, each oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Jobs {
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// To `read_job`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobOutput {
    /// The job as it is.
    pub job: Job,
    /// Bytes of output before this piece; more than was asked for when that part is not kept.
    pub offset: u64,
    /// Bytes that this piece stands for; the text differs where bytes were not UTF-8.
    pub bytes: u64,
    /// The piece as text. It may hold control sequences: a client never sends it to a terminal as it is.
    pub text: String,
    /// All bytes of output so far.
    pub total: u64,
    /// Whether the job is over.
    pub over: bool,
}

/// To `background`: the job that the command is now going to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moving {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The job.
    pub job: JobId,
}

/// To `show_env`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The session.
    pub session: SessionId,
    /// Names and values, sorted by name.
    pub variables: Vec<Variable>,
    /// Names of variables that were kept from the shell, or are not shown, because they hold secrets.
    pub removed: Vec<String>,
}

/// A variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}
