//! Configuration: one tree of settings, each with its default and its reason here.
//!
//! Owns the settings' types, their layers ([`load`]) and where files live ([`paths`]). Nothing here reads a workspace:
//! endpoints, keys and limits come from the user and the system only.
//!
//! Invariant: an unknown key is an error that names it, never ignored; every setting `a.b` has the environment override
//! `AGENTD_A_B`, but for those of [`load::FILES_ONLY`].

pub mod load;
pub mod paths;
pub mod units;

use serde::{Deserialize, Serialize};

use units::{Money, Size, Span};

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The model and where it lives.
    pub model: ModelConfig,
    /// Limits of the shell.
    pub shell: ShellConfig,
    /// The workspace.
    pub workspace: WorkspaceConfig,
    /// Limits of a turn.
    pub turn: TurnConfig,
    /// When a failed request is sent again.
    pub retry: RetryConfig,
    /// What may be spent without a question.
    pub budget: BudgetConfig,
    /// The model's window.
    pub context: ContextConfig,
    /// What runs without a question.
    pub policy: PolicyConfig,
    /// Questions to the user.
    pub approval: ApprovalConfig,
    /// Telling users who look elsewhere.
    pub notify: NotifyConfig,
    /// The socket.
    pub server: ServerConfig,
    /// The log of the daemon itself.
    pub log: LogConfig,
}

/// The model and where it lives. An empty string means "not set".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// `anthropic`: the Messages API with its typed tools, caching and thinking. `compat`: a server that speaks the same
    /// protocol (llama.cpp, Ollama, …): explicit tool schemas, no thinking, no caching.
    pub provider: ProviderKind,
    /// Base URL without `/v1`.
    pub base_url: String,
    /// Model id for new sessions.
    pub name: String,
    /// Output limit of one reply in tokens, thinking included. 32,000 is what the field uses for unknown models.
    pub max_tokens: u32,
    /// How much work the model puts into an answer: `low`, `medium`, `high`, `xhigh`, `max`; empty: the model's default.
    pub effort: String,
    /// `anthropic-version` header.
    pub api_version: String,
    /// Beta names for the `anthropic-beta` header.
    pub betas: Vec<String>,
    /// A file of certificates (PEM) that are trusted beside the system's; an absolute path. Read when the first request of
    /// an endpoint is made.
    pub extra_ca: String,
    /// A command whose standard output is the key; run by `/bin/sh -c`.
    pub key_helper: String,
    /// A file that holds the key; must not be readable by others.
    pub key_file: String,
    /// A scenario for new sessions instead of a model: a built-in name or an absolute path.
    pub scenario: String,
}

/// Which dialect the endpoint speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic's own API.
    #[default]
    Anthropic,
    /// A compatible server.
    Compat,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            provider: ProviderKind::Anthropic,
            base_url: "https://api.anthropic.com".into(),
            name: "claude-opus-5-5".into(),
            max_tokens: 32_000,
            effort: String::new(),
            api_version: "2026-10-21".into(),
            betas: Vec::new(),
            extra_ca: String::new(),
            key_helper: String::new(),
            key_file: String::new(),
            scenario: String::new(),
        }
    }
}

/// Limits of the shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShellConfig {
    /// When a command is ended. 120 s is what models expect of this tool.
    pub deadline: Span,
    /// Bytes of a command's output kept on disk; beyond it the first and last part.
    pub spool: Size,
    /// Characters of output the model receives; beyond it head and tail. 30,000 is what models expect.
    pub output_chars: usize,
    /// How long running commands have to end by themselves when the systemd unit is stopped for good; then they are
    /// ended. 5 s is a quick test run's end, and short beside a shutdown's 90 s.
    pub stop_grace: Span,
    /// How long a shell may be without use before it is put to rest; 0 = never. It comes back with the next command, with its
    /// directory and its exported variables and without what else was set in it. Never while a client is attached or
    /// something of it runs. 12 h: a session that was left over night.
    pub idle_rest: Span,
    /// Names of environment variables that the shell never sees, beside `ANTHROPIC_*`; a trailing `*` is a wildcard.
    pub secret_names: Vec<String>,
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self {
            deadline: Span::from_secs(120),
            spool: Size(64 * 1024 * 1024),
            output_chars: 30_000,
            stop_grace: Span::from_secs(5),
            idle_rest: Span::from_secs(12 * 60 * 60),
            secret_names: Vec::new(),
        }
    }
}

/// The workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceConfig {
    /// Directories beside the workspace in which the editor tool may view and edit files; absolute paths. Only the
    /// files of user and system can set them, no variable: what a directory's tools export must not open the home.
    /// Sessions take them when their shell starts.
    pub extra_roots: Vec<String>,
}

/// Limits of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TurnConfig {
    /// Requests to the model in one turn; a model that loops is stopped here. 200 is several times the longest useful
    /// turn seen in the field.
    pub requests_max: u32,
}

impl Default for TurnConfig {
    fn default() -> Self {
        Self { requests_max: 200 }
    }
}

/// What may be spent without a question; at a limit the turn is paused and the user asked. 0 = no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetConfig {
    /// US dollars of one turn. 10 is beyond all but the longest turns, and far below what a mistake costs over a night.
    pub turn_usd: Money,
    /// US dollars of one session.
    pub session_usd: Money,
    /// US dollars of one day (UTC), all sessions together.
    pub day_usd: Money,
    /// Tokens of one turn, read and written: a limit for models without a known price.
    pub turn_tokens: u64,
    /// Time of one turn.
    pub turn_time: Span,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self {
            turn_usd: Money::from_usd(10),
            session_usd: Money(0),
            day_usd: Money(0),
            turn_tokens: 0,
            turn_time: Span::from_secs(0),
        }
    }
}

/// The model's window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContextConfig {
    /// Percent of the window at which the history is replaced by a summary; 0 = never by itself. 80 leaves room for the
    /// summary and a long reply.
    pub compact_at: u32,
    /// Tokens that the window holds, for models of which nobody says; 0 = as the model says.
    pub window: u64,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self { compact_at: 80, window: 0 }
    }
}

/// When a failed request is sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// Wait before the second try; it doubles with each. The official SDKs' value.
    pub first_wait: Span,
    /// Longest wait between the quick tries. The official SDKs' value.
    pub longest_wait: Span,
    /// Quick tries after the first one, about a minute in all. After them the turn is parked.
    pub tries: u32,
    /// Longest wait between the tries of a parked turn: soon enough after the trouble is over, rare enough to cost nothing.
    pub parked_wait: Span,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            first_wait: Span::from_millis(500),
            longest_wait: Span::from_secs(8),
            tries: 10,
            parked_wait: Span::from_secs(300),
        }
    }
}

/// What runs without a question, beside views and what rules allow (`policy.toml` beside this file).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// Commands that are proved to only read: `run` or `ask`. Whoever is asked about `ls` soon says yes to everything.
    pub read_only: ReadOnly,
}

/// What is done with a command that only reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadOnly {
    /// The user is asked, as for any command.
    Ask,
    /// It runs.
    #[default]
    Run,
}

/// Questions to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalConfig {
    /// When an unanswered question becomes a denial. A day: long enough for a night's sleep.
    pub expiry: Span,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self { expiry: Span::from_secs(24 * 60 * 60) }
    }
}

/// Telling users who look elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// Desktop notifications of what waits for an answer and of ended turns, where the daemon's environment has a session
    /// bus: `away`, `always` or `off`.
    pub desktop: Desktop,
}

/// When the desktop tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desktop {
    /// Never.
    Off,
    /// While nobody who could answer is attached to the session: an attached terminal tells by itself.
    #[default]
    Away,
    /// Whoever is attached.
    Always,
}

/// The socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Connections at once. 256 is 50 sessions with 4 clients each and room; each costs a few tens of KiB.
    pub connections_max: usize,
    /// How long a peer may take for its preface.
    pub handshake: Span,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self { connections_max: 256, handshake: Span::from_secs(5) }
    }
}

/// The log of the daemon itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,agentd::session=debug`.
    pub level: String,
    /// Whether the text of prompts is logged, too. Commands always are.
    pub prompts: bool,
    /// Whether audit rows, with their commands, go to journald as well, where one listens. The database has them in any
    /// case; the copy is what shows that it was tampered with.
    pub audit_journal: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".into(), prompts: false, audit_journal: true }
    }
}
