//! Commands that a user runs in a session's shell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{CallId, TurnId};

/// Runs a command in the session's shell as the user, while nothing else runs there. The response means that it is on disk;
/// its rows and its live output follow, and `interrupt` ends it. The model is told of it with its next request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// Id, its last digits, or name.
    pub session: String,
    /// Made by the client; sending the same id again changes nothing.
    pub call: CallId,
    /// The command, as bash reads it.
    pub command: String,
}

/// A user runs a command in the session's shell. It is a turn of its own: `call_started`, `call_finished` and `turn_ended`
/// follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandEntered {
    /// The turn.
    pub turn: TurnId,
    /// The call; live output names it.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// Who runs it.
    pub by: String,
}
