//! Proposals for "always": the narrowest rule that covers a call, proved before it is offered.

use super::bash::check::check;
use super::bash::parse::parse;
use super::bash::value::Value;
use super::layers::{Layer, command_rule};
use super::rule::{Rule, Subject};
use super::words::listed;
use super::{Call, Context, Decision, Verdict, decide};

/// A rule as it would be written, and as words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// The entries of the rule file, ready to be appended.
    pub toml: String,
    /// For people: what would be allowed, one line a rule.
    pub summary: String,
}

/// Most rules one proposal may hold: a person reads them before saying "always".
const MAX_PROPOSED: usize = 3;

/// Programs whose first argument says what is done: a rule for program and subcommand is useful and still narrow.
const WITH_SUBCOMMANDS: &str = "\
    bun bundle cargo composer deno docker dotnet flutter gh git go gradle just kubectl make mix mvn npm pip pnpm \
    poetry rustup terraform uv yarn";

/// Subcommands that run whatever follows: the rule needs the next word as well.
const RUNNING: &str = "compose exec foreach run run-script tool x dlx";

/// Programs that run any code they are given: no rule is narrow enough to be offered.
const NEVER: &str = "\
    . ash awk bash builtin busybox chroot command csh dash doas env eval exec fish ksh node nohup nsenter \
    parallel perl php pkexec ruby runuser sh source ssh su sudo trap unshare xargs zsh";

/// The narrowest rule that makes `command` run without a question under `context`; `None` when no rule can, or none should.
#[must_use]
pub fn narrowest_rule(command: &str, context: &Context<'_>) -> Option<RuleText> {
    let call = Call::Bash { command };
    if decide(&call, context).verdict != Verdict::Ask {
        return None;
    }
    let list = parse(command).ok()?;
    let findings = check(&list, context);
    let mut rules: Vec<Rule> = Vec::new();
    for words in findings.unproved {
        let rule = proposal(&words?)?;
        if !rules.iter().any(|other| other.name() == rule.name()) {
            rules.push(rule);
        }
    }
    if rules.is_empty() || rules.len() > MAX_PROPOSED {
        return None;
    }
    let together = rules.iter().fold(context.rules.clone(), |all, rule| all.with(rule.clone()));
    let Decision { verdict, .. } = decide(&call, &Context { rules: &together, ..*context });
    if verdict != Verdict::Allow {
        return None;
    }
    let toml: String = rules.iter().map(|rule| entry(rule, command)).collect();
    let summary: Vec<String> = rules.iter().map(Rule::name).collect();
    Some(RuleText { toml, summary: summary.join("\n") })
}

/// A rule for one simple command.
fn proposal(words: &[Value]) -> Option<Rule> {
    let known: Vec<&str> = words.iter().map_while(Value::known).collect();
    let name = *known.first()?;
    if listed(NEVER, name) {
        return None;
    }
    // A wildcard in a rule stands for any text; a star in the command does not.
    let plain = known.iter().take_while(|word| !word.contains('*')).count();
    let prefix = match known.as_slice() {
        [name, verb, ..] if listed(WITH_SUBCOMMANDS, name) && !verb.starts_with('-') => {
            if listed(RUNNING, verb) {
                3
            } else {
                2
            }
        }
        [name] if listed(WITH_SUBCOMMANDS, name) => return exactly(words, &known, plain),
        _ => return exactly(words, &known, plain),
    };
    if plain < prefix {
        return None;
    }
    Some(command_rule(Layer::User, Verdict::Allow, known.into_iter().take(prefix).map(str::to_owned), false))
}

/// A rule for these words and no others.
fn exactly(words: &[Value], known: &[&str], plain: usize) -> Option<Rule> {
    let all = known.len() == words.len() && plain == words.len();
    all.then(|| command_rule(Layer::User, Verdict::Allow, known.iter().map(|word| (*word).to_owned()), true))
}

/// The rule in the file's own form.
fn entry(rule: &Rule, command: &str) -> String {
    let Subject::Command { words, exact } = &rule.subject else { return String::new() };
    let words: Vec<String> = words.iter().map(|word| quoted(&word.0)).collect();
    let exact = if *exact { "exact = true\n" } else { "" };
    let comment: String = command.chars().map(|c| if c.is_control() { ' ' } else { c }).take(100).collect();
    format!("\n# for: {comment}\n[[rule]]\ndecision = \"allow\"\ncommand = [{}]\n{exact}", words.join(", "))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
