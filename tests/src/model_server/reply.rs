//! What the model server answers: a message, a raw stream, a plain HTTP answer, or nothing; and how it is delivered.
//!
//! A [`Reply`] is data. [`super::serve`] plays it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::gate::Gate;

/// Pieces of a block's text or input are this long, so that a short reply has several deltas.
const PIECE_BYTES: usize = 12;

/// Blocks over this size come in big pieces: a megabyte in twelve-byte deltas is a test of patience only.
const BIG_BLOCK_BYTES: usize = 4096;

/// Size of big pieces.
const BIG_PIECE_BYTES: usize = 16 * 1024;

/// Source of tool-use ids: unique in a process, as the API's are.
static NEXT_TOOL_USE: AtomicU64 = AtomicU64::new(1);

/// One block of a message.
#[derive(Clone, Debug)]
pub enum Block {
    /// Text.
    Text(String),
    /// Thinking with a signature.
    Thinking(String),
    /// A tool call; the input is text, so that it can be broken or cut.
    ToolUse {
        /// The API's id.
        id: String,
        /// The tool.
        name: String,
        /// The input's JSON.
        input: String,
    },
    /// Any other block, whole in its start event.
    Other(Value),
}

impl Block {
    /// A call of a tool.
    #[must_use]
    pub fn tool(name: &str, input: &str) -> Self {
        let id = format!("toolu_{:06}", NEXT_TOOL_USE.fetch_add(1, Ordering::Relaxed));
        Self::ToolUse { id, name: name.to_owned(), input: input.to_owned() }
    }

    /// A call of the bash tool.
    #[must_use]
    pub fn bash(command: &str) -> Self {
        Self::tool("bash", &json!({ "command": command }).to_string())
    }

    /// A call of the editor tool.
    #[must_use]
    pub fn edit(input: &Value) -> Self {
        Self::tool("str_replace_based_edit_tool", &input.to_string())
    }

    /// The block as it stands in the finished message. Broken input stands there as `null`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => json!({ "type": "text", "text": text }),
            Self::Thinking(text) => json!({ "type": "thinking", "thinking": text, "signature": SIGNATURE }),
            Self::ToolUse { id, name, input } => {
                let input: Value = serde_json::from_str(input).unwrap_or(Value::Null);
                json!({ "type": "tool_use", "id": id, "name": name, "input": input })
            }
            Self::Other(value) => value.clone(),
        }
    }
}

/// The signature of every thinking block; opaque to clients.
const SIGNATURE: &str = "c2lnbmF0dXJlLW9mLXRoZS1mYWtl";

/// A whole answer to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) kind: Kind,
    pub(super) delivery: Delivery,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Message(Box<Message>),
    Raw(Vec<u8>),
    Http {
        status: u16,
        body: Vec<u8>,
        content_type: String,
    },
    /// The connection is closed before a byte of the answer.
    HangUp,
}

#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) blocks: Vec<Block>,
    pub(super) stop: String,
    pub(super) stop_details: Value,
    pub(super) error: Option<Value>,
    pub(super) usage: Value,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    pub(super) headers: Vec<(String, String)>,
    pub(super) piece: Option<usize>,
    pub(super) pause: Duration,
    pub(super) cut: Option<Cut>,
    pub(super) holds: Vec<(usize, Gate)>,
}

/// Where a connection is cut.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    Bytes(usize),
    Events(usize),
}

impl Reply {
    /// A message of these blocks. It stops with `tool_use` when it holds a call, else with `end_turn`.
    #[must_use]
    pub fn blocks(blocks: Vec<Block>) -> Self {
        let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        Self::of(Kind::Message(Box::new(Message {
            blocks,
            stop: if calls { "tool_use" } else { "end_turn" }.to_owned(),
            stop_details: Value::Null,
            error: None,
            usage: json!({ "input_tokens": 25, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 }),
        })))
    }

    /// A final answer.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::blocks(vec![Block::Text(text.to_owned())])
    }

    /// One bash call.
    #[must_use]
    pub fn bash(command: &str) -> Self {
        Self::blocks(vec![Block::bash(command)])
    }

    /// A stream given byte by byte.
    #[must_use]
    pub fn raw(stream: impl Into<Vec<u8>>) -> Self {
        Self::of(Kind::Raw(stream.into()))
    }

    /// A plain HTTP answer.
    #[must_use]
    pub fn http(status: u16, content_type: &str, body: &str) -> Self {
        Self::of(Kind::Http { status, body: body.into(), content_type: content_type.to_owned() })
    }

    /// An error in the API's envelope.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({
            "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_fake_0001"
        });
        Self::http(status, "application/json", &body.to_string())
    }

    /// The connection is closed before a byte of the answer.
    #[must_use]
    pub fn hang_up() -> Self {
        Self::of(Kind::HangUp)
    }

    fn of(kind: Kind) -> Self {
        Self { kind, delivery: Delivery::default() }
    }

    /// Another stop reason.
    ///
    /// # Panics
    /// When the reply is no message.
    #[must_use]
    pub fn stop(mut self, reason: &str) -> Self {
        self.message().stop = reason.to_owned();
        self
    }

    /// The `stop_details` of a refusal.
    ///
    /// # Panics
    /// When the reply is no message.
    #[must_use]
    pub fn stop_details(mut self, details: Value) -> Self {
        self.message().stop_details = details;
        self
    }

    /// An `error` event after the blocks, instead of the message's end.
    ///
    /// # Panics
    /// When the reply is no message.
    #[must_use]
    pub fn then_error(mut self, kind: &str, message: &str) -> Self {
        self.message().error = Some(json!({ "type": "error", "error": { "type": kind, "message": message } }));
        self
    }

    /// A response header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.delivery.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Written in pieces of so many bytes.
    #[must_use]
    pub fn pieces(mut self, bytes: usize) -> Self {
        self.delivery.piece = Some(bytes);
        self
    }

    /// A pause before each event.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.delivery.pause = pause;
        self
    }

    /// The connection is cut after so many bytes of the body.
    #[must_use]
    pub fn cut_after_bytes(mut self, bytes: usize) -> Self {
        self.delivery.cut = Some(Cut::Bytes(bytes));
        self
    }

    /// The connection is cut after so many events.
    #[must_use]
    pub fn cut_after_events(mut self, events: usize) -> Self {
        self.delivery.cut = Some(Cut::Events(events));
        self
    }

    /// The delivery stands still after so many events until the gate opens.
    #[must_use]
    pub fn hold_after_events(mut self, events: usize, gate: &Gate) -> Self {
        self.delivery.holds.push((events, gate.clone()));
        self
    }

    /// Whether it is a message to its end.
    pub(super) fn is_whole(&self) -> bool {
        match &self.kind {
            Kind::Message(message) => message.error.is_none() && self.delivery.cut.is_none(),
            Kind::Raw(_) | Kind::Http { .. } | Kind::HangUp => false,
        }
    }

    /// What a client must send back of it, when it must.
    pub(super) fn kept(&self) -> Option<Vec<Value>> {
        match &self.kind {
            Kind::Message(message) if self.is_whole() => message.kept(),
            Kind::Message(_) | Kind::Raw(_) | Kind::Http { .. } | Kind::HangUp => None,
        }
    }

    fn message(&mut self) -> &mut Message {
        match &mut self.kind {
            Kind::Message(message) => message,
            Kind::Raw(_) | Kind::Http { .. } | Kind::HangUp => panic!("this reply is no message"),
        }
    }
}

impl Message {
    /// The message as one JSON document, as without streaming.
    pub(super) fn to_value(&self, id: &str, model: &str) -> Value {
        let mut usage = self.usage.clone();
        usage["output_tokens"] = json!(self.output_tokens());
        json!({
            "id": id, "type": "message", "role": "assistant", "model": model,
            "content": self.blocks.iter().map(Block::to_value).collect::<Vec<_>>(),
            "stop_reason": self.stop, "stop_sequence": null, "stop_details": self.stop_details, "usage": usage,
        })
    }

    /// What a client must send back, when it must: nothing after an error or a refusal.
    fn kept(&self) -> Option<Vec<Value>> {
        let whole =
            self.error.is_none() && ["end_turn", "tool_use", "pause_turn", "stop_sequence"].contains(&&*self.stop);
        (whole && !self.blocks.is_empty()).then(|| self.blocks.iter().map(Block::to_value).collect())
    }

    fn output_tokens(&self) -> usize {
        7 * self.blocks.len() + 1
    }

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

    #[test]
    fn a_reply_with_a_call_stops_with_tool_use_and_ids_differ() {
        let reply = Reply::blocks(vec![Block::bash("ls"), Block::bash("ls")]);
        let Kind::Message(message) = &reply.kind else { panic!("a message") };
        assert_eq!(message.stop, "tool_use");
        let kept = message.kept().expect("a whole message");
        assert_ne!(kept[0]["id"], kept[1]["id"]);
    }

    #[test]
    fn nothing_of_a_refusal_is_to_be_sent_back() {
        let reply = Reply::text("half an ans").stop("refusal");
        let Kind::Message(message) = &reply.kind else { panic!("a message") };
        assert!(message.kept().is_none());
    }
}
