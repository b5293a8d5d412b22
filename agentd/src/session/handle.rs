//! A session's face for the server: each wish of a client as a call.

use proto::approval::{Decider, Verdict};
use proto::ids::{ApprovalId, CallId, JobId, PromptId, SessionId, UndoId};
use proto::job::{Environment, Job, JobOutput, Moving};
use proto::mode::Mode;
use proto::response::{Accepted, Answered, Attendee, ErrorCode, SessionChanges, SessionInfo, Undone, WireError};
use proto::shim::files::FileOp;
use tokio::sync::{mpsc, oneshot};

use super::command::{Command, Subscription, Wish};
use crate::store::entry::{Prompt, UndoOrder};
use crate::tools;

/// A session's face; cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    pub(super) id: SessionId,
    pub(super) inbox: mpsc::Sender<Command>,
}

impl SessionHandle {
    /// The session's id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Submits a prompt; the answer means it is on disk. The same id again changes nothing.
    ///
    /// # Errors
    /// Storage failures; an archived session.
    pub async fn prompt(&self, prompt: Prompt) -> Result<Accepted, WireError> {
        self.ask(|reply| Command::Prompt { prompt, reply }).await
    }

    /// Takes back a queued prompt.
    ///
    /// # Errors
    /// When its turn has begun.
    pub async fn withdraw(&self, prompt: PromptId, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Withdraw { prompt, by, reply }).await
    }

    /// Ends the running turn.
    ///
    /// # Errors
    /// When none runs.
    pub async fn interrupt(&self, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Interrupt { by, reply }).await
    }

    /// Sends the failed request of a waiting or parked turn again at once.
    ///
    /// # Errors
    /// When none waits.
    pub async fn retry(&self, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Retry { by, reply }).await
    }

    /// Replaces the history by a summary; the answer means that it has begun.
    ///
    /// # Errors
    /// While a turn runs; when there is no history.
    pub async fn compact(&self, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Compact { by, reply }).await
    }

    /// Hands the running turn a note.
    ///
    /// # Errors
    /// When none runs.
    pub async fn steer(&self, text: String, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Steer { text, by, reply }).await
    }

    /// Changes what the next requests are made with.
    ///
    /// # Errors
    /// While a turn runs.
    pub async fn configure(&self, wish: Wish, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Configure { wish, by, reply }).await
    }

    /// Asks the last prompt again, in other words unless the text is empty.
    ///
    /// # Errors
    /// While a turn runs; when there is no such prompt.
    pub async fn rerun(&self, prompt: Prompt) -> Result<Accepted, WireError> {
        self.ask(|reply| Command::Rerun { prompt, reply }).await
    }

    /// Answers an approval; the first answer wins, and every answer learns which.
    ///
    /// # Errors
    /// When it is not this session's, or the answer is not possible.
    pub async fn answer(
        &self,
        approval: ApprovalId,
        digest: Option<String>,
        verdict: Verdict,
        by: Decider,
    ) -> Result<Answered, WireError> {
        self.ask(|reply| Command::Answer { approval, digest, verdict, by, reply }).await
    }

    /// Takes edits back; the answer means that it is done and on disk. The same id again changes nothing.
    ///
    /// # Errors
    /// While a turn runs; when a file is not as its edit left it; when the shell cannot be asked.
    pub async fn undo(&self, order: UndoOrder) -> Result<Undone, WireError> {
        self.ask(|reply| Command::Undo { order, reply }).await
    }

    /// What taking edits back would change.
    ///
    /// # Errors
    /// As for [`Self::undo`].
    pub async fn preview_undo(&self, undo: UndoId, steps: u32) -> Result<Undone, WireError> {
        let op = tools::undo::preview_op(steps);
        let reply = self.ask(|reply| Command::Look { op, resting: true, reply }).await?;
        tools::undo::preview(undo, steps, &reply)
    }

    /// The session's changes of files that stand.
    ///
    /// # Errors
    /// When the shell cannot be asked.
    pub async fn changes(&self) -> Result<SessionChanges, WireError> {
        let reply = self.ask(|reply| Command::Look { op: FileOp::Changes {}, resting: false, reply }).await?;
        tools::undo::changes(&reply)
    }

    /// Runs a command of the user's own in its shell; the answer means that this is on disk.
    ///
    /// # Errors
    /// While anything else runs.
    pub async fn run_command(&self, call: CallId, command: String, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Run { call, command, by, reply }).await
    }

    /// Its background commands.
    ///
    /// # Errors
    /// When the session is going away.
    pub async fn jobs(&self) -> Result<Vec<Job>, WireError> {
        self.ask(|reply| Command::Jobs { reply }).await
    }

    /// The ids of the background commands that it knows, without a look at the shell.
    pub async fn job_ids(&self) -> Vec<JobId> {
        self.ask(|reply| Command::JobIds { reply }).await.unwrap_or_default()
    }

    /// Part of a background command's output, after a wait for more.
    ///
    /// # Errors
    /// When it is not kept, or the shell cannot be asked.
    pub async fn read_job(&self, job: JobId, since: u64, max: u64, wait_ms: u64) -> Result<JobOutput, WireError> {
        self.ask(|reply| Command::ReadJob { job, since, max, wait_ms, reply }).await
    }

    /// Begins to end a background command; the answer means that this is on disk.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn stop_job(&self, job: JobId, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::StopJob { job, by, reply }).await
    }

    /// Begins to move the running command to the background; the answer means that this is on disk.
    ///
    /// # Errors
    /// When no command runs.
    pub async fn background(&self, by: String) -> Result<Moving, WireError> {
        self.ask(|reply| Command::Background { by, reply }).await
    }

    /// The environment of the session's shell.
    ///
    /// # Errors
    /// When there is no shell.
    pub async fn env(&self) -> Result<Environment, WireError> {
        self.ask(|reply| Command::Env { reply }).await
    }

    /// Whether this session asked that question, also when it is answered.
    pub async fn knows_approval(&self, approval: ApprovalId) -> bool {
        self.ask(|reply| Command::KnowsApproval { approval, reply }).await.unwrap_or(false)
    }

    /// Attaches a client, until it drops the subscription's queue.
    ///
    /// # Errors
    /// When the session's log cannot be read.
    pub async fn attach(&self, client: Attendee) -> Result<Subscription, WireError> {
        self.ask(|reply| Command::Attach { client, reply }).await
    }

    /// The session as it is.
    ///
    /// # Errors
    /// When the session is going away.
    pub async fn info(&self) -> Result<SessionInfo, WireError> {
        self.ask(|reply| Command::Info { reply }).await
    }

    /// Gives it a name.
    ///
    /// # Errors
    /// When the name is taken.
    pub async fn rename(&self, name: String, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Rename { name, by, reply }).await
    }

    /// Switches its mode, and decides by it what is not decided yet.
    ///
    /// # Errors
    /// Storage failures; an archived session.
    pub async fn set_mode(&self, mode: Mode, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::SetMode { mode, by, reply }).await
    }

    /// Ends its shell and takes it off the list.
    ///
    /// # Errors
    /// Storage failures.
    pub async fn archive(&self, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Archive { by, reply }).await
    }

    /// Ends its shell, and its actor: the session is about to be removed.
    ///
    /// # Errors
    /// When the session is going away already.
    pub(super) async fn retire(&self) -> Result<(), WireError> {
        self.ask(|reply| Command::Retire { reply }).await
    }

    /// Ends its shell and everything it runs.
    ///
    /// # Errors
    /// When the session is going away.
    pub async fn end_shell(&self) -> Result<(), WireError> {
        self.ask(|reply| Command::EndShell { reply }).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, WireError>>) -> Command,
    ) -> Result<T, WireError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(command(reply)).await.map_err(|_| gone(self.id))?;
        answer.await.map_err(|_| gone(self.id))?
    }
}

fn gone(id: SessionId) -> WireError {
    WireError {
        code: ErrorCode::Internal,
        message: format!("the session {} is not served at the moment", id.short()),
        hint: "try again; the daemon's log says why".into(),
    }
}
