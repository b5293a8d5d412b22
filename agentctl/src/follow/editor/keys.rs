//! Bytes of a keyboard to keys. Pure.

/// A key, by what it does in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    NewLine,
    Tab,
    BackTab,
    Backspace,
    Delete,
    /// Ctrl-D: delete, or the end of an empty input.
    DeleteOrEnd,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    Home,
    LineEnd,
    KillWord,
    KillWordRight,
    KillToStart,
    KillToEnd,
    Yank,
    Redraw,
    PasteBegin,
    Unknown,
}

/// How a terminal ends a paste.
pub(super) const PASTE_END: &[u8] = b"\x1b[201~";

impl Key {
    /// The first key in the bytes and how many it took; `None` when more bytes are needed.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let key = match *bytes.first()? {
            b'\r' => Self::Enter,
            b'\n' => Self::NewLine,
            0x7f | 0x08 => Self::Backspace,
            0x01 => Self::Home,
            0x02 => Self::Left,
            0x04 => Self::DeleteOrEnd,
            0x05 => Self::LineEnd,
            0x06 => Self::Right,
            0x0b => Self::KillToEnd,
            0x0c => Self::Redraw,
            0x0e => Self::Down,
            0x10 => Self::Up,
            0x15 => Self::KillToStart,
            0x17 => Self::KillWord,
            0x19 => Self::Yank,
            b'\t' => Self::Tab,
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
            b'\r' | b'\n' => Some((Self::NewLine, 2)),
            0x7f | 0x08 => Some((Self::KillWord, 2)),
            b'b' => Some((Self::WordLeft, 2)),
            b'f' => Some((Self::WordRight, 2)),
            b'd' => Some((Self::KillWordRight, 2)),
            _ => Some((Self::Unknown, 2)),
        }
    }

    fn from_final(last: u8, parameters: &[u8]) -> Self {
        // `1;5` and `1;3`: with Ctrl or Alt.
        let word = matches!(parameters, b"1;5" | b"1;3" | b"5" | b"3");
        match (last, parameters) {
            (b'A', _) => Self::Up,
            (b'B', _) => Self::Down,
            (b'C', _) if word => Self::WordRight,
            (b'D', _) if word => Self::WordLeft,
            (b'C', _) => Self::Right,
            (b'D', _) => Self::Left,
            (b'H', _) | (b'~', b"1" | b"7") => Self::Home,
            (b'F', _) | (b'~', b"4" | b"8") => Self::LineEnd,
            (b'Z', _) => Self::BackTab,
            (b'~', b"3") => Self::Delete,
            (b'~', b"200") => Self::PasteBegin,
            // Shift-Enter and its kin, where the terminal tells them from Enter.
            (b'u', b"13;2" | b"13;3" | b"13;5") | (b'~', b"27;2;13" | b"27;3;13" | b"27;5;13") => Self::NewLine,
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
