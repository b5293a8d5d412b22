//! File operations asked of the shim, and their structured answers.
//!
//! The shim does the deed and states facts; the daemon words them for the model and computes the diff. Both sides are
//! self-describing JSON: fields may be added (readers skip what they do not know, new fields carry a default).
//!
//! Texts in answers are for showing: bytes that are not UTF-8 stand as U+FFFD there. Nothing in an answer is ever
//! written back to a file.

mod fault;
mod reply;
mod search;

use serde::{Deserialize, Serialize};

pub use self::fault::{Action, Difference, Fault, FileError, NearMiss};
pub use self::reply::{
    Change, Changes, Edited, Entry, FileKind, FileReply, ImageView, Listing, Note, TextTraits, TextView, Undone,
};
pub use self::search::{Bounds, FileMatches, Glob, Grep, GrepOutput, Looked, MatchLine, Matches, Paths, SearchLimit};
use crate::ids::CallId;

/// A SHA-256 as 64 lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub String);

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum FileOp {
    /// Show a file or a directory.
    View(View),
    /// Make a file, or replace one that this session has viewed as it is now.
    Create(Create),
    /// Replace the one place where a text stands.
    StrReplace(StrReplace),
    /// Put lines between lines.
    Insert(Insert),
    /// Take back the session's last edits.
    Undo(Undo),
    /// All changes of the session that stand, file by file.
    Changes {},
    /// Find lines in files.
    Grep(Grep),
    /// Find files by name.
    Glob(Glob),
}

/// Show a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// As the model gave it.
    pub path: String,
    /// The lines wanted; none = all.
    #[serde(default)]
    pub range: Option<LineRange>,
    /// At most this many characters of text come back.
    pub max_characters: u64,
}

/// Lines as the model asked for them, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    /// From 1.
    pub first: i64,
    /// Inclusive; -1 = to the end.
    pub last: i64,
}

/// Make or replace a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Create {
    /// As the model gave it.
    pub path: String,
    /// The whole content.
    pub text: String,
    /// Whether to write.
    pub mode: Mode,
}

/// Replace the one place where a text stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrReplace {
    /// As the model gave it.
    pub path: String,
    /// The text that must stand there exactly once.
    pub old: String,
    /// What stands there afterwards.
    pub new: String,
    /// Whether to write.
    pub mode: Mode,
}

/// Put lines between lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insert {
    /// As the model gave it.
    pub path: String,
    /// After this line; 0 = before the first.
    pub line: i64,
    /// Whole lines.
    pub text: String,
    /// Whether to write.
    pub mode: Mode,
}

/// Take back edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// How many, the last first.
    pub steps: u32,
    /// [`Undone::newest`] of the preview that this follows: when the newest edit is another one now, nothing is done.
    #[serde(default)]
    pub newest: Option<u64>,
    /// Whether to write.
    pub mode: Mode,
}

/// Whether an edit is only computed or also written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Mode {
    /// Everything but the write: every error and the diff, for an approval.
    Preview {},
    /// The write.
    Apply(Apply),
}

/// Conditions of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {
    /// A call id that was applied before gets the stored answer and writes nothing.
    #[serde(default)]
    pub call: Option<CallId>,
    /// What the preview was made from; anything else now is refused.
    #[serde(default)]
    pub expect: Option<Basis>,
}

/// What an edit starts from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The file meant, with all links resolved.
    pub path: String,
    /// Its bytes; none = there is no file.
    pub content: Option<Digest>,
}
