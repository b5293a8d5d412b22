//! What the model server answers: a message, a raw stream, a plain HTTP answer, or nothing; and how it is delivered.
//!
//! A [`Reply`] is data. [`super::serve`] plays it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::gate::Gate;

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
pub(super) const SIGNATURE: &str = "c2lnbmF0dXJlLW9mLXRoZS1mYWtl";

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
    pub(super) note: Option<Note>,
}

/// Told of each event just before it is written.
#[derive(Clone)]
pub(super) struct Note(pub(super) Arc<dyn Fn(usize) + Send + Sync>);

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Note")
    }
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

    /// Fields of the usage at the message's start, over the usual ones; `output_tokens` also at its end.
    ///
    /// # Panics
    /// When the reply is no message.
    #[must_use]
    pub fn usage(mut self, usage: Value) -> Self {
        let own = &mut self.message().usage;
        for (key, value) in usage.as_object().into_iter().flatten() {
            own[key] = value.clone();
        }
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

    /// Calls `note` with each event's number, from 0, just before it is written.
    #[must_use]
    pub fn noting(mut self, note: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.delivery.note = Some(Note(Arc::new(note)));
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

    pub(super) fn output_tokens(&self) -> u64 {
        let own = 7 * self.blocks.len() as u64 + 1;
        self.usage["output_tokens"].as_u64().unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
