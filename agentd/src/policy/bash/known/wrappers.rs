//! Commands that run the command that follows them, and so read only if that does.

use super::super::value::{Start, Value};
use super::{Proof, Surroundings, read_only as command_only_reads};

/// The proof for a wrapper; `None` when the command is none of those understood.
pub(super) fn read_only(name: &str, arguments: &[Value], around: &Surroundings<'_>) -> Option<Proof> {
    Some(match name {
        "xargs" => xargs(arguments, around),
        _ => match unwrap(name, arguments)? {
            Unwrapped::Command(inner) => inner_only_reads(
                inner,
                &Surroundings { external: external(name, around), depth: around.depth + 1, ..*around },
            ),
            Unwrapped::Nothing => Ok(()),
            Unwrapped::Unclear => Err(format!("these arguments of {name} are not understood")),
        },
    })
}

fn external(name: &str, around: &Surroundings<'_>) -> bool {
    around.external || !matches!(name, "command" | "builtin")
}

/// What a transparent wrapper runs.
pub(in crate::policy) enum Unwrapped<'a> {
    /// These words.
    Command(&'a [Value]),
    /// Nothing: it only prints.
    Nothing,
    /// Something that is not visible.
    Unclear,
}

/// The command inside a wrapper that changes nothing but how long or how nicely it runs; `None` for other names.
pub(in crate::policy) fn unwrap<'a>(name: &str, arguments: &'a [Value]) -> Option<Unwrapped<'a>> {
    Some(match name {
        "command" => command(arguments),
        "builtin" => from(arguments),
        "timeout" => timeout(arguments),
        "nice" => match arguments {
            [Value::Known(n), number, rest @ ..] if n == "-n" && number.single() => from(rest),
            [Value::Known(flag), rest @ ..]
                if flag.starts_with('-') && flag[1..].bytes().all(|c| c.is_ascii_digit()) =>
            {
                from(rest)
            }
            rest => from(rest),
        },
        "env" => match arguments {
            // Alone it prints the environment.
            [] => Unwrapped::Unclear,
            [Value::Known(first), ..] if first.contains('=') => Unwrapped::Unclear,
            rest => from(rest),
        },
        _ => return None,
    })
}

fn from(words: &[Value]) -> Unwrapped<'_> {
    match words.first().and_then(Value::known) {
        Some(name) if !name.starts_with('-') => Unwrapped::Command(words),
        Some(_) | None => Unwrapped::Unclear,
    }
}

fn command(arguments: &[Value]) -> Unwrapped<'_> {
    match arguments.first().and_then(Value::known) {
        Some("-v" | "-V") => Unwrapped::Nothing,
        Some("-p" | "--") => from(&arguments[1..]),
        Some(_) | None => from(arguments),
    }
}

fn timeout(arguments: &[Value]) -> Unwrapped<'_> {
    let mut rest = arguments;
    while let Some((first, others)) = rest.split_first() {
        match first.known() {
            Some("-k" | "-s") if others.first().is_some_and(Value::single) => rest = &others[1..],
            Some("--foreground" | "--preserve-status" | "-v" | "--verbose") => rest = others,
            Some(time) if time.starts_with(|c: char| c.is_ascii_digit()) => return from(others),
            Some(_) | None => return Unwrapped::Unclear,
        }
    }
    Unwrapped::Unclear
}

fn inner_only_reads(words: &[Value], around: &Surroundings<'_>) -> Proof {
    let Some((name, arguments)) = words.split_first() else { return Ok(()) };
    let name = name.known().ok_or("the name of a command is not known")?;
    command_only_reads(name, arguments, around)
}

/// `xargs` appends words nobody has seen: the command must only read whatever they are.
fn xargs(arguments: &[Value], around: &Surroundings<'_>) -> Proof {
    let mut rest = arguments;
    let mut replaced = None;
    while let [Value::Known(flag), others @ ..] = rest {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        rest = match (flag.as_str(), others) {
            ("-0" | "-r" | "-t" | "-x" | "--null", _) => others,
            ("-n" | "-L" | "-P" | "-s", [Value::Known(count), others @ ..]) if number(count) => others,
            ("-d", [Value::Known(_), others @ ..]) => others,
            ("-I", [Value::Known(mark), others @ ..]) if !mark.is_empty() => {
                replaced = Some(mark.as_str());
                others
            }
            (flag, _) if flag.starts_with("-n") || flag.starts_with("-L") || flag.starts_with("-P") => {
                if !number(&flag[2..]) {
                    break;
                }
                others
            }
            (flag, _) if flag.starts_with("-I") && flag.len() > 2 => {
                replaced = Some(&flag[2..]);
                others
            }
            _ => break,
        };
    }
    let Some((Value::Known(name), words)) = rest.split_first() else {
        return if rest.is_empty() { Ok(()) } else { Err("the command of xargs is not known".to_owned()) };
    };
    if name.starts_with('-') {
        return Err(format!("xargs {name} is not understood"));
    }
    if replaced.is_some_and(|mark| name.contains(mark)) {
        return Err("the command of xargs is not known".to_owned());
    }
    let unseen = |word: &Value| match (word, replaced) {
        (Value::Known(text), Some(mark)) if text.contains(mark) => Value::One(Start::Anything),
        _ => word.clone(),
    };
    let mut words: Vec<Value> = words.iter().map(unseen).collect();
    // Appended even behind a mark: a later `-n` takes the mark's meaning away.
    words.push(Value::Many(Start::Anything));
    command_only_reads(name, &words, &Surroundings { external: true, depth: around.depth + 1, ..*around })
}
