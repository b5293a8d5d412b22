//! One line of input, edited: bytes in, changes out. Pure.
//!
//! Long lines scroll sideways; a paste with line breaks stays one input, its breaks shown as `␊`.

use unicode_width::UnicodeWidthChar;

use crate::render::sanitize;

/// Earlier inputs that can be recalled.
const HISTORY: usize = 200;

/// What typing led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Enter: this is the input.
    Submit(String),
    /// Ctrl-D on an empty line.
    End,
    /// Escape.
    Cancel,
}

/// The line and the keys that are half read.
#[derive(Debug, Default)]
pub struct Editor {
    text: Vec<char>,
    cursor: usize,
    pending: Vec<u8>,
    pasting: bool,
    history: Vec<String>,
    /// How far back in the history the line shown is; 0 = the new one.
    back: usize,
}

impl Editor {
    /// Whether nothing is typed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Empties the line.
    pub fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
        self.back = 0;
    }

    /// Takes bytes from the keyboard.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Edit> {
        let mut edits = Vec::new();
        self.pending.extend_from_slice(bytes);
        while let Some((key, used)) = Key::read(&self.pending) {
            self.pending.drain(..used);
            edits.extend(self.press(key));
        }
        // Escape alone is Cancel; the rest of a sequence arrives in the same read.
        if self.pending == b"\x1b" {
            self.pending.clear();
            edits.push(Edit::Cancel);
        }
        edits
    }

    fn press(&mut self, key: Key) -> Option<Edit> {
        match key {
            Key::Char(char) => self.insert(char),
            Key::Enter if self.pasting => self.insert('\n'),
            Key::Enter => return Some(Edit::Submit(self.submit())),
            Key::PasteBegin => self.pasting = true,
            Key::PasteEnd => self.pasting = false,
            Key::Backspace => {
                if self.cursor > 0 {
                    self.cursor -= 1;
                    self.text.remove(self.cursor);
                }
            }
            Key::Delete => {
                if self.cursor < self.text.len() {
                    self.text.remove(self.cursor);
                }
            }
            Key::End_ if self.text.is_empty() => return Some(Edit::End),
            Key::End_ => return self.press(Key::Delete),
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            Key::Home => self.cursor = 0,
            Key::LineEnd => self.cursor = self.text.len(),
            Key::KillWord => {
                let start = self.word_start();
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            Key::KillToStart => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::KillToEnd => self.text.truncate(self.cursor),
            Key::Up => self.recall(self.back + 1),
            Key::Down => self.recall(self.back.saturating_sub(1)),
            Key::Unknown => {}
        }
        None
    }

    fn insert(&mut self, char: char) {
        self.text.insert(self.cursor, char);
        self.cursor += 1;
    }

    fn submit(&mut self) -> String {
        let text: String = self.text.iter().collect();
        self.clear();
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            if self.history.len() > HISTORY {
                self.history.remove(0);
            }
        }
        text
    }

    fn recall(&mut self, back: usize) {
        if back > self.history.len() {
            return;
        }
        let text = match back {
            0 => "",
            _ => &self.history[self.history.len() - back],
        };
        self.text = text.chars().collect();
        self.cursor = self.text.len();
        self.back = back;
    }

    fn word_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let end = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |at| at + 1);
        before[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |at| at + 1)
    }

    /// The part of the line that is shown in so many columns, and the cursor's column in it.
    #[must_use]
    pub fn window(&self, columns: usize) -> (String, usize) {
        let cells: Vec<(String, usize)> = self
            .text
            .iter()
            .map(|char| {
                let shown = sanitize::line(&char.to_string());
                let width = shown.chars().map(|c| c.width().unwrap_or(0)).sum();
                (shown, width)
            })
            .collect();
        let width = |cells: &[(String, usize)]| cells.iter().map(|(_, width)| width).sum::<usize>();
        let mut start = 0;
        // One column stays free for the cursor behind the last character.
        while width(&cells[start..self.cursor]) + 1 > columns.max(2) {
            start += 1;
        }
        let mut end = self.cursor;
        while end < cells.len() && width(&cells[start..=end]) < columns.max(2) {
            end += 1;
        }
        let text = cells[start..end].iter().map(|(shown, _)| shown.as_str()).collect();
        (text, width(&cells[start..self.cursor]))
    }
}

enum Key {
    Char(char),
    Enter,
    Backspace,
    Delete,
    End_,
    Left,
    Right,
    Up,
    Down,
    Home,
    LineEnd,
    KillWord,
    KillToStart,
    KillToEnd,
    PasteBegin,
    PasteEnd,
    Unknown,
}

impl Key {
    /// The first key in the bytes and how many it took; `None` when more bytes are needed.
    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let key = match *bytes.first()? {
            b'\r' | b'\n' => Self::Enter,
            0x7f | 0x08 => Self::Backspace,
            0x01 => Self::Home,
            0x02 => Self::Left,
            0x04 => Self::End_,
            0x05 => Self::LineEnd,
            0x06 => Self::Right,
            0x0b => Self::KillToEnd,
            0x0e => Self::Down,
            0x10 => Self::Up,
            0x15 => Self::KillToStart,
            0x17 => Self::KillWord,
            b'\t' => Self::Char('\t'),
            0x1b => return Self::read_escape(bytes),
            0..=0x1f => Self::Unknown,
            first => return read_char(first, bytes),
        };
        Some((key, 1))
    }

    fn read_escape(bytes: &[u8]) -> Option<(Self, usize)> {
        match *bytes.get(1)? {
            b'O' => Some((Self::from_final(*bytes.get(2)?, b""), 3)),
            b'[' => {
                let length = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte))?;
                let parameters = &bytes[2..2 + length];
                Some((Self::from_final(bytes[2 + length], parameters), length + 3))
            }
            _ => Some((Self::Unknown, 2)),
        }
    }

    fn from_final(last: u8, parameters: &[u8]) -> Self {
        match (last, parameters) {
            (b'A', _) => Self::Up,
            (b'B', _) => Self::Down,
            (b'C', _) => Self::Right,
            (b'D', _) => Self::Left,
            (b'H', _) | (b'~', b"1" | b"7") => Self::Home,
            (b'F', _) | (b'~', b"4" | b"8") => Self::LineEnd,
            (b'~', b"3") => Self::Delete,
            (b'~', b"200") => Self::PasteBegin,
            (b'~', b"201") => Self::PasteEnd,
            _ => Self::Unknown,
        }
    }
}

fn read_char(first: u8, bytes: &[u8]) -> Option<(Key, usize)> {
    let length = match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let char = std::str::from_utf8(bytes.get(..length)?).ok().and_then(|text| text.chars().next());
    Some(char.map_or((Key::Unknown, 1), |char| (Key::Char(char), length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[&str]) -> (Editor, Vec<Edit>) {
        let mut editor = Editor::default();
        let edits = keys.iter().flat_map(|keys| editor.feed(keys.as_bytes())).collect();
        (editor, edits)
    }

    #[test]
    fn typing_editing_and_enter_give_the_line() {
        let (editor, edits) = typed(&["helo", "\x1b[D", "l", "\x05 wrld", "\x7f\x7f\x7forld é", "\r"]);
        assert_eq!(edits, [Edit::Submit("hello world é".into())]);
        assert!(editor.is_empty());
        let (_, edits) = typed(&["one two three\x17\x17", "2\x01>\r"]);
        assert_eq!(edits, [Edit::Submit(">one 2".into())]);
    }

    #[test]
    fn a_pasted_text_with_line_breaks_is_one_input() {
        let (_, edits) = typed(&["\x1b[200~a\rb\rc\x1b[201~", "\r"]);
        assert_eq!(edits, [Edit::Submit("a\nb\nc".into())]);
    }

    #[test]
    fn characters_cut_between_two_reads_are_put_together() {
        let mut editor = Editor::default();
        assert!(editor.feed(&"日".as_bytes()[..2]).is_empty());
        assert_eq!(editor.feed(&[0xa5, b'\r']), [Edit::Submit("日".into())]);
        assert!(editor.feed(b"\x1b[").is_empty(), "half of an arrow key");
    }

    #[test]
    fn earlier_inputs_come_back() {
        let (mut editor, _) = typed(&["first\r", "second\r", "\x1b[A\x1b[A"]);
        assert_eq!(editor.feed(b"\r"), [Edit::Submit("first".into())]);
        assert_eq!(editor.feed(b"\x1b"), [Edit::Cancel]);
        assert_eq!(editor.feed(b"\x04"), [Edit::End]);
    }

    #[test]
    fn a_long_line_scrolls_with_the_cursor_and_shows_no_raw_control() {
        let (editor, _) = typed(&["abcdefghij日本"]);
        assert_eq!(editor.window(6), ("j日本".into(), 5));
        let (editor, _) = typed(&["abcdefghij\x01"]);
        assert_eq!(editor.window(6), ("abcde".into(), 0));
        let (editor, _) = typed(&["\x1b[200~a\n\u{9b}b\x1b[201~"]);
        assert_eq!(editor.window(20).0, "a␊‹9b›b");
    }
}
