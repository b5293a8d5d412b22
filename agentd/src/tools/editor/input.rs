//! The tool's input, parameter by parameter. Each refusal names the parameter and says what would be right.
//!
//! Unknown parameters are ignored: models add descriptions of their own. They never change what a command does.

use proto::shim::files::LineRange;
use serde_json::{Map, Value};

use super::EditorInput;
use crate::tools::params::{integer, object, optional, present, required, text_of};

const COMMANDS: &str = "`view`, `create`, `str_replace` and `insert`";

pub(super) fn parse(text: &str) -> Result<EditorInput, String> {
    let input = object(text, || format!("`command` and `path`; the commands are {COMMANDS}"))?;
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
