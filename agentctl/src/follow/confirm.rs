//! An undo that was shown and waits for a yes. Pure.

use proto::request::Undo;

use crate::render::{Line, Style};

/// What will be done, and how it is asked.
#[derive(Clone, Debug)]
pub(super) struct Confirm {
    /// The request that does it.
    pub(super) wish: Undo,
    question: String,
}

impl Confirm {
    /// Asks this.
    #[must_use]
    pub(super) fn new(wish: Undo, question: String) -> Self {
        Self { wish, question }
    }

    /// The line that waits for a key.
    #[must_use]
    pub(super) fn prompt(&self, columns: usize) -> Line {
        let whole = Line::new().lit(Style::Warn, "? ").text(Style::Plain, &self.question).lit(Style::Plain, " ");
        // What was shown above says it too.
        let short = Line::new().lit(Style::Warn, "? ").lit(Style::Plain, "take it back? [y/N] ");
        if whole.width() <= columns { whole } else { short.fit(columns) }
    }

    /// Whether keys mean yes; everything else means no.
    #[must_use]
    pub(super) fn is_yes(bytes: &[u8]) -> bool {
        matches!(bytes, b"y" | b"Y" | b"y\n" | b"Y\n")
    }
}
