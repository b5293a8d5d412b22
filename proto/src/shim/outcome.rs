//! How a command ended, and what of its output is told with the news.

use serde::{Deserialize, Serialize};

use crate::ids::JobId;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl ExitStatus {
    /// As bash counts: 128 + n after signal n.
    #[must_use]
    pub fn as_bash(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// By itself; the shell lives on.
    Exited {
        /// Its status.
        status: i32,
    },
    /// It ended the shell (`exit`, `exec`, `kill $$`, `set -e`).
    ShellEnded {
        /// How the shell ended.
        status: ExitStatus,
    },
    /// The deadline ended it.
    TimedOut {
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// The user ended it.
    Interrupted {},
    /// A restart of the shell ended it.
    Restarted {},
    /// It did not run: the shell was broken in a way that made it impossible.
    NotRun {},
    /// It goes on in the background; this is the end of the call only.
    Moved {
        /// The job that it is now.
        job: JobId,
    },
}

/// What became of the shell's state when it had to be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    /// Why there is a new shell.
    pub why: Why,
    /// The new shell's directory.
    pub cwd: String,
    /// Whether exported variables, options, functions and aliases were brought over.
    #[serde(default)]
    pub restored: bool,
    /// Whether `set -e` was on and was left off.
    #[serde(default)]
    pub errexit_dropped: bool,
}

/// Why there is a new shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// The old one ended.
    Ended {
        /// How.
        status: ExitStatus,
    },
    /// The old one did not come back from a command that had to end.
    Stuck {},
    /// It was asked for.
    Asked {},
    /// The old one went on in the background with its command.
    Moved {},
}

/// A limit of the kernel's that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum LimitHit {
    /// Processes were killed for memory.
    Memory {
        /// The limit in bytes.
        bytes: u64,
    },
    /// Forks were refused.
    Processes {
        /// The limit.
        count: u64,
    },
}

/// Everything about a command's end but the output itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Why it ended.
    #[serde(flatten)]
    pub end: End,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// All output, in bytes.
    pub output_bytes: u64,
    /// All line feeds in it.
    pub output_lines: u64,
    /// The body's first bytes that are the output's first bytes; the rest of the body are its last bytes. When the body
    /// is the whole output, this is its length.
    pub head_bytes: u64,
    /// Line feeds in the part that the body leaves out.
    #[serde(default)]
    pub omitted_lines: u64,
    /// The file with the output, if it is in a file.
    #[serde(default)]
    pub spool: Option<String>,
    /// Bytes missing in the middle of that file, because it reached its limit.
    #[serde(default)]
    pub spool_gap_bytes: u64,
    /// Processes killed at the end.
    #[serde(default)]
    pub killed: u32,
    /// Present when the shell is a new one.
    #[serde(default)]
    pub renewed: Option<Renewed>,
    /// Limits that were hit.
    #[serde(default)]
    pub limits_hit: Vec<LimitHit>,
    /// A shell function `builtin` had to be removed to learn of the end.
    #[serde(default)]
    pub builtin_freed: bool,
    /// Processes of this command that go on in the background.
    #[serde(default)]
    pub background: u32,
}

/// The answer to a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartResult {
    /// The new shell's directory.
    pub cwd: String,
    /// Processes killed.
    pub killed: u32,
}
