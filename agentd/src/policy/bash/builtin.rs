//! What a builtin does to the shell's state.

use std::collections::BTreeSet;

use super::Word;
use super::parse;
use super::state::{ShellFacts, leading_text, plain_text, signal_name};
use super::value::Value;
use crate::policy::words::listed;

/// Options of `set` that change what a command does only by stopping, tracing or not globbing.
pub(super) const HARMLESS_SET: &str =
    "errexit nounset xtrace verbose noglob noclobber pipefail errtrace functrace nolog";

/// Options of `shopt` that do not change what a word that this parser accepts means, beyond which files a glob finds.
pub(super) const HARMLESS_SHOPT: &str = "\
    nullglob dotglob globstar failglob nocaseglob nocasematch extglob lastpipe inherit_errexit expand_aliases \
    checkwinsize checkjobs";

impl ShellFacts {
    pub(super) fn run_builtin(&mut self, name: &str, arguments: &[Value]) {
        match name {
            "cd" | "pushd" | "popd" => self.moved = true,
            "alias" => self.define(arguments, |facts| &mut facts.aliases),
            "unset" => self.unset(arguments),
            "hash" | "enable" => self.rebind(name, arguments),
            "trap" => self.trap(arguments),
            "set" => self.set_options(arguments),
            "shopt" => self.shopt(arguments),
            "read" | "mapfile" | "readarray" | "getopts" | "printf" => self.assign_by_builtin(name, arguments),
            "eval" | "source" | "." | "let" | "bind" | "command" | "builtin" => self.lose(format!("`{name}` ran")),
            "exec" if !arguments.is_empty() => self.lose("`exec` ran"),
            // Other builtins leave nothing behind that a later command could be hurt by, and a program cannot change the
            // shell that started it.
            _ => {}
        }
    }

    pub(super) fn define(&mut self, arguments: &[Value], set: impl Fn(&mut Self) -> &mut BTreeSet<String>) {
        for argument in arguments {
            match argument.known() {
                Some(text) => {
                    if let Some((name, _)) = text.split_once('=') {
                        set(self).insert(name.to_owned());
                    }
                }
                None => self.lose("an alias with an unknown name was defined"),
            }
        }
    }

    pub(super) fn unset(&mut self, arguments: &[Value]) {
        if arguments.first().is_some_and(|a| a.known() == Some("-f")) {
            return;
        }
        for argument in arguments {
            match argument.known() {
                Some("-v" | "-n") => {}
                // Without an option it may be a function that goes; the variable counts as changed all the same.
                Some(name) => self.set(name),
                None => self.lose("an unknown variable was unset"),
            }
        }
    }

    pub(super) fn rebind(&mut self, builtin: &str, arguments: &[Value]) {
        if arguments.iter().all(|a| a.known() == Some("-r")) {
            return;
        }
        for argument in arguments {
            match argument.known() {
                Some(flag) if flag.starts_with('-') => {
                    if builtin == "enable" && flag.contains('f') {
                        self.lose("a builtin was loaded");
                    }
                }
                Some(name) => {
                    self.rebound.insert(name.to_owned());
                }
                None => self.lose("an unknown name was rebound"),
            }
        }
    }

    pub(super) fn trap(&mut self, arguments: &[Value]) {
        let mut known: Vec<&str> = arguments.iter().filter_map(Value::known).collect();
        if known.len() != arguments.len() {
            self.lose("an unknown trap was set");
            return;
        }
        if matches!(known.first(), Some(&"-p" | &"-l")) || known.is_empty() {
            return;
        }
        known.retain(|word| *word != "--");
        let Some((action, signals)) = known.split_first() else { return };
        for signal in signals {
            let signal = signal_name(signal);
            if *action != "-" && signal != "RETURN" {
                // A RETURN trap runs at the end of functions and sourced files only, and those are not trusted anyway.
                self.traps.insert(signal);
            }
        }
    }

    pub(super) fn set_options(&mut self, arguments: &[Value]) {
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.known() {
                Some("--" | "-") => return,
                Some("-o" | "+o" | "-eo" | "-euo" | "-uo" | "-eux" | "-euxo" | "-exo") => {
                    let option = arguments.next().map(Value::known);
                    if !option.flatten().is_none_or(|o| listed(HARMLESS_SET, o)) || option == Some(None) {
                        self.lose("`set` changed an option");
                    }
                }
                Some(flags) if flags.starts_with(['-', '+']) => {
                    if !flags[1..].chars().all(|c| "euxvfCET".contains(c)) {
                        self.lose("`set` changed an option");
                    }
                }
                // Positional parameters are unknown values wherever they are used.
                Some(_) => return,
                None => self.lose("`set` had an unknown argument"),
            }
        }
    }

    pub(super) fn shopt(&mut self, arguments: &[Value]) {
        let harmless = |argument: &Value| {
            argument.known().is_some_and(|a| matches!(a, "-s" | "-u" | "-q" | "-p") || listed(HARMLESS_SHOPT, a))
        };
        if !arguments.iter().all(harmless) {
            self.lose("`shopt` changed an option");
        }
    }

    pub(super) fn declare(&mut self, words: &[Word]) {
        for word in words {
            let text = leading_text(word);
            if text.starts_with(['-', '+']) {
                // Printing and plain attributes; anything else may evaluate or outlast an `unset`.
                if plain_text(word).is_none() || !text[1..].chars().all(|c| "pxgFal".contains(c)) {
                    self.attributes = true;
                }
                continue;
            }
            let name = text.split(['=', '+']).next().unwrap_or(&text);
            if !parse::is_name(name) || (name.len() == text.len() && plain_text(word).is_none()) {
                self.lose("a variable with an unknown name was declared");
            }
            self.set(name);
        }
    }

    pub(super) fn assign_by_builtin(&mut self, builtin: &str, arguments: &[Value]) {
        if builtin == "printf" && !arguments.first().is_none_or(Value::maybe_option) {
            return;
        }
        for argument in arguments {
            match argument.known() {
                Some(text) if parse::is_name(text) => self.set(text),
                Some(text) if text.contains('[') && builtin != "printf" => self.lose("an array element was assigned"),
                Some(text) => {
                    if let Some(name) = text.strip_prefix('-').and_then(|t| t.get(1..)) {
                        self.set(name);
                    }
                }
                None => self.lose("an unknown variable was assigned"),
            }
        }
    }
}
