//! What clients want of a session, and what they get.

use proto::approval::{Decider, Verdict};
use proto::ids::{ApprovalId, PromptId, Seq};
use proto::mode::Mode;
use proto::request::ClientInfo;
use proto::response::{Accepted, Answered, SessionInfo, SessionState, Undone, WireError};
use proto::shim::files::{FileOp, FileReply};
use tokio::sync::{mpsc, oneshot};

use super::fanout::Outgoing;
use super::machine::{Machine, Phase};
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
    KnowsApproval {
        approval: ApprovalId,
        reply: Reply<bool>,
    },
    Attach {
        client: ClientInfo,
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
}

/// What a machine is doing, in the wire's words.
pub(super) fn state_of(machine: &Machine) -> SessionState {
    match machine.phase() {
        Phase::Idle => SessionState::Idle,
        Phase::Ready(turn) | Phase::Requesting(turn, _) | Phase::Backoff(turn, ..) | Phase::Calling(turn, _)
            if turn.stopping =>
        {
            SessionState::Stopping
        }
        Phase::Ready(_) | Phase::Requesting(..) => SessionState::Thinking,
        Phase::Backoff(_, _, pause) if pause.parked => SessionState::Parked,
        Phase::Backoff(..) => SessionState::Waiting,
        Phase::Calling(..) if machine.asking().is_some() => SessionState::Asking,
        Phase::Calling(..) | Phase::Undoing(_) => SessionState::Running,
    }
}
