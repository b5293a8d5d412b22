//! The reader of option tables: GNU conventions, nothing that is not in the table.
//!
//! Invariant: an argument that could be an option and is not proved to be a listed one fails the whole command. Long
//! options must be spelled out: an abbreviation that is unambiguous today may stand for another option tomorrow.

use super::super::value::Value;
use crate::policy::words::listed;

/// The options of a command under which it only reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// Letters without an argument.
    pub(super) flags: &'static str,
    /// Letters with an argument, joined or separate.
    pub(super) with_value: &'static str,
    /// Letters with an argument that can only be joined.
    pub(super) optional: &'static str,
    /// Long options without an argument, or with one behind `=` only.
    pub(super) long: &'static str,
    /// Long options with an argument, behind `=` or separate.
    pub(super) long_with_value: &'static str,
    /// `-5` is an option.
    pub(super) numbers: bool,
}

/// A command line that fits its table.
#[derive(Debug, Default)]
pub(super) struct Parsed<'a> {
    /// Options in order: the letter or long name, and the argument where it is visible.
    pub(super) options: Vec<(&'a str, Option<&'a str>)>,
    /// What is left.
    pub(super) operands: Vec<&'a Value>,
}

impl Parsed<'_> {
    /// Whether one of these options was given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(name))
    }
}

impl Table {
    /// Reads `arguments`; the error says which one does not fit.
    pub(super) fn read<'a>(&self, command: &str, arguments: &'a [Value]) -> Result<Parsed<'a>, String> {
        let mut parsed = Parsed::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let Some(text) = argument.known() else {
                if argument.maybe_option() {
                    return Err(format!("an argument of {command} is not known and might be an option"));
                }
                parsed.operands.push(argument);
                continue;
            };
            if text == "--" {
                parsed.operands.extend(arguments);
                break;
            }
            let needs_value = if let Some(long) = text.strip_prefix("--") {
                self.long_option(command, long, &mut parsed)?
            } else if text.len() > 1 && text.starts_with('-') {
                self.cluster(command, text, &mut parsed)?
            } else {
                parsed.operands.push(argument);
                false
            };
            if needs_value {
                let value = arguments.next().ok_or_else(|| format!("an option of {command} lacks its argument"))?;
                // What looks like an option here is one to another version of the command.
                if !value.single() || value.maybe_option() {
                    return Err(format!("the argument of {command} {text} is not known or looks like an option"));
                }
                if let Some(last) = parsed.options.last_mut() {
                    last.1 = value.known();
                }
            }
        }
        Ok(parsed)
    }

    fn long_option<'a>(&self, command: &str, text: &'a str, parsed: &mut Parsed<'a>) -> Result<bool, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        parsed.options.push((name, value));
        if listed(self.long_with_value, name) {
            return Ok(value.is_none());
        }
        if listed(self.long, name) { Ok(false) } else { Err(format!("{command} --{name} is not known to only read")) }
    }

    fn cluster<'a>(&self, command: &str, text: &'a str, parsed: &mut Parsed<'a>) -> Result<bool, String> {
        if self.numbers && text[1..].bytes().all(|c| c.is_ascii_digit()) {
            parsed.options.push((&text[1..], None));
            return Ok(false);
        }
        for (at, letter) in text.char_indices().skip(1) {
            let end = at + letter.len_utf8();
            if self.with_value.contains(letter) {
                let value = (end < text.len()).then(|| &text[end..]);
                parsed.options.push((&text[at..end], value));
                return Ok(value.is_none());
            }
            if self.optional.contains(letter) {
                parsed.options.push((&text[at..end], Some(&text[end..])));
                return Ok(false);
            }
            if !self.flags.contains(letter) {
                return Err(format!("{command} -{letter} is not known to only read"));
            }
            parsed.options.push((&text[at..end], None));
        }
        Ok(false)
    }
}
