//! The tool's input, parameter by parameter. Each refusal names the parameter and says what would be right.
//!
//! Unknown parameters are ignored: models add descriptions of their own. They never change what a command does.

use proto::shim::files::LineRange;
use serde_json::{Map, Value};

use super::EditorInput;

const COMMANDS: &str = "`view`, `create`, `str_replace` and `insert`";

pub(super) fn parse(text: &str) -> Result<EditorInput, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!("The input is not valid JSON text ({error}). Nothing was done. Every string must be valid Unicode.")
    })?;
    let Value::Object(input) = value else {
        return Err(format!("The input must be a JSON object with `command` and `path`; the commands are {COMMANDS}."));
    };
    let command = text_of(&input, "command")
        .ok_or_else(|| format!("The parameter `command` is missing or not a string; the commands are {COMMANDS}."))?;
    match command {
        "view" => Ok(EditorInput::View { path: path(&input)?, range: range(&input)? }),
        "create" => Ok(EditorInput::Create {
            path: path(&input)?,
            text: required(&input, "file_text", "the file's whole content")?,
        }),
        "str_replace" => Ok(EditorInput::StrReplace {
            path: path(&input)?,
            old: required(&input, "old_str", "the exact text to replace")?,
            new: optional(&input, "new_str")?.unwrap_or_default(),
        }),
        "insert" => Ok(EditorInput::Insert { path: path(&input)?, line: line(&input)?, text: inserted(&input)? }),
        "undo_edit" => Err(format!(
            "There is no command `undo_edit`; the commands are {COMMANDS}. To take an edit back, make the opposite edit."
        )),
        other => Err(format!("There is no command `{other}`; the commands are {COMMANDS}.")),
    }
}

/// A parameter that is there; `null` means absent.
fn present<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    input.get(name).filter(|value| !value.is_null())
}

fn text_of<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    present(input, name).and_then(Value::as_str)
}

fn optional(input: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match present(input, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("The parameter `{name}` must be a string, not {}.", kind(other))),
    }
}

fn required(input: &Map<String, Value>, name: &str, meaning: &str) -> Result<String, String> {
    optional(input, name)?.ok_or_else(|| format!("The parameter `{name}` is missing: {meaning}, as a string."))
}

fn path(input: &Map<String, Value>) -> Result<String, String> {
    required(input, "path", "the file or directory, relative to the working directory or absolute inside it")
}

fn inserted(input: &Map<String, Value>) -> Result<String, String> {
    if let Some(text) = optional(input, "insert_text")? {
        return Ok(text);
    }
    // The name that older versions of the tool had.
    let text = optional(input, "new_str")?;
    text.ok_or_else(|| "The parameter `insert_text` is missing: the lines to insert, as a string.".to_owned())
}

fn line(input: &Map<String, Value>) -> Result<i64, String> {
    const MEANING: &str = "the number of the line after which the text goes, 0 for the start of the file";
    let value = present(input, "insert_line");
    let value = value.ok_or_else(|| format!("The parameter `insert_line` is missing: {MEANING}."))?;
    integer(value).ok_or_else(|| format!("The parameter `insert_line` must be an integer: {MEANING}."))
}

fn range(input: &Map<String, Value>) -> Result<Option<LineRange>, String> {
    let Some(value) = present(input, "view_range") else { return Ok(None) };
    let numbers: Option<Vec<i64>> = value.as_array().and_then(|values| values.iter().map(integer).collect());
    match numbers.as_deref() {
        Some([first, last]) => Ok(Some(LineRange { first: *first, last: *last })),
        _ => {
            Err("The parameter `view_range` must be two integers [first, last]: line numbers from 1, both inclusive, \
                  last = -1 for the end of the file."
                .to_owned())
        }
    }
}

/// An integer; one beyond 64 bits is as good as the largest.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
