//! Assignments in front of a command that change nothing but how its output looks.

use super::super::value::Value;
use super::Proof;

/// Proves that `NAME=value command` is as harmless as `command`.
pub(in crate::policy) fn harmless(name: &str, value: &Value) -> Proof {
    let refuse = || Err(format!("setting {name} for a command may change what it does"));
    let Some(text) = value.known() else { return refuse() };
    let plain = text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-,:@=".contains(&c));
    let fits = match name {
        "NO_COLOR"
        | "CLICOLOR"
        | "CLICOLOR_FORCE"
        | "FORCE_COLOR"
        | "CI"
        | "COLUMNS"
        | "LINES"
        | "RUST_BACKTRACE"
        | "RUST_LOG"
        | "NODE_ENV"
        | "PYTHONUNBUFFERED"
        | "PYTHONDONTWRITEBYTECODE"
        | "DEBIAN_FRONTEND"
        | "LANG"
        | "LANGUAGE"
        | "TERM"
        | "GIT_OPTIONAL_LOCKS"
        | "GIT_TERMINAL_PROMPT" => plain,
        "LC_ALL" | "LC_COLLATE" | "LC_CTYPE" | "LC_MESSAGES" | "LC_NUMERIC" | "LC_TIME" => plain,
        // A leading slash or colon, or dots, would name a file.
        "TZ" => {
            !text.starts_with(['/', ':'])
                && !text.contains("..")
                && text.bytes().all(|c| c == b'/' || c.is_ascii_alphanumeric() || b"_+-".contains(&c))
        }
        "GIT_PAGER" | "PAGER" | "MANPAGER" => matches!(text, "" | "cat"),
        _ => false,
    };
    if fits { Ok(()) } else { refuse() }
}
