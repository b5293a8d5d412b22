//! The model, in our own words: what a session sends and what comes back, whatever provider is behind it.
//!
//! [`anthropic`] is the Messages API over HTTP (also its compatible servers), [`scripted`] plays a scenario file through
//! the same face. Neither knows of sessions, tools or the store, and neither retries: [`retry`] says when to.
//!
//! The way of a request: [`wire`] writes it as `capabilities` says; the answer's bytes become events in [`sse`] and
//! `stream`, and a [`Reply`] in `assemble`; an answer that is no reply becomes a [`ModelError`] in `failure`.

pub mod anthropic;
mod assemble;
mod block;
mod capabilities;
pub mod error;
mod failure;
mod object;
mod price;
mod progress;
pub mod retry;
mod scenario;
mod script;
pub mod scripted;
pub mod sse;
mod stream;
mod tools;
pub mod wire;

pub use crate::effort::Effort;
pub use anthropic::ApiKey;
pub use capabilities::{Capabilities, of as capabilities_of};
pub use error::{ErrorKind, ModelError};
pub use tools::tool_definitions;
pub use wire::{Profile, is_thinking};

use std::sync::Arc;

use proto::json::JsonText;
use tokio::sync::mpsc;

/// Where replies come from.
#[derive(Clone, Debug)]
pub enum Provider {
    /// A server that speaks the Messages API.
    Anthropic(Arc<anthropic::Client>),
    /// A scenario.
    Scripted(Arc<scripted::Player>),
}

impl Provider {
    /// One try. Dropping the future drops the connection.
    ///
    /// Progress goes to `progress` while it comes; a receiver that is slow gets larger pieces, and one that still lags
    /// behind when the reply is there misses the rest, which the reply holds.
    ///
    /// # Errors
    /// Whatever failed; [`retry::next_try`] tells whether the same request is worth sending again.
    pub async fn send(
        &self,
        conversation: &Conversation,
        key: Option<&ApiKey>,
        progress: mpsc::Sender<Progress>,
    ) -> Result<Reply, ModelError> {
        match self {
            Self::Anthropic(client) => client.send(conversation, key, progress).await,
            Self::Scripted(player) => player.send(conversation, progress).await,
        }
    }

    /// The dialect that tools must be defined in, see [`wire::tool_definitions`].
    #[must_use]
    pub fn profile(&self) -> Profile {
        match self {
            Self::Anthropic(client) => client.profile(),
            Self::Scripted(_) => Profile::Anthropic,
        }
    }

    /// `anthropic`, `compat` or `scripted`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Anthropic(client) => match client.profile() {
                Profile::Anthropic => "anthropic",
                Profile::Compat => "compat",
            },
            Self::Scripted(_) => "scripted",
        }
    }
}

/// One request: the whole conversation so far.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// Model id.
    pub model: String,
    /// Output limit in tokens, thinking included.
    pub max_tokens: u32,
    /// The effort asked for, on models that take one; else the model's default.
    pub effort: Option<Effort>,
    /// What the model takes, when it is known better than the built-in table knows.
    pub takes: Option<Arc<Capabilities>>,
    /// The reply before, so that the server can tell why its cache was missed.
    pub previous: Option<String>,
    /// The server is to answer with a summary of the conversation instead of a reply.
    pub compact: bool,
    /// Frozen at the session's start.
    pub system: String,
    /// Tool definitions as sent, frozen at the session's start.
    pub tools: Vec<JsonText>,
    /// The beginning of the history as it is sent, where it is kept in that form.
    pub written: Option<wire::Written>,
    /// The rest of the history, oldest first. Append-only.
    pub messages: Vec<Arc<Message>>,
}

/// One message of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Content blocks, each exactly the JSON that is sent; assistant blocks are as they were received.
    pub content: Vec<JsonText>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user, and tool results.
    User,
    /// The model.
    Assistant,
    /// The harness, mid-conversation.
    System,
}

/// A reply that ended with `message_stop`.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The API's message id; may be empty on compatible servers.
    pub id: String,
    /// The model that answered.
    pub model: String,
    /// The blocks, in order.
    pub blocks: Vec<ReplyBlock>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Tokens and their price.
    pub usage: proto::event::Usage,
    /// Tokens of the whole conversation with this reply; 0 = not known.
    pub context_tokens: u64,
    /// The server's word why its cache was not read.
    pub cache_miss: Option<String>,
    /// The `request-id` header.
    pub request_id: Option<String>,
}

/// One block of a reply.
#[derive(Clone, Debug)]
pub struct ReplyBlock {
    /// The block as it must be sent back; a tool input keeps the model's own JSON text. For a tool call whose input was
    /// broken this holds `{}` as input.
    pub raw: JsonText,
    /// What it is.
    pub kind: BlockKind,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Text for the user.
    Text(String),
    /// Thinking, as far as it is shown (also redacted: empty).
    Thinking(String),
    /// A call of one of our tools.
    ToolUse(ToolUse),
    /// Anything else, by its API type.
    Other(String),
}

/// A call of one of our tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// The API's id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its input.
    pub input: ToolInput,
}

/// A tool call's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput {
    /// One JSON document, as the model wrote it (missing or empty = `{}`).
    Valid(JsonText),
    /// Not JSON: the exact text.
    Broken(String),
}

/// Why a reply stopped (anthropic-api section 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Done.
    EndTurn,
    /// Done, at this stop sequence.
    StopSequence(Option<String>),
    /// Tools must run.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// A server tool loop paused: send again with this reply appended.
    PauseTurn,
    /// The model refuses.
    Refusal {
        /// The API's category.
        category: Option<String>,
        /// The API's explanation.
        explanation: Option<String>,
    },
    /// Output ran into the context window.
    ContextWindowExceeded,
    /// The reply holds a compaction block.
    Compaction,
    /// A reason this release does not know.
    Unknown(String),
}

impl StopReason {
    /// The API's word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::StopSequence(_) => "stop_sequence",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::PauseTurn => "pause_turn",
            Self::Refusal { .. } => "refusal",
            Self::ContextWindowExceeded => "model_context_window_exceeded",
            Self::Compaction => "compaction",
            Self::Unknown(reason) => reason,
        }
    }
}

/// Progress of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A block began.
    BlockStarted {
        /// Its index.
        index: u32,
        /// Its kind; for a tool call the input is still empty.
        kind: BlockKind,
    },
    /// A block of text or thinking grew.
    Delta {
        /// Its index.
        index: u32,
        /// What was added.
        text: String,
    },
}
