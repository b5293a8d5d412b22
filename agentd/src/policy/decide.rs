//! The verdict on one call: rules and modes around what `bash/` proves.

use std::path::Path;

use super::bash::check::{Findings, check};
use super::bash::parse::parse;
use super::bash::scan::Scan;
use super::bash::{List, Opaque};
use super::rule::Rule;
use super::{Call, Context, Decision, Mode, ShellFacts, Verdict, path};

/// Tools besides the shell and the editor that only read, or only end what was allowed to run.
const READING_TOOLS: [&str; 4] = ["glob", "grep", "job_output", "job_stop"];

/// Decides about one call.
#[must_use]
pub fn decide(call: &Call<'_>, context: &Context<'_>) -> Decision {
    let (tool, basis) = match call {
        Call::Bash { command } => ("bash", bash(command, context)),
        Call::BashRestart if context.trust_reads => {
            ("bash", Basis::reads("a restart only renews the session's own shell"))
        }
        Call::BashRestart => ("bash", Basis::new(Verdict::Ask, "it ends everything the shell runs", Nature::Reads)),
        Call::View { path } => ("view", view(path, context)),
        Call::Edit { path, create } => ("edit", edit(path, *create, context)),
        Call::Other { tool } => (*tool, other(tool)),
    };
    let basis = by_tool(tool, basis, context);
    apply_mode(basis, context.mode)
}

/// What a call comes to before the mode is applied.
#[derive(Debug)]
struct Basis {
    verdict: Verdict,
    reason: String,
    rule: Option<String>,
    parts: Vec<String>,
    /// How the mode may change the verdict.
    nature: Nature,
}

/// What kind of call it is for a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// Proved to change nothing.
    Reads,
    /// An edit that `accept-edits` accepts.
    Edits,
    /// An edit that `accept-edits` asks about as well.
    Guarded,
    /// Anything else.
    Other,
}

impl Basis {
    fn reads(reason: &str) -> Self {
        Self::new(Verdict::Allow, reason, Nature::Reads)
    }

    fn new(verdict: Verdict, reason: impl Into<String>, nature: Nature) -> Self {
        Self { verdict, reason: reason.into(), rule: None, parts: Vec::new(), nature }
    }

    /// The same call with a rule's verdict, unless a stronger one stands.
    fn under(mut self, rule: &Rule) -> Self {
        if rule.verdict > self.verdict || (rule.verdict == Verdict::Allow && self.verdict == Verdict::Ask) {
            self.verdict = rule.verdict;
            self.reason = rule.why();
            self.rule = Some(rule.name());
        }
        self
    }
}

fn bash(command: &str, context: &Context<'_>) -> Basis {
    let mut scan = Scan::new(&context.rules.rules);
    let basis = match parse(command) {
        Ok(list) => {
            scan.list(&list);
            scan.finish(command);
            script(&list, context)
        }
        Err(Opaque(why)) => {
            scan.tokens(command);
            Basis::new(Verdict::Ask, why, Nature::Other)
        }
    };
    let basis = match scan.perhaps {
        Some(rule) if basis.verdict == Verdict::Allow => Basis {
            verdict: Verdict::Ask,
            reason: format!("the rule `{}` may apply to a word that is not known yet", rule.name()),
            rule: Some(rule.name()),
            nature: Nature::Other,
            ..basis
        },
        Some(_) | None => basis,
    };
    [scan.deny, scan.ask].into_iter().flatten().fold(basis, Basis::under)
}

/// A command on its own is judged by the shell it finds; in a script, what any part does to the shell may come first.
pub(super) fn shell_during(list: &List, context: &Context<'_>) -> ShellFacts {
    if list.len() == 1 && list[0].is_simple() { context.shell.clone() } else { context.shell.during(list) }
}

fn script(list: &List, context: &Context<'_>) -> Basis {
    let during = shell_during(list, context);
    let inner = Context { shell: &during, ..*context };
    let Findings { doubts, allowed_by, parts, .. } = check(list, &inner);
    let unsound = during.unsound();
    // Where reading asks too, the mode still wants to know whether it only reads.
    let only_reads = || {
        let trusting = Context { trust_reads: true, ..inner };
        let trusting = check(list, &trusting);
        unsound.is_none() && trusting.doubts.is_empty() && trusting.allowed_by.is_empty()
    };
    let nature = if !context.trust_reads && only_reads() { Nature::Reads } else { Nature::Other };
    let basis = match (unsound, doubts.into_iter().next(), allowed_by.first()) {
        (Some(why), _, _) | (None, Some(why), _) => Basis::new(Verdict::Ask, why, nature),
        (None, None, Some(rule)) => Basis {
            rule: Some(rule.name()),
            ..Basis::new(Verdict::Allow, format!("the rule `{}` allows it", rule.name()), Nature::Other)
        },
        (None, None, None) if context.trust_reads => Basis::reads("every part of it only reads"),
        (None, None, None) => Basis::new(Verdict::Ask, "it runs a command", nature),
    };
    Basis { parts: parts.into_iter().map(|part| part.text).collect(), ..basis }
}

fn view(file: &Path, context: &Context<'_>) -> Basis {
    let inside = path::inside(context.workspace, context.workspace, file);
    let basis = if !inside {
        Basis::new(Verdict::Ask, "the file is outside the workspace", Nature::Reads)
    } else if path::secret(file) {
        Basis::new(Verdict::Ask, "the file may hold a secret", Nature::Reads)
    } else {
        Basis::reads("the file is inside the workspace")
    };
    by_path(file, Access::View, basis, context)
}

fn edit(file: &Path, create: bool, context: &Context<'_>) -> Basis {
    let inside = path::inside(context.workspace, context.workspace, file);
    let basis = if !inside {
        Basis::new(Verdict::Ask, "the file is outside the workspace", Nature::Guarded)
    } else if path::obeyed(file) || path::secret(file) {
        Basis::new(Verdict::Ask, "another program will load and obey this file, or it is a secret", Nature::Guarded)
    } else {
        let deed = if create { "creates" } else { "changes" };
        Basis::new(Verdict::Ask, format!("it {deed} a file of the workspace"), Nature::Edits)
    };
    by_path(file, Access::Edit, basis, context)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    View,
    Edit,
}

/// Path rules speak of paths relative to the workspace; outside it, of absolute ones.
fn by_path(file: &Path, access: Access, basis: Basis, context: &Context<'_>) -> Basis {
    let Some(resolved) = path::resolve(context.workspace, file) else { return basis };
    let shown = resolved.strip_prefix(context.workspace).unwrap_or(&resolved);
    let matching = |rule: &&Rule| rule.matches_path(shown, access == Access::Edit);
    strongest(context.rules.rules.iter().filter(matching), basis)
}

fn other(tool: &str) -> Basis {
    if READING_TOOLS.contains(&tool) {
        Basis::reads("the tool only reads")
    } else {
        Basis::new(Verdict::Ask, format!("the tool {tool} may change something"), Nature::Other)
    }
}

/// Tool rules: `bash` is the shell, `view` and `edit` the editor, others go by their names.
fn by_tool(tool: &str, basis: Basis, context: &Context<'_>) -> Basis {
    strongest(context.rules.rules.iter().filter(|rule| rule.matches_tool(tool)), basis)
}

/// Deny before ask before allow. A guarded edit is not for an allow rule.
fn strongest<'r>(rules: impl Iterator<Item = &'r Rule>, basis: Basis) -> Basis {
    let Some(rule) = rules.max_by_key(|rule| rule.verdict) else { return basis };
    if rule.verdict == Verdict::Allow && (basis.nature == Nature::Guarded || basis.rule.is_some()) {
        return basis;
    }
    basis.under(rule)
}

fn apply_mode(basis: Basis, mode: Mode) -> Decision {
    let Basis { verdict, reason, rule, parts, nature } = basis;
    let decision = |verdict, reason, rule| Decision { verdict, reason, rule, parts };
    match (mode, verdict) {
        (_, Verdict::Deny) | (Mode::Ask | Mode::AcceptEdits, Verdict::Allow) | (Mode::Bypass, Verdict::Allow) => {
            decision(verdict, reason, rule)
        }
        (Mode::AcceptEdits, Verdict::Ask) if nature == Nature::Edits && rule.is_none() => {
            decision(Verdict::Allow, format!("{reason}, and the mode {mode} lets it"), None)
        }
        (Mode::Ask | Mode::AcceptEdits, Verdict::Ask) => decision(verdict, reason, rule),
        (Mode::Plan, Verdict::Allow | Verdict::Ask) if nature == Nature::Reads => decision(verdict, reason, rule),
        (Mode::Plan, Verdict::Allow | Verdict::Ask) => {
            let why = "plan mode is on: nothing that changes anything may run, only commands that are known to read, \
                       views and searches";
            decision(Verdict::Deny, format!("{why} ({reason})"), rule)
        }
        // A rule that asks is no reason to name as one that allows.
        (Mode::Bypass, Verdict::Ask) => {
            decision(Verdict::Allow, format!("the mode {mode} asks nothing ({reason})"), None)
        }
    }
}
