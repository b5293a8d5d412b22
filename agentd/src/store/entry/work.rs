//! What rows about the model's work hold.

use proto::event::Usage;
use proto::ids::{RequestId, TurnId};
use serde::{Deserialize, Serialize};

use crate::effort::Effort;

/// Why a turn is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// The money of one turn.
    TurnMoney,
    /// The money of the session.
    SessionMoney,
    /// The money of the day.
    DayMoney,
    /// The tokens of one turn.
    TurnTokens,
    /// The requests of one turn.
    TurnRequests,
    /// The time of one turn.
    TurnTime,
    /// The same call with the same result, again and again.
    Loop,
}

/// What a session's requests are made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Model id.
    pub model: String,
    /// The effort; `None`: the model's default.
    #[serde(default)]
    pub effort: Option<Effort>,
    /// Output limit in tokens.
    pub max_tokens: u32,
}

/// A summary in the history's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSummary {
    /// The turn.
    pub turn: TurnId,
    /// The request it answers.
    pub request: RequestId,
    /// The summary; `None`: the model wrote none.
    pub summary: Option<String>,
    /// What it cost.
    pub usage: Usage,
    /// The model that wrote it.
    pub model: String,
}
