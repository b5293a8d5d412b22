//! What the policy says of a call, with the facts it needs from the world.

use std::path::Path;

use super::machine::Ruling;
use super::rules::{self, RuleBook};
use crate::config::ReadOnly;
use crate::policy::{self, Call, Decision, Mode, ShellFacts, Verdict};
use crate::tools::background::{self, JobInput};
use crate::tools::call::Parsed;
use crate::tools::editor::{self, EditorInput};

/// What a ruling rests on.
pub(super) struct Basis<'a> {
    /// The session's workspace.
    pub workspace: &'a Path,
    /// The shell's directory.
    pub cwd: &'a Path,
    /// What earlier commands may have done to the shell.
    pub facts: &'a ShellFacts,
    /// The user's configuration folder.
    pub config: &'a Path,
    /// What is done with commands that only read.
    pub read_only: ReadOnly,
}

/// A ruling and the simple commands it is about.
pub(super) struct Ruled {
    pub ruling: Ruling,
    pub parts: Vec<String>,
}

/// Rules on a call.
pub(super) fn rule(parsed: &Parsed, basis: &Basis<'_>) -> Ruled {
    let book = rules::read(basis.config, Some(basis.workspace));
    let decision = decide(parsed, basis, &book);
    let ruling = match decision.verdict {
        Verdict::Deny => Ruling::Deny { reason: decision.reason },
        Verdict::Ask => Ruling::Ask { reason: decision.reason },
        Verdict::Allow => allow(parsed, basis, &book, decision.reason, decision.rule),
    };
    Ruled { ruling, parts: decision.parts }
}

fn decide(parsed: &Parsed, basis: &Basis<'_>, book: &RuleBook) -> Decision {
    let repository = rules::repository(basis.cwd);
    let context = policy::Context {
        mode: Mode::Ask,
        rules: &book.rules,
        workspace: basis.workspace,
        cwd: basis.cwd,
        shell: basis.facts,
        repository: &repository,
        trust_reads: basis.read_only == ReadOnly::Run,
    };
    let path;
    let call = match parsed {
        Parsed::Command(command) => Call::Bash { command },
        // A background command is decided exactly like any other.
        Parsed::Background(input) => Call::Bash { command: &input.command },
        Parsed::Job(JobInput::List | JobInput::Output { .. }) => Call::Other { tool: background::OUTPUT },
        Parsed::Job(JobInput::Stop { .. }) => Call::Other { tool: background::STOP },
        Parsed::Restart => Call::BashRestart,
        Parsed::Editor(input) => {
            path = basis.cwd.join(input.path());
            if editor::is_view(input) {
                Call::View { path: &path }
            } else {
                Call::Edit { path: &path, create: matches!(input, EditorInput::Create { .. }) }
            }
        }
        Parsed::Search(input) => Call::Other { tool: input.tool() },
    };
    policy::decide(&call, &context)
}

/// What the policy allows by itself is still the user's to decide where the settings or a broken rule file say so.
fn allow(parsed: &Parsed, basis: &Basis<'_>, book: &RuleBook, reason: String, rule: Option<String>) -> Ruling {
    let view = match parsed {
        Parsed::Editor(input) => editor::is_view(input),
        // What stops a job of the session's own takes back what was allowed.
        Parsed::Search(_) | Parsed::Job(_) => true,
        Parsed::Command(_) | Parsed::Background(_) | Parsed::Restart => false,
    };
    if let Some(problem) = book.problems.first().filter(|_| !view) {
        return Ruling::Ask { reason: format!("nothing is allowed by itself while {problem}") };
    }
    match (rule, view, basis.read_only) {
        (Some(rule), _, _) => Ruling::Allow { rule },
        (None, true, _) | (None, _, ReadOnly::Run) => Ruling::Allow { rule: reason },
        (None, false, ReadOnly::Ask) => match parsed {
            Parsed::Command(_) | Parsed::Background(_) => Ruling::Ask { reason: "it runs a command".into() },
            Parsed::Restart => Ruling::Ask { reason: "it ends everything the shell runs".into() },
            Parsed::Editor(_) | Parsed::Search(_) | Parsed::Job(_) => {
                Ruling::Ask { reason: "it changes a file".into() }
            }
        },
    }
}
