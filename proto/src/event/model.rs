//! Rows about the model's work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Usage;
use crate::ids::{PromptId, TurnId};

/// The session's next requests are made with these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsChanged {
    /// Model id.
    pub model: String,
    /// How much work the model puts into an answer; absent: its default.
    pub effort: Option<String>,
    /// Output limit in tokens.
    pub max_tokens: u32,
    /// Who changed them.
    pub by: String,
}

/// The history is being replaced by a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionStarted {
    /// The turn, perhaps one of its own.
    pub turn: TurnId,
    /// Why, in a sentence.
    pub why: String,
}

/// The history was replaced by a summary, or the model wrote none and is asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compacted {
    /// The turn.
    pub turn: TurnId,
    /// What stands in the history's place; absent: the model wrote no summary.
    pub summary: Option<String>,
    /// What it cost.
    pub usage: Usage,
}

/// A note for the model in a running turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Steered {
    /// The turn.
    pub turn: TurnId,
    /// The note.
    pub text: String,
    /// Who wrote it.
    pub by: String,
}

/// The last prompt and what followed left the history. Changes of files stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rewound {
    /// The prompt.
    pub prompt: PromptId,
    /// Who asked.
    pub by: String,
}
