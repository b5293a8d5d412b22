//! What the row about a user's own command holds.

use proto::ids::{CallId, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

/// A command that a user runs in the session's shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnteredCommand {
    /// The turn.
    pub turn: TurnId,
    /// Its call; the client made the id.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// Who runs it.
    pub by: String,
    /// When it was entered.
    pub at: Timestamp,
}
