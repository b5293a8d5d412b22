//! One rule: what it is about, what it decides, and whether it matches.
//!
//! A command rule is some words and matches a simple command that begins with them. An allow rule is read strictly: the
//! words as they are, and nothing unknown behind them. Deny and ask rules are read widely: behind directories, with
//! options in another order, and "perhaps" where a word is not known before it runs.

use std::path::Path;

use super::Verdict;
use super::bash::value::Value;
use super::layers::Layer;

/// A rule with where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) layer: Layer,
    pub(super) verdict: Verdict,
    pub(super) subject: Subject,
    /// For the person who is asked or refused.
    pub(super) reason: Option<String>,
}

/// What a rule is about.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// Commands that begin with these words, or are exactly these.
    Command { words: Vec<Pattern>, exact: bool },
    /// A tool by its name.
    Tool(Pattern),
    /// A file for the editing tool, by its path inside the workspace.
    Path { pattern: Pattern, edit_only: bool },
}

/// A word with optional `*`, which stands for any text within the word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(pub(super) String);

/// Whether a deny or ask rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// An unknown word could make it apply.
    Perhaps,
    Yes,
}

impl Pattern {
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut pieces = self.0.split('*');
        let first = pieces.next().unwrap_or("");
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let mut pieces = pieces.peekable();
        if pieces.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            let Some(at) = rest.find(piece) else { return false };
            rest = &rest[at + piece.len()..];
        }
        true
    }
}

impl Rule {
    /// The rule as a person would recognise it.
    pub(super) fn name(&self) -> String {
        let verdict = match self.verdict {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        };
        let subject = match &self.subject {
            Subject::Command { words, exact } => {
                let words: Vec<&str> = words.iter().map(|w| w.0.as_str()).collect();
                format!("{}{}", if *exact { "exactly " } else { "" }, words.join(" "))
            }
            Subject::Tool(name) => format!("tool {}", name.0),
            Subject::Path { pattern, .. } => format!("path {}", pattern.0),
        };
        format!("{verdict} {subject} ({})", self.layer.name())
    }

    /// Why a person is asked or refused, or is not, by this rule.
    pub(super) fn why(&self) -> String {
        self.reason.clone().unwrap_or_else(|| format!("the rule `{}` says so", self.name()))
    }

    /// Whether this allow rule covers a command: its words match as they are, and every further word is known, or at least
    /// certainly neither an option nor a place that only the shell knows.
    pub(super) fn covers(&self, command: &[Value]) -> bool {
        let Subject::Command { words, exact } = &self.subject else { return false };
        let fits = command.len() >= words.len() && (!exact || command.len() == words.len());
        fits && words.iter().zip(command).all(|(pattern, word)| word.known().is_some_and(|text| pattern.matches(text)))
            && command[words.len()..]
                .iter()
                .all(|word| word.known().is_some() || !(word.maybe_option() || word.prefix().starts_with('/')))
    }

    /// Whether this deny or ask rule applies to a command.
    pub(super) fn applies(&self, command: &[Value]) -> Match {
        let Subject::Command { words, exact } = &self.subject else { return Match::No };
        let Some((name, arguments)) = command.split_first() else { return Match::No };
        let (Some(wanted), Some(name)) = (words.first(), name.known()) else { return Match::No };
        if !wanted.matches(name) && !wanted.matches(base_name(name)) {
            return Match::No;
        }
        if *exact && command.len() != words.len() {
            return Match::No;
        }
        let literal = literally(&words[1..], arguments);
        if literal == Match::Yes || *exact {
            return literal;
        }
        let arguments = if base_name(name) == "git" { behind_global_options(arguments) } else { arguments };
        literal.max(literally(&words[1..], arguments)).max(loosely(&words[1..], arguments))
    }

    /// The same for words found in text that is not understood.
    pub(super) fn applies_to_tokens(&self, tokens: &[&str]) -> bool {
        let Subject::Command { words, .. } = &self.subject else { return false };
        let Some((wanted, rest)) = words.split_first() else { return false };
        let Some((name, arguments)) = tokens.split_first() else { return false };
        (wanted.matches(name) || wanted.matches(base_name(name)))
            && arguments.len() >= rest.len()
            && rest.iter().zip(arguments).all(|(pattern, token)| pattern.matches(token))
    }

    pub(super) fn is_command(&self) -> bool {
        match &self.subject {
            Subject::Command { .. } => true,
            Subject::Tool(_) | Subject::Path { .. } => false,
        }
    }

    pub(super) fn matches_tool(&self, tool: &str) -> bool {
        match &self.subject {
            Subject::Tool(name) => name.matches(tool),
            Subject::Command { .. } | Subject::Path { .. } => false,
        }
    }

    pub(super) fn matches_path(&self, path: &Path, edit: bool) -> bool {
        match &self.subject {
            Subject::Path { pattern, edit_only } => (edit || !edit_only) && pattern.matches(&path.to_string_lossy()),
            Subject::Command { .. } | Subject::Tool(_) => false,
        }
    }
}

/// The last component of a command's name.
pub(super) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The patterns against the words in their order.
fn literally(patterns: &[Pattern], words: &[Value]) -> Match {
    let mut result = Match::Yes;
    for (index, pattern) in patterns.iter().enumerate() {
        match words.get(index) {
            Some(Value::Known(text)) if pattern.matches(text) => {}
            // Behind a word of unknown length nothing has a place any more.
            Some(Value::Many(_)) => return Match::Perhaps,
            Some(Value::One(_)) => result = Match::Perhaps,
            Some(Value::Known(_)) | None => return Match::No,
        }
    }
    result
}

/// The patterns wherever options may stand: `rm -rf` meets `rm -fr x` and `rm -r x -f`.
fn loosely(patterns: &[Pattern], words: &[Value]) -> Match {
    let known: Vec<&str> = words.iter().filter_map(Value::known).take_while(|word| *word != "--").collect();
    let letters = |c: char| known.iter().any(|w| w.starts_with('-') && !w.starts_with("--") && w[1..].contains(c));
    let mut plain = known.iter().filter(|word| !word.starts_with('-'));
    let met = patterns.iter().all(|pattern| {
        let text = pattern.0.as_str();
        let cluster = text.len() > 1 && text.starts_with('-') && text[1..].chars().all(|c| c.is_ascii_alphabetic());
        if text.starts_with("--") {
            known
                .iter()
                .any(|word| pattern.matches(word) || word.strip_prefix(text).is_some_and(|rest| rest.starts_with('=')))
        } else if cluster {
            text[1..].chars().all(letters)
        } else {
            plain.next().is_some_and(|word| pattern.matches(word))
        }
    });
    if met { Match::Yes } else { Match::No }
}

/// The arguments of git from its subcommand on.
fn behind_global_options(arguments: &[Value]) -> &[Value] {
    let mut rest = arguments;
    while let Some((first, others)) = rest.split_first() {
        let separate =
            ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"];
        match first.known() {
            Some(option) if separate.contains(&option) => rest = others.get(1..).unwrap_or(&[]),
            Some(option) if option.starts_with('-') => rest = others,
            Some(_) | None => break,
        }
    }
    rest
}
