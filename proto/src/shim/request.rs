//! What the daemon asks of a shim.

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, JobId};
use crate::secret::Secret;

/// Longest command: what one call may hand to bash.
pub const COMMAND_MAX: usize = 1024 * 1024;

/// The header of a frame to the shim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToShim {
    /// Repeated by the answer.
    pub id: u64,
    /// What is asked.
    #[serde(flatten)]
    pub request: Request,
}

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// The first frame.
    Hello {
        /// The session's token.
        token: Secret,
        /// Oldest version the daemon speaks.
        min: u32,
        /// Newest version the daemon speaks.
        max: u32,
    },
    /// Runs the body as a command, once; for a call that is known already only its news are told.
    Run {
        /// The call.
        call: CallId,
        /// Milliseconds it may run.
        deadline_ms: u64,
        /// First bytes of the output to report at the end.
        head_bytes: u64,
        /// Last bytes of the output to report at the end.
        tail_bytes: u64,
        /// Output before this offset is known already.
        #[serde(default)]
        offset: u64,
    },
    /// Ends a running call.
    Interrupt {
        /// The call.
        call: CallId,
    },
    /// Ends everything and starts a fresh shell; at most once for a call.
    Restart {
        /// The call.
        call: CallId,
    },
    /// Part of a call's output.
    Read {
        /// The call.
        call: CallId,
        /// From this byte of the output.
        offset: u64,
        /// At most this many bytes.
        max: u64,
        /// For a job: how long to wait for something to tell, in milliseconds.
        #[serde(default)]
        wait_ms: u64,
        /// Wait for its end; else for more output.
        #[serde(default)]
        until_end: bool,
        /// The call that waits, if one does: interrupting it ends the wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asker: Option<CallId>,
    },
    /// The shell's directory and process.
    State {},
    /// Does a file operation; the body is the operation as JSON.
    File {
        /// The call.
        call: CallId,
    },
    /// The daemon has the call's result on disk.
    Forget {
        /// The call.
        call: CallId,
    },
    /// Ends everything, the shim included.
    Shutdown {},
    /// Runs the body as a command in the background, once; for a job that is known already it only says so.
    StartJob {
        /// The job.
        job: JobId,
        /// Milliseconds it may run.
        deadline_ms: u64,
        /// It is news when it prints nothing for so long; 0 = never.
        #[serde(default)]
        silence_ms: u64,
    },
    /// Moves a running call into the background; a new shell takes its place.
    Background {
        /// The call.
        call: CallId,
        /// The job that it becomes.
        job: JobId,
        /// Milliseconds it may run from now on.
        deadline_ms: u64,
    },
    /// Ends a job and exactly its processes.
    StopJob {
        /// The job.
        job: JobId,
    },
    /// The jobs.
    Jobs {},
    /// The shell's environment.
    Env {},
    /// A request of a later version.
    #[serde(other)]
    Unknown,
}
