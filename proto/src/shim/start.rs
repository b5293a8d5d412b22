//! How a shim is started: one [`Start`] frame on its standard input, one [`Started`] frame on its standard output.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::SessionId;
use crate::secret::{EnvVars, Secret};

/// What a new shim must know. It travels on standard input, so that nothing secret stands in an argument list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// The session.
    pub session: SessionId,
    /// The shell's first directory.
    pub cwd: String,
    /// The shell's environment, before secrets are removed.
    pub env: EnvVars,
    /// Where the shim listens.
    pub socket: String,
    /// The session's private directory: spool, journal, token.
    pub state_dir: String,
    /// What a controller must present.
    pub token: Secret,
    /// Limits.
    #[serde(default)]
    pub limits: Limits,
    /// Variables that must not reach the shell, besides `ANTHROPIC_*`; a trailing `*` stands for any ending.
    #[serde(default)]
    pub secret_names: Vec<String>,
    /// How processes are accounted for.
    #[serde(default)]
    pub accounting: Wish,
    /// Directories beside the workspace in which files may be viewed and edited, by the user's configuration.
    #[serde(default)]
    pub extra_roots: Vec<String>,
}

/// Limits of a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Largest spool of one command, in bytes; beyond it the first and the last half are kept.
    pub spool_bytes: u64,
    /// `memory.max` of one command, in bytes; none = unlimited.
    pub memory_max: Option<u64>,
    /// `pids.max` of one command; none = unlimited.
    pub pids_max: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { spool_bytes: 64 * 1024 * 1024, memory_max: None, pids_max: None }
    }
}

/// How the daemon wishes processes to be accounted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// Control groups where they can be had, else marks.
    #[default]
    Auto,
    /// Marks, even where control groups could be had.
    Marks,
}

/// Which way of accounting for processes is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accounting {
    /// A control group for every command.
    Cgroup,
    /// Subreaper, environment mark and a walk over the process table.
    Marks,
}

/// A shim's answer to [`Start`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "started", rename_all = "snake_case")]
pub enum Started {
    /// It listens.
    Ready {
        /// The shim's process id.
        pid: u32,
        /// This shim's own id, unlike that of any other.
        instance: Uuid,
    },
    /// It could not start.
    Failed {
        /// Why.
        message: String,
    },
}
