//! What the model asked for → a typed request to the shim; its answer → what the model receives.

pub mod background;
pub mod bash;
pub mod call;
pub mod diff;
pub mod editor;
pub mod hint;
pub mod output;
mod params;
pub mod search;
pub mod undo;

use proto::diff::FileDiff;
use proto::event::Outcome;

pub use crate::content::Part;

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

/// A failed result that is one text.
#[must_use]
pub fn failure(text: &str) -> ToolResult {
    ToolResult { content: vec![Part::Text(text.to_owned())], is_error: true, outcome: Outcome::Failed {}, diff: None }
}
