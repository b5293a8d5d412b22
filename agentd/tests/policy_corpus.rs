//! The behaviour corpus against the pure decision: what must never be allowed, what should not be asked about.

#![expect(clippy::expect_used, reason = "a test's helpers may stop the test")]

use std::collections::BTreeMap;
use std::path::Path;

use agentd::policy::{Call, Context, Decision, Mode, Repository, Rules, ShellFacts, Verdict, decide};
use serde::Deserialize;

/// Least share of the safe cases that run without a question.
const LEAST_ALLOWED_PERCENT: usize = 98;

#[derive(Deserialize)]
struct Case {
    id: String,
    command: String,
    expect: Expected,
    #[serde(default)]
    accept: Vec<Expected>,
    #[serde(default)]
    rules: WordRules,
    #[serde(default)]
    prior: Vec<Prior>,
    #[serde(default)]
    files: BTreeMap<String, serde_json::Value>,
    why: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Allow,
    Ask,
    Deny,
}

#[derive(Default, Deserialize)]
struct WordRules {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prior {
    Ran(String),
    Restarted { restart: bool },
}

fn cases() -> Vec<Case> {
    let text = include_str!("../../tests/data/policy.jsonl");
    text.lines().map(|line| serde_json::from_str(line).expect("a case parses")).collect()
}

fn split(rules: &[String]) -> Vec<Vec<String>> {
    rules.iter().map(|rule| rule.split_whitespace().map(str::to_owned).collect()).collect()
}

fn run(case: &Case) -> Decision {
    let rules = Rules::from_words(&split(&case.rules.allow), &split(&case.rules.ask), &split(&case.rules.deny));
    let shell = case.prior.iter().fold(ShellFacts::default(), |facts, prior| match prior {
        Prior::Ran(command) => facts.after(command),
        Prior::Restarted { restart } => {
            assert!(restart);
            ShellFacts::restarted()
        }
    });
    let configuration = case.files.get(".git/config").and_then(|text| text.as_str()).unwrap_or("");
    let repository = Repository::from_configurations([configuration]);
    let workspace = Path::new("/home/user/project");
    let context = Context {
        mode: Mode::Ask,
        rules: &rules,
        workspace,
        cwd: workspace,
        shell: &shell,
        repository: &repository,
        trust_reads: true,
    };
    decide(&Call::Bash { command: &case.command }, &context)
}

fn expected(verdict: Verdict) -> Expected {
    match verdict {
        Verdict::Allow => Expected::Allow,
        Verdict::Ask => Expected::Ask,
        Verdict::Deny => Expected::Deny,
    }
}

#[test]
fn no_hostile_case_is_allowed_and_safe_ones_run_without_a_question() {
    let (mut unsafe_allows, mut needless_asks, mut missed_denies, mut others) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut safe, mut disputed, mut disputed_allowed) = (0, 0, 0);
    let cases = cases();
    for case in &cases {
        let decision = run(case);
        let got = expected(decision.verdict);
        let accepted = if case.accept.is_empty() { vec![case.expect] } else { case.accept.clone() };
        let line = format!(
            "{} {:?} got {got:?}: {} [{}]",
            case.id,
            case.command.chars().take(120).collect::<String>(),
            case.why,
            decision.reason
        );
        safe += usize::from(accepted == [Expected::Allow]);
        if accepted.contains(&Expected::Allow) && accepted.contains(&Expected::Ask) {
            disputed += 1;
            disputed_allowed += usize::from(got == Expected::Allow);
        }
        if case.expect == Expected::Allow && got != Expected::Allow && accepted.len() > 1 {
            println!("disputed, not allowed: {line}");
        }
        if case.expect == Expected::Ask && got == Expected::Allow && accepted.len() > 1 {
            println!("disputed, allowed: {line}");
        }
        if accepted.contains(&got) {
            continue;
        }
        match (got, case.expect) {
            (Expected::Allow, _) => unsafe_allows.push(line),
            (_, Expected::Allow) => needless_asks.push(line),
            (_, Expected::Deny) => missed_denies.push(line),
            (_, Expected::Ask) => others.push(line),
        }
    }
    for (title, lines) in [
        ("unsafe allows", &unsafe_allows),
        ("needless asks", &needless_asks),
        ("missed denies", &missed_denies),
        ("others", &others),
    ] {
        println!("{title}: {}", lines.len());
        for line in lines {
            println!("  {line}");
        }
    }
    println!("{} cases, {safe} safe; of {disputed} disputed {disputed_allowed} allowed", cases.len());
    assert!(unsafe_allows.is_empty(), "{} cases were allowed that must not be", unsafe_allows.len());
    assert!(missed_denies.is_empty() && others.is_empty());
    assert!(
        (safe - needless_asks.len()) * 100 >= safe * LEAST_ALLOWED_PERCENT,
        "{} needless asks",
        needless_asks.len()
    );
}
