//! A scripted reply as the stream events that a server would send for it. Pure.

use serde_json::{Value, json};

use super::scenario::{ScriptedCall, ScriptedReply};
use super::{Conversation, Role};

/// One event of the script.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) event: Value,
    /// It carries a piece of the reply: delays and faults count these.
    pub(super) is_piece: bool,
}

/// The events of a reply at a position of the conversation.
pub(super) fn steps(reply: &ScriptedReply, position: usize, conversation: &Conversation, refuses: bool) -> Vec<Step> {
    let usage = reply.usage;
    let mut script = Script { steps: Vec::new(), piece: reply.piece.max(1), blocks: 0 };
    script.event(json!({"type": "message_start", "message": {
        "id": format!("msg_scripted_{position}"), "type": "message", "role": "assistant", "model": conversation.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read, "output_tokens": 0,
        },
    }}));
    if let Some(thinking) = &reply.thinking {
        let start = json!({"type": "thinking", "thinking": "", "signature": ""});
        let delta = |piece: &str| json!({"type": "thinking_delta", "thinking": piece});
        script.block(start, &fill(thinking, conversation), delta);
    }
    if let Some(text) = &reply.text {
        let start = json!({"type": "text", "text": ""});
        script.block(start, &fill(text, conversation), |piece| json!({"type": "text_delta", "text": piece}));
    }
    for (number, call) in reply.calls.iter().enumerate() {
        let id = format!("toolu_scripted_{position}_{number}");
        let start = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
        let delta = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
        script.block(start, &input_of(call, conversation), delta);
    }
    let stop = match &reply.stop {
        _ if refuses => "refusal",
        Some(stop) => stop,
        None if reply.calls.is_empty() => "end_turn",
        None => "tool_use",
    };
    let mut delta = json!({"stop_reason": stop, "stop_sequence": null});
    if stop == "refusal" {
        delta["stop_details"] =
            json!({"type": "refusal", "category": "general_harms", "explanation": "The scenario refuses."});
    }
    script.event(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}}));
    script.event(json!({"type": "message_stop"}));
    script.steps
}

struct Script {
    steps: Vec<Step>,
    piece: usize,
    blocks: u32,
}

impl Script {
    fn event(&mut self, event: Value) {
        self.steps.push(Step { event, is_piece: false });
    }

    fn block(&mut self, start: Value, content: &str, delta: impl Fn(&str) -> Value) {
        let index = self.blocks;
        self.blocks += 1;
        self.event(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let mut rest = content;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(self.piece).map_or(rest.len(), |(at, _)| at);
            let (piece, later) = rest.split_at(end);
            rest = later;
            let event = json!({"type": "content_block_delta", "index": index, "delta": delta(piece)});
            self.steps.push(Step { event, is_piece: true });
        }
        self.event(json!({"type": "content_block_stop", "index": index}));
    }
}

fn input_of(call: &ScriptedCall, conversation: &Conversation) -> String {
    if let Some(raw) = &call.raw_input {
        return raw.clone();
    }
    let mut input = serde_json::to_value(&call.input).unwrap_or(Value::Null);
    fill_all(&mut input, conversation);
    input.to_string()
}

fn fill_all(value: &mut Value, conversation: &Conversation) {
    match value {
        Value::String(text) => *text = fill(text, conversation),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_all(item, conversation)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill_all(field, conversation)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Puts the newest prompt and tool result in the place of `{prompt}` and `{result}`.
fn fill(text: &str, conversation: &Conversation) -> String {
    let newest = |kind: &str| {
        let users = conversation.messages.iter().rev().filter(|message| message.role == Role::User);
        let blocks = users.flat_map(|message| message.content.iter().rev().map(|block| block.to_value()));
        blocks.filter(|block| block["type"] == kind).map(|block| words(&block)).next().unwrap_or_default()
    };
    let mut filled = text.to_owned();
    for (name, kind) in [("{prompt}", "text"), ("{result}", "tool_result")] {
        if filled.contains(name) {
            filled = filled.replace(name, newest(kind).trim_end());
        }
    }
    filled
}

/// The text of a block, whatever form its content has.
fn words(block: &Value) -> String {
    match (&block["text"], &block["content"]) {
        (Value::String(text), _) | (_, Value::String(text)) => text.clone(),
        (_, Value::Array(parts)) => parts.iter().map(words).collect(),
        _ => String::new(),
    }
}
