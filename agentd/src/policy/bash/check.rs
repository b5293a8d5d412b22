//! The walk over a script that proves, part by part, that it only reads or that a rule allows it.
//!
//! Branches are not followed by their conditions: every part must be proved, in every directory it might run in.
//!
//! Invariant: a part without a finding has been proved.

use std::path::{Path, PathBuf};

use super::inspect::{exposes, innermost, may_assign, may_assign_by_name, shown, visible};
use super::known::environment;
use super::known::shell::{condition, harmless_variable};
use super::known::wrappers::{Unwrapped, unwrap};
use super::known::{MAX_WRAPPERS, Surroundings, program, read_only};
use super::value::{Start, Value, Variables, value};
use super::{Assign, Compound, Kind, List, Node, Operation, Part, Redirect, Simple, Word};
use crate::policy::path;
use crate::policy::rule::Rule;
use crate::policy::{Context, Verdict};

/// Most directories a script can be in at once before its place counts as unknown.
const MAX_PLACES: usize = 16;

/// A variable's value may hold an index, and an index may hold a substitution.
const EVALUATES: &str = "arithmetic with variables can run commands";

/// What the walk found.
#[derive(Debug, Default)]
pub(in crate::policy) struct Findings<'r> {
    /// Why parts are not proved, in the order of the text.
    pub(in crate::policy) doubts: Vec<String>,
    /// The rules that allowed a part which was not proved to only read.
    pub(in crate::policy) allowed_by: Vec<&'r Rule>,
    /// The simple commands.
    pub(in crate::policy) parts: Vec<PartFound<'r>>,
    /// The words of simple commands that are neither proved nor allowed, for proposals; `None` when a part is in doubt for
    /// something other than its words.
    pub(in crate::policy) unproved: Vec<Option<Vec<Value>>>,
}

/// A simple command and what was found about it alone.
#[derive(Debug)]
pub(in crate::policy) struct PartFound<'r> {
    /// The text, with invisible characters shown.
    pub(in crate::policy) text: String,
    /// The first doubt, if it is not proved.
    pub(in crate::policy) doubt: Option<String>,
    /// The rule that allows it, if it is not proved to only read.
    pub(in crate::policy) rule: Option<&'r Rule>,
}

/// Walks a script.
pub(in crate::policy) fn check<'a>(list: &List, context: &'a Context<'a>) -> Findings<'a> {
    let mut walk = Walk {
        context,
        variables: Variables::default(),
        places: vec![context.cwd.to_owned()],
        loops: 0,
        part: None,
        findings: Findings::default(),
    };
    walk.list(list);
    walk.findings
}

struct Walk<'a> {
    context: &'a Context<'a>,
    variables: Variables,
    /// The directories this point of the script may be in; none when that is not known.
    places: Vec<PathBuf>,
    loops: usize,
    /// The simple command that is being judged.
    part: Option<usize>,
    findings: Findings<'a>,
}

impl<'a> Walk<'a> {
    fn doubt(&mut self, why: impl Into<String>) {
        self.record(why.into(), None);
    }

    fn record(&mut self, why: String, unproved: Option<Vec<Value>>) {
        if let Some(part) = self.part.and_then(|at| self.findings.parts.get_mut(at)) {
            part.doubt.get_or_insert_with(|| why.clone());
        }
        self.findings.doubts.push(why);
        self.findings.unproved.push(unproved);
    }

    fn list(&mut self, list: &[Node]) {
        for node in list {
            match node {
                Node::Simple(simple) => self.simple(simple),
                Node::Pipeline(parts) => self.list(parts),
                Node::Conjunction(parts) => self.conjunction(parts),
                Node::Compound(compound) => self.compound(compound),
            }
        }
    }

    /// Commands of which each runs only where the one before it succeeded: a change of directory is certain for the rest,
    /// and behind the whole any of the places is possible.
    fn conjunction(&mut self, parts: &List) {
        let mut all = self.places.clone();
        let mut followed = true;
        for part in parts {
            let before = self.places.len();
            self.list(std::slice::from_ref(part));
            if part.is_simple() && self.places.len() > before {
                self.places.drain(..before);
            }
            for place in &self.places {
                if !all.contains(place) {
                    all.push(place.clone());
                }
            }
            // Once a place is unknown, so is every later one.
            followed &= !self.places.is_empty() && all.len() <= MAX_PLACES;
            if !followed {
                self.places.clear();
                all.clear();
            }
        }
        self.places = all;
    }

    /// A list whose change of directory does not last.
    fn aside(&mut self, list: &List) {
        let places = self.places.clone();
        self.list(list);
        self.places = places;
    }

    fn compound(&mut self, compound: &Compound) {
        for word in &compound.words {
            self.word(word);
        }
        for redirect in &compound.redirects {
            self.redirect(redirect);
        }
        match &compound.kind {
            Kind::Group | Kind::Case => self.bodies(compound),
            Kind::Subshell => {
                for body in &compound.bodies {
                    self.aside(body);
                }
            }
            Kind::Loop => self.repeat(compound),
            Kind::For { name } => self.for_loop(name, compound),
            Kind::Select { .. } => {
                self.doubt("`select` waits for an answer");
                self.repeat(compound);
            }
            Kind::ForArithmetic { .. } => {
                self.doubt(EVALUATES);
                self.repeat(compound);
            }
            Kind::Arithmetic { names } => {
                if !names.is_empty() {
                    self.doubt(EVALUATES);
                }
            }
            Kind::Function { name } => {
                self.doubt(format!("it defines a function, {name}, which later commands would run"));
                self.bodies(compound);
            }
            Kind::Condition => {
                let words: Vec<Value> = compound.words.iter().map(|word| value(word, &self.variables)).collect();
                if let Err(why) = condition(&words) {
                    self.doubt(why);
                }
            }
            Kind::Coprocess => {
                self.doubt("a coprocess goes on behind the command");
                self.bodies(compound);
            }
        }
    }

    fn bodies(&mut self, compound: &Compound) {
        for body in &compound.bodies {
            self.list(body);
        }
    }

    fn repeat(&mut self, compound: &Compound) {
        self.loops += 1;
        self.bodies(compound);
        self.loops -= 1;
    }

    fn for_loop(&mut self, name: &str, compound: &Compound) {
        self.assigned(name);
        // What the list says holds only inside the body, and only while nothing else assigns the variable.
        if !compound.bodies.iter().any(may_assign) {
            self.variables.learn(name, &compound.words);
        }
        self.repeat(compound);
        self.variables.forget(name);
    }

    fn assigned(&mut self, name: &str) {
        self.variables.forget(name);
        if let Err(why) = harmless_variable(name) {
            self.doubt(why);
        } else if self.context.shell.attributes() {
            self.doubt("a variable of this shell evaluates what is assigned to it");
        }
    }

    fn word(&mut self, word: &Word) {
        self.pieces(&word.parts);
    }

    fn pieces(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Command { body, .. } | Part::Process { body } => self.aside(body),
                Part::Parameter { name, operation, .. } => self.parameter(name, operation),
                Part::Arithmetic { names } => {
                    if !names.iter().all(|name| self.variables.numeric(name)) {
                        self.doubt(EVALUATES);
                    }
                }
                Part::Text { .. } | Part::Home => {}
            }
        }
    }

    fn parameter(&mut self, name: &str, operation: &Operation) {
        if self.context.shell.attributes() {
            self.doubt(format!("${name} may be evaluated"));
        }
        match operation {
            Operation::Plain | Operation::Length => {}
            Operation::With(inner) => self.pieces(inner),
            Operation::Assign(inner) => {
                self.assigned(name);
                self.doubt(format!("${{{name}:=…}} assigns a variable"));
                self.pieces(inner);
            }
            Operation::Fail(inner) => {
                self.doubt(format!("${{{name}:?…}} may end the shell"));
                self.pieces(inner);
            }
        }
    }

    fn redirect(&mut self, redirect: &Redirect) {
        match redirect {
            Redirect::Duplicate => {}
            Redirect::Text(word) => self.word(word),
            Redirect::Read(word) => {
                self.word(word);
                let place = value(word, &self.variables);
                let sound = match &place {
                    Value::Known(text) => !path::device(Path::new(text)),
                    // A prefix that can still become `/dev/tcp/…` is a network connection.
                    Value::One(Start::Text(start)) | Value::Many(Start::Text(start)) => {
                        !start.starts_with("/dev") && !"/dev".starts_with(start.as_str())
                    }
                    Value::One(Start::Anything) | Value::Many(Start::Anything) => false,
                };
                if !sound {
                    self.doubt("it reads from a device, the network or an unknown file");
                } else if path::secret(Path::new(&shown(word))) {
                    self.doubt(format!("{} may hold a secret", shown(word)));
                }
            }
            Redirect::Write(word) => {
                self.word(word);
                if value(word, &self.variables).known() != Some("/dev/null") {
                    self.doubt(format!("it writes to {}", shown(word)));
                }
            }
        }
    }

    fn simple(&mut self, simple: &Simple) {
        let part = PartFound { text: visible(&simple.text), doubt: None, rule: None };
        let around = self.part.replace(self.findings.parts.len());
        self.findings.parts.push(part);
        self.simple_parts(simple);
        self.part = around;
    }

    fn simple_parts(&mut self, simple: &Simple) {
        for word in &simple.words {
            self.word(word);
        }
        for redirect in &simple.redirects {
            self.redirect(redirect);
        }
        for assign in &simple.assigns {
            self.assign(assign, simple.words.is_empty());
        }
        let words: Vec<Value> = simple.words.iter().map(|word| value(word, &self.variables)).collect();
        let Some(first) = words.first() else { return };
        let Some(name) = first.known() else {
            return self.doubt("the name of a command is not known before it runs");
        };
        if name == "cd" && self.context.shell.shadowed(name).is_none() {
            return self.change_directory(&words[1..]);
        }
        if may_assign_by_name(name) {
            self.variables = Variables::default();
        }
        match self.judge(&words, 0, false) {
            Ok(None) => {
                if let Some(secret) = exposes(program(name).unwrap_or(name), &simple.words) {
                    self.doubt(format!("{secret} is a device or may hold a secret"));
                }
            }
            Ok(Some(rule)) => {
                if let Some(part) = self.part.and_then(|at| self.findings.parts.get_mut(at)) {
                    part.rule = Some(rule);
                }
                self.findings.allowed_by.push(rule);
            }
            Err(why) => self.record(why, Some(innermost(&words).to_vec())),
        }
    }

    fn assign(&mut self, assign: &Assign, alone: bool) {
        for word in &assign.values {
            self.word(word);
        }
        if alone {
            return self.assigned(&assign.name);
        }
        let single = assign.values.first().filter(|_| !assign.compound);
        let proof = match single {
            Some(word) => environment::harmless(&assign.name, &value(word, &self.variables)),
            None => Err(format!("setting {} for a command may change what it does", assign.name)),
        };
        if let Err(why) = proof {
            self.doubt(why);
        }
    }

    /// Nothing when the words only read, the rule when one allows them, else the doubt.
    fn judge(&self, words: &[Value], depth: usize, external: bool) -> Result<Option<&'a Rule>, String> {
        let Some((name, arguments)) = words.split_first() else { return Err("a command is missing".to_owned()) };
        let name = name.known().ok_or("the name of a command is not known before it runs")?;
        let moved = self.context.shell.moved() || self.places.iter().any(|place| place != self.context.cwd);
        let moved = moved || self.places.is_empty();
        let around = Surroundings { context: self.context, moved, external, depth };
        let why = match read_only(name, arguments, &around) {
            Ok(()) if self.context.trust_reads => return Ok(None),
            Ok(()) => "it runs a command".to_owned(),
            Err(why) => why,
        };
        if self.context.shell.shadowed(name).is_some() {
            return Err(why);
        }
        let rules = self.context.rules.rules.iter();
        if let Some(rule) = rules.filter(|rule| rule.verdict == Verdict::Allow).find(|rule| rule.covers(words)) {
            return Ok(Some(rule));
        }
        match unwrap(program(name).unwrap_or(name), arguments) {
            Some(Unwrapped::Command(inner)) if depth < MAX_WRAPPERS => {
                self.judge(inner, depth + 1, external || !matches!(name, "command" | "builtin"))
            }
            Some(Unwrapped::Command(_) | Unwrapped::Nothing | Unwrapped::Unclear) | None => Err(why),
        }
    }

    fn change_directory(&mut self, arguments: &[Value]) {
        let plain = |value: &Value| value.known().is_some_and(|text| matches!(text, "-L" | "-P" | "-e" | "--"));
        let targets: Vec<&Value> = arguments.iter().filter(|argument| !plain(argument)).collect();
        let target = match targets.as_slice() {
            [Value::Known(target)] if !target.is_empty() && !target.starts_with('-') => Path::new(target.as_str()),
            _ => {
                self.places.clear();
                return self.doubt("the directory it changes to is not known");
            }
        };
        let climbs = target.components().any(|c| c == std::path::Component::ParentDir);
        let inside = self.places.iter().all(|place| path::inside(self.context.workspace, place, target));
        if self.places.is_empty() || !inside || (climbs && self.loops > 0) {
            self.places.clear();
            return self.doubt("it changes to a directory outside the workspace");
        }
        let entered: Vec<PathBuf> = self.places.iter().filter_map(|place| path::resolve(place, target)).collect();
        for place in entered {
            if !self.places.contains(&place) {
                self.places.push(place);
            }
        }
        if self.places.len() > MAX_PLACES {
            self.places.clear();
            self.doubt("it changes its directory too often to be followed");
        }
    }
}
