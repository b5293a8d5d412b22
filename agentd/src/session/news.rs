//! What tasks tell their session's actor.

use proto::ids::{CallId, RequestId};
use uuid::Uuid;

use super::file_task::Unanswered;
use super::machine::Input;
use crate::model::Progress;
use crate::shell::{OutputChunk, Shell};

/// Something a task found out.
#[derive(Debug)]
pub(super) enum News {
    /// A reply grew.
    Progress {
        /// The request.
        request: RequestId,
        /// By what.
        progress: Progress,
    },
    /// A command wrote.
    Output {
        /// The call.
        call: CallId,
        /// What.
        chunk: OutputChunk,
    },
    /// A shell answers.
    ShellUp {
        /// The shell.
        shell: Shell,
        /// Whether it is a new one, not one found again.
        launched: bool,
        /// What a shell that comes back from its rest is: a sentence.
        back: Option<String>,
    },
    /// No shell of an earlier daemon is there.
    ShellAbsent,
    /// A shell cannot be started.
    ShellFailed {
        /// Why.
        error: String,
    },
    /// Nothing runs in the shell, and what it comes back with is on disk.
    ShellIdle {
        /// Which.
        instance: Uuid,
    },
    /// The shim is gone.
    ShellLost {
        /// Which.
        instance: Uuid,
    },
    /// A background command has ended or is silent, or that may have been missed.
    JobsChanged {
        /// In this shim.
        instance: Uuid,
    },
    /// The shim died while it was asked.
    Unanswered {
        /// For what.
        what: Unanswered,
        /// Which shim.
        instance: Uuid,
    },
    /// Something the machine must hear.
    Happened(Box<Input>),
}

impl News {
    /// Whether this is what a look at a call found.
    pub(super) fn is_look(&self) -> bool {
        matches!(self, Self::Happened(input) if matches!(**input, Input::CallAssessed { .. }))
    }
}
