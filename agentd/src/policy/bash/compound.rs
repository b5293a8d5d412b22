//! The grammar of compound commands: `if`, loops, `case`, functions, coprocesses.

use super::parse::{Parsed, Parser, fail, is_name};
use super::{Compound, Kind, List, Node, Word};

impl Parser<'_> {
    /// A list that may not be empty.
    pub(super) fn body(&mut self) -> Parsed<List> {
        let body = self.list()?;
        if body.is_empty() { fail("a body is empty") } else { Ok(body) }
    }

    pub(super) fn do_group(&mut self) -> Parsed<List> {
        self.expect_word("do")?;
        let body = self.body()?;
        self.expect_word("done")?;
        Ok(body)
    }

    pub(super) fn compound(&mut self, kind: Kind, words: Vec<Word>, bodies: Vec<List>) -> Parsed<Node> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks()?;
            let Some(redirect) = self.redirect()? else { break };
            redirects.push(redirect);
        }
        Ok(Node::Compound(Compound { kind, words, bodies, redirects }))
    }

    pub(super) fn if_command(&mut self) -> Parsed<Node> {
        self.at += "if".len();
        let mut bodies = vec![self.body()?];
        self.expect_word("then")?;
        bodies.push(self.body()?);
        loop {
            self.skip_lines()?;
            match self.bare_word() {
                "elif" => {
                    self.at += "elif".len();
                    bodies.push(self.body()?);
                    self.expect_word("then")?;
                    bodies.push(self.body()?);
                }
                "else" => {
                    self.at += "else".len();
                    bodies.push(self.body()?);
                    self.expect_word("fi")?;
                    break;
                }
                _ => {
                    self.expect_word("fi")?;
                    break;
                }
            }
        }
        self.compound(Kind::Group, Vec::new(), bodies)
    }

    pub(super) fn for_command(&mut self, select: bool) -> Parsed<Node> {
        self.skip_blanks()?;
        if !select && self.looking_at("((") {
            let names = self.arithmetic_text()?;
            self.skip_blanks()?;
            self.eat(";");
            let body = self.do_group()?;
            return self.compound(Kind::ForArithmetic { names }, Vec::new(), vec![body]);
        }
        let name = self.bare_word().to_owned();
        if !is_name(&name) {
            return fail("the variable of a loop is not a name");
        }
        self.at += name.len();
        self.skip_lines()?;
        let mut words = Vec::new();
        if self.bare_word() == "in" {
            self.at += "in".len();
            self.skip_blanks()?;
            while !matches!(self.peek(), None | Some(b';' | b'\n')) {
                words.push(self.word()?);
                self.skip_blanks()?;
            }
            if self.peek().is_none() {
                return fail("`do` is missing");
            }
        }
        self.skip_blanks()?;
        self.eat(";");
        let body = self.do_group()?;
        let kind = if select { Kind::Select { name } } else { Kind::For { name } };
        self.compound(kind, words, vec![body])
    }

    pub(super) fn case_command(&mut self) -> Parsed<Node> {
        self.at += "case".len();
        self.skip_blanks()?;
        let mut words = vec![self.word()?];
        let mut bodies = Vec::new();
        self.expect_word("in")?;
        loop {
            self.skip_lines()?;
            if self.bare_word() == "esac" {
                self.at += "esac".len();
                break;
            }
            self.eat("(");
            loop {
                self.skip_blanks()?;
                words.push(self.word()?);
                self.skip_blanks()?;
                if !self.eat("|") {
                    break;
                }
            }
            if !self.eat(")") {
                return fail("a pattern of `case` does not parse");
            }
            bodies.push(self.list()?);
            self.skip_lines()?;
            if !(self.eat(";;&") || self.eat(";;") || self.eat(";&")) && self.bare_word() != "esac" {
                return fail("a branch of `case` does not end");
            }
        }
        self.compound(Kind::Case, words, bodies)
    }

    pub(super) fn function_keyword(&mut self) -> Parsed<Node> {
        self.skip_blanks()?;
        let name = self.bare_word().to_owned();
        if name.is_empty() {
            return fail("the name of a function is not plain");
        }
        self.at += name.len();
        self.skip_blanks()?;
        if self.eat("(") {
            self.skip_blanks()?;
            if !self.eat(")") {
                return fail("a function does not parse");
            }
        }
        self.function_body(name)
    }

    pub(super) fn function_body(&mut self, name: String) -> Parsed<Node> {
        self.skip_lines()?;
        let body = self.command()?;
        let Node::Compound(_) = body else { return fail("the body of a function is no compound command") };
        Ok(Node::Compound(Compound {
            kind: Kind::Function { name },
            words: Vec::new(),
            bodies: vec![vec![body]],
            redirects: Vec::new(),
        }))
    }

    pub(super) fn coprocess(&mut self) -> Parsed<Node> {
        self.skip_blanks()?;
        let start = self.at;
        let name = self.bare_word();
        if is_name(name) {
            self.at += name.len();
            self.skip_blanks()?;
            let compound = self.peek() == Some(b'(')
                || matches!(self.bare_word(), "{" | "if" | "while" | "until" | "for" | "case" | "[[" | "select");
            if !compound {
                self.at = start;
            }
        }
        let body = self.command()?;
        self.compound(Kind::Coprocess, Vec::new(), vec![vec![body]])
    }
}
