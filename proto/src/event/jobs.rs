//! Rows about background commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::ids::{CallId, JobId, TurnId};

/// A command runs in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobStarted {
    /// The job.
    pub job: JobId,
    /// The call that started it, or that ran it in the foreground before.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// What the model says it is for; may be empty.
    pub description: String,
    /// The directory it began in.
    pub cwd: String,
    /// How long it may run, in milliseconds.
    pub deadline_ms: u64,
    /// Whether it ran in the foreground before.
    pub moved: bool,
}

/// A background command is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobEnded {
    /// The job.
    pub job: JobId,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// All its output, in bytes.
    pub output_bytes: u64,
    /// What the model is told of it.
    pub text: String,
}

/// A background command prints nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSilent {
    /// The job.
    pub job: JobId,
    /// For how long, in milliseconds.
    pub silence_ms: u64,
}

/// A user wants a background command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobStopAsked {
    /// The job.
    pub job: JobId,
    /// Who asked.
    pub by: String,
}

/// A user wants the running command in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundAsked {
    /// The call.
    pub call: CallId,
    /// The job that it will be.
    pub job: JobId,
    /// Who asked.
    pub by: String,
}

/// A turn began without a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnWoken {
    /// The turn.
    pub turn: TurnId,
}

/// The model is told of what happened to background commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobsTold {
    /// The turn.
    pub turn: TurnId,
}
