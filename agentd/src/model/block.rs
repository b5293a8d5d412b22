//! One block of a reply while it is written. Pure.
//!
//! Invariant: a block that no delta touched goes back byte for byte; a touched one differs only in the values that its
//! deltas built. A delta whose kind does not fit its block changes nothing.

use proto::json::JsonText;
use serde_json::value::RawValue;

use super::object::{Object, one_line};
use super::stream::Delta;
use super::{BlockKind, ReplyBlock, ToolInput, ToolUse};

/// A block that has begun.
#[derive(Debug)]
pub(super) struct OpenBlock {
    fields: Object,
    /// The start's own JSON, for a block that stays as it came.
    text: String,
    body: Body,
    touched: bool,
}

/// What grows.
#[derive(Debug)]
enum Body {
    Text {
        text: String,
        citations: Vec<String>,
    },
    Thinking {
        thinking: String,
        signature: Option<String>,
    },
    Input {
        call: Call,
        json: String,
    },
    Compaction,
    /// Nothing: it came whole, or its deltas are not known.
    Whole,
}

/// Whose tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Ours,
    Servers,
}

impl OpenBlock {
    /// A block from its `content_block_start`.
    pub(super) fn new(fields: Object, text: String) -> Self {
        let kind = fields.text("type");
        let body = match kind.as_str() {
            "text" => Body::Text { text: fields.text("text"), citations: Vec::new() },
            "thinking" => Body::Thinking { thinking: fields.text("thinking"), signature: None },
            "tool_use" => Body::Input { call: Call::Ours, json: String::new() },
            "compaction" => Body::Compaction,
            server if server.ends_with("tool_use") => Body::Input { call: Call::Servers, json: String::new() },
            _ => Body::Whole,
        };
        Self { fields, text, body, touched: false }
    }

    /// The model that answers from here on, when this block says so.
    pub(super) fn fallback_model(&self) -> Option<String> {
        if self.fields.text("type") != "fallback" {
            return None;
        }
        let to: Object = self.fields.read("to")?;
        to.read("model")
    }

    /// What it is so far; a tool call's input is still empty.
    pub(super) fn kind(&self) -> BlockKind {
        match &self.body {
            Body::Text { text, .. } => BlockKind::Text(text.clone()),
            Body::Thinking { thinking, .. } => BlockKind::Thinking(thinking.clone()),
            Body::Input { call: Call::Ours, .. } => {
                BlockKind::ToolUse(self.tool_use(ToolInput::Valid(JsonText::from_value(&serde_json::json!({})))))
            }
            Body::Input { call: Call::Servers, .. } | Body::Compaction | Body::Whole => self.other(),
        }
    }

    /// Takes a delta. The answer is the text that is now shown in addition.
    pub(super) fn grow(&mut self, delta: Delta) -> Option<String> {
        match (&mut self.body, delta) {
            (Body::Text { text, .. }, Delta::Text(more)) => {
                text.push_str(&more);
                self.touched = true;
                Some(more)
            }
            (Body::Thinking { thinking, .. }, Delta::Thinking(more)) => {
                thinking.push_str(&more);
                self.touched = true;
                Some(more)
            }
            (Body::Text { citations, .. }, Delta::Citation(citation)) => {
                citations.push(citation);
                self.touched = true;
                None
            }
            (Body::Thinking { signature, .. }, Delta::Signature(new)) => {
                *signature = Some(new);
                self.touched = true;
                None
            }
            (Body::Input { json, .. }, Delta::InputJson(more)) => {
                json.push_str(&more);
                None
            }
            (Body::Compaction, Delta::Compaction { content, encrypted_content }) => {
                for (key, value) in [("content", content), ("encrypted_content", encrypted_content)] {
                    if let Some(value) = value.and_then(|value| RawValue::from_string(value).ok()) {
                        self.fields.set(key, value);
                    }
                }
                self.touched = true;
                None
            }
            (
                Body::Text { .. } | Body::Thinking { .. } | Body::Input { .. } | Body::Compaction | Body::Whole,
                Delta::Text(_)
                | Delta::Thinking(_)
                | Delta::Signature(_)
                | Delta::InputJson(_)
                | Delta::Citation(_)
                | Delta::Compaction { .. }
                | Delta::Unknown,
            ) => None,
        }
    }

    /// The finished block.
    pub(super) fn finish(mut self) -> ReplyBlock {
        match std::mem::replace(&mut self.body, Body::Whole) {
            Body::Text { text, citations } => {
                self.fields.set_text("text", &text);
                self.add_citations(&citations);
                ReplyBlock { raw: self.raw(), kind: BlockKind::Text(text) }
            }
            Body::Thinking { thinking, signature } => {
                self.fields.set_text("thinking", &thinking);
                if let Some(signature) = signature {
                    self.fields.set_text("signature", &signature);
                }
                ReplyBlock { raw: self.raw(), kind: BlockKind::Thinking(thinking) }
            }
            Body::Input { call, json } => self.finish_input(call, &json),
            Body::Compaction | Body::Whole => ReplyBlock { kind: self.other(), raw: self.raw() },
        }
    }

    fn finish_input(mut self, call: Call, json: &str) -> ReplyBlock {
        let empty = JsonText::from_value(&serde_json::json!({}));
        let input = if json.trim().is_empty() {
            // Servers that do not stream inputs send them whole with the start, or leave them out.
            let whole = self.fields.get("input").map(RawValue::get).unwrap_or("{}");
            strict_input(whole)
        } else {
            strict_input(json)
        };
        let text = match &input {
            ToolInput::Valid(text) => text,
            ToolInput::Broken(_) => &empty,
        };
        let unchanged = self.fields.get("input").map(RawValue::get) == Some(text.as_str());
        if !unchanged && let Ok(raw) = RawValue::from_string(text.as_str().to_owned()) {
            self.fields.set("input", raw);
            self.touched = true;
        }
        match call {
            Call::Ours => {
                let kind = BlockKind::ToolUse(self.tool_use(input));
                ReplyBlock { raw: self.raw(), kind }
            }
            Call::Servers => ReplyBlock { kind: self.other(), raw: self.raw() },
        }
    }

    fn add_citations(&mut self, citations: &[String]) {
        if citations.is_empty() {
            return;
        }
        let mut all: Vec<Box<RawValue>> = self.fields.read("citations").unwrap_or_default();
        all.extend(citations.iter().filter_map(|citation| RawValue::from_string(citation.clone()).ok()));
        if let Ok(list) = serde_json::value::to_raw_value(&all) {
            self.fields.set("citations", list);
        }
    }

    fn raw(&self) -> JsonText {
        let as_it_came = if self.touched { None } else { one_line(&self.text) };
        as_it_came.unwrap_or_else(|| self.fields.to_json())
    }

    fn tool_use(&self, input: ToolInput) -> ToolUse {
        ToolUse { id: self.fields.text("id"), name: self.fields.text("name"), input }
    }

    fn other(&self) -> BlockKind {
        match self.fields.text("type") {
            kind if kind == "redacted_thinking" => BlockKind::Thinking(String::new()),
            kind => BlockKind::Other(kind),
        }
    }
}

/// Reads a tool input strictly: exactly one JSON object, every string of which can be read. Anything else would run
/// something that the model did not write.
fn strict_input(json: &str) -> ToolInput {
    let object: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(json);
    match object.ok().and_then(|_| one_line(json)) {
        Some(text) => ToolInput::Valid(text),
        None => ToolInput::Broken(json.to_owned()),
    }
}
