//! What rows about a session's beginning hold.

use proto::ids::{Seq, SessionId};
use proto::mode::Mode;
use serde::{Deserialize, Serialize};

/// The session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    /// The workspace.
    pub cwd: String,
    /// The name, if any.
    pub name: Option<String>,
    /// The model.
    pub model: String,
    /// `anthropic`, `compat` or `scripted`.
    pub provider: String,
    /// The first mode.
    #[serde(default)]
    pub mode: Mode,
}

/// Where a session comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// The other session.
    pub from: SessionId,
    /// Its last row that was taken over.
    pub at: Seq,
    /// Who asked.
    pub by: String,
    /// What the model is told.
    pub note: String,
}
