//! What a model of Anthropic's takes: the built-in table (section 11.3 of the API's facts). Pure.
//!
//! A model that is not in the table is taken for a newer one: those keep what the newest take, and a request that is
//! refused for it says so. Compatible servers have no table; their requests leave all of this out.

use serde_json::Value;

use crate::effort::Effort;

/// How thinking is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// The model decides; shown in summary.
    Adaptive,
    /// A budget of tokens: models before 4.6.
    Budget,
    /// Not at all.
    None,
}

/// What a model takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub(super) thinking: Thinking,
    /// The efforts it takes, rising.
    pub(super) efforts: Vec<Effort>,
    /// System messages in the middle of the conversation.
    pub system_messages: bool,
    /// Tokens its window holds.
    pub window: u64,
    /// Its longest reply in tokens.
    pub output: u32,
}

impl Capabilities {
    /// What comes closest to the effort asked for without going beyond it; `None` on models that take none.
    pub(super) fn effort(&self, asked: Effort) -> Option<Effort> {
        self.efforts.iter().copied().rfind(|effort| *effort <= asked)
    }
}

/// Windows and output limits (tokens) of the 4.6 generation and later, and of the one before.
const LARGE: (u64, u32) = (1_000_000, 128_000);
const SMALL: (u64, u32) = (200_000, 64_000);

const ALL: &[Effort] = &Effort::ALL;
/// All but the second highest.
const OF_4_6: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::Max];
const UP_TO_HIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];

/// A row of the table: thinking, efforts, system messages, sizes.
type Row = (Thinking, &'static [Effort], bool, (u64, u32));

const NEWEST: Row = (Thinking::Adaptive, ALL, true, LARGE);

/// Beginnings of model ids, so that dated forms match too; the first that fits counts.
const TABLE: [(&str, Row); 8] = [
    ("claude-haiku-4-5", (Thinking::Budget, &[], false, SMALL)),
    ("claude-sonnet-4-5", (Thinking::Budget, &[], false, SMALL)),
    ("claude-opus-4-5", (Thinking::Budget, UP_TO_HIGH, false, SMALL)),
    ("claude-opus-4-6", (Thinking::Adaptive, OF_4_6, false, LARGE)),
    ("claude-sonnet-4-6", (Thinking::Adaptive, OF_4_6, false, LARGE)),
    ("claude-opus-4-7", (Thinking::Adaptive, ALL, false, LARGE)),
    ("claude-sonnet-5-5", NEWEST),
    ("claude-sonnet-5", (Thinking::Adaptive, ALL, false, LARGE)),
];

/// What this model takes, by the built-in table.
#[must_use]
pub fn of(model: &str) -> Capabilities {
    let row = TABLE.iter().find(|(start, _)| model.starts_with(start)).map_or(NEWEST, |(_, row)| *row);
    let (thinking, efforts, system_messages, (window, output)) = row;
    Capabilities { thinking, efforts: efforts.to_vec(), system_messages, window, output }
}

/// What this model takes, by the Models API's entry for it. What the entry does not say is the table's.
pub(super) fn read(model: &str, entry: &Value) -> Capabilities {
    let table = of(model);
    let says = |value: Option<&Value>| {
        let value = value?;
        value.as_bool().or_else(|| value.get("supported")?.as_bool())
    };
    let capabilities = &entry["capabilities"];
    let types = &capabilities["thinking"]["types"];
    let thinking = match (says(types.get("adaptive")), says(types.get("enabled"))) {
        (Some(true), _) => Thinking::Adaptive,
        (Some(false), Some(true)) => Thinking::Budget,
        (Some(false), Some(false)) => Thinking::None,
        (Some(false) | None, None) | (None, Some(_)) => table.thinking,
    };
    let effort = &capabilities["effort"];
    let efforts = match says(Some(effort)) {
        Some(true) => Effort::ALL.into_iter().filter(|it| says(effort.get(it.as_str())) == Some(true)).collect(),
        Some(false) => Vec::new(),
        None => table.efforts,
    };
    let output = entry["max_tokens"].as_u64().and_then(|tokens| u32::try_from(tokens).ok());
    Capabilities {
        thinking,
        efforts,
        system_messages: table.system_messages,
        window: entry["max_input_tokens"].as_u64().filter(|tokens| *tokens > 0).unwrap_or(table.window),
        output: output.filter(|tokens| *tokens > 0).unwrap_or(table.output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_models_have_budgets_and_new_ones_adaptive_thinking() {
        for model in ["claude-haiku-4-5-20251001", "claude-sonnet-4-5", "claude-opus-4-5"] {
            assert_eq!(of(model).thinking, Thinking::Budget, "{model}");
        }
        for model in ["claude-fable-5-2", "claude-opus-5-5", "claude-sonnet-4-6", "claude-opus-4-8", "claude-next-9"] {
            assert_eq!(of(model).thinking, Thinking::Adaptive, "{model}");
        }
    }

    #[test]
    fn an_effort_that_a_model_does_not_take_becomes_the_next_lower_one() {
        assert_eq!(of("claude-opus-4-6").effort(Effort::XHigh), Some(Effort::High));
        assert_eq!(of("claude-opus-4-6").effort(Effort::Max), Some(Effort::Max));
        assert_eq!(of("claude-opus-4-5").effort(Effort::Max), Some(Effort::High));
        assert_eq!(of("claude-haiku-4-5").effort(Effort::Low), None);
        assert_eq!(of("claude-opus-5-5").effort(Effort::XHigh), Some(Effort::XHigh));
    }

    #[test]
    fn the_models_api_knows_better_than_the_table() {
        let supported = |it: bool| serde_json::json!({ "supported": it });
        let entry = serde_json::json!({
            "id": "claude-next", "max_input_tokens": 2_000_000, "max_tokens": 256_000,
            "capabilities": {
                "effort": { "supported": true, "low": supported(true), "high": supported(true), "max": supported(false) },
                "thinking": { "supported": true, "types": { "adaptive": supported(false), "enabled": supported(true) } },
            },
        });
        let read = read("claude-next", &entry);
        assert_eq!(read.thinking, Thinking::Budget);
        assert_eq!(read.efforts, [Effort::Low, Effort::High]);
        assert_eq!((read.window, read.output), (2_000_000, 256_000));
        assert_eq!(super::read("claude-opus-4-5", &serde_json::json!({ "id": "x" })), of("claude-opus-4-5"));
    }

    #[test]
    fn system_messages_are_for_the_models_that_take_them() {
        for model in ["claude-fable-5", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5"] {
            assert!(of(model).system_messages, "{model}");
        }
        for model in ["claude-sonnet-5", "claude-opus-4-7", "claude-opus-4-6", "claude-haiku-4-5"] {
            assert!(!of(model).system_messages, "{model}");
        }
    }
}
