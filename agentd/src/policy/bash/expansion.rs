//! What `$` and backquotes start: parameters, substitutions, arithmetic.

use super::parse::{Parsed, Parser, fail, parse_nested};
use super::{Compound, Kind, Node, Operation, Part};

/// Bytes that arithmetic may consist of without a variable in it.
const ARITHMETIC: &[u8] = b"0123456789 \t+-*/%()<>=!&|^~?:,";

impl Parser<'_> {
    /// What `$` starts.
    pub(super) fn dollar(&mut self, quoted: bool, parts: &mut Vec<Part>) -> Parsed<()> {
        self.at += 1;
        let plain = |name: String| Part::Parameter { name, operation: Operation::Plain, quoted };
        match self.peek() {
            Some(b'(') if self.peek_at(1) == Some(b'(') => {
                parts.push(Part::Arithmetic { names: self.arithmetic_text()? });
            }
            Some(b'(') => {
                self.at += 1;
                parts.push(Part::Command { body: self.substitution()?, quoted });
            }
            Some(b'{') => {
                self.at += 1;
                let part = self.deeper(|parser| parser.braced_parameter(quoted))?;
                parts.push(part);
            }
            Some(c) if c.is_ascii_alphabetic() || c == b'_' => {
                let name = self.run(|c| !(c.is_ascii_alphanumeric() || c == b'_'));
                parts.push(plain(name));
            }
            Some(c) if c.is_ascii_digit() || b"?#$!@*-".contains(&c) => {
                self.at += 1;
                parts.push(plain(char::from(c).to_string()));
            }
            Some(b'[') => return fail("the old form of arithmetic is not analysed"),
            Some(b'\\') => return fail("a dollar sign stands before a backslash"),
            _ => parts.push(Part::Text { text: "$".to_owned(), quoted: true }),
        }
        Ok(())
    }

    /// The inside of `${…}`, up to and with the closing brace.
    pub(super) fn braced_parameter(&mut self, quoted: bool) -> Parsed<Part> {
        let length = self.peek() == Some(b'#') && self.peek_at(1) != Some(b'}');
        if length {
            self.at += 1;
        }
        let mut name = self.run(|c| !(c.is_ascii_alphanumeric() || c == b'_'));
        if name.is_empty()
            && let Some(c) = self.peek().filter(|c| b"?#$!@*-".contains(c))
            && self.peek_at(1) == Some(b'}')
        {
            name.push(char::from(c));
            self.at += 1;
        }
        let named = name.bytes().all(|c| c.is_ascii_digit()) || !name.as_bytes()[0].is_ascii_digit();
        if name.is_empty() || !named {
            return fail("an expansion is indirect or not known");
        }
        if self.peek() == Some(b'[') {
            name.push_str(&self.plain_index()?);
        }
        let operation = if length { Operation::Length } else { self.operation(quoted)? };
        if self.peek() != Some(b'}') {
            return fail("an expansion has a form that is not analysed");
        }
        self.at += 1;
        Ok(Part::Parameter { name, operation, quoted })
    }

    /// `[@]`, `[*]` or `[number]`; any other index is evaluated.
    fn plain_index(&mut self) -> Parsed<String> {
        let index = self.run(|c| c == b']' || c == b'}');
        let inner = index.strip_prefix('[').unwrap_or("");
        let number = !inner.is_empty() && inner.bytes().all(|c| c.is_ascii_digit());
        if self.peek() != Some(b']') || !(number || inner == "@" || inner == "*") {
            return fail("the index of an array is evaluated");
        }
        self.at += 1;
        Ok(format!("{index}]"))
    }

    pub(super) fn operation(&mut self, quoted: bool) -> Parsed<Operation> {
        let colon = self.peek() == Some(b':');
        match if colon { self.peek_at(1) } else { self.peek() } {
            Some(b'}') if !colon => Ok(Operation::Plain),
            Some(c) if b"-+=?".contains(&c) => {
                self.at += 1 + usize::from(colon);
                let inner = self.operand(quoted)?;
                Ok(match c {
                    b'=' => Operation::Assign(inner),
                    b'?' => Operation::Fail(inner),
                    _ => Operation::With(inner),
                })
            }
            Some(c) if !colon && b"#%/^,".contains(&c) => {
                self.at += 1;
                Ok(Operation::With(self.operand(quoted)?))
            }
            // An offset is arithmetic; plain numbers are not a risk.
            Some(_) if colon => {
                self.at += 1;
                let offset = self.run(|c| !(c.is_ascii_digit() || b" :-".contains(&c)));
                Ok(Operation::With(vec![Part::Text { text: offset, quoted: true }]))
            }
            Some(_) | None => fail("an expansion has a form that is not analysed"),
        }
    }

    /// The word inside `${name-…}`, up to the closing brace.
    pub(super) fn operand(&mut self, quoted: bool) -> Parsed<Vec<Part>> {
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                None => return fail("an expansion does not end"),
                Some(b'}') => return Ok(parts),
                // bash undoes `$'…'` in here and then expands what came out.
                Some(b'\'') if quoted => return fail("a single quote stands in a quoted expansion"),
                Some(b'$') if quoted && self.peek_at(1) == Some(b'\'') => {
                    return fail("a single quote stands in a quoted expansion");
                }
                Some(b'{' | b'<' | b'>' | b'\n') => return fail("an expansion has a form that is not analysed"),
                Some(c) if b"'\"\\$`".contains(&c) => self.piece(c, &mut parts)?,
                Some(_) => {
                    let text = self.run(|c| b"'\"\\$`{}<>\n".contains(&c));
                    parts.push(Part::Text { text, quoted });
                }
            }
        }
    }

    pub(super) fn backquotes(&mut self, quoted: bool, parts: &mut Vec<Part>) -> Parsed<()> {
        self.at += 1;
        let mut inner = String::new();
        loop {
            let plain = self.run(|c| c == b'`' || c == b'\\');
            inner.push_str(&plain);
            match self.peek() {
                None => return fail("a backquote is not closed"),
                Some(b'`') => break,
                Some(_) => {
                    let next = self.peek_at(1);
                    if quoted && next == Some(b'"') {
                        // Between double quotes the backslash goes, in a here-document it stays.
                        return fail("an escaped quote stands between quoted backquotes");
                    }
                    if !next.is_some_and(|c| b"$`\\".contains(&c)) {
                        inner.push('\\');
                        self.at += 1;
                        continue;
                    }
                    inner.push(char::from(self.bytes[self.at + 1]));
                    self.at += 2;
                }
            }
        }
        if inner.contains('\n') {
            self.newline_in_word()?;
        }
        self.at += 1;
        let depth = self.depth + 1;
        let body = self.deeper(|_| parse_nested(&inner, depth))?;
        parts.push(Part::Command { body, quoted });
        Ok(())
    }

    /// `(( … ))`, up to and with the end; the names in it. Anything that quotes or substitutes is an error.
    pub(super) fn arithmetic_text(&mut self) -> Parsed<Vec<String>> {
        self.at += 2;
        let mut open = 1;
        let mut names = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                b'(' => open += 1,
                b')' => open -= 1,
                b';' | b'#' => {}
                // What is assigned is not known any more; a name that no variable has says so.
                b'=' => names.push("1".to_owned()),
                b'+' | b'-' if self.peek_at(1) == Some(c) => names.push("1".to_owned()),
                _ if ARITHMETIC.contains(&c) => {}
                _ if c.is_ascii_alphabetic() || c == b'_' => {
                    names.push(self.run(|c| !(c.is_ascii_alphanumeric() || c == b'_')));
                    continue;
                }
                b'$' if self.peek_at(1).is_some_and(|c| c.is_ascii_alphanumeric() || c == b'_') => {
                    // `$1` has no name to follow.
                    names.push("1".to_owned());
                }
                _ => return fail("arithmetic has a form that is not analysed"),
            }
            // As in bash: the parenthesis that closes the inner one decides whether this is arithmetic at all.
            if open == 0 {
                if self.peek_at(1) != Some(b')') {
                    return fail("a double parenthesis may be two subshells");
                }
                self.at += 2;
                return Ok(names);
            }
            self.at += 1;
        }
        fail("arithmetic does not end")
    }

    pub(super) fn arithmetic_command(&mut self) -> Parsed<Node> {
        let names = self.arithmetic_text()?;
        Ok(Node::Compound(Compound {
            kind: Kind::Arithmetic { names },
            words: Vec::new(),
            bodies: Vec::new(),
            redirects: Vec::new(),
        }))
    }
}
