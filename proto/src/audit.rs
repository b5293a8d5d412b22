//! The audit's rows, as `agentctl audit --json` prints them: every call before it runs, its result after it, and every
//! call that was refused, with who or what decided.
//!
//! Not part of the client's wire: the rows travel as JSON lines from `agentd audit`, which reads the database beside the
//! daemon, so that they can be read when no daemon runs.
//!
//! Invariant: a field once written keeps its name and meaning, because the rows' text is what the hash chain covers.

use serde::{Deserialize, Serialize};

use crate::approval::Decider;
use crate::event::Outcome;
use crate::ids::{CallId, Seq, SessionId, Timestamp};

/// What happened, without its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audited {
    /// When.
    pub at: Timestamp,
    /// The session.
    pub session: SessionId,
    /// The row of the session's log that says the same.
    pub seq: Seq,
    /// The call.
    pub call: CallId,
    /// What happened.
    pub event: AuditEvent,
    /// The tool's name as the model knows it.
    pub tool: String,
    /// The shell command whole; for other tools one line that names what was done to which file.
    pub command: String,
    /// The directory the command runs in; the workspace for other tools.
    pub cwd: String,
    /// The session's workspace.
    pub workspace: String,
    /// Whether the policy asked for an approval. What stood in for a person (a flag, an earlier answer) counts as asked.
    pub asked: bool,
    /// Who or what allowed it or refused it.
    pub by: Decider,
    /// Why it was refused, or which rule allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// A command's exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// How long it ran, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// What a row tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditEvent {
    /// The call is about to run.
    Started,
    /// It has its result.
    Ended,
    /// It was not allowed and did not run.
    Refused,
}

impl AuditEvent {
    /// The word in JSON, the store and the journal.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Ended => "ended",
            Self::Refused => "refused",
        }
    }
}

/// A row in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// Its number, from 1, without gaps.
    pub id: u64,
    /// What happened.
    #[serde(flatten)]
    pub audited: Audited,
    /// SHA-256 in hex over the hash of the row before it, its number and its text.
    pub hash: String,
}

/// Which rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditDecision {
    /// Calls that ran without a question.
    Allow,
    /// Calls that were asked about, however that ended.
    Ask,
    /// Calls that did not run.
    Deny,
}

impl AuditDecision {
    /// Whether a row is one of these.
    #[must_use]
    pub fn fits(self, row: &Audited) -> bool {
        let refused = match row.event {
            AuditEvent::Started | AuditEvent::Ended => false,
            AuditEvent::Refused => true,
        };
        match self {
            Self::Allow => !refused && !row.asked,
            Self::Ask => row.asked,
            Self::Deny => refused,
        }
    }
}

/// What `audit verify` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Rows that were checked and are sound.
    pub rows: u64,
    /// The first row that is not as it was written.
    pub broken: Option<BrokenRow>,
    /// The hash of the last sound row, in hex: who keeps it elsewhere can prove later that nothing before it was changed.
    pub head: Option<String>,
}

/// Where the chain breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenRow {
    /// Its number.
    pub id: u64,
    /// What is wrong with it, in words.
    pub problem: String,
}
