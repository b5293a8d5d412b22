//! What clients want of a session, and what they get.

use proto::approval::{Decider, Verdict};
use proto::ids::{ApprovalId, CallId, JobId, PromptId, Seq};
use proto::job::{Environment, Job, JobOutput, Moving};
use proto::mode::Mode;
use proto::response::{Accepted, Answered, Attendee, SessionInfo, SessionState, Undone, WireError};
use proto::shim::files::{FileOp, FileReply};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot};

use super::fanout::Outgoing;
use super::machine::{Machine, Phase};
use crate::model::Effort;
use crate::store::entry::{Prompt, UndoOrder};

/// Commands that may wait for one session: clients send a few each; more means the session is stuck on the disk.
pub(super) const INBOX_MAX: usize = 64;

pub(super) type Reply<T> = oneshot::Sender<Result<T, WireError>>;

/// What a client wants of a session.
#[derive(Debug)]
pub(super) enum Command {
    Prompt {
        prompt: Prompt,
        reply: Reply<Accepted>,
    },
    Withdraw {
        prompt: PromptId,
        by: String,
        reply: Reply<()>,
    },
    Interrupt {
        by: String,
        reply: Reply<()>,
    },
    Retry {
        by: String,
        reply: Reply<()>,
    },
    Compact {
        by: String,
        reply: Reply<()>,
    },
    Steer {
        text: String,
        by: String,
        reply: Reply<()>,
    },
    Configure {
        wish: Wish,
        by: String,
        reply: Reply<()>,
    },
    Rerun {
        prompt: Prompt,
        reply: Reply<Accepted>,
    },
    Answer {
        approval: ApprovalId,
        digest: Option<String>,
        verdict: Verdict,
        by: Decider,
        reply: Reply<Answered>,
    },
    Undo {
        order: UndoOrder,
        reply: Reply<Undone>,
    },
    /// `resting`: only while nothing runs.
    Look {
        op: FileOp,
        resting: bool,
        reply: Reply<FileReply>,
    },
    Run {
        call: CallId,
        command: String,
        by: String,
        reply: Reply<()>,
    },
    Jobs {
        reply: Reply<Vec<Job>>,
    },
    JobIds {
        reply: Reply<Vec<JobId>>,
    },
    ReadJob {
        job: JobId,
        since: u64,
        max: u64,
        wait_ms: u64,
        reply: Reply<JobOutput>,
    },
    StopJob {
        job: JobId,
        by: String,
        reply: Reply<()>,
    },
    Background {
        by: String,
        reply: Reply<Moving>,
    },
    Env {
        reply: Reply<Environment>,
    },
    KnowsApproval {
        approval: ApprovalId,
        reply: Reply<bool>,
    },
    Attach {
        client: Attendee,
        reply: Reply<Subscription>,
    },
    Info {
        reply: Reply<SessionInfo>,
    },
    Rename {
        name: String,
        by: String,
        reply: Reply<()>,
    },
    SetMode {
        mode: Mode,
        by: String,
        reply: Reply<()>,
    },
    Archive {
        by: String,
        reply: Reply<()>,
    },
    EndShell {
        reply: Reply<()>,
    },
    /// End the shell, and the actor after the answer.
    Retire {
        reply: Reply<()>,
    },
}

/// Settings to change; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Model id.
    pub model: Option<String>,
    /// The effort; `Some(None)`: the model's default.
    pub effort: Option<Option<Effort>>,
    /// Output limit in tokens.
    pub max_tokens: Option<u32>,
}

/// A client's place in a session's fan-out.
#[derive(Debug)]
pub struct Subscription {
    /// The session as it is.
    pub info: SessionInfo,
    /// The last row that is not in the queue: those up to it are read from the store.
    pub head: Seq,
    /// Rows and pieces from then on. Closes when the client is cut off; who drops it is detached.
    pub queue: mpsc::Receiver<Outgoing>,
    /// Tells the session when this is dropped. Behind the queue: fields are dropped in this order.
    pub leaving: Leaving,
}

/// Wakes a session when a client is gone, so that the others hear of it.
#[derive(Debug)]
pub struct Leaving(pub(super) Arc<Notify>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// What a machine is doing, in the wire's words.
pub(super) fn state_of(machine: &Machine) -> SessionState {
    match machine.phase() {
        Phase::Idle => SessionState::Idle,
        Phase::Ready(turn)
        | Phase::Requesting(turn, _)
        | Phase::Backoff(turn, ..)
        | Phase::Paused(turn, _)
        | Phase::Calling(turn, _)
            if turn.stopping =>
        {
            SessionState::Stopping
        }
        Phase::Ready(_) | Phase::Requesting(..) => SessionState::Thinking,
        Phase::Backoff(_, _, pause) if pause.parked => SessionState::Parked,
        Phase::Backoff(..) => SessionState::Waiting,
        Phase::Paused(..) => SessionState::Asking,
        Phase::Calling(..) if machine.asking().is_some() => SessionState::Asking,
        Phase::Calling(..) | Phase::Undoing(_) => SessionState::Running,
    }
}
