//! What a command printed → text for the model.
//!
//! The text is valid UTF-8: bytes that are none, and control characters that are not white space, stand there as `\xNN`.
//! Control sequences of terminals are removed, a backspace takes back the character before it, and a line that was
//! redrawn with carriage returns shows its last state (a carriage return at the end of a line stays: files have such
//! lines). What is too long is cut in the middle, with the number of bytes and lines left out and where the whole is.
//!
//! Not here: how a command ended (`tools::bash`). The spool keeps the bytes as they were.

use std::fmt::Write as _;

/// The parts of an output that are known, and the numbers of all of it.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// Its first bytes; all of it when there is no tail.
    pub head: &'a [u8],
    /// Its last bytes.
    pub tail: &'a [u8],
    /// All bytes.
    pub bytes: u64,
    /// All line feeds.
    pub lines: u64,
    /// The file with the whole.
    pub spool: Option<&'a str>,
    /// Bytes that the file lacks in the middle.
    pub spool_gap_bytes: u64,
}

/// The text of an output within a number of characters; the note about what is left out comes on top of it.
#[must_use]
pub fn text(raw: &Raw<'_>, chars_max: usize) -> String {
    if raw.tail.is_empty() {
        let whole = clean(raw.head);
        if whole.chars().count() <= chars_max {
            return whole;
        }
        return cut(raw, &whole, &whole, chars_max);
    }
    cut(raw, &clean(without_cut_end(raw.head)), &clean(without_cut_start(raw.tail)), chars_max)
}

fn cut(raw: &Raw<'_>, head: &str, tail: &str, chars_max: usize) -> String {
    let head = first_chars(head, chars_max / 2);
    let tail = last_chars(tail, chars_max - chars_max / 2);
    let shown = head.len() as u64 + tail.len() as u64;
    let shown_lines = [head, tail].iter().flat_map(|part| part.bytes()).filter(|byte| *byte == b'\n').count() as u64;
    let (bytes, lines) = (raw.bytes.saturating_sub(shown), raw.lines.saturating_sub(shown_lines));
    let mut text = head.to_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "[{bytes} bytes ({lines} lines) left out here");
    if let Some(path) = raw.spool {
        let _ = write!(text, "; the whole output is in {path}");
        if raw.spool_gap_bytes > 0 {
            let _ =
                write!(text, " without {} bytes in its middle, because it was too long to keep", raw.spool_gap_bytes);
        }
    }
    text.push_str("]\n");
    text.push_str(tail);
    text
}

/// The first characters, up to a line's end where one is near.
fn first_chars(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let part = &text[..end];
    match part.rfind('\n') {
        Some(at) if at >= end / 2 => &part[..=at],
        Some(_) | None => part,
    }
}

/// The last characters, from a line's start where one is near.
fn last_chars(text: &str, chars: usize) -> &str {
    let count = text.chars().count();
    let start = text.char_indices().nth(count.saturating_sub(chars)).map_or(text.len(), |(at, _)| at);
    let part = &text[start..];
    match part.find('\n') {
        Some(at) if at < part.len() / 2 => &part[at + 1..],
        Some(_) | None => part,
    }
}

/// Without the beginning of a character whose end was cut off.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let length = match bytes[at] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => 1,
        };
        return if length > back { &bytes[..at] } else { bytes };
    }
    bytes
}

/// Without the end of a character whose beginning was cut off.
#[must_use]
pub fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let skip = bytes.iter().take(3).take_while(|byte| (0x80..=0xBF).contains(*byte)).count();
    &bytes[skip..]
}

/// Bytes as a person at a terminal would have read them.
#[must_use]
pub fn clean(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    // Where the present line begins, and where it was when the last carriage return came.
    let mut line = 0;
    let mut redraw = false;
    let mut rest = Chars { bytes };
    while let Some(item) = rest.next() {
        if redraw && !matches!(item, Item::Char('\n' | '\r') | Item::Sequence) {
            text.truncate(line);
            redraw = false;
        }
        match item {
            Item::Char('\n') => {
                if redraw {
                    text.push('\r');
                }
                redraw = false;
                text.push('\n');
                line = text.len();
            }
            Item::Char('\r') => redraw = true,
            Item::Char('\u{8}') => {
                if text.len() > line {
                    text.pop();
                }
            }
            Item::Char('\u{7}') | Item::Sequence => {}
            Item::Char(char) if char == '\t' || !char.is_control() => text.push(char),
            Item::Char(char) => {
                let mut utf8 = [0; 4];
                char.encode_utf8(&mut utf8).bytes().for_each(|byte| push_hex(&mut text, byte));
            }
            Item::Byte(byte) => push_hex(&mut text, byte),
        }
    }
    if redraw {
        text.push('\r');
    }
    text
}

fn push_hex(text: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\\x{byte:02x}");
}

/// One step through an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Char(char),
    /// A byte that is not UTF-8.
    Byte(u8),
    /// A control sequence of a terminal.
    Sequence,
}

struct Chars<'a> {
    bytes: &'a [u8],
}

impl Chars<'_> {
    fn next(&mut self) -> Option<Item> {
        let first = *self.bytes.first()?;
        if first == 0x1b {
            self.bytes = &self.bytes[sequence_length(self.bytes)..];
            return Some(Item::Sequence);
        }
        if first < 0x80 {
            self.bytes = &self.bytes[1..];
            return Some(Item::Char(char::from(first)));
        }
        let window = &self.bytes[..self.bytes.len().min(4)];
        let valid = match std::str::from_utf8(window) {
            Ok(text) => text.chars().next(),
            Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).ok().and_then(|text| text.chars().next()),
        };
        let Some(char) = valid else {
            self.bytes = &self.bytes[1..];
            return Some(Item::Byte(first));
        };
        self.bytes = &self.bytes[char.len_utf8()..];
        Some(Item::Char(char))
    }
}

/// Longest control sequence that is believed: a stray escape must not swallow the output after it.
const SEQUENCE_MAX: usize = 4096;

/// Length of the control sequence that begins here (ECMA-48), at least the escape itself.
fn sequence_length(bytes: &[u8]) -> usize {
    let bytes = &bytes[..bytes.len().min(SEQUENCE_MAX)];
    match bytes.get(1) {
        Some(b'[') => {
            let parameters = bytes[2..].iter().take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
            // A sequence ends with a letter or the like; anything else ends it without being part of it.
            2 + parameters + usize::from(bytes.get(2 + parameters).is_some_and(|byte| (0x40..=0x7e).contains(byte)))
        }
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = bytes.iter().position(|byte| *byte == 0x07);
            let string_end = bytes.windows(2).position(|two| two == b"\x1b\\").map(|at| at + 1);
            let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(usize::MAX);
            match end.into_iter().chain(string_end).min() {
                Some(at) if at < line => at + 1,
                // Never closed: only what introduces it is taken away.
                Some(_) | None => 2,
            }
        }
        Some(0x20..=0x2f) => {
            let middle = bytes[1..].iter().take_while(|byte| (0x20..=0x2f).contains(*byte)).count();
            (1 + middle + 1).min(bytes.len())
        }
        Some(0x30..=0x7e) => 2,
        Some(_) | None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{Raw, clean, text};

    #[test]
    fn text_stays_as_it_is() {
        assert_eq!(clean("caf\u{e9} \u{1f600}\tx\r\n\n".as_bytes()), "caf\u{e9} \u{1f600}\tx\r\n\n");
    }

    #[test]
    fn bytes_that_are_not_text_are_shown() {
        assert_eq!(clean(b"a\xff\xfeb\0\xc3"), "a\\xff\\xfeb\\x00\\xc3");
    }

    #[test]
    fn terminal_sequences_leave_no_trace() {
        assert_eq!(clean(b"\x1b[31mred\x1b[0m \x1b]0;title\x07seen\x1b(B \x1bM\x1b[2J\x1b[Hend"), "red seen end");
    }

    #[test]
    fn a_stray_escape_does_not_swallow_what_follows() {
        assert_eq!(clean(b"\x1b]never closed\nnext\x1b"), "never closed\nnext");
    }

    #[test]
    fn a_redrawn_line_shows_its_last_state() {
        assert_eq!(clean(b"10%\r 50%\r\x1b[K100%\nnext"), "100%\nnext");
        assert_eq!(clean(b"10%\r20%\r"), "20%\r");
        assert_eq!(clean(b"a\rb\r\n"), "b\r\n");
    }

    #[test]
    fn a_backspace_takes_back_one_character_of_its_line() {
        assert_eq!(clean(b"x\n\x08_\x08a_\x08b"), "x\nab");
    }

    #[test]
    fn long_output_is_cut_between_lines_and_says_so() {
        let all: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        let raw = Raw {
            head: all.as_bytes(),
            tail: b"",
            bytes: all.len() as u64,
            lines: 1000,
            spool: Some("/s"),
            spool_gap_bytes: 0,
        };
        let cut = text(&raw, 100);
        assert!(cut.starts_with("line 0\nline 1\n"), "{cut}");
        assert!(cut.ends_with("line 998\nline 999\n"), "{cut}");
        assert!(cut.contains("lines) left out here; the whole output is in /s]\n"), "{cut}");
        assert!(cut.chars().count() < 200, "{cut}");
    }

    #[test]
    fn a_gap_between_head_and_tail_never_splits_a_character() {
        let raw =
            Raw { head: b"ab\xe2\x82", tail: b"\x82\xaccd", bytes: 100, lines: 0, spool: None, spool_gap_bytes: 0 };
        assert_eq!(text(&raw, 100), "ab\n[96 bytes (0 lines) left out here]\ncd");
    }
}
