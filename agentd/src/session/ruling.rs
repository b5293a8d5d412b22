//! What the policy says of a call, with the facts it needs from the world.

use std::path::Path;

use proto::approval::Proposal;
use proto::mode::Mode;

use super::keep_rule;
use super::machine::Ruling;
use super::rules::{self, RuleBook, RuleFiles};
use crate::config::ReadOnly;
use crate::policy::{self, Call, Context, Decision, Repository, ShellFacts, Verdict};
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
    /// The rule files as they were read.
    pub files: &'a RuleFiles,
    /// The session's own rules.
    pub session_rules: &'a [String],
    /// The session's mode.
    pub mode: Mode,
    /// What is done with commands that only read.
    pub read_only: ReadOnly,
}

/// A ruling and what is told with it.
pub(super) struct Ruled {
    pub ruling: Ruling,
    /// The simple commands it is about.
    pub parts: Vec<String>,
    /// The rule that would make the question needless.
    pub proposal: Option<Proposal>,
    /// What is wrong with the rule files.
    pub problems: Vec<String>,
}

/// Rules on a call.
pub(super) fn rule(parsed: &Parsed, basis: &Basis<'_>) -> Ruled {
    let book = basis.files.read(basis.config, basis.workspace, basis.session_rules);
    let repository = rules::repository(basis.cwd);
    let context = context(basis, &book, &repository);
    let Decision { verdict, reason, rule, parts } = decide(parsed, &context);
    let ruling = match (verdict, book.problems.first()) {
        (Verdict::Deny, _) => Ruling::Deny { reason },
        (Verdict::Ask, _) => Ruling::Ask { reason },
        // Rules that cannot be read might deny it.
        (Verdict::Allow, Some(problem)) if !looks(parsed) => {
            Ruling::Ask { reason: format!("nothing is allowed by itself while {problem}") }
        }
        (Verdict::Allow, _) => Ruling::Allow { rule: rule.unwrap_or(reason) },
    };
    let proposal = match (&ruling, parsed) {
        (Ruling::Ask { .. }, Parsed::Command(command)) if book.problems.is_empty() => {
            policy::narrowest_rule(command, &context).map(|rule| Proposal {
                file: keep_rule::file(basis.config).display().to_string(),
                rules: rule.summary.lines().map(str::to_owned).collect(),
                toml: rule.toml,
            })
        }
        _ => None,
    };
    Ruled { ruling, parts, proposal, problems: book.problems }
}

fn context<'a>(basis: &Basis<'a>, book: &'a RuleBook, repository: &'a Repository) -> Context<'a> {
    Context {
        mode: basis.mode,
        rules: &book.rules,
        workspace: basis.workspace,
        cwd: basis.cwd,
        shell: basis.facts,
        repository,
        trust_reads: basis.read_only == ReadOnly::Run,
    }
}

fn decide(parsed: &Parsed, context: &Context<'_>) -> Decision {
    let path;
    let call = match parsed {
        Parsed::Command(command) => Call::Bash { command },
        // A background command is decided exactly like any other.
        Parsed::Background(input) => Call::Bash { command: &input.command },
        Parsed::Job(JobInput::List | JobInput::Output { .. }) => Call::Other { tool: background::OUTPUT },
        Parsed::Job(JobInput::Stop { .. }) => Call::Other { tool: background::STOP },
        Parsed::Restart => Call::BashRestart,
        Parsed::Editor(input) => {
            path = context.cwd.join(input.path());
            if editor::is_view(input) {
                Call::View { path: &path }
            } else {
                Call::Edit { path: &path, create: matches!(input, EditorInput::Create { .. }) }
            }
        }
        Parsed::Search(input) => Call::Other { tool: input.tool() },
    };
    policy::decide(&call, context)
}

/// Views and searches of the workspace.
fn looks(parsed: &Parsed) -> bool {
    match parsed {
        Parsed::Editor(input) => editor::is_view(input),
        // What stops a job of the session's own takes back what was allowed.
        Parsed::Search(_) | Parsed::Job(_) => true,
        Parsed::Command(_) | Parsed::Background(_) | Parsed::Restart => false,
    }
}
