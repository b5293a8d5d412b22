//! What clients ask of a session beyond a word: checks first, then the machine, then the answer.

use proto::approval::{Approval, Choice, Decider, Verdict};
use proto::ids::{ApprovalId, CallId, Seq};
use proto::mode::Mode;
use proto::response::{Accepted, Answered, ErrorCode, Undone, WireError};
use proto::shim::files::{FileOp, FileReply};

use super::super::command::{Reply, Wish};
use super::super::file_task::{Look, TRIES_MAX, Unanswered, UndoTry, unreachable_shell};
use super::super::machine::{Input, Phase};
use super::super::storage_error;
use super::Actor;
use crate::store::entry::{Entry, Prompt, UndoOrder, UndoResult};
use crate::tools::{bash, undo};

/// Why there is no answer when every shell that was asked died.
const DIED: &str = "its process died";

impl Actor {
    pub(in crate::session) async fn prompt(&mut self, prompt: Prompt) -> Result<Accepted, WireError> {
        let id = prompt.prompt;
        if !self.prompts.contains_key(&id) {
            self.check_served()?;
            self.take(Input::PromptSubmitted(prompt)).await;
            self.stored(())?;
        }
        let seq = self.prompts.get(&id).copied().unwrap_or(self.head);
        Ok(Accepted { session: self.id, prompt: id, seq })
    }

    pub(in crate::session) async fn answer(
        &mut self,
        approval: ApprovalId,
        digest: Option<&str>,
        verdict: Verdict,
        by: Decider,
    ) -> Result<Answered, WireError> {
        if let Some(closed) = self.machine.answer_of(approval) {
            let (verdict, by) = (closed.verdict.clone(), closed.by.clone());
            return Ok(Answered { approval, verdict, by, yours: false });
        }
        let Some(asked) = self.machine.asking().filter(|asked| asked.id == approval) else {
            return Err(WireError {
                code: ErrorCode::NotFound,
                message: format!("no open approval {}", approval.short()),
                hint: "`agentctl approvals` lists the open ones".into(),
            });
        };
        if digest.is_some_and(|digest| digest != asked.digest) {
            return Err(conflict("the answer is for something else than what is asked", "look at it again"));
        }
        check_choice(asked, &verdict)?;
        self.take(Input::ApprovalAnswered { approval, verdict: verdict.clone(), by: by.clone() }).await;
        self.stored(Answered { approval, verdict, by, yours: true })
    }

    pub(in crate::session) async fn set_mode(&mut self, mode: Mode, by: String) -> Result<(), WireError> {
        self.check_served()?;
        self.take(Input::ModeAsked { mode, by }).await;
        self.stored(())
    }

    /// Takes edits back; the reply waits for the row that says so. The same id again gets the same answer.
    pub(in crate::session) async fn undo(&mut self, order: UndoOrder, reply: Reply<Undone>) {
        let id = order.undo;
        if let Some(seq) = self.undos.get(&id).copied() {
            let _ = reply.send(self.undo_at(seq).await);
            return;
        }
        if !matches!(self.machine.phase(), Phase::Undoing(running) if running.undo == id) {
            let ready = self.check_served().and_then(|()| self.check_resting());
            if let Err(error) = ready {
                let _ = reply.send(Err(error));
                return;
            }
            self.take(Input::UndoAsked(order)).await;
            if let Err(error) = self.stored(()) {
                let _ = reply.send(Err(error));
                return;
            }
        }
        self.undo_waiters.push((id, reply));
    }

    /// The answer that an undo was given.
    async fn undo_at(&self, seq: Seq) -> Result<Undone, WireError> {
        let rows = self.context.store.rows(self.id, Seq(seq.0.saturating_sub(1)), 1).await;
        match rows.map_err(|error| storage_error(&error))?.first().map(|row| &row.entry) {
            Some(Entry::UndoEnded(result)) => undo::answer(result),
            Some(_) | None => Err(conflict("the undo's row is not there any more", "")),
        }
    }

    /// An undo's row is on disk: who waits for it hears.
    pub(in crate::session) fn undo_over(&mut self, seq: Seq, result: &UndoResult) {
        self.undos.insert(result.undo, seq);
        for (id, reply) in std::mem::take(&mut self.undo_waiters) {
            if id == result.undo {
                let _ = reply.send(undo::answer(result));
            } else {
                self.undo_waiters.push((id, reply));
            }
        }
    }

    /// The shell that was asked is dead: another is asked, unless that goes on and on.
    pub(in crate::session) async fn ask_again(&mut self, what: Unanswered) {
        match what {
            Unanswered::Undo(UndoTry { order, tries }) if self.row.archived || tries + 1 >= TRIES_MAX => {
                self.take(Input::UndoEnded(Box::new(undo::no_shell(&order, DIED)))).await;
            }
            Unanswered::Undo(this) => self.deeds.undo(UndoTry { tries: this.tries + 1, ..this }),
            Unanswered::Look(look) if self.row.archived || look.tries + 1 >= TRIES_MAX => {
                let _ = look.reply.send(Err(unreachable_shell(DIED)));
            }
            Unanswered::Look(look) => self.deeds.look(Look { tries: look.tries + 1, ..look }),
        }
    }

    /// A note for the running turn.
    pub(in crate::session) async fn steer(&mut self, text: String, by: String) -> Result<(), WireError> {
        match self.machine.turn() {
            Some(turn) if !turn.stopping && !turn.standalone => {
                self.take(Input::SteerAsked { text, by }).await;
                self.stored(())
            }
            Some(_) => Err(conflict("this turn takes no notes", "send a prompt; it waits for its turn")),
            None => Err(conflict("nothing runs in this session", "send a prompt instead")),
        }
    }

    /// Model, effort or output limit of the next requests.
    pub(in crate::session) async fn configure(&mut self, wish: Wish, by: String) -> Result<(), WireError> {
        self.check_between("settings are changed between turns")?;
        let mut settings = self.settings();
        settings.model = wish.model.unwrap_or(settings.model);
        settings.effort = wish.effort.unwrap_or(settings.effort);
        settings.max_tokens = wish.max_tokens.unwrap_or(settings.max_tokens);
        self.take(Input::SettingsAsked { settings, by }).await;
        self.stored(())
    }

    /// A command of the user's own.
    pub(in crate::session) async fn run_command(
        &mut self,
        call: CallId,
        command: String,
        by: String,
    ) -> Result<(), WireError> {
        if self.entered.contains(&call) {
            return Ok(());
        }
        self.check_served()?;
        if !matches!(self.machine.phase(), Phase::Idle) {
            return Err(conflict(
                "the session's shell is at work; a command of yours runs when it rests",
                "wait, end what runs with `agentctl interrupt`, or move it away with `agentctl background`",
            ));
        }
        self.take(Input::CommandEntered { call, command, by }).await;
        self.stored(())
    }

    /// The last prompt again.
    pub(in crate::session) async fn rerun(&mut self, prompt: Prompt) -> Result<Accepted, WireError> {
        let id = prompt.prompt;
        if !self.prompts.contains_key(&id) {
            self.check_served()?;
            self.check_between("a prompt is asked again between turns")?;
            if self.machine.last_prompt().is_none() {
                return Err(conflict(
                    "no prompt can be asked again: there is none, or the history was compacted after it",
                    "send it as a new prompt",
                ));
            }
            self.take(Input::RerunAsked(prompt)).await;
            self.stored(())?;
        }
        let seq = self.prompts.get(&id).copied().unwrap_or(self.head);
        Ok(Accepted { session: self.id, prompt: id, seq })
    }

    pub(in crate::session) async fn compact(&mut self, by: String) -> Result<(), WireError> {
        self.check_served()?;
        self.check_between("the history is compacted between turns")?;
        if self.machine.history().is_empty() {
            return Err(conflict("there is nothing to compact yet", ""));
        }
        self.take(Input::CompactionAsked { by }).await;
        self.stored(())
    }

    fn check_between(&self, what: &str) -> Result<(), WireError> {
        if matches!(self.machine.phase(), Phase::Idle) {
            return Ok(());
        }
        Err(conflict(&format!("{what}, and one runs in this session"), "wait for its end, or `agentctl interrupt` it"))
    }

    /// Looks at the files; the reply comes when the shell has answered.
    pub(in crate::session) fn look(&mut self, op: FileOp, resting: bool, reply: Reply<FileReply>) {
        let ready = self.check_served().and_then(|()| if resting { self.check_resting() } else { Ok(()) });
        match ready {
            Ok(()) => self.deeds.look(Look { op, reply, tries: 0 }),
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }

    fn check_served(&self) -> Result<(), WireError> {
        if self.row.archived {
            return Err(conflict("the session is archived", "start a new one with `agentctl ask --new`"));
        }
        Ok(())
    }

    fn check_resting(&self) -> Result<(), WireError> {
        match self.machine.phase() {
            Phase::Idle => Ok(()),
            Phase::Undoing(_) => Err(conflict("another undo is under way in this session", "try again")),
            Phase::Ready(_) | Phase::Requesting(..) | Phase::Backoff(..) | Phase::Paused(..) | Phase::Calling(..) => {
                Err(conflict(
                    "a turn runs in this session; nothing is taken back while the agent may be editing",
                    "wait for its end, or end it with `agentctl interrupt`",
                ))
            }
        }
    }

    /// The value, unless the disk failed meanwhile.
    pub(in crate::session) fn stored<T>(&self, value: T) -> Result<T, WireError> {
        self.stale.as_ref().map_or(Ok(value), |error| Err(storage_error(error)))
    }
}

/// Whether this question can be answered so.
fn check_choice(asked: &Approval, verdict: &Verdict) -> Result<(), WireError> {
    let (choice, message, hint) = match verdict {
        Verdict::Once {} => (Choice::Once, "this call cannot be allowed", "deny it"),
        Verdict::Session {} => (Choice::Session, "such a call cannot come again as it is", "allow it once"),
        Verdict::Always {} => (
            Choice::Always,
            "no rule would allow this call and nothing beside it",
            "allow it once or for the session, or write a rule into policy.toml by hand",
        ),
        Verdict::Deny { .. } => (Choice::Deny, "this call cannot be denied", "interrupt the turn"),
        Verdict::Edit { .. } => (Choice::Edit, "only commands can be changed", "deny it with a reason"),
    };
    if !asked.choices.contains(&choice) {
        return Err(conflict(message, hint));
    }
    match verdict {
        Verdict::Edit { command } if command.trim().is_empty() => {
            Err(conflict("the changed command is empty", "deny it instead"))
        }
        Verdict::Edit { command } => bash::check(command).map_err(|problem| WireError {
            code: ErrorCode::BadRequest,
            message: problem,
            hint: "answer with a command that can run".into(),
        }),
        Verdict::Once {} | Verdict::Session {} | Verdict::Always {} | Verdict::Deny { .. } => Ok(()),
    }
}

pub(in crate::session) fn conflict(message: &str, hint: &str) -> WireError {
    WireError { code: ErrorCode::Conflict, message: message.into(), hint: hint.into() }
}
