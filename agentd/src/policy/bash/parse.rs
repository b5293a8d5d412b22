//! Text → [`List`]: the grammar of commands.
//!
//! Owns the recursive descent over commands and separators; words are [`super::word`]'s. Where bash has two readings that
//! depend on options or on history (extended globs, aliases, line continuations inside an operator), this parser takes
//! neither and answers [`Opaque`].

use super::heredoc::Bodies;
use super::{Kind, List, Node, Opaque, Part, Simple, Word};

/// Longest text that is parsed; a longer one is only scanned for denied commands. Far over any command a person could
/// review, and small enough that a decision stays under the 50 ms bar in a debug build.
pub(crate) const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Deepest nesting of substitutions and compound commands: bounds the recursion on a 2 MiB thread stack; real commands
/// stay under ten.
const MAX_DEPTH: usize = 40;

pub(super) type Parsed<T> = Result<T, Opaque>;

pub(super) fn fail<T>(why: impl Into<String>) -> Parsed<T> {
    Err(Opaque(why.into()))
}

/// Parses a whole command text.
pub(crate) fn parse(text: &str) -> Parsed<List> {
    if text.len() > MAX_TEXT_BYTES {
        return fail("the command is too long to be analysed");
    }
    if let Some(bad) = text.chars().find(|c| deceptive(*c)) {
        return fail(format!("the command contains the control or invisible character U+{:04X}", u32::from(bad)));
    }
    parse_nested(text, 0)
}

/// Parses text that came out of backquotes.
pub(super) fn parse_nested(text: &str, depth: usize) -> Parsed<List> {
    let mut parser = Parser::new(text, depth);
    let list = parser.list()?;
    if parser.at < parser.bytes.len() {
        return fail("the command does not parse");
    }
    if parser.pending.is_some() {
        return fail("a here-document has no end");
    }
    Ok(list)
}

/// Characters that bash and a screen read differently, or that no command needs.
pub(super) fn deceptive(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

pub(super) struct Parser<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// Bodies of this line's here-documents, to be skipped at its end.
    pub(super) pending: Option<Bodies>,
    /// A here-document waits outside the substitution we are in: a new line in here would be ambiguous.
    pub(super) outer_pending: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, depth: usize) -> Self {
        Self { bytes: text.as_bytes(), text, at: 0, depth, pending: None, outer_pending: false }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    pub(super) fn looking_at(&self, text: &str) -> bool {
        self.bytes[self.at..].starts_with(text.as_bytes())
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.looking_at(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return fail("the command is nested too deeply to be analysed");
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// A list inside `$(…)` or `<(…)`, up to and with the closing parenthesis.
    pub(super) fn substitution(&mut self) -> Parsed<List> {
        let waiting = std::mem::take(&mut self.pending);
        let outer = self.outer_pending;
        self.outer_pending = outer || waiting.is_some();
        let list = self.deeper(Self::list)?;
        if !self.eat(")") || self.pending.is_some() {
            return fail("a substitution does not end where it should");
        }
        self.pending = waiting;
        self.outer_pending = outer;
        Ok(list)
    }

    /// Blanks, line continuations between words, and a comment up to its end of line.
    pub(super) fn skip_blanks(&mut self) -> Parsed<()> {
        let mut continued = false;
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => {
                    if self.at > 0 && !matches!(self.bytes[self.at - 1], b' ' | b'\t' | b'\n') {
                        return fail("a line continuation joins two tokens");
                    }
                    if self.pending.is_some() || self.outer_pending {
                        return fail("a line continuation follows the start of a here-document");
                    }
                    self.at += 2;
                    continued = true;
                }
                Some(b'#') if continued => return fail("a comment follows a line continuation"),
                Some(b'#') if self.at == 0 || is_delimiter(self.bytes[self.at - 1]) => {
                    while self.peek().is_some_and(|c| c != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// The end of a line, with the bodies of the here-documents that wait for it.
    fn end_line(&mut self) -> Parsed<()> {
        if self.outer_pending {
            return fail("a new line inside a substitution follows the start of a here-document");
        }
        self.skip_bodies()
    }

    pub(super) fn skip_lines(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks()?;
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.end_line()?;
        }
    }

    /// Commands up to a closer, `)`, `;;` or the end; which of them is the caller's to check.
    pub(super) fn list(&mut self) -> Parsed<List> {
        let mut list = Vec::new();
        loop {
            self.skip_lines()?;
            if self.at_list_end() {
                return Ok(list);
            }
            self.and_or(&mut list)?;
            self.skip_blanks()?;
            match self.peek() {
                Some(b';') if !matches!(self.peek_at(1), Some(b';' | b'&')) => self.at += 1,
                Some(b'&') if !matches!(self.peek_at(1), Some(b'&' | b'>')) => self.at += 1,
                Some(b'\n') => self.end_line()?,
                Some(b';' | b')') | None => return Ok(list),
                Some(_) => return fail("the command does not parse"),
            }
        }
    }

    fn at_list_end(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.peek_at(1), Some(b';' | b'&')),
            Some(_) => closes(self.bare_word()),
        }
    }

    fn and_or(&mut self, list: &mut List) -> Parsed<()> {
        let mut chain = Vec::new();
        let mut only_and = true;
        loop {
            chain.push(self.pipeline()?);
            self.skip_blanks()?;
            if self.eat("||") {
                only_and = false;
            } else if !self.eat("&&") {
                break;
            }
            self.skip_lines()?;
        }
        if only_and && chain.len() > 1 {
            list.push(Node::Conjunction(chain));
        } else {
            list.append(&mut chain);
        }
        Ok(())
    }

    fn pipeline(&mut self) -> Parsed<Node> {
        loop {
            self.skip_blanks()?;
            match self.bare_word() {
                "!" if matches!(self.peek_at(1), Some(b' ' | b'\t')) => self.at += 1,
                "time" => {
                    self.at += 4;
                    self.skip_blanks()?;
                    if self.bare_word() == "-p" {
                        self.at += 2;
                    }
                }
                _ => break,
            }
        }
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks()?;
            if self.looking_at("||") || !self.eat("|") {
                break;
            }
            self.eat("&");
            self.skip_lines()?;
            commands.push(self.command()?);
        }
        if commands.len() > 1 {
            return Ok(Node::Pipeline(commands));
        }
        commands.pop().map_or_else(|| fail("a command is missing"), Ok)
    }

    /// The plain, unquoted word at this point, without consuming it; empty when quoting or expansion is involved.
    pub(super) fn bare_word(&self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(is_delimiter).unwrap_or(rest.len());
        let word = &rest[..end];
        if word.bytes().any(|c| matches!(c, b'\\' | b'\'' | b'"' | b'$' | b'`')) { "" } else { word }
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Parsed<()> {
        self.skip_lines()?;
        if self.bare_word() != word {
            return fail(format!("`{word}` is missing"));
        }
        self.at += word.len();
        Ok(())
    }

    pub(super) fn command(&mut self) -> Parsed<Node> {
        self.skip_blanks()?;
        self.deeper(Self::command_here)
    }

    fn command_here(&mut self) -> Parsed<Node> {
        if self.looking_at("((") {
            return self.arithmetic_command();
        }
        if self.eat("(") {
            let body = self.body()?;
            if !self.eat(")") {
                return fail("`)` is missing");
            }
            return self.compound(Kind::Subshell, Vec::new(), vec![body]);
        }
        let word = self.bare_word();
        let length = word.len();
        match word {
            "{" => {
                self.at += length;
                let body = self.body()?;
                self.expect_word("}")?;
                self.compound(Kind::Group, Vec::new(), vec![body])
            }
            "if" => self.if_command(),
            "while" | "until" => {
                self.at += length;
                let condition = self.body()?;
                let body = self.do_group()?;
                self.compound(Kind::Loop, Vec::new(), vec![condition, body])
            }
            "for" | "select" => {
                let select = word == "select";
                self.at += length;
                self.for_command(select)
            }
            "case" => self.case_command(),
            "[[" => self.condition(),
            "function" => {
                self.at += length;
                self.function_keyword()
            }
            "coproc" => {
                self.at += length;
                self.coprocess()
            }
            "in" | "]]" | "!" | "time" => fail("a reserved word stands where a command should"),
            closer if closes(closer) => fail(format!("`{closer}` stands where a command should")),
            _ => self.simple(),
        }
    }

    fn simple(&mut self) -> Parsed<Node> {
        let start = self.at;
        let mut simple = Simple::default();
        let mut end = start;
        loop {
            self.skip_blanks()?;
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
            } else if matches!(self.peek(), None | Some(b'\n' | b';' | b'&' | b'|' | b')')) {
                break;
            } else if self.peek() == Some(b'(') {
                return self.function_definition(&simple, start);
            } else if simple.words.is_empty()
                && let Some(assign) = self.assignment()?
            {
                simple.assigns.push(assign);
            } else {
                let word = self.at;
                simple.words.push(self.word()?);
                if self.bytes[word] == b'{' && matches!(self.peek(), Some(b'<' | b'>')) {
                    return fail("a redirection chooses its descriptor");
                }
            }
            end = self.at;
        }
        if simple.words.is_empty() && simple.assigns.is_empty() && simple.redirects.is_empty() {
            return fail("a command is missing");
        }
        simple.text = self.text[start..end].to_owned();
        Ok(Node::Simple(simple))
    }

    /// `name ( )` after one plain word.
    fn function_definition(&mut self, simple: &Simple, start: usize) -> Parsed<Node> {
        let [Word { parts }] = simple.words.as_slice() else { return fail("a parenthesis stands inside a command") };
        let [Part::Text { text, quoted: false }] = parts.as_slice() else {
            return fail("the name of a function is not plain");
        };
        if !simple.assigns.is_empty() || !simple.redirects.is_empty() || !self.text[start..].starts_with(text.as_str())
        {
            return fail("a parenthesis stands inside a command");
        }
        self.at += 1;
        self.skip_blanks()?;
        if !self.eat(")") {
            return fail("a parenthesis stands inside a command");
        }
        self.function_body(text.clone())
    }
}

/// Words that end a list when they stand where a command could.
fn closes(word: &str) -> bool {
    matches!(word, "then" | "do" | "done" | "fi" | "else" | "elif" | "esac" | "}")
}

pub(super) fn is_delimiter(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

/// A variable's name.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
        && text.bytes().next().is_some_and(|c| !c.is_ascii_digit())
}
