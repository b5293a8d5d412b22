//! Rows about the session as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{Seq, SessionId};
use crate::mode::Mode;

/// Where a session's first rows come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionForked {
    /// The other session.
    pub from: SessionId,
    /// Its last row that was taken over.
    pub at: Seq,
    /// Who asked.
    pub by: String,
}

/// Facts that hold for the whole session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCreated {
    /// The workspace.
    pub cwd: String,
    /// The name, if it has one.
    pub name: Option<String>,
    /// The model.
    pub model: String,
    /// `anthropic`, `compat` or `scripted`.
    pub provider: String,
    /// Its first mode.
    pub mode: Mode,
}

/// The session's name changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRenamed {
    /// The new name.
    pub name: String,
    /// Who changed it.
    pub by: String,
}

/// The session left the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionArchived {
    /// Who archived it.
    pub by: String,
}

/// The session's mode changed. It decides for calls that are not decided yet, an open question included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModeChanged {
    /// The new mode.
    pub mode: Mode,
    /// Who changed it.
    pub by: String,
}
