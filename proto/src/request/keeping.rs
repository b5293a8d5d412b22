//! Requests about sessions that are kept: search, fork, prune.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Endpoint;
use crate::ids::Seq;
use crate::secret::EnvVars;

/// Finds words in all sessions, archived ones too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Words; rows with all of them are found, in any case, and longer words that begin with them.
    pub text: String,
    /// At most so many rows, newest first.
    pub limit: u32,
}

/// Starts a session that goes on from a row of another, with its history and a new shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkSession {
    /// The other: id, its last digits, or name.
    pub session: String,
    /// Rows up to this one are taken over, back to the last moment at which nothing was under way; all when absent.
    #[serde(default)]
    pub at: Option<Seq>,
    /// A name for the new session.
    #[serde(default)]
    pub name: Option<String>,
    /// The client's environment, as in [`super::CreateSession`].
    #[serde(default)]
    pub env: EnvVars,
    /// The client's endpoint, as in [`super::CreateSession`].
    #[serde(default)]
    pub endpoint: Endpoint,
}

/// Removes sessions that have not been used for a while, with their logs. One in which anything is under way, or to
/// which somebody is attached, stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prune {
    /// Those whose last row is older than this.
    pub older_than_ms: u64,
    /// Only archived ones.
    #[serde(default)]
    pub archived: bool,
    /// Only tell which.
    #[serde(default)]
    pub dry_run: bool,
}
