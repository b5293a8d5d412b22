//! What a shell tells of its state → the names that mean something else than in a fresh shell of the session.
//!
//! Names only: values may be secrets. More may be told than there is (a line inside a here-document looks like a
//! function), never less; what cannot be read makes everything unknown.

use std::path::Path;
use std::time::Instant;

use proto::shim::reply::Facts;

use crate::host::Host;
use crate::state::{SET_DEFAULT, SHOPT_DEFAULT};

/// Most names that are told: far more than any user's shell has, and a small answer.
const NAMES_MAX: usize = 4_000;

/// How the line of the shell's own variables begins when word splitting and tracing are as always.
const ORDINARY: &str = "V $' \\t\\n' '+ '|";

/// Integer variables of every shell.
const INTEGERS: [&str; 12] = [
    "BASHPID",
    "BASH_SUBSHELL",
    "EPOCHSECONDS",
    "EUID",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "UID",
];

/// Exported variables that the shell itself changes.
const MOVING: [&str; 5] = ["OLDPWD", "SHLVL", "SHELLOPTS", "BASHOPTS", "_"];

/// Options of `shopt` that are on in every shell, besides those that a new shell must be told of.
const SHOPT_ALWAYS: [&str; 2] = ["hostcomplete", "interactive_comments"];

/// Builtins without which a shell cannot tell its state.
const TELLING: [&str; 8] = ["alias", "builtin", "declare", "echo", "enable", "hash", "trap", "umask"];

/// What a snapshot is read with.
#[derive(Debug)]
struct Known<'a> {
    /// The environment the session began with.
    env: &'a [(String, String)],
    /// The shell's directory, by the kernel's word.
    cwd: &'a Path,
    /// Frames the snapshot's parts.
    nonce: &'a str,
}

impl Host {
    pub(crate) fn on_state(&mut self, text: &str) {
        let nonce = self.bash.text.nonce();
        let (told, state) = split(text, nonce);
        if self.asked_at == self.begun
            && let Some(cwd) = self.bash.cwd()
        {
            let known = Known { env: &self.env, cwd: &cwd, nonce };
            self.facts = told.and_then(|told| read(told, state, &known));
        }
        self.saved.keep(state.to_owned());
        self.state_known = true;
        self.launch_job(Instant::now());
    }

    /// What is known of the shell may not be so any more.
    pub(crate) fn forget_facts(&mut self) {
        self.begun += 1;
        self.facts = None;
    }
}

/// Splits a snapshot into what is told for facts and what makes the state again.
fn split<'a>(snapshot: &'a str, nonce: &str) -> (Option<&'a str>, &'a str) {
    match snapshot.split_once(&format!("T {nonce}\n")) {
        Some((told, state)) => (Some(told), state),
        None => (None, snapshot),
    }
}

/// The facts; `None` when the shell did not tell all of them.
fn read(told: &str, state: &str, known: &Known<'_>) -> Option<Facts> {
    let mut facts = Facts::default();
    let (names, own) = told.split_once(&format!("N {}\n", known.nonce))?;
    let names = traps(names, &mut facts)?;
    meanings(names, known, &mut facts)?;
    own_variables(own.lines().next()?, known, &mut facts);
    let (state, options) = state.rsplit_once("O ")?;
    let (_, exported) = state.split_once('\n')?;
    let rest = environment(exported, known, &mut facts)?;
    let function = |line: &str| {
        let name = line.trim_end().strip_suffix(" ()")?;
        let name = name.strip_prefix("function ").unwrap_or(name);
        (!name.contains(' ')).then(|| name.to_owned())
    };
    let alias = |line: &str| {
        let name = line.strip_prefix("alias ")?.split_once('=')?.0;
        Some(name.trim_start_matches("-- ").to_owned())
    };
    facts.functions = rest.lines().filter_map(function).collect();
    facts.aliases = rest.lines().filter_map(alias).collect();
    let (set, shopt) = options.trim_end().split_once(' ')?;
    let usual = |name: &str| {
        let usual = name.is_empty() || SET_DEFAULT.contains(&name) || SHOPT_DEFAULT.contains(&name);
        usual || SHOPT_ALWAYS.contains(&name)
    };
    let on = set.split(':').chain(shopt.split(':'));
    facts.options = on.filter(|name| !usual(name)).map(str::to_owned).collect();
    let lists = [&facts.functions, &facts.aliases, &facts.rebound, &facts.variables, &facts.traps, &facts.attributes];
    (lists.iter().map(|list| list.len()).sum::<usize>() <= NAMES_MAX).then_some(facts)
}

/// Traps but our own; returns what follows them.
fn traps<'a>(mut text: &'a str, facts: &mut Facts) -> Option<&'a str> {
    while let Some(rest) = text.strip_prefix("trap -- ") {
        let (action, rest) = raw_value(rest);
        let (name, rest) = rest.strip_prefix(' ')?.split_once('\n')?;
        let name = name.strip_prefix("SIG").unwrap_or(name);
        if !(action.contains("__agentd") && name.starts_with("RTMIN+")) {
            facts.traps.push(name.to_owned());
        }
        text = rest;
    }
    Some(text)
}

/// Lines for remembered places of commands, integer and reference variables, disabled builtins.
fn meanings(text: &str, known: &Known<'_>, facts: &mut Facts) -> Option<()> {
    for line in text.lines() {
        if let Some(disabled) = line.strip_prefix("enable -n ") {
            if TELLING.contains(&disabled) {
                return None;
            }
            facts.rebound.push(disabled.to_owned());
        } else if let Some(hashed) = line.strip_prefix("builtin hash -p ") {
            let (path, name) = hashed.rsplit_once(' ')?;
            let path = Path::new(path);
            let found = path.file_name().is_some_and(|file| file == name)
                && std::env::split_paths(known.value("PATH").unwrap_or_default())
                    .any(|folder| path.parent() == Some(folder.as_path()));
            if !found {
                facts.rebound.push(name.to_owned());
            }
        } else if let Some(declared) = line.strip_prefix("declare -") {
            let name = declared.split_once(' ')?.1.split('=').next()?;
            if !INTEGERS.contains(&name) {
                facts.attributes.push(name.to_owned());
            }
        }
    }
    Some(())
}

/// The line of the shell's own variables, exported or not.
fn own_variables(line: &str, known: &Known<'_>, facts: &mut Facts) {
    if !line.starts_with(ORDINARY) {
        facts.variables.extend(["IFS".to_owned(), "PS4".to_owned()]);
    }
    let set = line.rsplit('|').next().unwrap_or_default().split(' ');
    let new = set.filter(|name| !name.is_empty() && known.value(name).is_none());
    facts.variables.extend(new.map(str::to_owned));
}

/// Exported variables that are not as the session began with them; returns what follows them.
fn environment<'a>(mut text: &'a str, known: &Known<'_>, facts: &mut Facts) -> Option<&'a str> {
    let mut seen = Vec::new();
    while let Some(rest) = text.strip_prefix("declare -") {
        let (_, rest) = rest.split_once(' ')?;
        let length = rest.find(['=', '\n'])?;
        let (name, rest) = rest.split_at(length);
        let (value, rest) = match rest.strip_prefix('=') {
            Some(rest) => {
                let (value, rest) = raw_value(rest);
                (Some(value), rest)
            }
            None => (None, rest),
        };
        text = rest.strip_prefix('\n')?;
        seen.push(name);
        let same = match (value, known.value(name)) {
            (_, _) if MOVING.contains(&name) || name.starts_with("AGENTD_") => true,
            (Some(value), _) if name == "PWD" => {
                unquoted(value).is_some_and(|dir| Path::new(&dir).canonicalize().is_ok_and(|dir| dir == known.cwd))
            }
            (Some(value), Some(first)) => unquoted(value).is_some_and(|value| value == first),
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !same {
            facts.variables.push(name.to_owned());
        }
    }
    let gone = known.env.iter().map(|(name, _)| name.as_str()).filter(|name| {
        let own = MOVING.contains(name) || *name == "PWD" || name.starts_with("AGENTD_");
        !own && is_name(name) && !seen.contains(name)
    });
    facts.variables.extend(gone.map(str::to_owned));
    Some(text)
}

impl Known<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn is_name(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Cuts a value, as bash quotes it, off the front of a text: up to the first blank or line end outside of quotes.
fn raw_value(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let (mut at, mut quote) = (0, 0);
    let mut depth = 0_usize;
    while at < bytes.len() {
        match (bytes[at], quote) {
            (b'\\', 0 | b'"' | b'$') => at += 1,
            (b'\'', 0) => quote = if at > 0 && bytes[at - 1] == b'$' { b'$' } else { b'\'' },
            (b'"', 0) => quote = b'"',
            (b'"', b'"') | (b'\'', b'\'' | b'$') => quote = 0,
            (b'(', 0) => depth += 1,
            (b')', 0) => depth = depth.saturating_sub(1),
            (b'\n', 0) => break,
            (b' ', 0) if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    text.split_at(at.min(text.len()))
}

/// The value that a quoted text stands for; `None` when it is not one of bash's two plain forms.
fn unquoted(text: &str) -> Option<String> {
    let (inner, ansi) = match text.strip_prefix("$'") {
        Some(rest) => (rest.strip_suffix('\'')?, true),
        None => (text.strip_prefix('"')?.strip_suffix('"')?, false),
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let escaped = bytes.next()?;
        if !ansi {
            out.push(escaped);
            continue;
        }
        out.push(match escaped {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            b'E' | b'e' => 0x1b,
            b'0'..=b'7' => {
                let mut code = u32::from(escaped - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        code = code * 8 + u32::from(digit - b'0');
                    }
                }
                u8::try_from(code).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_and_read_as_bash_quotes_them() {
        assert_eq!(raw_value("\"a b\\\" c\" rest"), ("\"a b\\\" c\"", " rest"));
        assert_eq!(raw_value("'x '\\'' y\nz' EXIT\n"), ("'x '\\'' y\nz'", " EXIT\n"));
        assert_eq!(raw_value("([0]=\"a b\" [1]=\"c\")\nx"), ("([0]=\"a b\" [1]=\"c\")", "\nx"));
        assert_eq!(unquoted("\"a\\$b\\\\\"").as_deref(), Some("a$b\\"));
        assert_eq!(unquoted("$'a\\n\\303\\274\\''").as_deref(), Some("a\nü'"));
        assert_eq!(unquoted("([0]=\"a\")"), None);
    }
}
