//! What earlier commands of the session may have done to the shell.
//!
//! In a persistent shell a change of state is a command like any other: once `ls` is a function or `PATH` has moved,
//! "`ls` only reads" is no longer known. [`ShellFacts::after`] folds over the commands that ran. It may see more change
//! than there was, never less; what it cannot follow (`eval`, `source`, text it cannot parse) makes everything unknown
//! until the shell is restarted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::value::{Value, Variables, value};
use super::variable::{Hurts, hurts};
use super::{Compound, Kind, List, Node, Operation, Part, Redirect, Simple, Word, parse};
use crate::policy::words::listed;

/// Facts about the shell; the default is a fresh one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShellFacts {
    /// Something ran whose effect on the shell is not known; why.
    pub(super) unknown: Option<String>,
    /// Names that no longer mean the program or builtin of that name.
    pub(super) functions: BTreeSet<String>,
    pub(super) aliases: BTreeSet<String>,
    /// `hash -p`, `enable`: names with another meaning.
    pub(super) rebound: BTreeSet<String>,
    /// Variables that were changed and that the shell or a known command obeys.
    pub(super) changed: BTreeSet<String>,
    /// Signals and events with a trap.
    pub(super) traps: BTreeSet<String>,
    /// A variable has an attribute that makes its assignment or use evaluate code (`-i`, `-n`).
    pub(super) attributes: bool,
    /// The working directory may not be the one the context names.
    pub(super) moved: bool,
}

impl ShellFacts {
    /// The facts after a restart of the shell.
    #[must_use]
    pub fn restarted() -> Self {
        Self::default()
    }

    /// The facts after `command` has run.
    #[must_use]
    pub fn after(&self, command: &str) -> Self {
        let mut facts = self.clone();
        match parse::parse(command) {
            Ok(list) => return self.after_list(&list),
            Err(why) => facts.lose(why.0),
        }
        facts
    }

    /// The same facts for a caller that has learned the working directory from the shell itself.
    #[must_use]
    pub fn with_known_directory(mut self) -> Self {
        self.moved = false;
        self
    }

    /// The facts at any point while `list` runs: what it does, but not what it undoes.
    pub(in crate::policy) fn during(&self, list: &List) -> Self {
        let mut facts = self.clone();
        facts.run(list);
        // The walk over the script follows its own changes of directory.
        facts.moved = self.moved;
        facts
    }

    fn after_list(&self, list: &List) -> Self {
        let mut facts = self.clone();
        facts.run(list);
        if let [Node::Simple(simple)] = list.as_slice() {
            facts.restore(simple);
        }
        facts
    }

    /// What a command on its own undoes. In a longer script it might not have been reached.
    fn restore(&mut self, simple: &Simple) {
        let words: Option<Vec<String>> = simple.words.iter().map(plain_text).collect();
        let Some(words) = words else { return };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["unalias", names @ ..] => undefine(names, &mut self.aliases),
            ["unset", "-f", names @ ..] => undefine(names, &mut self.functions),
            ["trap", "-", signals @ ..] => {
                let signals: Vec<String> = signals.iter().map(|s| signal_name(s)).collect();
                self.traps.retain(|trap| !signals.contains(trap));
            }
            _ => {}
        }
    }

    /// Whether the directory may differ from the context's.
    pub(in crate::policy) fn moved(&self) -> bool {
        self.moved
    }

    /// Whether arithmetic and assignments may evaluate more than they show.
    pub(in crate::policy) fn attributes(&self) -> bool {
        self.attributes
    }

    /// Why nothing at all can be trusted, if that is so.
    pub(in crate::policy) fn unsound(&self) -> Option<String> {
        if let Some(why) = &self.unknown {
            return Some(format!("an earlier command may have changed the shell ({why})"));
        }
        if let Some(trap) = self.traps.first() {
            return Some(format!("a trap on {trap} would run as well"));
        }
        self.poisoned().map(|variable| format!("{variable} was changed earlier in this shell"))
    }

    /// Why the command `name` may not be the known program or builtin, if that is so.
    pub(in crate::policy) fn shadowed(&self, name: &str) -> Option<String> {
        let base = name.rsplit('/').next().unwrap_or(name);
        if self.functions.contains(name) {
            return Some(format!("{name} is a function in this shell"));
        }
        if self.aliases.contains(name) {
            return Some(format!("{name} is an alias in this shell"));
        }
        if self.rebound.contains(name) {
            return Some(format!("{name} was rebound in this shell"));
        }
        if let Some(variable) = self.poisoned() {
            return Some(format!("{variable} was changed earlier in this shell"));
        }
        let obeys = |variable: &&String| match hurts(variable) {
            Hurts::Commands(commands) => listed(commands, base),
            Hurts::Nothing | Hurts::Everything => false,
        };
        let variable = self.changed.iter().find(obeys)?;
        Some(format!("{variable}, which {base} obeys, was changed earlier in this shell"))
    }

    /// A changed variable that hurts everybody.
    fn poisoned(&self) -> Option<&String> {
        self.changed.iter().find(|variable| hurts(variable) == Hurts::Everything)
    }

    pub(super) fn lose(&mut self, why: impl Into<String>) {
        if self.unknown.is_none() {
            self.unknown = Some(why.into());
        }
    }

    fn run(&mut self, list: &List) {
        for node in list {
            match node {
                Node::Simple(simple) => self.run_simple(simple),
                Node::Pipeline(parts) | Node::Conjunction(parts) => self.run(parts),
                Node::Compound(compound) => self.run_compound(compound),
            }
        }
    }

    fn run_compound(&mut self, compound: &Compound) {
        self.expand(&compound.words);
        match &compound.kind {
            // Nothing that happens in a subshell outlives it.
            Kind::Subshell => return,
            Kind::For { name } | Kind::Select { name } => self.set(name),
            // What arithmetic evaluates runs in a subshell; what it assigns is a number.
            Kind::Arithmetic { names } | Kind::ForArithmetic { names } => names.iter().for_each(|name| self.set(name)),
            Kind::Function { name } => {
                self.functions.insert(name.clone());
            }
            Kind::Group | Kind::Loop | Kind::Case | Kind::Condition | Kind::Coprocess => {}
        }
        // The body of a function counts as run: it may be called at any time.
        for body in &compound.bodies {
            self.run(body);
        }
    }

    /// Assignments inside expansions.
    fn expand(&mut self, words: &[Word]) {
        for part in words.iter().flat_map(|word| &word.parts) {
            self.expand_part(part);
        }
    }

    fn expand_part(&mut self, part: &Part) {
        if let Part::Arithmetic { names } = part {
            names.iter().for_each(|name| self.set(name));
        }
        let Part::Parameter { name, operation, .. } = part else { return };
        let inner = match operation {
            Operation::Assign(inner) => {
                self.set(name);
                inner
            }
            Operation::With(inner) | Operation::Fail(inner) => inner,
            Operation::Plain | Operation::Length => return,
        };
        for part in inner {
            self.expand_part(part);
        }
    }

    pub(super) fn set(&mut self, name: &str) {
        if hurts(name) != Hurts::Nothing {
            self.changed.insert(name.to_owned());
        }
    }

    fn run_simple(&mut self, simple: &Simple) {
        for assign in &simple.assigns {
            self.expand(&assign.values);
        }
        self.expand(&simple.words);
        for redirect in &simple.redirects {
            match redirect {
                Redirect::Read(word) | Redirect::Write(word) | Redirect::Text(word) => {
                    self.expand(std::slice::from_ref(word));
                }
                Redirect::Duplicate => {}
            }
        }
        let words: Vec<Value> = simple.words.iter().map(|word| value(word, &Variables::default())).collect();
        let skip = prefix_length(&words);
        let Some((name, arguments)) = words[skip..].split_first() else {
            for assign in &simple.assigns {
                self.set(&assign.name);
            }
            return;
        };
        let Some(name) = name.known() else {
            self.lose("the name of a command was not known");
            return;
        };
        if self.functions.contains(name) || self.aliases.contains(name) {
            self.lose(format!("{name} was a function or an alias"));
            return;
        }
        if matches!(name, "export" | "readonly" | "declare" | "typeset" | "local") {
            self.declare(&simple.words[skip + 1..]);
            // An assignment in front of a builtin that declares variables persists.
            for assign in &simple.assigns {
                self.set(&assign.name);
            }
            if name == "readonly" && arguments.iter().any(|a| a.known().is_some_and(|a| a.starts_with('-'))) {
                self.lose("`readonly` with an option ran");
            }
        } else {
            self.run_builtin(name, arguments);
        }
    }
}

fn undefine(names: &[&str], defined: &mut BTreeSet<String>) {
    for name in names {
        match *name {
            "-a" => defined.clear(),
            name => {
                defined.remove(name);
            }
        }
    }
}

/// How many words `command` and `builtin` with their harmless options take up.
fn prefix_length(words: &[Value]) -> usize {
    let mut skip = 0;
    while matches!(words.get(skip).and_then(Value::known), Some("command" | "builtin")) {
        skip += 1;
        while matches!(words.get(skip).and_then(Value::known), Some("-p" | "--")) {
            skip += 1;
        }
    }
    skip
}

pub(super) fn signal_name(word: &str) -> String {
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if name == "0" { "EXIT".to_owned() } else { name.to_owned() }
}

/// The text of a word without expansions.
pub(super) fn plain_text(word: &Word) -> Option<String> {
    match value(word, &Variables::default()) {
        Value::Known(text) => Some(text),
        Value::One(_) | Value::Many(_) => None,
    }
}

/// The text that a word certainly begins with, whatever its expansions do; declarations do not split their arguments.
pub(super) fn leading_text(word: &Word) -> String {
    let texts = word.parts.iter().map_while(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        Part::Parameter { .. } | Part::Command { .. } | Part::Process { .. } | Part::Arithmetic { .. } | Part::Home => {
            None
        }
    });
    texts.collect()
}
