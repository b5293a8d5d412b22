//! Edits taken back: the wish and what became of it.

use proto::diff::FileDiff;
use proto::event::Problem;
use proto::ids::UndoId;
use serde::{Deserialize, Serialize};

/// A wish to take edits back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoOrder {
    /// Its id; the shim takes back at most once for it, ever.
    pub undo: UndoId,
    /// How many edits.
    pub steps: u32,
    /// The newest edit that the user saw.
    pub newest: Option<u64>,
    /// Who asked.
    pub by: String,
}

/// What became of an [`UndoOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoResult {
    /// Its id.
    pub undo: UndoId,
    /// Who asked.
    pub by: String,
    /// One for each edit taken back, the last edit first.
    pub diffs: Vec<FileDiff>,
    /// Edits that can still be taken back.
    pub left: u64,
    /// The newest edit that was taken back.
    pub newest: u64,
    /// Why not all were.
    pub problem: Option<Problem>,
    /// What the model is told, when anything was taken back.
    pub note: Option<String>,
}
