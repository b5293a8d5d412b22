//! A change of one file as data, so that every client renders it in its own way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The change of one file, as unified hunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The path as the user knows it, relative to the workspace where it lies inside.
    pub path: String,
    /// Whether the file is new.
    pub created: bool,
    /// Whether the file is gone.
    #[serde(default)]
    pub deleted: bool,
    /// Lines added in all, also those beyond the shown hunks.
    pub added: u32,
    /// Lines removed in all, also those beyond the shown hunks.
    pub removed: u32,
    /// The hunks, first to last.
    pub hunks: Vec<Hunk>,
    /// Lines of further hunks that were left out to keep the frame small; 0 = the diff is whole.
    pub lines_left_out: u32,
}

/// One run of changed lines with the lines around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// First line in the old file, from 1; 0 when the old file is empty.
    pub old_start: u32,
    /// First line in the new file, from 1; 0 when the new file is empty.
    pub new_start: u32,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffLine {
    /// Where the line stands.
    pub kind: DiffKind,
    /// The line without its end, cut into spans; undecodable bytes are shown as U+FFFD.
    pub spans: Vec<DiffSpan>,
    /// Whether the line has no line end (last line of a file).
    pub no_newline: bool,
}

/// Which side of the change a line stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffKind {
    /// In both files.
    Context,
    /// Only in the old file.
    Removed,
    /// Only in the new file.
    Added,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffSpan {
    /// The text.
    pub text: String,
    /// Whether this part differs from its partner line (word-level highlight).
    pub changed: bool,
}
