//! Questions that the walk asks about words and bodies.

use std::path::Path;

use super::known::program;
use super::known::wrappers::{Unwrapped, unwrap};
use super::value::Value;
use super::{Kind, List, Node, Operation, Part, Word};
use crate::policy::path;
use crate::policy::words::listed;

/// The command inside transparent wrappers.
pub(super) fn innermost(words: &[Value]) -> &[Value] {
    let mut words = words;
    while let Some((Some(name), arguments)) = words.split_first().map(|(name, arguments)| (name.known(), arguments)) {
        match unwrap(program(name).unwrap_or(name), arguments) {
            Some(Unwrapped::Command(inner)) => words = inner,
            Some(Unwrapped::Nothing | Unwrapped::Unclear) | None => break,
        }
    }
    words
}

/// Whether anything in a body could assign a variable by other means than a loop's own list.
pub(super) fn may_assign(list: &List) -> bool {
    list.iter().any(|node| match node {
        Node::Simple(simple) => {
            let name = simple.words.first().map(shown).unwrap_or_default();
            !simple.assigns.is_empty() || may_assign_by_name(&name) || simple.words.iter().any(assigns_inside)
        }
        Node::Pipeline(parts) | Node::Conjunction(parts) => may_assign(parts),
        Node::Compound(compound) => {
            matches!(
                compound.kind,
                Kind::For { .. } | Kind::Select { .. } | Kind::Function { .. } | Kind::ForArithmetic { .. }
            ) || matches!(compound.kind, Kind::Arithmetic { .. })
                || compound.words.iter().any(assigns_inside)
                || compound.bodies.iter().any(may_assign)
        }
    })
}

fn assigns_inside(word: &Word) -> bool {
    word.parts.iter().any(|part| match part {
        Part::Parameter { operation, .. } => match operation {
            Operation::Plain | Operation::Length => false,
            Operation::With(_) | Operation::Assign(_) | Operation::Fail(_) => true,
        },
        Part::Text { .. } | Part::Command { .. } | Part::Process { .. } | Part::Arithmetic { .. } | Part::Home => false,
    })
}

pub(super) fn may_assign_by_name(name: &str) -> bool {
    matches!(
        name,
        "read"
            | "printf"
            | "export"
            | "declare"
            | "typeset"
            | "local"
            | "readonly"
            | "unset"
            | "let"
            | "mapfile"
            | "readarray"
            | "getopts"
            | "eval"
            | "source"
            | "."
            | "command"
            | "builtin"
            | "set"
            | "wait"
            | "coproc"
            | ""
    )
}

/// A word as it might be shown: its text, with a star for what is not known.
pub(super) fn shown(word: &Word) -> String {
    let texts = word.parts.iter().map(|part| match part {
        Part::Text { text, .. } => text.as_str(),
        Part::Home => "~",
        Part::Parameter { .. } | Part::Command { .. } | Part::Process { .. } | Part::Arithmetic { .. } => "*",
    });
    visible(&texts.collect::<String>())
}

/// The first argument that is a secret or a device whose content the command would print.
pub(super) fn exposes(name: &str, words: &[Word]) -> Option<String> {
    const NAMES_ONLY: &str = "\
    : [ basename cd dirname du echo false fd fdfind find ls printf pwd readlink realpath stat test tree true \
    type which";
    if listed(NAMES_ONLY, name) {
        return None;
    }
    let pattern_first = matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "git");
    let texts = words.iter().skip(1).map(shown).filter(|text| !text.starts_with('-'));
    let mut texts = texts.skip(usize::from(pattern_first));
    texts.find(|text| {
        let text = text.rsplit(':').next().unwrap_or(text);
        path::secret(Path::new(text)) || path::device(Path::new(text))
    })
}

/// Text with control and invisible characters shown as escapes.
pub(in crate::policy) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\n' && c != '\t') || super::parse::deceptive(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}
