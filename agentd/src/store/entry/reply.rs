//! A reply as it is kept, and its calls with their results.

use proto::approval::Decider;
use proto::diff::FileDiff;
use proto::event::{Outcome, Usage};
use proto::ids::{CallId, RequestId, Timestamp, TurnId};
use proto::json::JsonText;
use serde::{Deserialize, Serialize};

use super::long_ago;
use crate::content::Part;

/// The model's reply as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReply {
    /// The turn.
    pub turn: TurnId,
    /// The request it answers.
    pub request: RequestId,
    /// Its blocks.
    pub blocks: Vec<StoredBlock>,
    /// The API's stop reason.
    pub stop_reason: String,
    /// Tokens.
    pub usage: Usage,
    /// Whether it is part of the history the model sees. A refusal and an empty reply are not.
    pub kept: bool,
    /// Whether it replaces the history before it (server compaction).
    #[serde(default)]
    pub replaces_history: bool,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// The API's id of the message.
    #[serde(default)]
    pub message: String,
    /// Tokens of the conversation with it; 0 = not known.
    #[serde(default)]
    pub context_tokens: u64,
    /// Why the cache was not read though it should have been.
    #[serde(default)]
    pub cache_miss: Option<String>,
    /// When it came.
    #[serde(default = "long_ago")]
    pub at: Timestamp,
}

/// One block of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBlock {
    /// Exactly what is sent back to the model, as text.
    pub raw: String,
    /// What it is.
    pub kind: StoredKind,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredKind {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Thinking.
    Thinking {
        /// May be empty.
        text: String,
    },
    /// A tool call.
    Call(StoredCall),
    /// Anything else.
    Other {
        /// The API's type.
        kind: String,
    },
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCall {
    /// Our id.
    pub call: CallId,
    /// The API's id.
    pub tool_use_id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: StoredInput,
}

/// A tool call's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredInput {
    /// One JSON document.
    Valid(JsonText),
    /// Not JSON, or cut by the output limit: the exact text. Never run.
    Broken(String),
}

/// A call's one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub outcome: Outcome,
    /// What the model receives.
    pub content: Vec<Part>,
    /// Whether the model is told that it failed.
    pub is_error: bool,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The change it made.
    pub diff: Option<FileDiff>,
    /// Who or what refused it, where no approval says so.
    #[serde(default)]
    pub refused_by: Option<Decider>,
}
