//! Words: quoting, expansions, and the texts of `[[ … ]]` and arithmetic.
//!
//! A line continuation is understood between words and between plain characters of a double-quoted text only; everywhere
//! else bash removes it before it looks for operators, which is how `$\⏎(…)` becomes a substitution.

use super::parse::{Parsed, Parser, fail, is_delimiter};
use super::{Compound, Kind, Node, Part, Word};

impl Parser<'_> {
    /// A word; an error when there is none.
    pub(super) fn word(&mut self) -> Parsed<Word> {
        let mut parts = Vec::new();
        if self.peek() == Some(b'~') {
            self.at += 1;
            let name = self.bytes[self.at..].iter().take_while(|c| c.is_ascii_alphanumeric() || b"+-_.".contains(c));
            self.at += name.count();
            if self.peek().is_some_and(|c| c != b'/' && !is_delimiter(c)) {
                return fail("a tilde is followed by an expansion");
            }
            parts.push(Part::Home);
        }
        while let Some(c) = self.peek() {
            if self.at_process() {
                self.at += 2;
                parts.push(Part::Process { body: self.substitution()? });
                continue;
            }
            if is_delimiter(c) {
                break;
            }
            self.piece(c, &mut parts)?;
        }
        if parts.is_empty() { fail("a word is missing") } else { Ok(Word { parts }) }
    }

    /// One piece of an unquoted word that starts with `c`.
    pub(super) fn piece(&mut self, c: u8, parts: &mut Vec<Part>) -> Parsed<()> {
        match c {
            b'\'' => {
                self.at += 1;
                let text = self.until_quote()?;
                parts.push(Part::Text { text, quoted: true });
            }
            b'"' => {
                self.at += 1;
                self.double_quoted(parts)?;
            }
            b'\\' => {
                self.at += 1;
                let Some(escaped) = self.text[self.at..].chars().next() else {
                    return fail("the command ends in a backslash");
                };
                if escaped == '\n' {
                    return fail("a line continuation joins two parts of a word");
                }
                self.at += escaped.len_utf8();
                parts.push(Part::Text { text: escaped.to_string(), quoted: true });
            }
            b'$' if self.peek_at(1) == Some(b'\'') => {
                self.at += 2;
                let text = self.ansi_c()?;
                parts.push(Part::Text { text, quoted: true });
            }
            b'$' if self.peek_at(1) == Some(b'"') => return fail("a text is translated by the locale"),
            b'$' => self.dollar(false, parts)?,
            b'`' => self.backquotes(false, parts)?,
            _ => {
                let plain = self.run(|c| is_delimiter(c) || b"'\"\\$`".contains(&c));
                parts.push(Part::Text { text: plain, quoted: false });
            }
        }
        Ok(())
    }

    /// Text up to a byte that `stop` names.
    pub(super) fn run(&mut self, stop: impl Fn(u8) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| !stop(c)) {
            self.at += 1;
        }
        self.text[start..self.at].to_owned()
    }

    pub(super) fn newline_in_word(&self) -> Parsed<()> {
        if self.pending.is_none() && !self.outer_pending {
            return Ok(());
        }
        fail("a quoted new line follows the start of a here-document")
    }

    fn until_quote(&mut self) -> Parsed<String> {
        let text = self.run(|c| c == b'\'');
        if self.peek().is_none() {
            return fail("a single quote is not closed");
        }
        if text.contains('\n') {
            self.newline_in_word()?;
        }
        self.at += 1;
        Ok(text)
    }

    /// The inside of `"…"`, up to and with the closing quote.
    fn double_quoted(&mut self, parts: &mut Vec<Part>) -> Parsed<()> {
        // An empty text is a word, too.
        parts.push(Part::Text { text: String::new(), quoted: true });
        loop {
            match self.peek() {
                None => return fail("a double quote is not closed"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(c) => self.quoted_piece(c, parts, b"\"")?,
            }
        }
    }

    /// One piece of a double-quoted text or of a here-document. `escapable` are the bytes besides `$`, backquote and
    /// backslash that a backslash escapes.
    pub(super) fn quoted_piece(&mut self, c: u8, parts: &mut Vec<Part>, escapable: &[u8]) -> Parsed<()> {
        match c {
            b'\\' => {
                self.at += 1;
                match self.peek() {
                    Some(b'\n') => self.quoted_continuation(escapable)?,
                    Some(next) if b"$`\\".contains(&next) || escapable.contains(&next) => {
                        self.at += 1;
                        parts.push(Part::Text { text: char::from(next).to_string(), quoted: true });
                    }
                    Some(_) => parts.push(Part::Text { text: "\\".to_owned(), quoted: true }),
                    None => return fail("the command ends in a backslash"),
                }
            }
            b'$' => self.dollar(true, parts)?,
            b'`' => self.backquotes(true, parts)?,
            _ => {
                let stop = escapable.first().copied();
                let text = self.run(|c| b"\\$`".contains(&c) || Some(c) == stop);
                if text.contains('\n') {
                    self.newline_in_word()?;
                }
                parts.push(Part::Text { text, quoted: true });
            }
        }
        Ok(())
    }

    /// `\` and a new line inside double quotes: nothing, when plain characters surround it.
    fn quoted_continuation(&mut self, escapable: &[u8]) -> Parsed<()> {
        let before = self.at.checked_sub(2).and_then(|at| self.bytes.get(at));
        let after = self.peek_at(1);
        let plain = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == b' ');
        if escapable.is_empty() || !plain(before.copied()) || !plain(after) {
            return fail("a line continuation stands inside an expansion or a here-document");
        }
        self.newline_in_word()?;
        self.at += 1;
        Ok(())
    }

    /// The inside of `$'…'`.
    fn ansi_c(&mut self) -> Parsed<String> {
        let mut bytes = Vec::new();
        loop {
            let Some(c) = self.peek() else { return fail("a single quote is not closed") };
            self.at += 1;
            match c {
                b'\'' => break,
                b'\\' => self.ansi_c_escape(&mut bytes)?,
                b'\n' => {
                    self.newline_in_word()?;
                    bytes.push(c);
                }
                _ => bytes.push(c),
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text),
            Ok(_) | Err(_) => fail("an escape makes a byte that is no text"),
        }
    }

    fn ansi_c_escape(&mut self, bytes: &mut Vec<u8>) -> Parsed<()> {
        let Some(c) = self.peek() else { return fail("the command ends in a backslash") };
        let (radix, most) = match c {
            b'x' => (16, 2),
            b'0'..=b'7' => (8, 3),
            _ => {
                let plain = match c {
                    b'a' => 7,
                    b'b' => 8,
                    b'e' | b'E' => 27,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 11,
                    b'\\' | b'\'' | b'"' | b'?' => c,
                    _ => return fail("an escape is not known"),
                };
                bytes.push(plain);
                self.at += 1;
                return Ok(());
            }
        };
        if radix == 16 {
            self.at += 1;
        }
        let mut value = 0;
        let mut digits = 0;
        while let Some(digit) = self.peek().and_then(|c| char::from(c).to_digit(radix)).filter(|_| digits < most) {
            value = value * radix + digit;
            digits += 1;
            self.at += 1;
        }
        match u8::try_from(value) {
            Ok(byte) if digits > 0 => {
                bytes.push(byte);
                Ok(())
            }
            Ok(_) | Err(_) => fail("an escape is not known"),
        }
    }

    /// `[[ … ]]`: the operators become words.
    pub(super) fn condition(&mut self) -> Parsed<Node> {
        self.at += 2;
        let mut words = Vec::new();
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t')) {
                self.at += 1;
            }
            let rest = &self.text[self.at..];
            if rest.starts_with("]]") && rest[2..].bytes().next().is_none_or(is_delimiter) {
                self.at += 2;
                break;
            }
            let operator =
                ["&&", "||", "<", ">", "(", ")"].into_iter().find(|o| rest.starts_with(o) && !self.at_process());
            if let Some(operator) = operator {
                self.at += operator.len();
                words.push(Word { parts: vec![Part::Text { text: operator.to_owned(), quoted: true }] });
            } else {
                words.push(self.condition_word(&words)?);
            }
        }
        let condition = Compound { kind: Kind::Condition, words, bodies: Vec::new(), redirects: Vec::new() };
        Ok(Node::Compound(condition))
    }

    /// A word of a condition; a regular expression may hold parentheses and bars.
    fn condition_word(&mut self, before: &[Word]) -> Parsed<Word> {
        let regex =
            matches!(before.last().map(|w| w.parts.as_slice()), Some([Part::Text { text, .. }]) if text == "=~");
        let mut parts = Vec::new();
        loop {
            let mut word = self.word();
            if regex && matches!(self.peek(), Some(b'(' | b')' | b'|')) {
                if let Ok(word) = &mut word {
                    parts.append(&mut word.parts);
                }
                parts.push(Part::Text { text: char::from(self.bytes[self.at]).to_string(), quoted: true });
                self.at += 1;
                continue;
            }
            match word {
                Ok(word) => parts.extend(word.parts),
                Err(_) if regex && !parts.is_empty() && matches!(self.peek(), Some(b' ' | b'\t')) => {}
                Err(error) => return Err(error),
            }
            return Ok(Word { parts });
        }
    }
}
