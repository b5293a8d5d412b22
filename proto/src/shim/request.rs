//! What the daemon asks of a shim.

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
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
    /// A request of a later version.
    #[serde(other)]
    Unknown,
}
