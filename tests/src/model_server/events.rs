//! A message as the stream of events that the API sends.

use serde_json::{Value, json};

use super::reply::{Block, Message, SIGNATURE};

/// Pieces of a block's text or input are this long, so that a short reply has several deltas.
pub(super) const PIECE_BYTES: usize = 12;

/// Blocks over this size come in big pieces: a megabyte in twelve-byte deltas is a test of patience only.
const BIG_BLOCK_BYTES: usize = 4096;

/// Size of big pieces.
const BIG_PIECE_BYTES: usize = 16 * 1024;

impl Message {
    /// The events of the stream, each whole with its empty line.
    pub(super) fn events(&self, id: &str, model: &str) -> Vec<Vec<u8>> {
        let mut start = self.to_value(id, model);
        start["content"] = json!([]);
        start["stop_reason"] = Value::Null;
        start["stop_details"] = Value::Null;
        start["usage"]["output_tokens"] = json!(1);
        let mut events = vec![event("message_start", &json!({ "message": start })), event("ping", &json!({}))];
        for (index, block) in self.blocks.iter().enumerate() {
            block_events(&mut events, index, block);
        }
        if let Some(error) = &self.error {
            events.push(event("error", error));
            return events;
        }
        let delta = json!({ "stop_reason": self.stop, "stop_sequence": null, "stop_details": self.stop_details });
        let usage = json!({ "output_tokens": self.output_tokens() });
        events.push(event("message_delta", &json!({ "delta": delta, "usage": usage })));
        events.push(event("message_stop", &json!({})));
        events
    }
}

fn block_events(events: &mut Vec<Vec<u8>>, index: usize, block: &Block) {
    let empty = match block {
        Block::Text(_) => json!({ "type": "text", "text": "" }),
        Block::Thinking(_) => json!({ "type": "thinking", "thinking": "", "signature": "" }),
        Block::ToolUse { id, name, .. } => json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
        Block::Other(value) => value.clone(),
    };
    events.push(event("content_block_start", &json!({ "index": index, "content_block": empty })));
    let mut delta =
        |delta: Value| events.push(event("content_block_delta", &json!({ "index": index, "delta": delta })));
    match block {
        Block::Text(text) => cut(text).for_each(|text| delta(json!({ "type": "text_delta", "text": text }))),
        Block::Thinking(text) => {
            cut(text).for_each(|text| delta(json!({ "type": "thinking_delta", "thinking": text })));
            delta(json!({ "type": "signature_delta", "signature": SIGNATURE }));
        }
        Block::ToolUse { input, .. } => {
            delta(json!({ "type": "input_json_delta", "partial_json": "" }));
            cut(input).for_each(|json| delta(json!({ "type": "input_json_delta", "partial_json": json })));
        }
        Block::Other(_) => {}
    }
    events.push(event("content_block_stop", &json!({ "index": index })));
}

/// One event in the SSE form, with `type` first in its data.
fn event(name: &str, fields: &Value) -> Vec<u8> {
    let mut data = json!({ "type": name });
    for (key, value) in fields.as_object().into_iter().flatten() {
        data[key] = value.clone();
    }
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

/// Cuts text into pieces at character borders.
fn cut(text: &str) -> impl Iterator<Item = &str> {
    let size = if text.len() > BIG_BLOCK_BYTES { BIG_PIECE_BYTES } else { PIECE_BYTES };
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text_and_cut_no_character() {
        let text = "häßlich — 日本語 ".repeat(9);
        assert_eq!(cut(&text).collect::<String>(), text);
        assert!(cut(&text).count() > 9);
    }
}
