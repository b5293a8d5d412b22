//! Commands that only read, with the options under which that holds.
//!
//! "Only reads" means: changes no file, process, setting, network or session state, and starts no program that the
//! repository or the command line chose. [`read_only`] answers for one simple command whose name and arguments are
//! [`Value`]s; redirections, assignments and substitutions are judged elsewhere.
//!
//! `plain.rs` lists the commands that only read whatever their arguments are; `options.rs` is the reader of option
//! tables, `tables.rs` the commands that need one; `git.rs`, `find.rs`, `sed.rs`, `awk.rs`, `shell.rs` (builtins) and
//! `wrappers.rs` (commands that run commands) have languages of their own.

mod awk;
mod bracket;
pub(in crate::policy) mod environment;
mod find;
mod git;
mod options;
mod plain;
mod sed;
pub(in crate::policy) mod shell;
mod tables;
pub(in crate::policy) mod wrappers;

use super::value::Value;
use crate::policy::Context;

/// Nothing when it is proved; else why not, for a person.
pub(in crate::policy) type Proof = Result<(), String>;

/// What the proofs may rest on besides the words.
#[derive(Clone, Copy, Debug)]
pub(in crate::policy) struct Surroundings<'a> {
    /// The context of the decision.
    pub(in crate::policy) context: &'a Context<'a>,
    /// Whether the command may run in another directory than the context's.
    pub(in crate::policy) moved: bool,
    /// Whether the command is called by another program rather than by the shell: builtins and keywords do not exist.
    pub(in crate::policy) external: bool,
    /// How many wrappers stand around the command.
    pub(in crate::policy) depth: usize,
}

/// Most wrappers around a command: bounds recursion and cost; nobody nests three.
pub(in crate::policy) const MAX_WRAPPERS: usize = 4;

/// Directories whose programs are the system's own.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/bin/", "/usr/bin/"];

/// The program a command name stands for: the plain name, also behind a system directory.
pub(in crate::policy) fn program(name: &str) -> Option<&str> {
    let base = SYSTEM_DIRECTORIES.iter().find_map(|d| name.strip_prefix(d)).unwrap_or(name);
    (!base.contains('/')).then_some(base)
}

/// Proves that a command only reads.
pub(in crate::policy) fn read_only(name: &str, arguments: &[Value], around: &Surroundings<'_>) -> Proof {
    if around.depth > MAX_WRAPPERS {
        return Err("the command is wrapped too deeply".to_owned());
    }
    let Some(base) = program(name) else {
        return Err(format!("{name} is not one of the system's programs"));
    };
    if let Some(why) = around.context.shell.shadowed(name) {
        return Err(why);
    }
    if base.len() == name.len()
        && !around.external
        && let Some(proof) = shell::read_only(base, arguments, around)
    {
        return proof;
    }
    if plain::listed(base) {
        return plain::read_only(base, arguments);
    }
    match base {
        "git" => git::read_only(arguments, around),
        "find" => find::read_only(arguments, around),
        "sed" => sed::read_only(arguments),
        "awk" | "gawk" | "mawk" => awk::read_only(arguments),
        _ => match wrappers::read_only(base, arguments, around).or_else(|| tables::read_only(base, arguments)) {
            Some(proof) => proof,
            None => Err(format!("{base} is not known to only read")),
        },
    }
}
