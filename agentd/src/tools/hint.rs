//! Hints: when a bash command is plainly what another tool does, its result says so, once in a session for each tool.
//!
//! "Plainly" is one command without expansions, redirections or connections to others, with operands inside the
//! workspace, whose flags the tool has an answer to. Everything else is left alone: a wrong hint costs more than none.
//! The hint is the last line of the result, so that the log tells which were given.

use proto::event::Outcome;
use proto::json::JsonText;

use super::call::BASH;
use super::{Part, ToolResult, bash};

/// Which tool would have done it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The editor's `view`.
    View,
    /// `grep`.
    Grep,
    /// `glob`.
    Glob,
}

const ALL: [Hint; 3] = [Hint::View, Hint::Grep, Hint::Glob];

impl Hint {
    /// The line for the model.
    #[must_use]
    pub fn line(self) -> &'static str {
        match self {
            Self::View => {
                "[hint: `view` of str_replace_based_edit_tool shows a file or a range of its lines, without asking the user]"
            }
            Self::Grep => "[hint: the grep tool does this without asking the user, and bounds what comes back]",
            Self::Glob => "[hint: the glob tool does this without asking the user, the last changed files first]",
        }
    }
}

/// The hint that a result ends with.
#[must_use]
pub fn given(content: &[Part]) -> Option<Hint> {
    let [Part::Text(text)] = content else { return None };
    ALL.into_iter().find(|hint| text.lines().next_back() == Some(hint.line()))
}

/// The result of a call, with the hint that it is worth.
#[must_use]
pub fn with_hint(mut result: ToolResult, tool: &str, input: &JsonText, had: &[Hint]) -> ToolResult {
    if tool != BASH || result.outcome != (Outcome::Exited { status: 0 }) {
        return result;
    }
    let Ok(bash::BashInput::Run { command }) = bash::parse(input) else { return result };
    if let ([Part::Text(text)], Some(hint)) = (result.content.as_mut_slice(), of(&command))
        && !had.contains(&hint)
    {
        text.push('\n');
        text.push_str(hint.line());
    }
    result
}

/// The tool that does what a command does.
#[must_use]
pub fn of(command: &str) -> Option<Hint> {
    let words = words(command.trim())?;
    let (name, args) = words.split_first()?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match name.as_str() {
        "cat" => is_one_file(&args, |flag| flag == "-n").then_some(Hint::View),
        "head" | "tail" => is_one_file(&without_count(&args), |_| false).then_some(Hint::View),
        "sed" => match args.as_slice() {
            ["-n", range, file] => (is_range(range) && is_inside(file)).then_some(Hint::View),
            _ => None,
        },
        "grep" => greps(&args, "rRniIlHEGcs", 2).then_some(Hint::Grep),
        "rg" if args.first() == Some(&"--files") => None,
        "rg" => greps(&args, "niIlHNcs", 1).then_some(Hint::Grep),
        "find" => finds(&args).then_some(Hint::Glob),
        _ => None,
    }
}

/// The words of a simple command; none when the shell would do anything but split and unquote it.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for sign in command.chars() {
        match (quote, sign) {
            (Some(open), sign) if sign == open => quote = None,
            (Some('"'), '$' | '`' | '\\') => return None,
            (Some(_), sign) => word.get_or_insert_default().push(sign),
            (None, '\'' | '"') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' | '\n' | '#' | '{' | '~' | '!') => {
                return None;
            }
            (None, sign) => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    if quote.is_none() { Some(words) } else { None }
}

/// Whether an operand names something that the tools reach, as far as its text tells.
fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '-']) && path.split('/').all(|part| part != "..") && !path.contains(['*', '?', '['])
}

fn is_one_file(args: &[&str], is_known: impl Fn(&str) -> bool) -> bool {
    let mut files = args.iter().filter(|arg| !is_known(arg));
    matches!((files.next(), files.next()), (Some(file), None) if is_inside(file))
}

/// The arguments of `head` or `tail` without the number of lines.
fn without_count<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match args {
        ["-n", count, rest @ ..] if is_number(count.trim_start_matches('+')) => rest.to_vec(),
        [first, rest @ ..] if first.strip_prefix("-n").or(first.strip_prefix('-')).is_some_and(is_number) => {
            rest.to_vec()
        }
        _ => args.to_vec(),
    }
}

/// `3p`, `3,9p` or `3,$p`.
fn is_range(script: &str) -> bool {
    let Some(range) = script.strip_suffix('p') else { return false };
    let (first, last) = range.split_once(',').unwrap_or((range, "1"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number(first) && (is_number(last) || last == "$")
}

/// Whether a search has only flags that the tool has an answer to, and at least so many operands.
fn greps(args: &[&str], letters: &str, operands_min: usize) -> bool {
    let mut operands = Vec::new();
    let mut is_recursive = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(flags) = arg.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            operands.push(*arg);
            continue;
        };
        if ["A", "B", "C", "g", "e"].contains(&flags) {
            if flags == "e" {
                operands.extend(args.next());
            } else {
                args.next();
            }
            continue;
        }
        is_recursive |= flags.contains(['r', 'R']);
        let is_context = flags.starts_with(['A', 'B', 'C']) && flags[1..].bytes().all(|byte| byte.is_ascii_digit());
        let is_long = ["-include=", "-glob=", "-color=", "-line-number", "-ignore-case", "-recursive"];
        let is_known = is_context
            || is_long.iter().any(|long| flags.starts_with(long))
            || flags.chars().all(|flag| letters.contains(flag));
        if !is_known {
            return false;
        }
    }
    let places = operands.get(1..).unwrap_or_default();
    operands.len() >= if is_recursive { 1 } else { operands_min } && places.iter().all(|path| is_inside(path))
}

/// `find` by name alone.
fn finds(args: &[&str]) -> bool {
    let paths = args.iter().take_while(|arg| !arg.starts_with('-'));
    let count = paths.clone().count();
    let mut named = false;
    let mut tests = &args[count..];
    loop {
        tests = match tests {
            [] => break,
            ["-name", _, rest @ ..] => {
                named = true;
                rest
            }
            ["-type", "f", rest @ ..] | ["-print", rest @ ..] => rest,
            _ => return false,
        };
    }
    named && count <= 1 && args.iter().take(count).all(|path| is_inside(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_command_is_known_and_anything_more_is_not() {
        let table: [(Option<Hint>, &[&str]); 4] = [
            (
                Some(Hint::View),
                &[
                    "cat a.rs",
                    " cat -n src/a.rs\n",
                    "head a",
                    "head -20 a",
                    "tail -n 5 a",
                    "tail -n +5 'a b'",
                    "sed -n 3,9p a",
                    "sed -n '3p' a",
                    "sed -n '3,$p' a",
                ],
            ),
            (
                Some(Hint::Grep),
                &[
                    "grep -rn foo .",
                    "grep -r foo",
                    "grep foo a.rs b.rs",
                    "rg foo",
                    "rg -i 'a|b' src",
                    "grep -rn --include=*.rs x src",
                    "grep -A3 -n x a.c",
                    "rg -g '*.rs' -C 2 x",
                ],
            ),
            (Some(Hint::Glob), &["find . -name '*.rs'", "find src -type f -name *.c", "find -name x"]),
            (
                None,
                &[
                    "",
                    "cat",
                    "cat a b",
                    "cat a | wc",
                    "cat > a",
                    "cat *.rs",
                    "cat /etc/passwd",
                    "cat ../a",
                    "cat ~/a",
                    "cat $F",
                    "cat a; ls",
                    "tail -f a",
                    "head -c 5 a",
                    "sed -n '/x/p' a",
                    "sed -i s/a/b/ f",
                    "grep foo",
                    "grep -v x a",
                    "grep -ro x .",
                    "rg --files",
                    "rg -r y x",
                    "find . -name x -delete",
                    "find . -type d -name x",
                    "find . -mtime 1",
                    "find / -name x",
                    "echo 'a",
                    "ls",
                    "grep -r x /etc",
                    "cat a # b",
                ],
            ),
        ];
        for (hint, commands) in table {
            for command in commands {
                assert_eq!(of(command), hint, "{command}");
            }
        }
    }

    #[test]
    fn a_hint_is_given_once_and_known_by_the_result() {
        let input = JsonText::from_value(&serde_json::json!({ "command": "cat a" }));
        let result = |text: &str, status| ToolResult {
            content: vec![Part::Text(text.to_owned())],
            is_error: false,
            outcome: Outcome::Exited { status },
            diff: None,
        };
        let hinted = with_hint(result("x\n", 0), BASH, &input, &[]);
        assert_eq!(hinted.content, [Part::Text(format!("x\n\n{}", Hint::View.line()))]);
        assert_eq!(given(&hinted.content), Some(Hint::View));
        for unhinted in [
            with_hint(result("x\n", 0), BASH, &input, &[Hint::View]),
            with_hint(result("x\n", 0), "other", &input, &[]),
            with_hint(result("x\n", 1), BASH, &input, &[]),
        ] {
            assert_eq!(unhinted.content, [Part::Text("x\n".to_owned())]);
            assert_eq!(given(&unhinted.content), None);
        }
    }
}
