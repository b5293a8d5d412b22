//! The request's JSON, exactly as it is sent. Pure.
//!
//! Invariant: the same history gives the same bytes, and a longer history only adds bytes: everything that may change
//! between the requests of a session stands before `system`, nothing stands behind `messages`, and stored blocks are
//! copied as text. The one exception is a cache marker inside a long step, see `MARKER_REACH`.
//! Invariant: at most four cache markers: the system prompt's, the automatic one, and up to two in `messages`.

use std::borrow::Cow;

use bytes::Bytes;
use proto::json::JsonText;

use super::Conversation;
use super::capabilities::{self, Capabilities, Thinking};
use super::object::raw_string;
pub use super::tools::tool_definitions;
use crate::effort::Effort;

mod history;

pub use history::{Writer, Written, is_thinking};

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

/// Thinking tokens of models with budgets: what a coding step needs, well below their output limit.
const THINKING_BUDGET: u32 = 8192;

/// The smallest budget the API takes, and the least output that must be left beside one.
const THINKING_BUDGET_MIN: u32 = 1024;

/// Room for what stands before the messages besides the system prompt: the tools are most of it.
const HEAD_BYTES: usize = 8 * 1024;

const MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The body of a streaming request: its parts, in order.
#[must_use]
pub fn body(conversation: &Conversation, style: impl Into<Style>) -> Vec<Bytes> {
    let style = style.into();
    let mut out = String::with_capacity(conversation.system.len() + HEAD_BYTES);
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
    out.push_str(r#","messages":["#);
    let system_messages = match &conversation.written {
        Some(written) => written.system_messages(),
        None => takes.is_some_and(|takes| takes.system_messages),
    };
    let mut parts = vec![Bytes::from(out)];
    parts.extend(conversation.written.iter().flat_map(Written::parts).cloned());
    let mut out = String::new();
    if parts.len() > 1 {
        out.push(',');
    }
    history::write(&mut out, &conversation.messages, system_messages, style.profile);
    out.push_str("]}");
    parts.push(Bytes::from(out));
    parts
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

#[cfg(test)]
mod tests;
