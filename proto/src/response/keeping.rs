//! What is answered about sessions that are kept: what a search found, what was pruned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SessionInfo;
use crate::ids::{Seq, SessionId, Timestamp};

/// What a search found, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hits {
    /// The rows.
    pub hits: Vec<Hit>,
}

/// One row that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: Option<String>,
    /// The first line of its first prompt.
    pub title: String,
    /// The row.
    pub seq: Seq,
    /// When it was committed.
    pub at: Timestamp,
    /// Who speaks in it.
    pub speaker: Speaker,
    /// The words around the first match, in one line.
    pub excerpt: String,
}

/// Who speaks in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The user: a prompt.
    User,
    /// The model: text and calls.
    Model,
    /// A tool: a call's result.
    Tool,
}

/// What was removed, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pruned {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// Whether they were removed; else it was only asked which.
    pub removed: bool,
    /// The database's size before, in bytes.
    pub bytes_before: u64,
    /// And after.
    pub bytes_after: u64,
}
