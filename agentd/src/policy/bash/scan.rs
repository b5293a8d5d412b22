//! Deny and ask rules wherever a command may hide: behind wrappers, in texts handed to a shell, in words of text that
//! does not parse.
//!
//! A hit may be wrong in text that is not understood; that costs a question or a refusal, never a missed rule.

use super::super::rule::{Match, Rule};
use super::launch::{Launch, SHELLS, launches};
use super::value::{Value, Variables, value};
use super::{Compound, List, Node, Operation, Part, Redirect, Simple, Word, parse};
use crate::policy::Verdict;
use crate::policy::rule::base_name;
use crate::policy::words::listed;

/// How deep texts inside texts (`bash -c "bash -c …"`) are followed; deeper ones are scanned as words.
const MAX_TEXT_DEPTH: usize = 8;

/// Most bytes of texts inside texts that are parsed for one decision: nesting could double them with every level.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// Most words of launched commands that are looked at for one decision: `find -exec find -exec …` has every ending of
/// itself as a command.
const MAX_LAUNCHED_WORDS: usize = 100_000;

/// A search for deny and ask rules.
#[derive(Debug)]
pub(in crate::policy) struct Scan<'r> {
    rules: Vec<&'r Rule>,
    /// The strongest hit of each kind.
    pub(in crate::policy) deny: Option<&'r Rule>,
    pub(in crate::policy) ask: Option<&'r Rule>,
    /// A rule that an unknown word could make apply.
    pub(in crate::policy) perhaps: Option<&'r Rule>,
    depth: usize,
    bytes_left: usize,
    words_left: usize,
    /// Not everything was followed: the text as a whole must be scanned word by word.
    incomplete: bool,
}

impl<'r> Scan<'r> {
    pub(in crate::policy) fn new(rules: impl IntoIterator<Item = &'r Rule>) -> Self {
        let rules = rules.into_iter().filter(|rule| rule.verdict != Verdict::Allow && rule.is_command()).collect();
        Self {
            rules,
            deny: None,
            ask: None,
            perhaps: None,
            depth: 0,
            bytes_left: MAX_TEXT_BYTES,
            words_left: MAX_LAUNCHED_WORDS,
            incomplete: false,
        }
    }

    /// The search over a whole text.
    pub(in crate::policy) fn of_text(rules: impl IntoIterator<Item = &'r Rule>, text: &str) -> Self {
        let mut scan = Self::new(rules);
        scan.text(text);
        scan
    }

    /// Whether a rule certainly applies.
    pub(in crate::policy) fn any(&self) -> bool {
        self.deny.is_some() || self.ask.is_some()
    }

    /// A command text.
    pub(in crate::policy) fn text(&mut self, text: &str) {
        if self.rules.is_empty() {
            return;
        }
        if self.depth > MAX_TEXT_DEPTH || self.bytes_left < text.len() {
            self.incomplete = true;
            return;
        }
        self.bytes_left -= text.len();
        self.depth += 1;
        match parse::parse(text) {
            Ok(list) => self.list(&list),
            Err(_) => self.tokens(text),
        }
        self.depth -= 1;
    }

    /// After a parsed command: what was too deep or too much to follow is searched for in its text.
    pub(in crate::policy) fn finish(&mut self, text: &str) {
        if self.incomplete {
            self.tokens(text);
        }
    }

    /// A parsed text.
    pub(in crate::policy) fn list(&mut self, list: &List) {
        if self.rules.is_empty() {
            return;
        }
        for node in list {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Simple(simple) => self.simple(simple),
            Node::Conjunction(parts) => self.list(parts),
            Node::Pipeline(parts) => {
                self.list(parts);
                // Text piped into a shell is a script.
                if parts.iter().any(runs_its_input) {
                    for part in parts {
                        if let Node::Simple(simple) = part {
                            self.tokens(&simple.text);
                        }
                    }
                }
            }
            Node::Compound(Compound { words, bodies, redirects, .. }) => {
                self.words(words);
                self.redirects(redirects);
                for body in bodies {
                    self.list(body);
                }
            }
        }
    }

    fn simple(&mut self, simple: &Simple) {
        for assign in &simple.assigns {
            self.words(&assign.values);
        }
        self.words(&simple.words);
        self.redirects(&simple.redirects);
        let values: Vec<Value> = simple.words.iter().map(|word| value(word, &Variables::default())).collect();
        let Some(first) = values.first() else { return };
        match first.known() {
            Some(name) => {
                self.command(&values);
                if listed(SHELLS, base_name(name)) {
                    for redirect in &simple.redirects {
                        if let Redirect::Text(word) = redirect {
                            self.tokens(&literal_text(word));
                        }
                    }
                }
            }
            None => self.tokens(&simple.text),
        }
    }

    /// One command, and whatever it launches.
    fn command(&mut self, words: &[Value]) {
        self.apply(words);
        let Some(name) = words.first().and_then(Value::known).map(base_name) else { return };
        if self.depth > MAX_TEXT_DEPTH {
            self.incomplete = true;
            return;
        }
        self.depth += 1;
        for launch in launches(name, &words[1..]) {
            match launch {
                Launch::Words(inner) if inner.len() > self.words_left => self.incomplete = true,
                Launch::Words(inner) => {
                    self.words_left -= inner.len();
                    self.command(inner);
                }
                Launch::Text(text) => self.text(&text),
            }
        }
        self.depth -= 1;
    }

    fn apply(&mut self, words: &[Value]) {
        for index in 0..self.rules.len() {
            let rule = self.rules[index];
            match rule.applies(words) {
                Match::No => {}
                Match::Perhaps => self.perhaps = self.perhaps.or(Some(rule)),
                Match::Yes => self.hit(rule),
            }
        }
    }

    fn hit(&mut self, rule: &'r Rule) {
        match rule.verdict {
            Verdict::Deny => self.deny = self.deny.or(Some(rule)),
            Verdict::Ask => self.ask = self.ask.or(Some(rule)),
            Verdict::Allow => {}
        }
    }

    fn redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            match redirect {
                Redirect::Read(word) | Redirect::Write(word) | Redirect::Text(word) => self.parts(&word.parts),
                Redirect::Duplicate => {}
            }
        }
    }

    fn words(&mut self, words: &[Word]) {
        for word in words {
            self.parts(&word.parts);
        }
    }

    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Command { body, .. } | Part::Process { body } => self.list(body),
                Part::Parameter { operation, .. } => match operation {
                    Operation::With(inner) | Operation::Assign(inner) | Operation::Fail(inner) => self.parts(inner),
                    Operation::Plain | Operation::Length => {}
                },
                Part::Text { .. } | Part::Arithmetic { .. } | Part::Home => {}
            }
        }
    }

    /// Every sequence of words in a text, whatever its structure: once with quotes as separators, once without them.
    pub(in crate::policy) fn tokens(&mut self, text: &str) {
        if self.rules.is_empty() {
            return;
        }
        let joined: String = text.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        for text in [text, joined.as_str()] {
            let separator = |c: char| c.is_whitespace() || c.is_control() || ";&|<>(){},`$'\"\\".contains(c);
            let tokens: Vec<&str> = text.split(separator).filter(|token| !token.is_empty()).collect();
            for start in 0..tokens.len() {
                for index in 0..self.rules.len() {
                    let rule = self.rules[index];
                    if rule.applies_to_tokens(&tokens[start..]) {
                        self.hit(rule);
                    }
                }
            }
        }
    }
}

fn runs_its_input(node: &Node) -> bool {
    let Node::Simple(simple) = node else { return false };
    let words: Vec<Value> = simple.words.iter().map(|word| value(word, &Variables::default())).collect();
    innermost(&words, 0)
        .is_some_and(|name| listed(SHELLS, name) || matches!(name, "xargs" | "parallel" | "source" | "."))
}

/// The program behind any number of wrappers.
fn innermost(words: &[Value], depth: usize) -> Option<&str> {
    let (name, arguments) = words.split_first()?;
    let name = base_name(name.known()?);
    if listed(SHELLS, name) || depth > MAX_TEXT_DEPTH {
        return Some(name);
    }
    let inner = launches(name, arguments).into_iter().find_map(|launch| match launch {
        Launch::Words(words) => Some(words),
        Launch::Text(_) => None,
    });
    inner.and_then(|words| innermost(words, depth + 1)).or(Some(name))
}

fn literal_text(word: &Word) -> String {
    let texts = word.parts.iter().map(|part| match part {
        Part::Text { text, .. } => text.as_str(),
        Part::Parameter { .. } | Part::Command { .. } | Part::Process { .. } | Part::Arithmetic { .. } | Part::Home => {
            " "
        }
    });
    texts.collect()
}
