//! The request's JSON, exactly as it is sent. Pure.
//!
//! Invariant: the same history gives the same bytes, and a longer history only adds bytes: everything that may change
//! between the requests of a session stands before `system`, nothing stands behind `messages`, and stored blocks are
//! copied as text. The one exception is a cache marker inside a long step, see `MARKER_REACH`.
//! Invariant: at most four cache markers: the system prompt's, the automatic one, and up to two in `messages`.
//! Invariant: `messages` never holds two neighbours of one role, an empty message, an empty text, or thinking without a
//! signature; the history may.

use std::sync::Arc;

use proto::json::JsonText;
use serde::Deserialize;

use std::borrow::Cow;

use super::capabilities::{self, Capabilities, Thinking};
use super::object::raw_string;
pub use super::tools::tool_definitions;
use super::{Conversation, Message, Role};
use crate::effort::Effort;

/// Whose dialect of the Messages API a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Anthropic's own: thinking, effort, prompt caching, tools by type.
    #[default]
    Anthropic,
    /// A server that speaks the same protocol: the common core, tools with schemas.
    Compat,
}

/// How requests are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The dialect.
    pub profile: Profile,
    /// The effort asked for, on models that take one; else the model's default.
    pub effort: Option<Effort>,
}

impl From<Profile> for Style {
    fn from(profile: Profile) -> Self {
        Self { profile, effort: None }
    }
}

/// Blocks that a cache marker looks back for an earlier entry, itself included. A step of the conversation that is
/// longer would miss the cache, so it gets markers inside.
const MARKER_REACH: usize = 20;

/// Thinking tokens of models with budgets: what a coding step needs, well below their output limit.
const THINKING_BUDGET: u32 = 8192;

/// The smallest budget the API takes, and the least output that must be left beside one.
const THINKING_BUDGET_MIN: u32 = 1024;

const MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The body of a streaming request.
#[must_use]
pub fn body(conversation: &Conversation, style: impl Into<Style>) -> Vec<u8> {
    let style = style.into();
    let size: usize =
        conversation.messages.iter().flat_map(|m| &m.content).map(|block| block.as_str().len() + 64).sum();
    let mut out = String::with_capacity(size + conversation.system.len() + 4096);
    out.push_str(r#"{"model":"#);
    out.push_str(raw_string(&conversation.model).get());
    out.push_str(&format!(r#","max_tokens":{},"stream":true"#, conversation.max_tokens));
    let takes = match style.profile {
        Profile::Anthropic => Some(match &conversation.takes {
            Some(known) => Cow::Borrowed(known.as_ref()),
            None => Cow::Owned(capabilities::of(&conversation.model)),
        }),
        Profile::Compat => None,
    };
    if let Some(takes) = &takes {
        write_model_settings(&mut out, takes, conversation.effort.or(style.effort), conversation.max_tokens);
        out.push_str(MARKER);
        if let Some(previous) = &conversation.previous {
            let id = raw_string(previous);
            out.push_str(&format!(r#","diagnostics":{{"previous_message_id":{}}}"#, id.get()));
        }
        if conversation.compact {
            out.push_str(r#","compaction":{"type":"summarize"}"#);
        }
    }
    write_system(&mut out, &conversation.system, style.profile);
    write_tools(&mut out, &conversation.tools);
    let turns = turns(&conversation.messages, takes.is_some_and(|takes| takes.system_messages));
    let markers = match style.profile {
        Profile::Anthropic => markers(&turns),
        Profile::Compat => Vec::new(),
    };
    write_messages(&mut out, &turns, &markers);
    out.push('}');
    out.into_bytes()
}

fn write_model_settings(out: &mut String, takes: &Capabilities, effort: Option<Effort>, max_tokens: u32) {
    match takes.thinking {
        Thinking::Adaptive => out.push_str(r#","thinking":{"type":"adaptive","display":"summarized"}"#),
        Thinking::None => {}
        Thinking::Budget => {
            let budget = THINKING_BUDGET.min(max_tokens.saturating_sub(THINKING_BUDGET_MIN));
            if budget >= THINKING_BUDGET_MIN {
                out.push_str(&format!(r#","thinking":{{"type":"enabled","budget_tokens":{budget}}}"#));
            }
        }
    }
    if let Some(effort) = effort.and_then(|asked| takes.effort(asked)) {
        out.push_str(&format!(r#","output_config":{{"effort":"{}"}}"#, effort.as_str()));
    }
}

fn write_system(out: &mut String, system: &str, profile: Profile) {
    if system.is_empty() {
        return;
    }
    let text = raw_string(system);
    match profile {
        Profile::Anthropic => {
            out.push_str(&format!(r#","system":[{{"type":"text","text":{}{MARKER}}}]"#, text.get()));
        }
        Profile::Compat => out.push_str(&format!(r#","system":{}"#, text.get())),
    }
}

fn write_tools(out: &mut String, tools: &[JsonText]) {
    if tools.is_empty() {
        return;
    }
    out.push_str(r#","tools":["#);
    for (at, tool) in tools.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(tool.as_str());
    }
    out.push(']');
}

/// Messages as they are sent: neighbours of one role are one.
#[derive(Debug)]
struct Turn<'a> {
    role: Role,
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
                    turns.push(Turn { role, blocks });
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

fn write_messages(out: &mut String, turns: &[Turn<'_>], markers: &[usize]) {
    out.push_str(r#","messages":["#);
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
        out.push_str(&format!(r#"{{"role":"{role}","content":["#));
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
    out.push(']');
}

#[cfg(test)]
mod tests;
