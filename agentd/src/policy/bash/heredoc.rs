//! Here-documents: the delimiter, and the body that begins on the next line.
//!
//! A body with expansions in it becomes a word of quoted parts. A continued line in such a body is [`super::Opaque`]:
//! bash joins lines before it looks for the delimiter. So is a quoted new line between the start and the end of the
//! line, so that "the next line" is never in doubt.

use super::parse::{Parsed, Parser, fail, is_delimiter};
use super::{Part, Redirect, Word};

/// Bodies that have been read ahead: when the parser reaches the end of the line it goes on behind them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bodies {
    line_end: usize,
    resume: usize,
}

impl Parser<'_> {
    /// After `<<`: the delimiter; the body is read ahead.
    pub(super) fn heredoc_start(&mut self) -> Parsed<Redirect> {
        let strip_tabs = self.peek() == Some(b'-');
        if strip_tabs {
            self.at += 1;
        }
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let (delimiter, expands) = self.delimiter()?;
        let line_end = match self.pending {
            Some(bodies) => bodies.line_end,
            None => self.next_newline(self.at)?,
        };
        let start = self.pending.map_or(line_end + 1, |bodies| bodies.resume);
        let (body, resume) = self.read_body(start, &delimiter, strip_tabs)?;
        self.pending = Some(Bodies { line_end, resume });
        let parts = if expands { self.expanded_body(&body)? } else { vec![Part::Text { text: body, quoted: true }] };
        Ok(Redirect::Text(Word { parts }))
    }

    /// At the end of a line: over the bodies that belong to it.
    pub(super) fn skip_bodies(&mut self) -> Parsed<()> {
        match self.pending.take() {
            None => self.at += 1,
            Some(bodies) if bodies.line_end == self.at => self.at = bodies.resume,
            Some(_) => return fail("the body of a here-document begins in doubt"),
        }
        Ok(())
    }

    fn next_newline(&self, from: usize) -> Parsed<usize> {
        match self.bytes[from..].iter().position(|c| *c == b'\n') {
            Some(offset) => Ok(from + offset),
            None => fail("a here-document has no body"),
        }
    }

    fn delimiter(&mut self) -> Parsed<(String, bool)> {
        let mut delimiter = String::new();
        let mut expands = true;
        while let Some(c) = self.peek().filter(|c| !is_delimiter(*c)) {
            match c {
                b'\'' | b'"' => {
                    expands = false;
                    let Some(end) = self.bytes[self.at + 1..].iter().position(|other| *other == c) else {
                        return fail("the delimiter of a here-document is not closed");
                    };
                    let inner = &self.text[self.at + 1..self.at + 1 + end];
                    if inner.contains(['$', '`', '\\', '\n']) {
                        return fail("the delimiter of a here-document is not plain");
                    }
                    delimiter.push_str(inner);
                    self.at += end + 2;
                }
                b'\\' => {
                    expands = false;
                    let Some(escaped) = self.text[self.at + 1..].chars().next().filter(|c| *c != '\n') else {
                        return fail("the delimiter of a here-document is not plain");
                    };
                    delimiter.push(escaped);
                    self.at += 1 + escaped.len_utf8();
                }
                b'$' | b'`' => return fail("the delimiter of a here-document is not plain"),
                _ => {
                    let start = self.at;
                    while self.peek().is_some_and(|c| !is_delimiter(c) && !b"'\"\\$`".contains(&c)) {
                        self.at += 1;
                    }
                    delimiter.push_str(&self.text[start..self.at]);
                }
            }
        }
        if delimiter.is_empty() { fail("a here-document has no delimiter") } else { Ok((delimiter, expands)) }
    }

    /// The body from `start`, and where the text goes on behind the delimiter.
    fn read_body(&self, start: usize, delimiter: &str, strip_tabs: bool) -> Parsed<(String, usize)> {
        let mut body = String::new();
        let mut at = start;
        while at < self.text.len() {
            let end = self.bytes[at..].iter().position(|c| *c == b'\n').map_or(self.text.len(), |offset| at + offset);
            let line = &self.text[at..end];
            let line = if strip_tabs { line.trim_start_matches('\t') } else { line };
            at = (end + 1).min(self.text.len());
            if line == delimiter {
                return Ok((body, at));
            }
            body.push_str(line);
            body.push('\n');
        }
        fail("a here-document has no end")
    }

    fn expanded_body(&self, body: &str) -> Parsed<Vec<Part>> {
        let mut inner = Parser::new(body, self.depth + 1);
        let mut parts = vec![Part::Text { text: String::new(), quoted: true }];
        while let Some(c) = inner.peek() {
            inner.quoted_piece(c, &mut parts, b"")?;
        }
        Ok(parts)
    }
}
