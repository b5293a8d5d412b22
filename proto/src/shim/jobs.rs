//! What a shim knows of background commands, and of its shell's environment.
//!
//! A job's output is read with [`super::request::Request::Read`] under the job's UUID as a call id, and its end is forgotten
//! with `Forget` in the same way.

use serde::{Deserialize, Serialize};

use super::outcome::RunEnd;
use crate::ids::JobId;

/// A background command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobInfo {
    /// Its id.
    pub job: JobId,
    /// How long it has run, or ran, in milliseconds.
    pub running_ms: u64,
    /// Since when it has printed nothing, in milliseconds; while it runs.
    #[serde(default)]
    pub quiet_ms: u64,
    /// How long it may run, in milliseconds.
    pub deadline_ms: u64,
    /// Whether it printed nothing for as long as was to be told.
    #[serde(default)]
    pub silent: bool,
    /// All output so far, in bytes.
    pub output_bytes: u64,
    /// The file with the output, if it is in a file.
    #[serde(default)]
    pub spool: Option<String>,
    /// Its processes: while it runs, its own; after its end, those that it left behind.
    #[serde(default)]
    pub processes: u32,
    /// How it ended; none while it runs.
    #[serde(default)]
    pub end: Option<RunEnd>,
}

/// The shell's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellEnv {
    /// Names and values, sorted by name.
    pub variables: Vec<(String, String)>,
    /// Names of variables that were kept from the shell, or are not shown, because they hold secrets.
    pub removed: Vec<String>,
}
