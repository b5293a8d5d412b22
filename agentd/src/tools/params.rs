//! A tool's input, parameter by parameter. Each refusal names the parameter and says what would be right.

use serde_json::{Map, Value};

/// The input as an object; `wanted` says what belongs into it.
pub(super) fn object(text: &str, wanted: impl FnOnce() -> String) -> Result<Map<String, Value>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!("The input is not valid JSON text ({error}). Nothing was done. Every string must be valid Unicode.")
    })?;
    match value {
        Value::Object(input) => Ok(input),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(format!("The input must be a JSON object with {}.", wanted()))
        }
    }
}

/// True or false; absent is false.
pub(super) fn flag(input: &Map<String, Value>, name: &str) -> Result<bool, String> {
    match present(input, name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(format!("The parameter `{name}` must be true or false, not {}.", kind(other))),
    }
}

/// A number from 0 on that may lack; `meaning` says what it is.
pub(super) fn number(input: &Map<String, Value>, name: &str, meaning: &str) -> Result<Option<u64>, String> {
    let Some(value) = present(input, name) else { return Ok(None) };
    match integer(value).and_then(|number| u64::try_from(number).ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(format!("The parameter `{name}` must be an integer from 0 on: {meaning}.")),
    }
}

/// A parameter that is there; `null` means absent.
pub(super) fn present<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    input.get(name).filter(|value| !value.is_null())
}

/// A parameter that is a string.
pub(super) fn text_of<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    present(input, name).and_then(Value::as_str)
}

/// A string that may lack.
pub(super) fn optional(input: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match present(input, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("The parameter `{name}` must be a string, not {}.", kind(other))),
    }
}

/// A string that must be there; `meaning` says what it is.
pub(super) fn required(input: &Map<String, Value>, name: &str, meaning: &str) -> Result<String, String> {
    optional(input, name)?.ok_or_else(|| format!("The parameter `{name}` is missing: {meaning}, as a string."))
}

/// An integer; one beyond 64 bits is as good as the largest.
pub(super) fn integer(value: &Value) -> Option<i64> {
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
