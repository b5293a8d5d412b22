//! What a shim answers and tells.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::jobs::{JobInfo, ShellEnv};
use super::outcome::{RestartResult, RunEnd};
use super::start::Accounting;
use crate::ids::{CallId, JobId};

/// The header of a frame from the shim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromShim {
    /// The request this answers; none for news.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re: Option<u64>,
    /// What is said.
    #[serde(flatten)]
    pub reply: Reply,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Answer to `Hello`.
    Welcome {
        /// The version spoken from here on.
        version: u32,
        /// This shim's own id.
        instance: Uuid,
        /// The shim's process id.
        pid: u32,
        /// How processes are accounted for.
        accounting: Accounting,
    },
    /// It was done, or has begun.
    Done {},
    /// It was not done.
    Refused {
        /// Why, for programs.
        code: Refusal,
        /// Why, for people.
        message: String,
    },
    /// News: the body is output of a call.
    Output {
        /// The call.
        call: CallId,
        /// Bytes of output before the body.
        offset: u64,
    },
    /// News: a call is over; the body is its output's first and last bytes.
    Finished {
        /// The call.
        call: CallId,
        /// How.
        #[serde(flatten)]
        end: RunEnd,
    },
    /// Answer to `Restart`.
    Restarted {
        /// What was done.
        #[serde(flatten)]
        result: RestartResult,
    },
    /// Answer to `Read`; the body is the output from that offset on.
    Data {
        /// Bytes of output before the body; more than was asked for when that part is not kept.
        offset: u64,
        /// All bytes of output so far.
        total: u64,
        /// Whether the command is over.
        over: bool,
    },
    /// Answer to `State`.
    State {
        /// The shell's state.
        #[serde(flatten)]
        state: ShellState,
    },
    /// Answer to `File`; the body is the file operation's answer as JSON.
    File {},
    /// Answer to `StartJob`: it runs, or ran.
    JobStarted {
        /// The job.
        job: JobId,
        /// The directory it began in.
        cwd: String,
    },
    /// Answer to `Jobs`.
    Jobs {
        /// Those that run, and those whose end was not forgotten, oldest first.
        jobs: Vec<JobInfo>,
    },
    /// News: a job has ended or is silent; `Jobs` tells which.
    JobsChanged {},
    /// Answer to `Env`.
    Env {
        /// The environment.
        #[serde(flatten)]
        env: ShellEnv,
    },
    /// A reply of a later version.
    #[serde(other)]
    Unknown,
}

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Wrong token, or a peer that may not connect.
    Forbidden,
    /// No version in common.
    Version,
    /// No such call.
    UnknownCall,
    /// This shim does not know the request.
    Unsupported,
    /// The request makes no sense.
    Invalid,
    /// Too much is waiting.
    Busy,
    /// The system said no.
    Failed,
    /// A reason of a later version.
    #[serde(other)]
    Other,
}

/// What is known of the shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellState {
    /// Its directory.
    pub cwd: String,
    /// Its process.
    pub shell_pid: u32,
    /// The call that is running.
    #[serde(default)]
    pub running: Option<CallId>,
    /// Processes of earlier calls that live.
    #[serde(default)]
    pub background: u32,
    /// What of the shell's state makes names mean something else; none while that is not known, because a command ran
    /// and the shell has not told since.
    #[serde(default)]
    pub facts: Option<Facts>,
}

/// What a shell has that a fresh one of this session does not have: names only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Functions.
    pub functions: Vec<String>,
    /// Aliases.
    pub aliases: Vec<String>,
    /// Commands that `hash` or `enable` gave another meaning, or that a loaded builtin has.
    pub rebound: Vec<String>,
    /// Variables that the shell or programs obey and that are not as the session began with them: exported ones that
    /// are new, gone or changed, and those of the shell's own that matter.
    pub variables: Vec<String>,
    /// Signals and events with a trap.
    pub traps: Vec<String>,
    /// Options that were switched on.
    pub options: Vec<String>,
    /// Variables whose assignment or use may evaluate code.
    pub attributes: Vec<String>,
}
