//! Facts about the shell that the shell itself has told, and what has changed between two moments.
//!
//! What is derived from the commands that ran may see more change than there was, never less; what the shell tells is
//! what is. Names are told, never values.

use std::collections::BTreeSet;

use super::builtin::{HARMLESS_SET, HARMLESS_SHOPT};
use super::state::ShellFacts;
use crate::policy::words::listed;

/// What a shell tells of itself: names only, and only of what a fresh one does not have.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// Functions.
    pub functions: &'a [String],
    /// Aliases.
    pub aliases: &'a [String],
    /// Names that `hash`, `enable` or a loaded builtin gave another meaning.
    pub rebound: &'a [String],
    /// Variables that are not as the session began with them.
    pub variables: &'a [String],
    /// Signals and events with a trap.
    pub traps: &'a [String],
    /// Options that were switched on.
    pub options: &'a [String],
    /// Variables whose assignment or use may evaluate code.
    pub attributes: &'a [String],
}

impl ShellFacts {
    /// The facts as the shell told them. Its directory is told with them.
    #[must_use]
    pub fn reported(told: &Reported<'_>) -> Self {
        let mut facts = Self::default();
        let set = |names: &[String]| -> BTreeSet<String> { names.iter().cloned().collect() };
        facts.functions = set(told.functions);
        facts.aliases = set(told.aliases);
        facts.rebound = set(told.rebound);
        // A RETURN trap runs at the end of functions and sourced files only, and those are not trusted anyway.
        facts.traps = told.traps.iter().filter(|name| *name != "RETURN").cloned().collect();
        facts.attributes = !told.attributes.is_empty();
        told.variables.iter().for_each(|name| facts.set(name));
        let harmless = |name: &str| listed(HARMLESS_SET, name) || listed(HARMLESS_SHOPT, name);
        if let Some(option) = told.options.iter().find(|name| !harmless(name)) {
            facts.lose(format!("the option {option} is on"));
        }
        facts
    }

    /// The facts as text: the same for the same facts.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The facts of such a text; those of a fresh shell when it is none, so that every other state counts as a change.
    #[must_use]
    pub fn from_fingerprint(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// What is another thing now than it was at a moment before, in a few words. `told`: these facts are the shell's own;
    /// then something missing among them was never there, because what is derived sees more than there is.
    #[must_use]
    pub fn changed_since(&self, before: &Self, told: bool) -> Option<String> {
        if told && before.unknown.is_some() {
            return None;
        }
        let kinds: [(&BTreeSet<String>, &BTreeSet<String>, &str); 4] = [
            (&before.functions, &self.functions, "a function"),
            (&before.aliases, &self.aliases, "an alias"),
            (&before.rebound, &self.rebound, "bound to something else"),
            (&before.traps, &self.traps, "trapped"),
        ];
        for (old, new, what) in kinds {
            if let Some(name) = new.difference(old).next() {
                return Some(format!("{name} is {what} in this shell now"));
            }
            if let Some(name) = old.difference(new).next().filter(|_| !told) {
                return Some(format!("{name} is not {what} in this shell any more"));
            }
        }
        let mut differing = self.changed.difference(&before.changed);
        let mut missing = before.changed.difference(&self.changed).filter(|_| !told);
        if let Some(name) = differing.next().or_else(|| missing.next()) {
            return Some(format!("{name} has changed"));
        }
        if self.unknown.is_some() && before.unknown.is_none() {
            return self.unknown.clone();
        }
        (self.attributes && !before.attributes).then(|| "a variable evaluates what is assigned to it now".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn told(functions: &str, variables: &str, traps: &str, options: &str) -> ShellFacts {
        let [functions, variables, traps, options] = [functions, variables, traps, options].map(names);
        ShellFacts::reported(&Reported {
            functions: &functions,
            aliases: &[],
            rebound: &[],
            variables: &variables,
            traps: &traps,
            options: &options,
            attributes: &[],
        })
    }

    #[test]
    fn what_the_shell_tells_is_believed_by_name() {
        assert_eq!(told("", "", "", ""), ShellFacts::restarted());
        assert_eq!(told("", "FOO", "RETURN", "errexit globstar"), ShellFacts::restarted());
        assert!(told("ls", "", "", "").shadowed("ls").is_some());
        assert!(told("ls", "", "", "").shadowed("cat").is_none());
        assert!(told("", "GIT_DIR", "", "").shadowed("git").is_some());
        assert!(told("", "GIT_DIR", "", "").unsound().is_none());
        for unsound in [told("", "PATH", "", ""), told("", "", "DEBUG", ""), told("", "", "", "extdebug")] {
            assert!(unsound.unsound().is_some());
        }
    }

    #[test]
    fn a_change_is_told_by_its_name_and_more_caution_than_needed_is_none() {
        let fresh = ShellFacts::restarted();
        let shadowed = told("ls", "", "", "");
        assert_eq!(shadowed.changed_since(&fresh, true).unwrap(), "ls is a function in this shell now");
        assert_eq!(fresh.changed_since(&shadowed, false).unwrap(), "ls is not a function in this shell any more");
        let derived = fresh.after("f() { PATH=x; }");
        assert_eq!(told("f", "", "", "").changed_since(&derived, true), None, "derived facts see more than there is");
        assert_eq!(told("f g", "", "", "").changed_since(&fresh.after("eval x"), true), None, "it was all unknown");
        assert_eq!(told("", "PATH", "", "").changed_since(&fresh, true).unwrap(), "PATH has changed");
        assert_eq!(told("", "PATH", "", "").changed_since(&told("", "HOME PATH", "", ""), true), None);
        assert_eq!(shadowed.changed_since(&shadowed.clone(), false), None);
    }
}
