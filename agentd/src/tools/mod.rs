//! What the model asked for → a typed request to the shim; its answer → what the model receives.

pub mod bash;
pub mod output;

use proto::diff::FileDiff;
use proto::event::Outcome;

/// What a call gives back to the model and to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The parts of the result, in order.
    pub content: Vec<Part>,
    /// Whether the model is told that it failed.
    pub is_error: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// The change it made, for edits.
    pub diff: Option<FileDiff>,
}

/// One part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// Base64.
        data: String,
    },
}
