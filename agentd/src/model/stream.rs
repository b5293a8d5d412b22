//! The Messages API's stream events, typed: one SSE event in, one [`StreamEvent`] out. Pure.
//!
//! Open where the API is open: unknown events and deltas are [`StreamEvent::Ignored`] and [`Delta::Unknown`], unknown
//! fields stay in the [`Object`]s. The `type` inside the data decides; the event's name is only asked when there is none.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::object::Object;
use super::sse;

/// What OpenAI-style proxies send when all is said.
const DONE: &str = "[DONE]";

/// One step of a reply.
#[derive(Debug)]
pub(super) enum StreamEvent {
    /// `message_start`: the message without content.
    MessageStart(Object),
    /// `content_block_start`.
    BlockStart { index: u32, block: Object, text: String },
    /// `content_block_delta`.
    BlockDelta { index: u32, delta: Delta },
    /// `content_block_stop`.
    BlockStop { index: u32 },
    /// `message_delta`: the whole event, since it has known fields at three levels.
    MessageDelta(Object),
    /// `message_stop`.
    MessageStop,
    /// `[DONE]`, which is no event of this API; it ends a reply that has a stop reason.
    Done,
    /// The server lives.
    Ping,
    /// `error`: the text of the whole event.
    Error(String),
    /// Something a later release of the API may mean.
    Ignored,
}

/// What a block grew by.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delta {
    /// `text_delta`.
    Text(String),
    /// `thinking_delta`.
    Thinking(String),
    /// `signature_delta`.
    Signature(String),
    /// `input_json_delta`.
    InputJson(String),
    /// `citations_delta`: the citation's JSON.
    Citation(String),
    /// `compaction_delta`: values to assign, as JSON.
    Compaction { content: Option<String>, encrypted_content: Option<String> },
    /// A kind this release does not know.
    Unknown,
}

/// The data is not what its type says.
#[derive(Debug, thiserror::Error)]
#[error("the event `{kind}` is not what the API promises: {source}")]
pub(super) struct BadEvent {
    kind: String,
    source: serde_json::Error,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(borrow, default)]
    index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct DeltaFields<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_content: Option<&'a RawValue>,
}

impl StreamEvent {
    /// Reads one event.
    ///
    /// # Errors
    /// [`BadEvent`] when the data is not JSON or a known event lacks what it is made of.
    pub(super) fn read(event: &sse::Event) -> Result<Self, BadEvent> {
        let data = event.data.trim();
        if data == DONE {
            return Ok(Self::Done);
        }
        let envelope: Envelope<'_> = match serde_json::from_str(data) {
            Ok(envelope) => envelope,
            Err(_) if event.name == "error" => return Ok(Self::Error(data.to_owned())),
            Err(_) if event.name == "ping" || data.is_empty() => return Ok(Self::Ping),
            Err(source) => return Err(BadEvent { kind: event.name.clone(), source }),
        };
        let kind = match &envelope.kind {
            Some(kind) => kind.as_str(),
            // An OpenAI-style error has neither a name nor a type.
            None if event.name.is_empty() && envelope.error.is_some() => "error",
            None => event.name.as_str(),
        };
        Self::of_kind(kind, data, &envelope).map_err(|source| BadEvent { kind: kind.to_owned(), source })
    }

    fn of_kind(kind: &str, data: &str, envelope: &Envelope<'_>) -> Result<Self, serde_json::Error> {
        Ok(match kind {
            "message_start" => Self::MessageStart(read(envelope.message)?),
            "content_block_start" => Self::BlockStart {
                index: read(envelope.index)?,
                block: read(envelope.content_block)?,
                text: envelope.content_block.map(RawValue::get).unwrap_or_default().to_owned(),
            },
            "content_block_delta" => Self::BlockDelta {
                index: read(envelope.index)?,
                delta: Delta::from(read::<DeltaFields<'_>>(envelope.delta)?),
            },
            "content_block_stop" => Self::BlockStop { index: read(envelope.index)? },
            "message_delta" => Self::MessageDelta(serde_json::from_str(data)?),
            "message_stop" => Self::MessageStop,
            "ping" => Self::Ping,
            "error" => Self::Error(data.to_owned()),
            _ => Self::Ignored,
        })
    }
}

impl From<DeltaFields<'_>> for Delta {
    fn from(fields: DeltaFields<'_>) -> Self {
        let known = match fields.kind.as_str() {
            "text_delta" => fields.text.map(Self::Text),
            "thinking_delta" => fields.thinking.map(Self::Thinking),
            "signature_delta" => fields.signature.map(Self::Signature),
            "input_json_delta" => fields.partial_json.map(Self::InputJson),
            "citations_delta" => fields.citation.map(|citation| Self::Citation(citation.get().to_owned())),
            "compaction_delta" => Some(Self::Compaction {
                content: fields.content.map(|raw| raw.get().to_owned()),
                encrypted_content: fields.encrypted_content.map(|raw| raw.get().to_owned()),
            }),
            _ => None,
        };
        known.unwrap_or(Self::Unknown)
    }
}

/// A part that must be there.
fn read<'a, T: Deserialize<'a>>(part: Option<&'a RawValue>) -> Result<T, serde_json::Error> {
    serde_json::from_str(part.map(RawValue::get).unwrap_or_default())
}
