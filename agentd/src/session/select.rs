//! What people type, checked: selectors of sessions, names, workspaces, scenarios.

use std::path::Path;

use proto::response::{ErrorCode, WireError};

use crate::model::scripted;

/// Longest session name, in characters: one column of a list.
const NAME_CHARS_MAX: usize = 64;

/// Largest scenario file, in bytes: it is stored with the session.
const SCENARIO_BYTES_MAX: u64 = 1024 * 1024;

/// Whether what a person typed means this id: the whole of it, or at least its last four digits.
pub(super) fn id_fits(id: &str, selector: &str) -> bool {
    const DIGITS_MIN: usize = 4;
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    let typed = selector.to_ascii_lowercase();
    let typed: String = typed.chars().filter(|c| *c != '-').collect();
    typed.len() >= DIGITS_MIN && typed.chars().all(|c| c.is_ascii_hexdigit()) && digits.ends_with(&typed)
}

pub(super) fn check_workspace(cwd: &str) -> Result<(), WireError> {
    if !Path::new(cwd).is_absolute() {
        return Err(bad(format!("the workspace `{cwd}` is not an absolute path"), "give the path from / on"));
    }
    match std::fs::metadata(cwd) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(bad(format!("the workspace {cwd} is not a directory"), "start agentctl in a directory")),
        Err(error) => Err(bad(
            format!("the workspace {cwd} cannot be used: {error}"),
            "start agentctl in a directory that exists",
        )),
    }
}

/// A name a person can type and that is never taken for an id.
pub(crate) fn check_name(name: &str) -> Result<(), WireError> {
    let fine = !name.is_empty()
        && name.chars().count() <= NAME_CHARS_MAX
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && !name.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if fine {
        return Ok(());
    }
    Err(bad(
        format!("`{name}` cannot be a session's name"),
        "use letters, digits, `-`, `_` and `.`, at most 64, and not hex digits alone",
    ))
}

pub(super) fn scenario_text(name: &str) -> Result<String, WireError> {
    if let Some(text) = scripted::builtin(name) {
        return Ok(text.to_owned());
    }
    let path = Path::new(name);
    if !path.is_absolute() {
        return Err(not_found(
            &format!("no scenario `{name}` is built in"),
            "give `demo` or the path of a scenario file",
        ));
    }
    let cannot = |reason: String| bad(format!("the scenario {name} cannot be read: {reason}"), "check the path");
    let meta = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?;
    if meta.len() > SCENARIO_BYTES_MAX {
        return Err(cannot(format!("it is over {SCENARIO_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    scripted::Player::parse(&text).map_err(|error| cannot(error.to_string()))?;
    Ok(text)
}

pub(super) fn bad(message: String, hint: &str) -> WireError {
    WireError { code: ErrorCode::BadRequest, message, hint: hint.into() }
}

pub(super) fn not_found(message: &str, hint: &str) -> WireError {
    WireError { code: ErrorCode::NotFound, message: message.into(), hint: hint.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digits_of_an_id_select_it() {
        let id = "0193a5b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b";
        for typed in ["4a5b", "2e3f4a5b", "0C1D2E3F4A5B", id] {
            assert!(id_fits(id, typed), "{typed}");
        }
        for typed in ["a5b", "ffff", "demo", ""] {
            assert!(!id_fits(id, typed), "{typed}");
        }
    }

    #[test]
    fn a_name_is_never_taken_for_an_id() {
        for name in ["demo", "fix-parser", "größe.2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "beef", "a b", "x/y", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
