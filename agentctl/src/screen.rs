//! Writing to terminals and files: the answer to standard output, all else to standard error, and below it an area that
//! is repainted in place.
//!
//! Invariants: every byte a terminal gets is a [`Line`], text through [`sanitize`], or a control sequence of this file.
//! What goes to a file or pipe as the answer is exactly the model's text. Nothing permanent is written while the
//! repainted area stands, and both go out in one write.

use std::io::{self, Write};

use crate::context::Terminals;
use crate::error::CtlError;
use crate::notify::Notification;
use crate::render::{Line, sanitize};

/// Columns when the terminal does not say.
const COLUMNS_UNKNOWN: usize = 80;

/// Fewest columns that lines are cut to: below that nothing readable is left.
const COLUMNS_MIN: usize = 20;

/// Begin and end of a repaint that the terminal shows at once (ignored by those that do not know it).
const SYNC_BEGIN: &str = "\x1b[?2026h";
const SYNC_END: &str = "\x1b[?2026l";

/// Erases from the cursor to the end of its line, and to the end of the screen.
const ERASE_LINE: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// Standard output and standard error as one picture.
pub struct Screen {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    tty: Terminals,
    /// Whether the answer stands in the middle of a line.
    open_line: bool,
    /// What is written for good with the next repaint; used while [`Self::gather`] was asked for.
    pending: Option<Vec<String>>,
    area: Area,
    /// Whether the terminal was asked to mark pastes.
    marks_pastes: bool,
}

/// What is repainted, as it stands on the terminal.
#[derive(Debug, Default)]
struct Area {
    lines: Vec<String>,
    widths: Vec<usize>,
    cursor: Option<(usize, usize)>,
    /// Rows of the terminal between the area's first one and the cursor's.
    above: usize,
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
        let (open_line, pending, area, marks_pastes) = (false, None, Area::default(), false);
        Self { out, err, tty, open_line, pending, area, marks_pastes }
    }

    /// From now on lines for the terminal go out together with the next repaint, in one write: nothing flickers.
    pub fn gather(&mut self) {
        if self.repaints() {
            self.pending.get_or_insert_default();
        }
    }

    /// Asks the terminal to mark what is pasted, until this screen goes: a paste with line breaks is one input. And to tell
    /// whether it has the focus.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn mark_pastes(&mut self) -> Result<(), CtlError> {
        if !self.repaints() {
            return Ok(());
        }
        self.marks_pastes = true;
        write(&mut self.err, "\x1b[?2004h\x1b[?1004h")
    }

    /// Ends that, while somebody else has the terminal.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn unmark_pastes(&mut self) -> Result<(), CtlError> {
        if std::mem::take(&mut self.marks_pastes) { write(&mut self.err, "\x1b[?1004l\x1b[?2004l") } else { Ok(()) }
    }

    /// Columns that lines are cut to; without a terminal nothing is cut.
    #[must_use]
    pub fn columns(&self) -> usize {
        if !self.tty.stderr && !self.tty.stdout {
            return usize::MAX;
        }
        match crossterm::terminal::size() {
            Ok((columns, _)) if columns > 0 => usize::from(columns).max(COLUMNS_MIN),
            Ok(_) | Err(_) => COLUMNS_UNKNOWN,
        }
    }

    /// Rows the repainted area may take: it must never scroll.
    #[must_use]
    pub fn rows(&self) -> usize {
        crossterm::terminal::size().map_or(24, |(_, rows)| usize::from(rows)).saturating_sub(1).max(1)
    }

    /// Whether an area can be repainted here.
    #[must_use]
    pub fn repaints(&self) -> bool {
        self.tty.stderr && !self.tty.dumb
    }

    /// Streams a piece of the answer to a file or pipe; a terminal gets [`Self::out_line`].
    ///
    /// # Errors
    /// [`CtlError::OutputClosed`] when the reader is gone.
    pub fn text(&mut self, text: &str) -> Result<(), CtlError> {
        if text.is_empty() {
            return Ok(());
        }
        self.open_line = !text.ends_with('\n');
        if self.tty.stdout {
            self.clear()?;
            write(&mut self.out, &sanitize::lines(text))
        } else {
            write(&mut self.out, text)
        }
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
        let text = line.paint(self.tty.color_err());
        if let Some(pending) = &mut self.pending {
            pending.push(text);
            return Ok(());
        }
        self.clear()?;
        if self.open_line && self.tty.stdout {
            self.end_text()?;
        }
        write(&mut self.err, &(text + "\n"))
    }

    /// Writes a line of the answer, of a table or a JSON object to standard output.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn out_line(&mut self, line: &Line) -> Result<(), CtlError> {
        // A screen reader, or a terminal that knows nothing of columns, breaks lines by itself.
        let columns = if self.tty.stdout && !self.tty.dumb { self.columns() } else { usize::MAX };
        let lines: Vec<String> =
            line.clone().broken(columns).iter().map(|line| line.paint(self.tty.color_out())).collect();
        let text = lines.join("\n");
        match &mut self.pending {
            Some(pending) if self.tty.same => {
                pending.push(text);
                Ok(())
            }
            Some(_) | None => {
                self.clear()?;
                write(&mut self.out, &(text + "\n"))
            }
        }
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

    /// Writes what was gathered, then paints the area below it, all in one write. `cursor`: row and column where the cursor
    /// stays; else after the last line. Lines must fit the columns.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn repaint(&mut self, lines: &[Line], cursor: Option<(usize, usize)>) -> Result<(), CtlError> {
        if !self.repaints() {
            return Ok(());
        }
        let skip = lines.len().saturating_sub(self.rows());
        let lines = &lines[skip..];
        let color = self.tty.color_err();
        let painted: Vec<String> = lines.iter().map(|line| line.paint(color)).collect();
        let cursor =
            cursor.map(|(row, column)| (row.saturating_sub(skip).min(painted.len().saturating_sub(1)), column));
        let pending = self.pending.as_mut().map(std::mem::take).unwrap_or_default();
        if pending.is_empty() && painted == self.area.lines && cursor == self.area.cursor {
            return Ok(());
        }
        let mut frame = String::from(SYNC_BEGIN);
        frame.push_str(&self.to_top());
        if !pending.is_empty() {
            // A long line runs over several rows: what stood there must go before.
            frame.push_str(ERASE_BELOW);
        }
        for line in &pending {
            frame.push_str(line);
            frame.push('\n');
        }
        for (at, line) in painted.iter().enumerate() {
            if at > 0 {
                frame.push('\n');
            }
            // Line by line: at no moment the whole area is empty, also where the terminal shows every byte at once.
            frame.push_str(ERASE_LINE);
            frame.push_str(line);
        }
        frame.push_str(ERASE_BELOW);
        let last = painted.len().saturating_sub(1);
        let mut above = last;
        if let Some((row, column)) = cursor {
            frame.push_str(&up(last - row));
            frame.push('\r');
            if column > 0 {
                frame.push_str(&format!("\x1b[{column}C"));
            }
            above = row;
        }
        frame.push_str(SYNC_END);
        let widths = lines.iter().map(Line::width).collect();
        self.area = Area { lines: painted, widths, cursor, above };
        write(&mut self.err, &frame)
    }

    /// Removes the repainted area; what was gathered stays.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn clear(&mut self) -> Result<(), CtlError> {
        if self.pending.is_some() {
            return self.repaint(&[], None);
        }
        if self.area.lines.is_empty() {
            return Ok(());
        }
        let erase = self.to_top() + ERASE_BELOW;
        self.area = Area::default();
        write(&mut self.err, &erase)
    }

    /// Empties the visible screen; the scrollback stays.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn wipe(&mut self) -> Result<(), CtlError> {
        if !self.repaints() {
            return Ok(());
        }
        self.clear()?;
        write(&mut self.err, "\x1b[H\x1b[2J")
    }

    /// Rings the terminal's bell, or tells it with one of its own sequences that something waits.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn notify(&mut self, sequence: &Notification) -> Result<(), CtlError> {
        if self.repaints() { write(&mut self.err, &sequence.bytes()) } else { Ok(()) }
    }

    /// Forgets the area without erasing it: after the terminal was used by somebody else.
    pub fn forget(&mut self) {
        self.area = Area::default();
    }

    /// The terminal has another width: it has broken the area's lines anew, so more rows may stand above the cursor.
    pub fn resized(&mut self) {
        let columns = self.columns();
        let row = self.area.cursor.map_or(self.area.widths.len().saturating_sub(1), |(row, _)| row);
        let rows = |width: &usize| width.div_ceil(columns).max(1);
        let own = match self.area.cursor {
            Some((_, column)) => column / columns,
            None => self.area.widths.last().map_or(0, |width| rows(width) - 1),
        };
        self.area.above = self.area.widths.iter().take(row).map(rows).sum::<usize>() + own;
        // The picture is another one now, whatever stands in it.
        self.area.lines.push(String::new());
    }

    fn to_top(&self) -> String {
        if self.area.lines.is_empty() { String::new() } else { format!("{}\r", up(self.area.above)) }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone shows and marks nothing.
        let _ = self.clear();
        let _ = self.unmark_pastes();
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
