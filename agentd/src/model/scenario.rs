//! The scenario file of the scripted provider: its types. [`super::scripted`] plays it and shows its form.

use serde::Deserialize;

/// A whole scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// After the last reply the first one comes again.
    #[serde(default)]
    pub(super) repeat: bool,
    /// In order.
    #[serde(rename = "reply", default)]
    pub(super) replies: Vec<ScriptedReply>,
}

/// What the model answers at one position of the conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedReply {
    /// Shown as thinking, before the text.
    pub(super) thinking: Option<String>,
    /// The text.
    pub(super) text: Option<String>,
    /// The tool calls, after the text.
    #[serde(rename = "call", default)]
    pub(super) calls: Vec<ScriptedCall>,
    /// Why it stops; by default `tool_use` with calls and `end_turn` without.
    pub(super) stop: Option<String>,
    /// Milliseconds before the first piece.
    #[serde(default)]
    pub(super) delay_ms: u64,
    /// Characters in a piece.
    #[serde(default = "default_piece")]
    pub(super) piece: usize,
    /// Milliseconds between pieces.
    #[serde(default)]
    pub(super) piece_delay_ms: u64,
    /// Tokens that it reports.
    #[serde(default)]
    pub(super) usage: ScriptedUsage,
    /// What goes wrong first.
    #[serde(rename = "fault", default)]
    pub(super) faults: Vec<Fault>,
}

/// A tool call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedCall {
    /// The tool.
    pub(super) name: String,
    /// Its input, as a table.
    #[serde(default)]
    pub(super) input: toml::Table,
    /// Its input as raw text instead, for JSON that is broken or has a form of its own.
    pub(super) raw_input: Option<String>,
}

/// Tokens.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ScriptedUsage {
    pub(super) input: u64,
    pub(super) cache_write: u64,
    pub(super) cache_read: u64,
    pub(super) output: u64,
}

impl Default for ScriptedUsage {
    fn default() -> Self {
        Self { input: 10, cache_write: 0, cache_read: 0, output: 20 }
    }
}

/// Something that goes wrong instead of, or in the middle of, a reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    /// What.
    pub(super) kind: FaultKind,
    /// On how many tries; the faults of a reply follow one another.
    #[serde(default = "default_tries")]
    pub(super) tries: u32,
    /// After this many pieces of the reply.
    #[serde(default)]
    pub(super) after_pieces: usize,
    /// What the server asks to wait.
    pub(super) retry_after_ms: Option<u64>,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// 529.
    Overloaded,
    /// 429.
    RateLimited,
    /// 429 that waiting does not heal.
    SpendLimit,
    /// 500.
    Server,
    /// 401.
    Authentication,
    /// 400.
    InvalidRequest,
    /// 400 of a conversation that is too long.
    PromptTooLong,
    /// 400 of a thinking block.
    SignatureInvalid,
    /// No connection.
    Network,
    /// The stream ends too early.
    Cut,
    /// The stream stays silent until the request is given up.
    Silence,
    /// The model refuses; not an error, a reply.
    Refusal,
}

fn default_piece() -> usize {
    12
}

fn default_tries() -> u32 {
    1
}
