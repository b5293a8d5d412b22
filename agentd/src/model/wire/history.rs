//! The messages of a request: the history as it is sent, most of it written once and for all.
//!
//! A history only grows, so what was written for one request is the beginning of the next one's: a [`Writer`] keeps it, and
//! a request of a long session costs what came since the last one. Kept is what no later message can change: all before
//! the last but one of the assistant's messages. Behind it stand the markers, and messages that may still grow.
//!
//! Invariant: with and without a writer the bytes are the same.
//! Invariant: `messages` never holds two neighbours of one role, an empty message, an empty text, or thinking without a
//! signature; the history may.

use std::sync::Arc;

use bytes::Bytes;
use proto::json::JsonText;
use serde::Deserialize;

use super::super::{Message, Role};
use super::{MARKER, Profile};

/// Blocks that a cache marker looks back for an earlier entry, itself included. A step of the conversation that is
/// longer would miss the cache, so it gets markers inside.
pub(super) const MARKER_REACH: usize = 20;

/// What is written around a message's blocks, and a comma.
const TURN_BYTES: usize = 40;

/// The beginning of a history in the form in which it is sent.
#[derive(Clone, Debug)]
pub struct Written {
    parts: Vec<Bytes>,
    system_messages: bool,
}

impl Written {
    /// Its bytes: messages with commas between them. Few parts, see [`Writer`].
    pub(super) fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// Whether the messages of the harness were written as such.
    pub(super) fn system_messages(&self) -> bool {
        self.system_messages
    }
}

/// Writes the history of one session, each message once.
#[derive(Debug, Default)]
pub struct Writer {
    /// What is written. Held, so that no other message can come to stand at the same address.
    messages: Vec<Arc<Message>>,
    /// Each at least twice as long as the next, so that they stay few and each byte is seldom copied.
    parts: Vec<Bytes>,
    system_messages: bool,
}

impl Writer {
    /// Splits a history into what is written and the rest. A history that does not go on from the last one is begun anew.
    ///
    /// `system_messages`: whether the model takes messages of the harness between the others.
    pub fn split<'a>(&mut self, history: &'a [Arc<Message>], system_messages: bool) -> (Written, &'a [Arc<Message>]) {
        let goes_on = self.messages.len() <= history.len()
            && self.messages.iter().zip(history).all(|(old, new)| Arc::ptr_eq(old, new));
        let usable = goes_on && system_messages == self.system_messages;
        if !(usable && self.advance(&history[self.messages.len()..])) {
            *self = Self { system_messages, ..Self::default() };
            self.advance(history);
        }
        let written = Written { parts: self.parts.clone(), system_messages };
        (written, &history[self.messages.len()..])
    }

    /// Writes what no later message can change. False when the rest is too short to hold what can: the history was cut.
    fn advance(&mut self, rest: &[Arc<Message>]) -> bool {
        let turns = turns(rest, self.system_messages);
        let assistants = turns.iter().enumerate().filter(|(_, turn)| turn.role == Role::Assistant);
        let Some((end, open)) = assistants.rev().nth(1) else { return self.messages.is_empty() };
        if end > 0 {
            let mut out = String::new();
            if !self.parts.is_empty() {
                out.push(',');
            }
            write_turns(&mut out, &turns[..end], &[]);
            self.push(out);
        }
        self.messages.extend_from_slice(&rest[..open.first]);
        true
    }

    fn push(&mut self, text: String) {
        let mut last = Bytes::from(text);
        while let Some(before) = self.parts.pop_if(|before| before.len() < 2 * last.len()) {
            last = Bytes::from([before, last].concat());
        }
        self.parts.push(last);
    }
}

/// Writes these messages with commas between them.
pub(super) fn write(out: &mut String, messages: &[Arc<Message>], system_messages: bool, profile: Profile) {
    let turns = turns(messages, system_messages);
    let markers = match profile {
        Profile::Anthropic => markers(&turns),
        Profile::Compat => Vec::new(),
    };
    write_turns(out, &turns, &markers);
}

/// Messages as they are sent: neighbours of one role are one.
#[derive(Debug)]
struct Turn<'a> {
    role: Role,
    /// The first of the messages that it is made of.
    first: usize,
    blocks: Vec<&'a str>,
}

fn turns(messages: &[Arc<Message>], system_messages: bool) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let role = match message.role {
            Role::System if !(system_messages && system_fits(messages, at)) => Role::User,
            role @ (Role::User | Role::Assistant | Role::System) => role,
        };
        let blocks = message.content.iter().map(JsonText::as_str).filter(|block| may_be_sent(role, block));
        match turns.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks),
            Some(_) | None => {
                let blocks: Vec<&str> = blocks.collect();
                if !blocks.is_empty() {
                    turns.push(Turn { role, first: at, blocks });
                }
            }
        }
    }
    turns
}

/// A system message stands between a user's message and an assistant's, or last; elsewhere it goes out as the user's.
fn system_fits(messages: &[Arc<Message>], at: usize) -> bool {
    let spoken = |message: &&Arc<Message>| message.role != Role::System;
    let before = messages[..at].iter().rfind(spoken).map(|message| message.role);
    let after = messages[at..].iter().find(spoken).map(|message| message.role);
    before == Some(Role::User) && after != Some(Role::User)
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow)]
    signature: Option<&'a serde_json::value::RawValue>,
}

/// Thinking without a signature and empty texts are refused by the API; a model can have made both.
fn may_be_sent(role: Role, block: &str) -> bool {
    // Calls and results are most of a history's bytes and are never left out: no need to read them. Nor is there to read
    // a text that is written as the API writes it.
    if role != Role::Assistant || block.starts_with(r#"{"type":"tool_use""#) {
        return true;
    }
    if let Some(text) = block.strip_prefix(r#"{"type":"text","text":""#) {
        return !text.starts_with('"');
    }
    let Ok(head) = serde_json::from_str::<Head<'_>>(block) else {
        return true;
    };
    let says =
        |value: Option<&serde_json::value::RawValue>| value.is_some_and(|raw| !matches!(raw.get(), "\"\"" | "null"));
    match &*head.kind {
        "thinking" => says(head.signature),
        "text" => says(head.text),
        _ => true,
    }
}

/// A block of thinking, shown or redacted.
#[must_use]
pub fn is_thinking(block: &JsonText) -> bool {
    serde_json::from_str::<Head<'_>>(block.as_str())
        .is_ok_and(|head| matches!(&*head.kind, "thinking" | "redacted_thinking"))
}

/// Where markers stand inside `messages`, as numbers of blocks from the first. The automatic marker stands on the last
/// block and reads the entry that the last request's wrote, unless the step since then is longer than a marker's reach.
/// Then one marker stands where that entry ends, and one half way, for the next reader.
fn markers(turns: &[Turn<'_>]) -> Vec<usize> {
    let total: usize = turns.iter().map(|turn| turn.blocks.len()).sum();
    let Some(assistant) = turns.iter().rposition(|turn| turn.role == Role::Assistant) else {
        return Vec::new();
    };
    let before: usize = turns[..assistant].iter().map(|turn| turn.blocks.len()).sum();
    if before == 0 || total - before < MARKER_REACH {
        return Vec::new();
    }
    let blocks: Vec<&str> = turns.iter().flat_map(|turn| turn.blocks.iter().copied()).collect();
    let middle = (before + (total - before) / 2..total - 1).find(|at| takes_marker(blocks[*at]));
    let mut markers: Vec<usize> = [Some(before - 1), middle].into_iter().flatten().collect();
    markers.retain(|at| takes_marker(blocks[*at]));
    markers
}

/// The kinds of block that may carry a marker, told from how they are written; a block written in another order just
/// gets none.
fn takes_marker(block: &str) -> bool {
    let marked = block.contains("\"cache_control\"");
    !marked
        && ["text", "tool_use", "tool_result", "image", "document"].iter().any(|kind| {
            block
                .strip_prefix(r#"{"type":""#)
                .and_then(|rest| rest.strip_prefix(kind))
                .is_some_and(|rest| rest.starts_with('"'))
        })
}

fn write_turns(out: &mut String, turns: &[Turn<'_>], markers: &[usize]) {
    let blocks = turns.iter().flat_map(|turn| &turn.blocks);
    out.reserve(
        blocks.map(|block| block.len() + 1).sum::<usize>() + turns.len() * TURN_BYTES + markers.len() * MARKER.len(),
    );
    let mut number = 0;
    for (at, turn) in turns.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let role = match turn.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        };
        out.push_str(r#"{"role":""#);
        out.push_str(role);
        out.push_str(r#"","content":["#);
        for (at, block) in turn.blocks.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            match block.strip_suffix('}') {
                Some(open) if markers.contains(&number) => {
                    out.push_str(open);
                    out.push_str(MARKER);
                    out.push('}');
                }
                Some(_) | None => out.push_str(block),
            }
            number += 1;
        }
        out.push_str("]}");
    }
}
