//! Writing to terminals and files: the answer to standard output, all else to standard error, and below it an area that
//! is repainted in place.
//!
//! Invariants: every byte a terminal gets is a [`Line`], text through [`sanitize`], or a control sequence of this file.
//! What goes to a file or pipe as the answer is exactly the model's text. Nothing permanent is written while the
//! repainted area stands.

use std::io::{self, Write};

use crate::context::Terminals;
use crate::error::CtlError;
use crate::render::{Line, sanitize};

/// Columns when the terminal does not say.
const COLUMNS_UNKNOWN: usize = 80;

/// Fewest columns that lines are cut to: below that nothing readable is left.
const COLUMNS_MIN: usize = 20;

/// Begin and end of a repaint that the terminal shows at once (ignored by those that do not know it).
const SYNC_BEGIN: &str = "\x1b[?2026h";
const SYNC_END: &str = "\x1b[?2026l";

/// Standard output and standard error as one picture.
pub struct Screen {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    tty: Terminals,
    /// Whether the answer stands in the middle of a line.
    open_line: bool,
    /// Rows of the repainted area, and the row of the cursor in it.
    area: usize,
    cursor_row: usize,
    painted: Vec<String>,
    /// Whether the terminal was asked to mark pastes.
    marks_pastes: bool,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("tty", &self.tty).field("area", &self.area).finish_non_exhaustive()
    }
}

impl Screen {
    /// The process's own.
    #[must_use]
    pub fn standard(tty: Terminals) -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()), tty)
    }

    /// Any two writers.
    #[must_use]
    pub fn new(out: Box<dyn Write>, err: Box<dyn Write>, tty: Terminals) -> Self {
        Self { out, err, tty, open_line: false, area: 0, cursor_row: 0, painted: Vec::new(), marks_pastes: false }
    }

    /// Asks the terminal to mark what is pasted, until this screen goes: a paste with line breaks is one input.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn mark_pastes(&mut self) -> Result<(), CtlError> {
        if !self.repaints() {
            return Ok(());
        }
        self.marks_pastes = true;
        write(&mut self.err, "\x1b[?2004h")
    }

    /// Columns that lines are cut to; without a terminal nothing is cut.
    #[must_use]
    pub fn columns(&self) -> usize {
        if !self.tty.stderr {
            return usize::MAX;
        }
        match crossterm::terminal::size() {
            Ok((columns, _)) if columns > 0 => usize::from(columns).max(COLUMNS_MIN),
            Ok(_) | Err(_) => COLUMNS_UNKNOWN,
        }
    }

    /// Rows the repainted area may take: it must never scroll.
    fn rows(&self) -> usize {
        crossterm::terminal::size().map_or(24, |(_, rows)| usize::from(rows)).saturating_sub(1).max(1)
    }

    /// Whether an area can be repainted here.
    #[must_use]
    pub fn repaints(&self) -> bool {
        self.tty.stderr && !self.tty.dumb
    }

    /// Streams a piece of the answer.
    ///
    /// # Errors
    /// [`CtlError::OutputClosed`] when the reader is gone.
    pub fn text(&mut self, text: &str) -> Result<(), CtlError> {
        if text.is_empty() {
            return Ok(());
        }
        self.clear()?;
        self.open_line = !text.ends_with('\n');
        if self.tty.stdout { write(&mut self.out, &sanitize::lines(text)) } else { write(&mut self.out, text) }
    }

    /// Ends the line of the answer, if one is open.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn end_text(&mut self) -> Result<(), CtlError> {
        if std::mem::take(&mut self.open_line) { write(&mut self.out, "\n") } else { Ok(()) }
    }

    /// Writes a line beside the answer.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn line(&mut self, line: &Line) -> Result<(), CtlError> {
        self.clear()?;
        if self.open_line && self.tty.stdout {
            self.end_text()?;
        }
        let text = line.paint(self.tty.color_err()) + "\n";
        write(&mut self.err, &text)
    }

    /// Writes a line of a table or a JSON object to standard output.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn out_line(&mut self, line: &Line) -> Result<(), CtlError> {
        self.clear()?;
        let text = line.paint(self.tty.color_out()) + "\n";
        write(&mut self.out, &text)
    }

    /// Writes a value as one JSON line to standard output. JSON escapes control characters; C1 and bidirectional ones,
    /// which it leaves as they are, are escaped when a terminal reads.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn json<T: serde::Serialize>(&mut self, value: &T) -> Result<(), CtlError> {
        let text = serde_json::to_string(value).map_err(|error| CtlError::Output(error.into()))?;
        let text = if self.tty.stdout { sanitize::json(&text) } else { text };
        write(&mut self.out, &(text + "\n"))
    }

    /// Writes a JSON line of somebody else's to standard output, as [`Self::json`] would.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn raw_json(&mut self, line: &str) -> Result<(), CtlError> {
        let text = if self.tty.stdout { sanitize::json(line) } else { line.to_owned() };
        write(&mut self.out, &(text + "\n"))
    }

    /// Repaints the area below everything. `cursor`: row and column where the cursor stays; else after the last line.
    /// Lines must fit the columns.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn repaint(&mut self, lines: &[Line], cursor: Option<(usize, usize)>) -> Result<(), CtlError> {
        if !self.repaints() {
            return Ok(());
        }
        let skip = lines.len().saturating_sub(self.rows());
        let color = self.tty.color_err();
        let painted: Vec<String> = lines[skip..].iter().map(|line| line.paint(color)).collect();
        if painted == self.painted && cursor.is_none() {
            return Ok(());
        }
        // A text that is still open keeps its line; the area would break it.
        if painted.is_empty() || (self.open_line && self.tty.stdout && cursor.is_none()) {
            return self.clear();
        }
        let mut frame = String::from(SYNC_BEGIN);
        if self.open_line && self.tty.stdout {
            self.end_text()?;
        }
        frame.push_str(&self.erase());
        frame.push_str(&painted.join("\r\n"));
        self.area = painted.len();
        self.cursor_row = self.area - 1;
        if let Some((row, column)) = cursor {
            let row = row.saturating_sub(skip).min(self.area - 1);
            frame.push_str(&up(self.cursor_row - row));
            frame.push('\r');
            if column > 0 {
                frame.push_str(&format!("\x1b[{column}C"));
            }
            self.cursor_row = row;
        }
        frame.push_str(SYNC_END);
        self.painted = painted;
        write(&mut self.err, &frame)
    }

    /// Removes the repainted area.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn clear(&mut self) -> Result<(), CtlError> {
        if self.area == 0 {
            return Ok(());
        }
        let erase = self.erase();
        write(&mut self.err, &erase)
    }

    /// Forgets the area without erasing it: after the terminal was used by somebody else.
    pub fn forget(&mut self) {
        self.area = 0;
        self.painted.clear();
    }

    /// After a change of size nobody knows how the terminal wrapped the area: it is left where it is, and the next one
    /// begins below it.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn resized(&mut self) -> Result<(), CtlError> {
        if self.area == 0 {
            return Ok(());
        }
        self.forget();
        write(&mut self.err, "\r\n")
    }

    fn erase(&mut self) -> String {
        if self.area == 0 {
            return String::new();
        }
        let text = format!("{}\r\x1b[J", up(self.cursor_row));
        self.forget();
        text
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.marks_pastes {
            // A terminal that is gone marks nothing.
            let _ = write(&mut self.err, "\x1b[?2004l");
        }
    }
}

fn up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

fn write(to: &mut Box<dyn Write>, text: &str) -> Result<(), CtlError> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(CtlError::output)
}

#[cfg(test)]
mod tests;
