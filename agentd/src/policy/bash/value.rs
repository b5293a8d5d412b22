//! What is known of a word before it runs.
//!
//! Invariant: [`Value::Known`] is exactly the one field bash will make of the word, in every shell state that
//! [`super::state::ShellFacts`] calls sound.

use std::collections::HashMap;

use super::{List, Node, Operation, Part, Redirect, Word};

/// A word's value as far as the text shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Value {
    /// One field with this text.
    Known(String),
    /// One field with an unknown text.
    One(Start),
    /// Any number of fields.
    Many(Start),
}

/// How the fields of an unknown value can begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Start {
    /// With anything, a dash as well.
    Anything,
    /// With this text, which is not empty and does not begin with a dash.
    Text(String),
}

impl Value {
    /// The text, when it is known.
    pub(in crate::policy) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::One(_) | Self::Many(_) => None,
        }
    }

    /// Whether a command could take it for an option.
    pub(in crate::policy) fn maybe_option(&self) -> bool {
        match self {
            Self::Known(text) => text.starts_with('-'),
            Self::One(start) | Self::Many(start) => *start == Start::Anything,
        }
    }

    /// Whether it is exactly one field.
    pub(in crate::policy) fn single(&self) -> bool {
        match self {
            Self::Known(_) | Self::One(_) => true,
            Self::Many(_) => false,
        }
    }

    /// The text it certainly begins with.
    pub(in crate::policy) fn prefix(&self) -> &str {
        match self {
            Self::Known(text) | Self::One(Start::Text(text)) | Self::Many(Start::Text(text)) => text,
            Self::One(Start::Anything) | Self::Many(Start::Anything) => "",
        }
    }
}

/// Variables whose every possible value is in the text: those of `for` loops over plain words.
#[derive(Clone, Debug, Default)]
pub(in crate::policy) struct Variables {
    known: HashMap<String, Vec<String>>,
}

/// Longest list of a loop whose values are followed one by one; a longer one is merely unknown.
const MAX_LOOP_VALUES: usize = 64;

impl Variables {
    /// `name` takes these values, one after the other.
    pub(in crate::policy) fn learn(&mut self, name: &str, words: &[Word]) {
        let values: Option<Vec<String>> = words
            .iter()
            .take(MAX_LOOP_VALUES + 1)
            .map(|word| match value(word, self) {
                Value::Known(text) if !text.contains([' ', '\t', '\n', '*', '?', '[']) => Some(text),
                Value::Known(_) | Value::One(_) | Value::Many(_) => None,
            })
            .collect();
        match values {
            Some(values) if !values.is_empty() && values.len() <= MAX_LOOP_VALUES => {
                self.known.insert(name.to_owned(), values);
            }
            Some(_) | None => self.forget(name),
        }
    }

    /// `name` may hold anything from here on.
    pub(in crate::policy) fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// Whether every value of `name` is a plain number: arithmetic has nothing to evaluate in it.
    pub(in crate::policy) fn numeric(&self, name: &str) -> bool {
        let number =
            |value: &String| !value.is_empty() && value.len() < 10 && value.bytes().all(|c| c.is_ascii_digit());
        self.known.get(name).is_some_and(|values| values.iter().all(number))
    }

    fn plain(&self, name: &str, quoted: bool) -> Value {
        let Some(values) = self.known.get(name) else { return unknown_parameter(name, quoted) };
        if let [only] = values.as_slice() {
            return Value::Known(only.clone());
        }
        if values.iter().any(|v| v.is_empty() || v.starts_with('-')) {
            return Value::One(Start::Anything);
        }
        Value::One(Start::Text(common_prefix(values)))
    }
}

/// The common beginning, or, where there is none, a letter that stands for "not a dash".
fn common_prefix(values: &[String]) -> String {
    let first = values.first().map_or("", String::as_str);
    let length = first
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| values.iter().all(|v| v.starts_with(&first[..*end])))
        .last()
        .unwrap_or(0);
    if length == 0 { "x".to_owned() } else { first[..length].to_owned() }
}

fn unknown_parameter(name: &str, quoted: bool) -> Value {
    if all_fields(name) {
        return Value::Many(Start::Anything);
    }
    match (name, quoted) {
        ("?" | "#" | "$" | "!", _) => Value::One(Start::Text("0".to_owned())),
        // Absolute by definition; [`super::state`] notes when a command changes them.
        ("PWD" | "HOME", true) => Value::One(Start::Text("/".to_owned())),
        (_, false) => Value::Many(Start::Anything),
        (_, true) => Value::One(Start::Anything),
    }
}

/// `$@`, `$*`, `${name[@]}`, `${name[*]}`: any number of fields, quoted or not.
fn all_fields(name: &str) -> bool {
    matches!(name, "@" | "*") || name.ends_with("[@]") || name.ends_with("[*]")
}

/// The value of a word.
pub(in crate::policy) fn value(word: &Word, variables: &Variables) -> Value {
    let mut text = String::new();
    let mut glob = false;
    let mut rest: Option<Value> = None;
    let special = glob_characters(word);
    let braces = braces(word);
    for (index, part) in word.parts.iter().enumerate() {
        let piece = part_value(part, variables);
        if let Part::Text { text: raw, quoted: false } = part {
            // A tilde behind `=` or `:` is expanded in words that look like assignments.
            let tilde = raw.contains("=~") || raw.contains(":~");
            if tilde || raw.contains(special) {
                glob = true;
            }
            let first = raw.find(|c| c == '{' || special.contains(&c));
            if let Some(at) = first.filter(|_| rest.is_none()) {
                let literal = raw[at..].starts_with('{') && !braces;
                if !literal {
                    text.push_str(&raw[..at]);
                    glob = true;
                    rest = Some(Value::Many(Start::Anything));
                    continue;
                }
            }
        }
        match (&mut rest, piece) {
            (None, Value::Known(more)) => text.push_str(&more),
            (None, other) => {
                if index == 0 || text.is_empty() {
                    text = other.prefix().to_owned();
                }
                rest = Some(other);
            }
            (Some(before), other) => {
                if !other.single() {
                    rest = Some(Value::Many(Start::Anything));
                } else if *before == Value::One(Start::Anything) {
                    rest = Some(Value::One(Start::Anything));
                }
            }
        }
    }
    finish(text, glob, splits(word, variables), rest)
}

/// What makes a pattern of this word: a `[` only where a `]` can close it.
fn glob_characters(word: &Word) -> &'static [char] {
    let closes = word.parts.iter().any(|part| match part {
        Part::Text { text, quoted } => !quoted && text.contains(']'),
        Part::Parameter { .. } | Part::Command { .. } | Part::Process { .. } | Part::Arithmetic { .. } | Part::Home => {
            false
        }
    });
    if closes { &['*', '?', '['] } else { &['*', '?'] }
}

fn finish(text: String, glob: bool, splits: bool, rest: Option<Value>) -> Value {
    let Some(rest) = rest else {
        return if glob { Value::Many(Start::Anything) } else { Value::Known(text) };
    };
    // An unquoted expansion is split into fields, and only the first begins with the text before it.
    let start = if splits || text.is_empty() || text.starts_with('-') { Start::Anything } else { Start::Text(text) };
    if glob || !rest.single() { Value::Many(start) } else { Value::One(start) }
}

/// Whether a part of the word is an unquoted expansion with an unknown value.
fn splits(word: &Word, variables: &Variables) -> bool {
    word.parts.iter().any(|part| match part {
        // What [`Variables`] knows has no separators in it.
        Part::Parameter { name, operation: Operation::Plain, .. } if variables.known.contains_key(name) => false,
        Part::Parameter { name, quoted, .. } => all_fields(name) || !quoted,
        Part::Command { quoted, .. } => !quoted,
        Part::Text { .. } | Part::Process { .. } | Part::Arithmetic { .. } | Part::Home => false,
    })
}

/// Whether the word may be expanded as braces: `{` with a `,` or `..` and a `}`, unquoted, in whatever order.
fn braces(word: &Word) -> bool {
    let mut seen = (false, false, false);
    for part in &word.parts {
        if let Part::Text { text, quoted: false } = part {
            seen.0 |= text.contains('{');
            seen.1 |= text.contains(',') || text.contains("..");
            seen.2 |= text.contains('}');
        }
    }
    seen == (true, true, true)
}

fn part_value(part: &Part, variables: &Variables) -> Value {
    match part {
        Part::Text { text, .. } => Value::Known(text.clone()),
        Part::Parameter { name, operation: Operation::Plain, quoted } => variables.plain(name, *quoted),
        Part::Parameter { operation: Operation::Length, .. } => Value::One(Start::Text("0".to_owned())),
        // The result may be negative.
        Part::Arithmetic { .. } => Value::One(Start::Anything),
        Part::Parameter { quoted, .. } | Part::Command { quoted, .. } if !quoted => Value::Many(Start::Anything),
        Part::Parameter { name, .. } if all_fields(name) => Value::Many(Start::Anything),
        Part::Command { body, .. } => {
            literal_output(body).map_or(Value::One(Start::Anything), |text| Value::Known(text.to_owned()))
        }
        Part::Parameter { .. } => Value::One(Start::Anything),
        Part::Process { .. } | Part::Home => Value::One(Start::Text("/".to_owned())),
    }
}

/// What `cat` of a here-document prints: the common way to pass a text of several lines.
fn literal_output(body: &List) -> Option<&str> {
    let [Node::Simple(simple)] = body.as_slice() else { return None };
    let ([word], [Redirect::Text(text)], []) =
        (simple.words.as_slice(), simple.redirects.as_slice(), simple.assigns.as_slice())
    else {
        return None;
    };
    let [Part::Text { text: name, .. }] = word.parts.as_slice() else { return None };
    let [Part::Text { text, .. }] = text.parts.as_slice() else { return None };
    (name == "cat").then(|| text.trim_end_matches('\n'))
}
