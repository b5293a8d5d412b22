//! What a model of Anthropic's takes: the built-in table (section 11.3 of the API's facts). Pure.
//!
//! A model that is not in the table is taken for a newer one: those keep what the newest take, and a request that is
//! refused for it says so. Compatible servers have no table; their requests leave all of this out.

/// How thinking is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// The model decides; shown in summary.
    Adaptive,
    /// A budget of tokens: models before 4.6.
    Budget,
}

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) thinking: Thinking,
    /// The efforts it takes, rising.
    pub(super) efforts: &'static [Effort],
    /// System messages in the middle of the conversation.
    pub(super) system_messages: bool,
}

/// How much work the model puts into an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Least.
    Low,
    /// Less than most models' default.
    Medium,
    /// Most models' default.
    High,
    /// More.
    XHigh,
    /// All.
    Max,
}

impl Effort {
    /// The API's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl Capabilities {
    /// What comes closest to the effort asked for without going beyond it; `None` on models that take none.
    pub(super) fn effort(&self, asked: Effort) -> Option<Effort> {
        self.efforts.iter().copied().rfind(|effort| *effort <= asked)
    }
}

const NEWEST: Capabilities = Capabilities {
    thinking: Thinking::Adaptive,
    efforts: &[Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max],
    system_messages: true,
};

/// The 4.6 generation: all efforts but the second highest.
const OF_4_6: Capabilities = Capabilities {
    efforts: &[Effort::Low, Effort::Medium, Effort::High, Effort::Max],
    system_messages: false,
    ..NEWEST
};

/// The 4.5 generation.
const OF_4_5: Capabilities = Capabilities { thinking: Thinking::Budget, efforts: &[], system_messages: false };

/// Beginnings of model ids, so that dated forms match too; the first that fits counts.
const TABLE: [(&str, Capabilities); 8] = [
    ("claude-haiku-4-5", OF_4_5),
    ("claude-sonnet-4-5", OF_4_5),
    ("claude-opus-4-5", Capabilities { efforts: &[Effort::Low, Effort::Medium, Effort::High], ..OF_4_5 }),
    ("claude-opus-4-6", OF_4_6),
    ("claude-sonnet-4-6", OF_4_6),
    ("claude-opus-4-7", Capabilities { system_messages: false, ..NEWEST }),
    ("claude-sonnet-5-5", NEWEST),
    ("claude-sonnet-5", Capabilities { system_messages: false, ..NEWEST }),
];

/// What this model takes.
pub(super) fn of(model: &str) -> Capabilities {
    TABLE.iter().find(|(start, _)| model.starts_with(start)).map_or(NEWEST, |(_, capabilities)| *capabilities)
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
    fn system_messages_are_for_the_models_that_take_them() {
        for model in ["claude-fable-5", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5"] {
            assert!(of(model).system_messages, "{model}");
        }
        for model in ["claude-sonnet-5", "claude-opus-4-7", "claude-opus-4-6", "claude-haiku-4-5"] {
            assert!(!of(model).system_messages, "{model}");
        }
    }
}
