//! Rule files: their layers, their text, and the checks at load.
//!
//! ```toml
//! [[rule]]
//! decision = "allow"              # allow, ask or deny
//! command = "npm run test:*"      # words; `*` stands for any text within a word; or a list of words
//! match = ["npm run test:unit -- --watch=false"]
//! not_match = ["npm run deploy"]
//!
//! [[rule]]
//! decision = "deny"
//! path = "secrets/*"              # files for the editing tool, relative to the workspace; `*` crosses directories
//! reason = "these are generated"
//! ```
//!
//! Exactly one of `command`, `tool` and `path` says what a rule is about; `exact = true` makes a command rule match those
//! words and no more, `edit_only = true` lets a path rule leave viewing alone.
//!
//! Invariant: a rule file is taken whole or not at all; a file inside a workspace holds no allow rule, because whoever
//! wrote the workspace is not the user.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::Verdict;
use super::bash::parse::parse;
use super::bash::scan::Scan;
use super::bash::value::{Value, Variables, value};
use super::bash::{Node, Simple};
use super::rule::{Pattern, Rule, Subject};

/// Where a rule comes from; deny beats ask beats allow over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The machine's owner.
    System,
    /// The user.
    User,
    /// A file inside the workspace: may only tighten.
    Workspace,
    /// The user's answers "for this session".
    Session,
}

impl Layer {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Workspace => "workspace",
            Self::Session => "session",
        }
    }
}

/// Most rules of one file: bounds the cost of a decision; people write tens.
const MAX_RULES: usize = 2_000;

/// The rules of all layers.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(super) rules: Vec<Rule>,
}

/// What is wrong with a rule file.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// Not TOML, or not of this form.
    #[error("the {layer} rules do not parse: {source}")]
    Syntax {
        /// The file's layer.
        layer: &'static str,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
    /// More rules than [`MAX_RULES`].
    #[error("the {layer} rules are more than {MAX_RULES}")]
    TooMany {
        /// The file's layer.
        layer: &'static str,
    },
    /// One rule is not sound.
    #[error("rule {number} of the {layer} rules (line {line}) {problem}")]
    Rule {
        /// The file's layer.
        layer: &'static str,
        /// Where it begins in the file, from 1.
        line: usize,
        /// Counted from 1 in the order of the file.
        number: usize,
        /// What is wrong with it.
        problem: RuleProblem,
    },
}

/// What is wrong with one rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    /// A workspace may only tighten.
    #[error("allows something; files inside a workspace may only ask or deny")]
    Loosens,
    /// None or several of `command`, `tool`, `path`.
    #[error("must name exactly one of command, tool and path")]
    Subject,
    /// An empty list of words, or a text with quotes.
    #[error("has a command that is no plain list of words; write it as a list of strings")]
    Words,
    /// Wildcards in the name of an allowed command would allow anything.
    #[error("allows a command whose name has a wildcard")]
    AnyCommand,
    /// An example of `match` is not matched.
    #[error("does not match its own example `{0}`")]
    Missed(String),
    /// An example of `not_match` is matched.
    #[error("matches `{0}`, which it says it does not")]
    Caught(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    decision: Decides,
    command: Option<Words>,
    tool: Option<String>,
    path: Option<String>,
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    edit_only: bool,
    reason: Option<String>,
    #[serde(default, rename = "match")]
    matching: Vec<String>,
    #[serde(default)]
    not_match: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decides {
    Allow,
    Ask,
    Deny,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    List(Vec<String>),
}

impl Rules {
    /// Reads one file.
    ///
    /// # Errors
    ///
    /// When any rule of it is not sound: nothing of the file is used then.
    pub fn parse(layer: Layer, text: &str) -> Result<Self, RulesError> {
        let rules = entries(layer, text)?.into_iter().map(|entry| entry.check(layer).map(|(rule, _)| rule));
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// Everything that is wrong with one file, and how many rules and examples it has.
    #[must_use]
    pub fn examine(layer: Layer, text: &str) -> Examined {
        let entries = match entries(layer, text) {
            Ok(entries) => entries,
            Err(error) => return Examined { rules: 0, examples: 0, problems: vec![error] },
        };
        let mut examined = Examined { rules: entries.len(), examples: 0, problems: Vec::new() };
        for entry in entries {
            match entry.check(layer) {
                Ok((_, examples)) => examined.examples += examples,
                Err(problem) => examined.problems.push(problem),
            }
        }
        examined
    }

    /// The rules of several layers together.
    #[must_use]
    pub fn merge(layers: impl IntoIterator<Item = Self>) -> Self {
        Self { rules: layers.into_iter().flat_map(|layer| layer.rules).collect() }
    }

    /// Command rules from words alone, as the user's.
    #[must_use]
    pub fn from_words(allow: &[Vec<String>], ask: &[Vec<String>], deny: &[Vec<String>]) -> Self {
        let of = |verdict, lists: &[Vec<String>]| -> Vec<Rule> {
            let lists = lists.iter().filter(|words| !words.is_empty());
            lists.map(|words| command_rule(Layer::User, verdict, words.iter().cloned(), false)).collect()
        };
        let rules = [of(Verdict::Allow, allow), of(Verdict::Ask, ask), of(Verdict::Deny, deny)].concat();
        Self { rules }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(super) fn with(&self, rule: Rule) -> Self {
        let mut rules = self.clone();
        rules.rules.push(rule);
        rules
    }
}

/// What is in a rule file.
#[derive(Debug)]
pub struct Examined {
    /// How many rules.
    pub rules: usize,
    /// How many examples the sound ones carry.
    pub examples: usize,
    /// What is wrong, in the order of the file.
    pub problems: Vec<RulesError>,
}

/// An entry in its place.
struct Placed {
    entry: Entry,
    number: usize,
    line: usize,
}

impl Placed {
    fn check(self, layer: Layer) -> Result<(Rule, usize), RulesError> {
        let Self { entry, number, line } = self;
        let examples = entry.matching.len() + entry.not_match.len();
        let rule = entry.check(layer);
        rule.map(|rule| (rule, examples)).map_err(|problem| RulesError::Rule {
            layer: layer.name(),
            line,
            number,
            problem,
        })
    }
}

fn entries(layer: Layer, text: &str) -> Result<Vec<Placed>, RulesError> {
    let file: File =
        toml::from_str(text).map_err(|source| RulesError::Syntax { layer: layer.name(), source: Box::new(source) })?;
    if file.rule.len() > MAX_RULES {
        return Err(RulesError::TooMany { layer: layer.name() });
    }
    let placed = file.rule.into_iter().zip(1..).map(|(entry, number)| {
        let before = text.get(..entry.span().start).unwrap_or("");
        Placed { line: before.matches('\n').count() + 1, number, entry: entry.into_inner() }
    });
    Ok(placed.collect())
}

pub(super) fn command_rule(layer: Layer, verdict: Verdict, words: impl Iterator<Item = String>, exact: bool) -> Rule {
    let subject = Subject::Command { words: words.map(Pattern).collect(), exact };
    Rule { layer, verdict, subject, reason: None }
}

impl Entry {
    fn check(self, layer: Layer) -> Result<Rule, RuleProblem> {
        let verdict = match self.decision {
            Decides::Allow if layer == Layer::Workspace => return Err(RuleProblem::Loosens),
            Decides::Allow => Verdict::Allow,
            Decides::Ask => Verdict::Ask,
            Decides::Deny => Verdict::Deny,
        };
        let subject = match (self.command, self.tool, self.path) {
            (Some(words), None, None) => Subject::Command { words: words.patterns()?, exact: self.exact },
            (None, Some(name), None) => Subject::Tool(Pattern(name)),
            (None, None, Some(path)) => Subject::Path { pattern: Pattern(path), edit_only: self.edit_only },
            _ => return Err(RuleProblem::Subject),
        };
        if let Subject::Command { words, .. } = &subject
            && verdict == Verdict::Allow
            && words.first().is_none_or(|name| name.0.contains('*'))
        {
            return Err(RuleProblem::AnyCommand);
        }
        let rule = Rule { layer, verdict, subject, reason: self.reason };
        if let Some(missed) = self.matching.iter().find(|example| !matches(&rule, example)) {
            return Err(RuleProblem::Missed(missed.clone()));
        }
        if let Some(caught) = self.not_match.iter().find(|example| matches(&rule, example)) {
            return Err(RuleProblem::Caught(caught.clone()));
        }
        Ok(rule)
    }
}

impl Words {
    fn patterns(self) -> Result<Vec<Pattern>, RuleProblem> {
        let words = match self {
            Self::Text(text) if text.contains(['\'', '"', '\\', '`', '$']) => return Err(RuleProblem::Words),
            Self::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            Self::List(words) => words,
        };
        if words.is_empty() { Err(RuleProblem::Words) } else { Ok(words.into_iter().map(Pattern).collect()) }
    }
}

/// Whether a rule matches an example: a command, a tool's name or a path.
fn matches(rule: &Rule, example: &str) -> bool {
    match (&rule.subject, rule.verdict) {
        (Subject::Tool(_), _) => rule.matches_tool(example),
        (Subject::Path { .. }, _) => rule.matches_path(Path::new(example), true),
        (Subject::Command { .. }, Verdict::Allow) => match parse(example).as_deref() {
            Ok([Node::Simple(simple)]) => rule.covers(&words(simple)),
            Ok(_) | Err(_) => false,
        },
        (Subject::Command { .. }, Verdict::Ask | Verdict::Deny) => Scan::of_text([rule], example).any(),
    }
}

fn words(simple: &Simple) -> Vec<Value> {
    simple.words.iter().map(|word| value(word, &Variables::default())).collect()
}
