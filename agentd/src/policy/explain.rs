//! A decision taken apart: each simple command of a script with its own verdict and the reason for it.
//!
//! For people and for `policy check`; a decision itself does not need it. What concerns the script as a whole (a
//! redirection of a group, a function, the state of the shell) is the decision's reason and in no part.

use super::bash::check::check;
use super::bash::parse::parse;
use super::bash::scan::Scan;
use super::decide::shell_during;
use super::{Context, Verdict};

/// One simple command with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartDecision {
    /// The command as it was understood; control characters are shown as escapes.
    pub command: String,
    /// Its verdict, as if it stood alone at its place.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The rule that decided.
    pub rule: Option<String>,
}

/// The parts of a command; none when it does not parse.
#[must_use]
pub fn explain(command: &str, context: &Context<'_>) -> Vec<PartDecision> {
    let Ok(list) = parse(command) else { return Vec::new() };
    let shell = shell_during(&list, context);
    let inner = Context { shell: &shell, ..*context };
    let findings = check(&list, &inner);
    findings.parts.into_iter().map(|part| judged(part, context)).collect()
}

fn judged(part: super::bash::check::PartFound<'_>, context: &Context<'_>) -> PartDecision {
    let scan = Scan::of_text(&context.rules.rules, &part.text);
    let (verdict, reason, rule) = match (scan.deny.or(scan.ask), part.doubt, part.rule) {
        (Some(rule), _, _) => (rule.verdict, rule.why(), Some(rule.name())),
        (None, Some(doubt), _) => (Verdict::Ask, doubt, None),
        (None, None, Some(rule)) => (Verdict::Allow, rule.why(), Some(rule.name())),
        (None, None, None) => (Verdict::Allow, "it only reads".to_owned(), None),
    };
    PartDecision { command: part.text, verdict, reason, rule }
}
