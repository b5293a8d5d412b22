//! What the policy says, as lines.

use jiff::tz::TimeZone;
use proto::ids::Timestamp;
use proto::policy::{Checked, Decided, Difference, ReplaySum, Tested};

use super::{Line, Style, time};

fn word(decision: Decided) -> Line {
    match decision {
        Decided::Allow => Line::new().lit(Style::Good, "allow"),
        Decided::Ask => Line::new().lit(Style::Warn, "ask  "),
        Decided::Deny => Line::new().lit(Style::Bad, "deny "),
    }
}

/// `ask    rm is not known to only read`.
#[must_use]
pub fn verdict(decision: Decided, reason: &str, rule: Option<&str>) -> Line {
    let line = word(decision).lit(Style::Plain, "  ").text(Style::Plain, reason);
    match rule.filter(|rule| !reason.contains(rule)) {
        Some(rule) => line.lit(Style::Dim, "  · rule: ").text(Style::Dim, rule),
        None => line,
    }
}

/// A decision with its parts.
#[must_use]
pub fn explained(checked: &Checked) -> Vec<Line> {
    let mut lines = vec![verdict(checked.decision, &checked.reason, checked.rule.as_deref())];
    if checked.parts.is_empty() {
        lines.push(Line::new().lit(Style::Dim, "       the text was not understood as commands"));
    }
    for part in &checked.parts {
        lines.push(
            Line::new()
                .lit(Style::Plain, "  ")
                .join(word(part.decision))
                .lit(Style::Plain, "  ")
                .text(Style::Name, &part.command),
        );
        let why = match &part.rule {
            Some(rule) if !part.reason.contains(rule.as_str()) => format!("{} · rule: {rule}", part.reason),
            Some(_) | None => part.reason.clone(),
        };
        lines.push(Line::new().lit(Style::Plain, "         ").text(Style::Dim, &why));
    }
    lines
}

/// A rule file and what is wrong with it.
#[must_use]
pub fn tested(tested: &Tested) -> Vec<Line> {
    let sizes = (count(tested.rules, "rule"), count(tested.examples, "example"));
    let count = format!(" ({} layer, {}, {})", tested.layer, sizes.0, sizes.1);
    let head = Line::new().text(Style::Name, &tested.file).text(Style::Dim, &count);
    if tested.problems.is_empty() {
        return vec![Line::new().lit(Style::Good, "ok     ").join(head)];
    }
    let mut lines = vec![Line::new().lit(Style::Bad, "wrong  ").join(head)];
    for problem in &tested.problems {
        let place = match (problem.line, problem.rule) {
            (Some(line), Some(rule)) => format!("line {line}: rule {rule} "),
            (Some(line), None) => format!("line {line}: "),
            (None, Some(rule)) => format!("rule {rule} "),
            (None, None) => String::new(),
        };
        lines.push(
            Line::new()
                .lit(Style::Plain, "       ")
                .text(Style::Bold, &place)
                .text(Style::Plain, problem.problem.trim_end()),
        );
    }
    lines
}

/// There is nothing to test.
#[must_use]
pub fn no_rule_files() -> Line {
    Line::new().lit(Style::Dim, "there is no rule file here; name one, or write policy.toml beside agentd.toml")
}

/// A command that other rules decide otherwise.
#[must_use]
pub fn difference(difference: &Difference, zone: &TimeZone) -> Vec<Line> {
    let at = time::date(Timestamp(difference.at), zone);
    let line = Line::new()
        .text(Style::Dim, &format!("{:>5}  {at}  ", difference.id))
        .join(word(difference.was))
        .lit(Style::Dim, " → ")
        .join(word(difference.now))
        .lit(Style::Plain, "  ")
        .text(Style::Name, &difference.command);
    vec![line, Line::new().lit(Style::Plain, "         ").text(Style::Dim, &difference.reason)]
}

/// What a replay comes to.
#[must_use]
pub fn sum(sum: &ReplaySum) -> Line {
    let text = format!(
        "{} of the audit, {} decided otherwise; these rules: {} allowed, {} asked about, {} denied",
        count(usize::try_from(sum.commands).unwrap_or(usize::MAX), "command"),
        sum.differ,
        sum.allow,
        sum.ask,
        sum.deny
    );
    Line::new().text(Style::Dim, &text)
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
