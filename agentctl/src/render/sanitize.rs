//! The one place where foreign text is made harmless: what a model, a tool or a file wrote may hold control sequences
//! that move the cursor, rewrite what was shown, set the clipboard or reorder a command on the screen.
//!
//! Invariant: the result holds no control character but line feed and tab ([`lines`]) or none at all ([`line()`]), no
//! bidirectional control and no invisible tag character. What was there is shown, never dropped: a hidden character is
//! a fact the reader needs.

use std::fmt::Write as _;

/// Makes text harmless and keeps its lines. Carriage returns before line feeds go; tabs stay.
#[must_use]
pub fn lines(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\n' | '\t' => clean.push(char),
            '\r' if chars.peek() == Some(&'\n') => {}
            other => push(&mut clean, other),
        }
    }
    clean
}

/// Makes text harmless and one line of it: line feeds are shown as `␊`, tabs become spaces.
#[must_use]
pub fn line(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\t' => clean.push_str("    "),
            other => push(&mut clean, other),
        }
    }
    clean
}

/// Makes JSON text harmless without changing what it says: JSON itself escapes the C0 controls, this the rest.
#[must_use]
pub fn json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for char in text.chars() {
        if hidden(char) || char == '\x7f' {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(clean, "\\u{unit:04x}");
            }
        } else {
            clean.push(char);
        }
    }
    clean
}

/// Takes out complete colour and erase-line sequences, which only decorate: a running command's output reads better
/// without them. Everything else stays, for [`line()`] to show.
#[must_use]
pub fn without_colors(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\x1b[") {
        let after = &rest[start + 2..];
        let length = after.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
        let end = match after.as_bytes().get(length) {
            Some(b'm' | b'K') => start + 2 + length + 1,
            Some(_) | None => {
                plain.push_str(&rest[..start + 2]);
                rest = after;
                continue;
            }
        };
        plain.push_str(&rest[..start]);
        rest = &rest[end..];
    }
    plain.push_str(rest);
    plain
}

fn push(clean: &mut String, char: char) {
    match char {
        // The control pictures stand in the order of the controls.
        '\0'..='\x1f' => clean.push(char::from_u32(0x2400 + u32::from(char)).unwrap_or('\u{fffd}')),
        '\x7f' => clean.push('\u{2421}'),
        other if hidden(other) => {
            // Writing to a String cannot fail.
            let _ = write!(clean, "‹{:x}›", u32::from(other));
        }
        other => clean.push(other),
    }
}

/// Characters that act on the screen or hide on it: C1 controls, bidirectional controls, zero-width spaces, line and
/// paragraph separators, the byte order mark, annotations, tags. Joiners stay: emoji and scripts need them.
fn hidden(char: char) -> bool {
    matches!(char,
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_survives() {
        let hostile = "a\x1b[2J\x1b]52;c;ZXZpbA==\x07b\u{9b}31mc\u{202e}gpj.exe\u{2066}d\u{e0041}\0\x7f\r\x08e";
        for clean in [lines(hostile), line(hostile)] {
            assert!(!clean.chars().any(|c| c.is_control() || hidden(c)), "{clean:?}");
            assert!(clean.contains("␛[2J") && clean.contains("‹9b›31m") && clean.contains("‹202e›gpj.exe"), "{clean}");
        }
    }

    #[test]
    fn every_character_there_is_comes_out_harmless() {
        for char in '\0'..=char::MAX {
            let text = char.to_string();
            assert!(!line(&text).chars().any(|c| c.is_control() || hidden(c)), "{:x}", u32::from(char));
            assert!(!line(&text).is_empty(), "{:x} vanished", u32::from(char));
        }
    }

    #[test]
    fn colours_go_and_everything_that_acts_stays_to_be_shown() {
        assert_eq!(without_colors("\x1b[1;32mok\x1b[0m done\x1b[K"), "ok done");
        assert_eq!(without_colors("a\x1b[2Jb\x1b]0;t\x07\x1b[3"), "a\x1b[2Jb\x1b]0;t\x07\x1b[3");
    }

    #[test]
    fn json_stays_the_same_document() {
        let value = "\u{9b}x\u{202e}\u{e0041}\x7f日";
        let text = serde_json::to_string(value).unwrap();
        let clean = json(&text);
        assert_eq!(clean, r#""\u009bx\u202e\udb40\udc41\u007f日""#);
        assert_eq!(serde_json::from_str::<String>(&clean).unwrap(), value);
    }

    #[test]
    fn plain_text_is_untouched() {
        let text = "fn main() {\n\tprintln!(\"naïve 日本 👩‍💻 ✓\");\n}\n";
        assert_eq!(lines(text), text);
        assert_eq!(lines("dos\r\nline"), "dos\nline");
        assert_eq!(line("a\nb\tc"), "a␊b    c");
    }
}
