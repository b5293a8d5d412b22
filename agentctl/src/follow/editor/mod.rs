//! The input, edited: bytes in, changes out. Pure.
//!
//! * [`keys`] reads keys out of bytes, [`layout`] lays the text out.
//!
//! A paste is put in as one piece, so that also ten thousand lines take no time, and its line breaks never submit.

mod keys;
mod layout;

use unicode_segmentation::UnicodeSegmentation;

use crate::render::Line;
use keys::{Key, PASTE_END};

/// Earlier inputs that can be recalled.
const HISTORY: usize = 200;

/// What typing led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Enter: this is the input.
    Submit(String),
    /// Ctrl-D on an empty input.
    End,
    /// Escape.
    Cancel,
    /// Tab, and Shift-Tab.
    Complete {
        /// The other way round.
        back: bool,
    },
    /// Up or Down at the edge of the input.
    Recall {
        /// Towards earlier inputs.
        back: bool,
    },
    /// Ctrl-L.
    Redraw,
}

/// The text and the keys that are half read.
#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    /// A byte of it, between two characters as a person counts them.
    cursor: usize,
    pending: Vec<u8>,
    pasting: bool,
    killed: String,
    history: Vec<String>,
    /// How far back in the history what is shown is; 0 = the new one, which waits in `draft`.
    back: usize,
    draft: String,
    /// Whole lines come from the terminal: a line feed is Enter.
    by_line: bool,
}

impl Editor {
    /// For a terminal that sends whole lines, or one that sends keys.
    #[must_use]
    pub fn new(by_line: bool) -> Self {
        Self { by_line, ..Self::default() }
    }

    /// A text that is there already, to be changed.
    #[must_use]
    pub fn with(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len(), ..Self::default() }
    }

    /// Whether nothing is typed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What is typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor is, in bytes.
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Empties the input.
    pub fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
        self.back = 0;
    }

    /// Puts a text in place of the bytes from `start` to the cursor.
    pub fn replace(&mut self, start: usize, text: &str) {
        if self.text.is_char_boundary(start) && start <= self.cursor {
            self.text.replace_range(start..self.cursor, text);
            self.cursor = start + text.len();
        }
    }

    /// Adds an earlier input to the history.
    pub fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|last| last == text) {
            return;
        }
        self.history.push(text.to_owned());
        if self.history.len() > HISTORY {
            self.history.remove(0);
        }
    }

    /// Takes bytes from the keyboard and says all that they led to.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Edit> {
        self.give(bytes);
        std::iter::from_fn(|| self.next_edit()).collect()
    }

    /// Takes bytes from the keyboard, for [`Self::next_edit`].
    pub fn give(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Whether Enter is the next key.
    #[must_use]
    pub fn enter_is_next(&self) -> bool {
        !self.pasting && self.pending.first() == Some(&b'\r')
    }

    /// Leaves the next key out.
    pub fn skip_enter(&mut self) {
        if self.enter_is_next() {
            self.pending.remove(0);
        }
    }

    /// Edits up to the next key that means something outside the text.
    pub fn next_edit(&mut self) -> Option<Edit> {
        loop {
            if self.pasting {
                if !self.take_paste() {
                    return None;
                }
                continue;
            }
            let Some((key, used)) = Key::read(&self.pending) else { break };
            self.pending.drain(..used);
            if let Some(edit) = self.press(key) {
                return Some(edit);
            }
        }
        // Escape alone is Cancel; the rest of a sequence arrives in the same read.
        if self.pending == b"\x1b" {
            self.pending.clear();
            return Some(Edit::Cancel);
        }
        None
    }

    /// Puts in what is there of a paste; says whether it ended.
    fn take_paste(&mut self) -> bool {
        let end = self.pending.windows(PASTE_END.len()).position(|window| window == PASTE_END);
        // A character or the end of the paste may be cut in two by the read.
        let upto = match end {
            Some(end) => end,
            None => whole_chars(&self.pending[..self.pending.len().saturating_sub(PASTE_END.len() - 1)]),
        };
        let piece: Vec<u8> = self.pending.drain(..upto).collect();
        if end.is_some() {
            self.pending.drain(..PASTE_END.len());
            self.pasting = false;
        }
        let text = String::from_utf8_lossy(&piece).replace("\r\n", "\n").replace('\r', "\n");
        self.insert(&text);
        end.is_some()
    }

    fn press(&mut self, key: Key) -> Option<Edit> {
        match key {
            Key::Char(char) => self.insert(char.encode_utf8(&mut [0; 4])),
            Key::NewLine if !self.by_line => self.insert("\n"),
            Key::Enter if self.text[..self.cursor].ends_with('\\') && !self.by_line => {
                self.replace(self.cursor - 1, "\n");
            }
            Key::Enter | Key::NewLine => return Some(Edit::Submit(self.submit())),
            Key::PasteBegin => self.pasting = true,
            Key::Tab => return Some(Edit::Complete { back: false }),
            Key::BackTab => return Some(Edit::Complete { back: true }),
            Key::Redraw => return Some(Edit::Redraw),
            Key::Backspace => {
                let start = self.left();
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            Key::DeleteOrEnd if self.text.is_empty() => return Some(Edit::End),
            Key::Delete | Key::DeleteOrEnd => {
                let end = self.right();
                self.text.drain(self.cursor..end);
            }
            Key::Left => self.cursor = self.left(),
            Key::Right => self.cursor = self.right(),
            Key::WordLeft => self.cursor = self.word_start(),
            Key::WordRight => self.cursor = self.word_end(),
            Key::Home => self.cursor = self.line_start(),
            Key::LineEnd => self.cursor = self.line_end(),
            Key::KillWord => self.kill(self.word_start(), self.cursor),
            Key::KillWordRight => self.kill(self.cursor, self.word_end()),
            Key::KillToStart => self.kill(self.line_start(), self.cursor),
            Key::KillToEnd => self.kill(self.cursor, self.line_end()),
            Key::Yank => {
                let text = self.killed.clone();
                self.insert(&text);
            }
            Key::Up if self.line_start() > 0 => self.vertical(self.line_start() - 1, true),
            Key::Down if self.line_end() < self.text.len() => self.vertical(self.line_end() + 1, false),
            Key::Up => return Some(Edit::Recall { back: true }),
            Key::Down => return Some(Edit::Recall { back: false }),
            Key::Unknown => {}
        }
        None
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn submit(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.clear();
        self.remember(&text);
        text
    }

    /// Shows the input before or after the one that is shown.
    pub fn recall(&mut self, earlier: bool) {
        let back = if earlier { self.back + 1 } else { self.back.saturating_sub(1) };
        if back > self.history.len() || back == self.back {
            return;
        }
        if self.back == 0 {
            self.draft = std::mem::take(&mut self.text);
        }
        self.text = match back {
            0 => std::mem::take(&mut self.draft),
            _ => self.history[self.history.len() - back].clone(),
        };
        self.cursor = self.text.len();
        self.back = back;
    }

    fn kill(&mut self, from: usize, to: usize) {
        self.killed = self.text.drain(from..to).collect();
        self.cursor = from;
    }

    fn left(&self) -> usize {
        self.cursor - self.text[..self.cursor].graphemes(true).next_back().map_or(0, str::len)
    }

    fn right(&self) -> usize {
        self.cursor + self.text[self.cursor..].graphemes(true).next().map_or(0, str::len)
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.char_indices().rev().find(|(_, char)| char.is_whitespace()).map_or(0, |(at, char)| at + char.len_utf8())
    }

    fn word_end(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.len() - rest.trim_start().len();
        rest[word..].find(char::is_whitespace).map_or(self.text.len(), |at| self.cursor + word + at)
    }

    /// Moves to the line that a byte is in, to the same character of it.
    fn vertical(&mut self, into: usize, up: bool) {
        let column = self.text[self.line_start()..self.cursor].graphemes(true).count();
        let start = if up { self.text[..into].rfind('\n').map_or(0, |at| at + 1) } else { into };
        let end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let line = &self.text[start..end];
        self.cursor = start + line.grapheme_indices(true).nth(column).map_or(line.len(), |(at, _)| at);
    }

    /// The rows that are shown in so many columns and at most so many rows, and the cursor's row and column in them.
    #[must_use]
    pub fn rows(&self, columns: usize, rows_max: usize) -> (Vec<Line>, (usize, usize)) {
        let rows = layout::rows(self, columns, rows_max);
        (rows.lines, rows.cursor)
    }
}

/// The bytes that end between two characters.
fn whole_chars(bytes: &[u8]) -> usize {
    let cut = bytes.iter().rev().take(3).position(|byte| !(0x80..0xc0).contains(byte));
    match cut {
        Some(back) => {
            let start = bytes.len() - back - 1;
            let need = match bytes[start] {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            if start + need > bytes.len() { start } else { bytes.len() }
        }
        None => bytes.len(),
    }
}

#[cfg(test)]
mod tests;
