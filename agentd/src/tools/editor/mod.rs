//! The text editor tool: what the model asked for → a file operation; the shim's answer → text for the model.
//!
//! The tool is Anthropic's `text_editor_20250728`. Nothing here touches a file.

mod fault;
mod input;
mod render;
#[cfg(test)]
mod tests;

use proto::json::JsonText;
use proto::shim::files::{Create, FileError, FileOp, FileReply, Insert, LineRange, Mode, StrReplace, View};

use super::ToolResult;

/// Characters of text that one view shows at most, the tool definition's `max_characters`: some ten thousand tokens.
pub const VIEW_CHARACTERS_MAX: u64 = 40_000;

/// A call of the tool, checked for form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorInput {
    /// Show a file or a directory.
    View {
        /// As the model gave it.
        path: String,
        /// The lines wanted.
        range: Option<LineRange>,
    },
    /// Make a file.
    Create {
        /// As the model gave it.
        path: String,
        /// The whole content.
        text: String,
    },
    /// Replace a text that stands once in a file.
    StrReplace {
        /// As the model gave it.
        path: String,
        /// The text.
        old: String,
        /// What takes its place.
        new: String,
    },
    /// Insert lines.
    Insert {
        /// As the model gave it.
        path: String,
        /// After this line.
        line: i64,
        /// The lines.
        text: String,
    },
}

impl EditorInput {
    /// The path as the model gave it.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::View { path, .. }
            | Self::Create { path, .. }
            | Self::StrReplace { path, .. }
            | Self::Insert { path, .. } => path,
        }
    }
}

/// Reads the tool's input.
///
/// # Errors
/// Text for the model: which parameter is missing or wrong.
pub fn parse(input: &JsonText) -> Result<EditorInput, String> {
    input::parse(input.as_str())
}

/// One line for people, for example `view src/lib.rs 10-20` or `edit src/lib.rs`.
#[must_use]
pub fn title(input: &EditorInput) -> String {
    // A name may hold a line break or an escape sequence; a title is one harmless line.
    let path: String = input.path().chars().map(|sign| if sign.is_control() { '\u{FFFD}' } else { sign }).collect();
    match input {
        EditorInput::View { range: None, .. } => format!("view {path}"),
        EditorInput::View { range: Some(LineRange { first, last: -1 }), .. } => format!("view {path} {first}-end"),
        EditorInput::View { range: Some(LineRange { first, last }), .. } => format!("view {path} {first}-{last}"),
        EditorInput::Create { .. } => format!("create {path}"),
        EditorInput::StrReplace { .. } | EditorInput::Insert { .. } => format!("edit {path}"),
    }
}

/// Whether the call only looks.
#[must_use]
pub fn is_view(input: &EditorInput) -> bool {
    match input {
        EditorInput::View { .. } => true,
        EditorInput::Create { .. } | EditorInput::StrReplace { .. } | EditorInput::Insert { .. } => false,
    }
}

/// The operation for the shim; `mode` counts for edits.
#[must_use]
pub fn op(input: &EditorInput, mode: Mode) -> FileOp {
    match input.clone() {
        EditorInput::View { path, range } => FileOp::View(View { path, range, max_characters: VIEW_CHARACTERS_MAX }),
        EditorInput::Create { path, text } => FileOp::Create(Create { path, text, mode }),
        EditorInput::StrReplace { path, old, new } => FileOp::StrReplace(StrReplace { path, old, new, mode }),
        EditorInput::Insert { path, line, text } => FileOp::Insert(Insert { path, line, text, mode }),
    }
}

/// Why a file operation was refused.
#[must_use]
pub fn fault_text(error: &FileError) -> String {
    fault::text(error)
}

/// What the model receives for the shim's answer.
#[must_use]
pub fn render(input: &EditorInput, reply: &FileReply) -> ToolResult {
    render::render(input, reply)
}
