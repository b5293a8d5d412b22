//! The shell's environment, for the user to look at: what it told of its exported variables, without secrets.

use proto::shim::jobs::ShellEnv;
use proto::shim::start::Start;

use crate::start::{is_secret, shell_env};

/// What may be shown. `told` is the shell's own word ([`crate::script::Script::snapshot`]); without it, what it started with.
pub(crate) fn shown(start: &Start, told: Option<&str>) -> ShellEnv {
    let mut variables = told.map_or_else(|| shell_env(start), exported);
    let mut removed: Vec<String> = variables.iter().map(|(name, _)| name.clone()).collect();
    removed.extend(start.env.0.iter().map(|(name, _)| name.clone()));
    removed.retain(|name| is_secret(name, &start.secret_names));
    removed.sort();
    removed.dedup();
    variables.retain(|(name, _)| !is_secret(name, &start.secret_names) && name != crate::marks::VARIABLE);
    variables.sort();
    ShellEnv { variables, removed }
}

/// The variables in what `declare -px` printed, up to the first line that is something else.
fn exported(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.strip_prefix("umask").and_then(|rest| rest.split_once('\n')).map_or(text, |(_, rest)| rest);
    while let Some(line) = rest.strip_prefix("declare -") {
        let Some((_, line)) = line.split_once(' ') else { break };
        let end = line.find(['=', '\n']).unwrap_or(line.len());
        let (name, value) = line.split_at(end);
        // A variable without a value is not in the environment, and an array cannot be.
        let (value, after) = value.strip_prefix('=').map_or((None, value), unquoted);
        found.extend(value.map(|value| (name.to_owned(), value)));
        let Some((_, next)) = after.split_once('\n') else { break };
        rest = next;
    }
    found
}

/// The value at the start of a text, as bash quotes it, and what follows.
fn unquoted(text: &str) -> (Option<String>, &str) {
    if let Some(text) = text.strip_prefix('"') {
        let mut value = String::new();
        let mut signs = text.char_indices();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '"' => return (Some(value), &text[at + 1..]),
                '\\' => value.extend(signs.next().map(|(_, sign)| sign)),
                sign => value.push(sign),
            }
        }
        return (None, "");
    }
    if let Some(text) = text.strip_prefix("$'") {
        let mut bytes = Vec::new();
        let mut signs = text.char_indices();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\'' => return (Some(String::from_utf8_lossy(&bytes).into_owned()), &text[at + 1..]),
                '\\' => escape(&mut signs, &mut bytes),
                sign => bytes.extend_from_slice(sign.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
    (None, text)
}

/// One escape of `$'…'`, as `declare` writes them: a letter, or three octal digits.
fn escape(signs: &mut std::str::CharIndices<'_>, bytes: &mut Vec<u8>) {
    let Some((_, sign)) = signs.next() else { return };
    let byte = match sign {
        'a' => 7,
        'b' => 8,
        'E' | 'e' => 27,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '0'..='7' => {
            let mut number = u32::from(sign) - u32::from('0');
            for _ in 0..2 {
                let digit = signs.clone().next().and_then(|(_, sign)| sign.to_digit(8));
                let Some(digit) = digit else { break };
                signs.next();
                number = number * 8 + digit;
            }
            u8::try_from(number & 0xFF).unwrap_or(b'?')
        }
        other => {
            bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
            return;
        }
    };
    bytes.push(byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_the_shell_quotes_them() {
        let text = "umask 0022\ndeclare -x A=\"one\"\ndeclare -x B=\"two\nlines \\\"q\\\" \\$x \\\\\"\ndeclare -x C\n\
                    declare -ax D=([0]=\"1\")\ndeclare -rx E=$'tab\\there \\001\\'\\303\\251'\ndeclare -x F=\"\"\nf () \n{ \n}\n";
        let pairs = exported(text);
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [("A", "one"), ("B", "two\nlines \"q\" $x \\"), ("E", "tab\there \u{1}'é"), ("F", "")];
        assert_eq!(pairs, expected);
    }
}
