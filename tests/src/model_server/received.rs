//! A request as the model server received it.

use std::time::Instant;

use serde_json::Value;

/// One request to `/v1/messages`.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its number on this server, from 1.
    pub number: usize,
    /// Path and query.
    pub target: String,
    /// Headers, names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body's exact bytes.
    pub body: Vec<u8>,
    /// The body as JSON; lone surrogates are shown as U+FFFD.
    pub json: Value,
    /// When it had arrived whole.
    pub at: Instant,
}

/// A tool result as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call it answers.
    pub tool_use_id: String,
    /// Its text.
    pub text: String,
    /// Whether it tells of a failure.
    pub is_error: bool,
}

impl Received {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.json["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The text of the first message: tests name their session by it.
    #[must_use]
    pub fn first_prompt(&self) -> String {
        self.messages().first().map(|message| texts(&message["content"]).join("\n")).unwrap_or_default()
    }

    /// The text blocks of the last message.
    #[must_use]
    pub fn last_text(&self) -> String {
        self.messages().last().map(|message| texts(&message["content"]).join("\n")).unwrap_or_default()
    }

    /// How many replies the history holds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.messages().iter().filter(|message| message["role"] == "assistant").count()
    }

    /// The results in the last message, in their order.
    #[must_use]
    pub fn results(&self) -> Vec<ToolResult> {
        let blocks = self.messages().last().and_then(|message| message["content"].as_array());
        let results = blocks.into_iter().flatten().filter(|block| block["type"] == "tool_result");
        results
            .map(|block| ToolResult {
                tool_use_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
                text: texts(&block["content"]).join("\n"),
                is_error: block["is_error"].as_bool().unwrap_or(false),
            })
            .collect()
    }
}

fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// Reads JSON that may hold lone surrogates in its strings, which `serde_json` refuses.
pub(super) fn lenient(body: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(body)
        .or_else(|_| serde_json::from_str(&without_lone_surrogates(&String::from_utf8_lossy(body))))
}

fn without_lone_surrogates(text: &str) -> String {
    let pattern = regex::Regex::new(r"(?i)\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\ud[89a-f][0-9a-f]{2}")
        .expect("a valid pattern");
    let replace = |found: &regex::Captures<'_>| match found[0].len() {
        6 => "\\ufffd".to_owned(),
        _ => found[0].to_owned(),
    };
    pattern.replace_all(text, replace).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_becomes_a_replacement_and_a_pair_stays() {
        let value = lenient(br#"{"a":"x\ud800y","b":"\ud83d\ude00","c":"\\ud800"}"#).expect("read");
        assert_eq!(value["a"], "x\u{fffd}y");
        assert_eq!(value["b"], "😀");
        assert_eq!(value["c"], "\\ud800");
    }
}
