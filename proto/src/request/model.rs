//! Requests about the model's work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApproveMode, Endpoint};
use crate::ids::PromptId;

/// What was used, in tokens and money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// Only this session's, with its turns: id, its last digits, or name.
    #[serde(default)]
    pub session: Option<String>,
    /// Of so many days, today included.
    pub days: u32,
}

/// Changes model, effort or output limit, between turns. What is absent stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Configure {
    /// Id, its last digits, or name.
    pub session: String,
    /// Model id.
    #[serde(default)]
    pub model: Option<String>,
    /// `low`, `medium`, `high`, `xhigh`, `max`, or `default`.
    #[serde(default)]
    pub effort: Option<String>,
    /// Output limit of a reply in tokens.
    #[serde(default)]
    pub max_tokens: Option<u32>,
}

/// Replaces the history by a summary, between turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    /// Id, its last digits, or name.
    pub session: String,
    /// The client's endpoint, as in [`super::Attach`].
    #[serde(default)]
    pub endpoint: Endpoint,
}

/// Hands the model a note in the running turn, before its next request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steer {
    /// Id, its last digits, or name.
    pub session: String,
    /// The note, at most [`super::PROMPT_BYTES_MAX`].
    pub text: String,
}

/// Takes the last prompt and what followed out of the history and asks again, between turns. Files stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rerun {
    /// Id, its last digits, or name.
    pub session: String,
    /// Made by the client, as in [`super::SendPrompt`].
    pub prompt: PromptId,
    /// The new words; absent: the same.
    #[serde(default)]
    pub text: Option<String>,
    /// What to do when a call needs an approval.
    #[serde(default)]
    pub approve: ApproveMode,
    /// The client's endpoint, as in [`super::Attach`].
    #[serde(default)]
    pub endpoint: Endpoint,
}
