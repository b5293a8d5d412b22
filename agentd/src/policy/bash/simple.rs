//! What surrounds the words of a simple command: assignments and redirections.

use super::parse::{Parsed, Parser, fail, is_delimiter};
use super::{Assign, Redirect, Word};

impl Parser<'_> {
    /// `name=…` at this point, if it is one.
    pub(super) fn assignment(&mut self) -> Parsed<Option<Assign>> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|c| c.is_ascii_alphanumeric() || **c == b'_').count();
        if length == 0 || rest[0].is_ascii_digit() {
            return Ok(None);
        }
        let (skip, append) = match (rest.get(length), rest.get(length + 1)) {
            (Some(b'='), _) => (1, false),
            (Some(b'+'), Some(b'=')) => (2, true),
            (Some(b'['), _) => return fail("an array element is assigned or a name contains `[`"),
            _ => return Ok(None),
        };
        let name = self.text[self.at..self.at + length].to_owned();
        self.at += length + skip;
        if self.peek() == Some(b'(') {
            self.at += 1;
            let values = self.array()?;
            return Ok(Some(Assign { name, values, compound: true }));
        }
        let value = match self.peek() {
            None => Word::default(),
            Some(c) if is_delimiter(c) && !self.at_process() => Word::default(),
            Some(_) => self.word()?,
        };
        Ok(Some(Assign { name, values: vec![value], compound: append }))
    }

    pub(super) fn array(&mut self) -> Parsed<Vec<Word>> {
        let mut values = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    return Ok(values);
                }
                Some(b'[') => return fail("an array element is assigned by index"),
                None => return fail("an array does not end"),
                Some(_) => values.push(self.word()?),
            }
        }
    }

    /// `<(` or `>(`: the start of a word, not of a redirection.
    pub(super) fn at_process(&self) -> bool {
        matches!(self.peek(), Some(b'<' | b'>')) && self.peek_at(1) == Some(b'(')
    }

    /// A redirection at this point, if there is one.
    pub(super) fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let digits = self.bytes[self.at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let operator = &self.text[self.at + digits..];
        let both = digits == 0 && operator.starts_with("&>");
        if !(operator.starts_with(['<', '>']) || both) || operator[1..].starts_with('(') {
            return Ok(None);
        }
        self.at += digits;
        if self.eat("<<<") {
            return Ok(Some(Redirect::Text(self.target()?)));
        }
        if self.eat("<<") {
            return self.heredoc_start().map(Some);
        }
        if self.eat("<&") || self.eat(">&") {
            return self.duplicate().map(Some);
        }
        for write in ["&>>", "&>", ">>", ">|", "<>", ">"] {
            if self.eat(write) {
                return Ok(Some(Redirect::Write(self.target()?)));
            }
        }
        self.at += 1;
        Ok(Some(Redirect::Read(self.target()?)))
    }

    pub(super) fn duplicate(&mut self) -> Parsed<Redirect> {
        let word = self.bare_word();
        let number = word.strip_suffix('-').unwrap_or(word);
        if word == "-" || (!number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())) {
            self.at += word.len();
            return Ok(Redirect::Duplicate);
        }
        Ok(Redirect::Write(self.target()?))
    }

    pub(super) fn target(&mut self) -> Parsed<Word> {
        if matches!(self.peek(), Some(b'\\' | b'&')) {
            return fail("the target of a redirection does not parse");
        }
        self.skip_blanks()?;
        self.word()
    }
}
