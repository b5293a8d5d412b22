//! The lines of `policy check`, `policy test` and `policy replay`, one JSON object each.
//!
//! Not part of the client's wire: `agentd` writes them, `agentctl` and scripts read them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
}

impl Decided {
    /// The word in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The answer to one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// As it was in the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The decision.
    pub decision: Decided,
    /// Why, in one sentence.
    pub reason: String,
    /// The rule that decided, with its layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The simple commands in the order of the text; none when the text is not understood.
    pub parts: Vec<CheckedPart>,
}

/// A simple command of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedPart {
    /// Its text.
    pub command: String,
    /// Its verdict.
    pub decision: Decided,
    /// Why.
    pub reason: String,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// The answer to a line that is no question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadLine {
    /// Its id, where that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub error: String,
}

/// What `policy test` says of a rule file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// The file.
    pub file: String,
    /// `system`, `user` or `workspace`.
    pub layer: String,
    /// How many rules it has; none when it does not parse.
    pub rules: usize,
    /// How many examples they carry.
    pub examples: usize,
    /// What is wrong with it.
    pub problems: Vec<TestProblem>,
}

/// One thing that is wrong with a rule file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestProblem {
    /// The line of the rule in the file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The rule's number in the file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// What is wrong, in one sentence.
    pub problem: String,
}

/// A command of the audit that other rules decide otherwise, or the sum at the end of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replayed {
    /// It would be decided otherwise.
    Differs(Difference),
    /// The last line.
    Sum(ReplaySum),
}

/// A command that is decided otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The audit's row.
    pub id: u64,
    /// When it was, in milliseconds since 1970.
    pub at: u64,
    /// The session.
    pub session: String,
    /// The command.
    pub command: String,
    /// What the policy decided then.
    pub was: Decided,
    /// What it would decide.
    pub now: Decided,
    /// Why.
    pub reason: String,
    /// By which rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// What a replay comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaySum {
    /// Commands looked at.
    pub commands: u64,
    /// Decided otherwise.
    pub differ: u64,
    /// Would run without a question.
    pub allow: u64,
    /// Would be asked about.
    pub ask: u64,
    /// Would be refused.
    pub deny: u64,
}
