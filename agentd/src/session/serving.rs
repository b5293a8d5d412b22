//! How the actor serves what clients want: each command by name.

use proto::approval::{Decider, Verdict};
use proto::ids::ApprovalId;
use proto::response::{Accepted, Answered, ErrorCode, WireError};

use super::actor::Actor;
use super::command::{Command, Subscription};
use super::machine::Input;
use super::storage_error;
use crate::store::entry::Prompt;

impl Actor {
    pub(super) async fn command(&mut self, command: Command) {
        if self.stale.is_some() {
            self.recover().await;
        }
        // A receiver that went away needs no answer: each `send` below may fail freely.
        match command {
            Command::Prompt { prompt, reply } => {
                let _ = reply.send(self.prompt(prompt).await);
            }
            Command::Withdraw { prompt, by, reply } => {
                let waiting = self.machine.queued().any(|queued| queued == prompt);
                let result = if waiting {
                    self.take(Input::PromptWithdrawn { prompt, by }).await;
                    self.stored(())
                } else {
                    Err(conflict("the prompt is not in the queue", "its turn has begun; `agentctl interrupt` ends it"))
                };
                let _ = reply.send(result);
            }
            Command::Interrupt { by, reply } => {
                let result = if self.machine.turn().is_some() {
                    self.take(Input::InterruptAsked { by }).await;
                    self.stored(())
                } else {
                    Err(conflict("nothing runs in this session", ""))
                };
                let _ = reply.send(result);
            }
            Command::Answer { approval, digest, verdict, by, reply } => {
                let _ = reply.send(self.answer(approval, digest.as_deref(), verdict, by).await);
            }
            Command::KnowsApproval { approval, reply } => {
                let asking = self.machine.asking().is_some_and(|asked| asked.id == approval);
                let _ = reply.send(Ok(asking || self.machine.answer_of(approval).is_some()));
            }
            Command::Attach { client, reply } => {
                let result = self.stored(()).map(|()| {
                    let (id, queue) = self.fanout.add(client);
                    self.fanout.live_to(id, self.open.snapshot(self.id));
                    Subscription { id, info: self.info(), head: self.head, queue }
                });
                let _ = reply.send(result);
            }
            Command::Detach { id } => self.fanout.remove(id),
            Command::Info { reply } => {
                let _ = reply.send(Ok(self.info()));
            }
            Command::Rename { name, by, reply } => {
                self.take(Input::RenameAsked { name, by }).await;
                let _ = reply.send(self.stored(()));
            }
            Command::Archive { by, reply } => {
                if self.machine.turn().is_some() {
                    self.take(Input::InterruptAsked { by: by.clone() }).await;
                }
                self.take(Input::ArchiveAsked { by }).await;
                let result = self.stored(());
                if result.is_ok() {
                    self.deeds.end_shell().await;
                }
                let _ = reply.send(result);
            }
            Command::EndShell { reply } => {
                self.deeds.end_shell().await;
                let _ = reply.send(Ok(()));
            }
        }
    }

    async fn prompt(&mut self, prompt: Prompt) -> Result<Accepted, WireError> {
        let id = prompt.prompt;
        if !self.prompts.contains_key(&id) {
            if self.row.archived {
                return Err(conflict("the session is archived", "start a new one with `agentctl ask --new`"));
            }
            self.take(Input::PromptSubmitted(prompt)).await;
            self.stored(())?;
        }
        let seq = self.prompts.get(&id).copied().unwrap_or(self.head);
        Ok(Accepted { session: self.id, prompt: id, seq })
    }

    async fn answer(
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
        if matches!(verdict, Verdict::Always {}) {
            return Err(conflict(
                "this call has no rule that could be written for it",
                "answer once or for the session",
            ));
        }
        self.take(Input::ApprovalAnswered { approval, verdict: verdict.clone(), by: by.clone() }).await;
        self.stored(Answered { approval, verdict, by, yours: true })
    }

    /// The value, unless the disk failed meanwhile.
    fn stored<T>(&self, value: T) -> Result<T, WireError> {
        self.stale.as_ref().map_or(Ok(value), |error| Err(storage_error(error)))
    }
}

fn conflict(message: &str, hint: &str) -> WireError {
    WireError { code: ErrorCode::Conflict, message: message.into(), hint: hint.into() }
}
