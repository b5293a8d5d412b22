//! Which tool calls may run: a pure function from the call, the rules, the mode and the state of the shell to a verdict.
//!
//! In reading order: [`decide`](decide()) and its answer here; `decide.rs` applies rules and modes to each kind of call, `explain.rs` takes a
//! decision apart;
//! `rule.rs` is one rule, `layers.rs` the files they come from; `path.rs` says which paths are inside, secret or ours;
//! `words.rs` is how long lists are written; `repository.rs` what a repository's configuration runs; `always.rs` proposes rules; `bash/` understands commands.
//!
//! Deliberately absent: approvals and grants (who answered what), the reading of files, any clock.
//!
//! Invariant: [`Verdict::Allow`] needs a proof for every part of the call; whatever is not understood is
//! [`Verdict::Ask`], and a deny rule is looked for even in text that is not understood.

#![deny(clippy::wildcard_enum_match_arm)]

mod always;
mod bash;
mod decide;
mod explain;
mod layers;
mod path;
mod repository;
mod rule;
mod words;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use always::{RuleText, narrowest_rule};
pub use bash::facts::Reported;
pub use bash::state::ShellFacts;
pub use decide::decide;
pub use explain::{PartDecision, explain};
pub use layers::{Examined, Layer, RuleProblem, Rules, RulesError};
pub use proto::mode::Mode;
pub use repository::Repository;

/// What may happen with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
}

/// A verdict with its explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What may happen.
    pub verdict: Verdict,
    /// Why, in one sentence for a person.
    pub reason: String,
    /// The rule that decided, as it is written in its file, with the layer.
    pub rule: Option<String>,
    /// The simple commands as they were understood; control characters are shown as escapes. Empty for other tools and
    /// for text that does not parse.
    pub parts: Vec<String>,
}

/// What a decision rests on besides the call.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The session's mode.
    pub mode: Mode,
    /// The rules of all layers.
    pub rules: &'a Rules,
    /// The workspace: absolute, without symbolic links.
    pub workspace: &'a Path,
    /// The directory the command will run in: absolute.
    pub cwd: &'a Path,
    /// What earlier commands may have done to the shell.
    pub shell: &'a ShellFacts,
    /// What the repository that git will find from `cwd` has configured.
    pub repository: &'a Repository,
    /// Whether a command that is proved to only read runs by itself; else it takes a rule, like any other.
    pub trust_reads: bool,
}

/// A tool call.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Run a command in the session's shell.
    Bash {
        /// The whole text.
        command: &'a str,
    },
    /// Start the session's shell anew.
    BashRestart,
    /// Show a file or a directory.
    View {
        /// Relative to the workspace, or absolute.
        path: &'a Path,
    },
    /// Change or create a file.
    Edit {
        /// Relative to the workspace, or absolute.
        path: &'a Path,
        /// Whether the file is new.
        create: bool,
    },
    /// Any other tool.
    Other {
        /// Its name as the model knows it.
        tool: &'a str,
    },
}
