//! What the log says of background commands. As in [`super::entry`]: a field once stored keeps its name and meaning.

use proto::event::Outcome;
use proto::ids::{CallId, JobId, Timestamp};
use proto::request::ApproveMode;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A command runs in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStart {
    /// Its id.
    pub job: JobId,
    /// The call that started it, or that ran it in the foreground before.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// What the model says it is for; may be empty.
    #[serde(default)]
    pub description: String,
    /// The directory it began in.
    pub cwd: String,
    /// When it became a job.
    pub started_at: Timestamp,
    /// How long it may run, in milliseconds.
    pub deadline_ms: u64,
    /// After how much silence that is told, in milliseconds; 0 = never.
    #[serde(default)]
    pub silence_ms: u64,
    /// The shim that runs it: with another one it is lost.
    pub shim: Option<Uuid>,
    /// What the prompt of the turn that started it said about approvals.
    pub approve: ApproveMode,
    /// Whether it ran in the foreground before.
    #[serde(default)]
    pub moved: bool,
}

/// A background command is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// Its id.
    pub job: JobId,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// All its output, in bytes.
    pub output_bytes: u64,
    /// The file with the output, if it is in a file.
    #[serde(default)]
    pub spool: Option<String>,
    /// What the model is told.
    pub text: String,
    /// When it is told.
    pub tell: Tell,
}

/// When the model is told of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tell {
    /// At its next request; a new turn is begun for it if none runs.
    Wake,
    /// At its next request.
    Later,
    /// Not at all: it knows already.
    Never,
}

/// A background command printed nothing for as long as was to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSilence {
    /// Its id.
    pub job: JobId,
    /// For how long, in milliseconds.
    pub silence_ms: u64,
    /// What the model is told.
    pub text: String,
}
