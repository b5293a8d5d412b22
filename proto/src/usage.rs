//! What the model's work costs, in tokens and money.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{SessionId, Timestamp, TurnId};

/// Tokens and money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Read without the cache.
    pub input_tokens: u64,
    /// Written to the cache.
    pub cache_write_tokens: u64,
    /// Read from the cache.
    pub cache_read_tokens: u64,
    /// Written by the model, thinking included.
    pub output_tokens: u64,
    /// Billionths of a US dollar, by the price list of this release; absent for models that are not on it.
    #[serde(default)]
    pub cost_nanousd: Option<u64>,
}

impl Usage {
    /// Both together. The cost is known when one of them is: what is not on the list is left out of the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_nanousd: match (self.cost_nanousd, other.cost_nanousd) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (one, None) | (None, one) => one,
            },
        }
    }

    /// All tokens read, from wherever.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.cache_write_tokens).saturating_add(self.cache_read_tokens)
    }
}

/// What was used, by day, session and model; and by turn when one session was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// Newest day first.
    pub days: Vec<DayUsage>,
    /// Newest first; empty unless a session was named.
    pub turns: Vec<TurnUsage>,
}

/// One day of one session with one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayUsage {
    /// The day in UTC, `2026-12-01`.
    pub day: String,
    /// The session; it may be gone.
    pub session: SessionId,
    /// The model.
    pub model: String,
    /// Replies of the model.
    pub requests: u64,
    /// What they took.
    pub usage: Usage,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnUsage {
    /// The turn.
    pub turn: TurnId,
    /// When it ended.
    pub at: Timestamp,
    /// Requests to the model.
    pub requests: u32,
    /// What they took.
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_leave_out_what_has_no_price() {
        let paid = Usage { input_tokens: 1, cost_nanousd: Some(5), ..Usage::default() };
        let free = Usage { output_tokens: 2, ..Usage::default() };
        assert_eq!(paid.plus(free).plus(paid).cost_nanousd, Some(10));
        assert_eq!(free.plus(free).cost_nanousd, None);
        assert_eq!(paid.plus(free).prompt_tokens(), 1);
    }
}
