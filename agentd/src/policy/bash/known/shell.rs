//! Builtins of bash.

use super::super::parse::is_name;
use super::super::value::Value;
use super::super::variable::{Hurts, hurts};
use super::{Proof, Surroundings};
use crate::policy::words::listed;

/// Builtins that change the shell, run text, or control jobs.
const CHANGING: &str = "\
    . source eval exec trap export declare typeset local readonly unset set shopt enable hash bind unalias history fc \
    complete compgen compopt let mapfile readarray getopts exit logout return shift pushd popd fg bg disown kill suspend \
    caller";

/// The proof for a builtin with rules of its own; `None` when the name is not one.
pub(super) fn read_only(name: &str, arguments: &[Value], around: &Surroundings<'_>) -> Option<Proof> {
    let none = arguments.is_empty();
    Some(match name {
        ":" => Ok(()),
        "test" => test(arguments),
        "[" => match arguments.split_last() {
            Some((Value::Known(end), operands)) if end == "]" => test(operands),
            Some(_) | None => Err("`[` does not end in `]`".to_owned()),
        },
        "printf" => printf(arguments),
        "type" | "help" => Ok(()),
        "break" | "continue" => loop_control(name, arguments),
        "read" => read(arguments, around),
        "jobs" | "dirs" | "times" | "umask" | "alias" if none => Ok(()),
        "wait" if none => Ok(()),
        "ulimit" if matches!(arguments, [Value::Known(only)] if only == "-a") => Ok(()),
        "cd" => return None,
        "jobs" | "dirs" | "times" | "umask" | "alias" | "wait" | "ulimit" => {
            Err(format!("{name} with these arguments changes the shell"))
        }
        _ if listed(CHANGING, name) => Err(format!("`{name}` may change the shell or run anything")),
        _ => return None,
    })
}

/// Operators of `test` with one operand that only look; `-v` and `-R` expand an index, which can run a command.
const UNARY: &str = "-a -b -c -d -e -f -g -G -h -k -L -n -N -o -O -p -r -s -S -t -u -w -x -z !";

const BINARY: &str = "= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef";

fn test(arguments: &[Value]) -> Proof {
    let known = |value: &Value, operators: &str| value.known().is_some_and(|text| listed(operators, text));
    let arguments = match arguments {
        [first, rest @ ..] if known(first, "!") => rest,
        all => all,
    };
    let expands = arguments.iter().any(|a| known(a, "-v -R"));
    let single = arguments.iter().all(Value::single);
    let literal = arguments.iter().all(|a| a.known().is_some());
    let fits = match arguments {
        _ if expands || !single => false,
        [] | [_] => true,
        [operator, _] => known(operator, UNARY),
        [_, operator, _] => known(operator, BINARY),
        _ => literal,
    };
    if fits { Ok(()) } else { Err("a test whose operators are not visible can run a command".to_owned()) }
}

/// `[[ … ]]`: operators are words of the text, but arithmetic and `-v` evaluate their operands.
pub(in crate::policy) fn condition(words: &[Value]) -> Proof {
    const EVALUATING: &str = "-v -R -eq -ne -lt -le -gt -ge";
    let number =
        |value: Option<&Value>| value.is_some_and(|v| v.known().unwrap_or("x").bytes().all(|c| c.is_ascii_digit()));
    for (index, word) in words.iter().enumerate() {
        let Some(operator) = word.known().filter(|word| listed(EVALUATING, word)) else { continue };
        let before = index.checked_sub(1).and_then(|i| words.get(i));
        if matches!(operator, "-v" | "-R") || !number(before) || !number(words.get(index + 1)) {
            return Err(format!("`[[ {operator} ]]` evaluates its operands"));
        }
    }
    Ok(())
}

/// `printf` reads no file and writes none, but `-v` assigns a variable.
fn printf(arguments: &[Value]) -> Proof {
    match arguments.first() {
        Some(first)
            if first.known().is_some_and(|f| f.starts_with("-v"))
                || first.known().is_none() && first.maybe_option() =>
        {
            Err("`printf -v` assigns a variable".to_owned())
        }
        Some(_) | None => Ok(()),
    }
}

fn loop_control(name: &str, arguments: &[Value]) -> Proof {
    match arguments {
        [] => Ok(()),
        [Value::Known(n)] if n.bytes().all(|c| c.is_ascii_digit()) => Ok(()),
        _ => Err(format!("the argument of `{name}` is evaluated")),
    }
}

/// `read` into plain variables.
fn read(arguments: &[Value], around: &Surroundings<'_>) -> Proof {
    if around.context.shell.attributes() {
        return Err("a variable of this shell evaluates what is assigned to it".to_owned());
    }
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.known().ok_or("the variable that `read` assigns is not known")?;
        match text {
            "-r" | "-s" => {}
            "-d" | "-n" | "-N" | "-t" | "-p" | "-rd" | "-rn" | "-rp" => {
                arguments.next().filter(|value| value.known().is_some()).ok_or("an argument of `read` is not known")?;
            }
            name => harmless_variable(name)?,
        }
    }
    Ok(())
}

/// A variable of the script's own: lower case by convention, and nobody's configuration.
pub(in crate::policy) fn harmless_variable(name: &str) -> Proof {
    let own = is_name(name)
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
        && !name.ends_with("_proxy")
        && !name.starts_with("npm_")
        && !matches!(name, "histchars" | "auto_resume" | "_")
        && hurts(name) == Hurts::Nothing;
    if own { Ok(()) } else { Err(format!("assigning {name} may change what other commands do")) }
}
