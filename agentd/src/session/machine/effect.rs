//! Everything the machine can ask for, in the imperative.

use proto::ids::{ApprovalId, CallId, JobId, RequestId};
use uuid::Uuid;

use crate::store::entry::{Entry, Expect, UndoOrder};

/// Something to do, after the entries of the same step are on disk (see [`Effect::waits_for_disk`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send the conversation to the model.
    SendRequest {
        /// The request.
        request: RequestId,
        /// The try, from 1.
        attempt: u32,
    },
    /// Drop the request's connection.
    CancelRequest {
        /// The request.
        request: RequestId,
    },
    /// Find out what a call would do and whether it may.
    AssessCall {
        /// The call.
        call: CallId,
    },
    /// Run a call, or find its result if it ran before.
    RunCall {
        /// The call.
        call: CallId,
        /// The shim that ran or runs it.
        shim: Option<Uuid>,
        /// What must hold at the run.
        expect: Expect,
        /// Whether it may have been started before, by an earlier daemon.
        again: bool,
    },
    /// End a running call.
    CancelCall {
        /// The call.
        call: CallId,
    },
    /// The call's result is on disk: the shim may forget it.
    ForgetCall {
        /// The call.
        call: CallId,
    },
    /// Take edits back, or find out that they were.
    RunUndo(UndoOrder),
    /// Ask the shell what became of its background commands.
    SyncJobs,
    /// The end of a background command is on disk: the shim may forget it.
    ForgetJob {
        /// The job.
        job: JobId,
    },
    /// End a background command.
    StopJob {
        /// The job.
        job: JobId,
    },
    /// Move a running command to the background.
    BackgroundCall {
        /// The call.
        call: CallId,
        /// The job that it becomes.
        job: JobId,
    },
    /// Add a rule to the user's file, unless it is there.
    KeepRule {
        /// The question that was answered with "always".
        approval: ApprovalId,
        /// The rule.
        toml: String,
    },
}

impl Effect {
    /// Whether the deed may only be done once its intent is on disk. Sending a request is repeatable and changes
    /// nothing, so it goes out while its row is being written.
    #[must_use]
    pub fn waits_for_disk(&self) -> bool {
        match self {
            Self::RunCall { .. }
            | Self::ForgetCall { .. }
            | Self::CancelCall { .. }
            | Self::RunUndo(_)
            | Self::SyncJobs
            | Self::ForgetJob { .. }
            | Self::StopJob { .. }
            | Self::BackgroundCall { .. }
            | Self::KeepRule { .. } => true,
            Self::SendRequest { .. } | Self::CancelRequest { .. } | Self::AssessCall { .. } => false,
        }
    }
}

/// What one input led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Rows, in order; they are already part of the machine's state.
    pub entries: Vec<Entry>,
    /// Deeds, in order.
    pub effects: Vec<Effect>,
}
