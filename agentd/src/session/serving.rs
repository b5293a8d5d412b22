//! How the actor serves what clients want: each command by name.

use super::actor::Actor;
use super::actor::wishes::conflict;
use super::command::{Command, Leaving, Subscription};
use super::job_task::Look;
use super::machine::{Input, Phase};

/// Whether the actor goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// It does.
    Done,
    /// Its session is being removed.
    Retired,
}

impl Actor {
    pub(super) async fn command(&mut self, command: Command) -> Served {
        if self.stale.is_some() && !matches!(command, Command::Retire { .. }) {
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
            Command::Retry { by, reply } => {
                let result = if matches!(self.machine.phase(), Phase::Backoff(..)) {
                    self.take(Input::RetryAsked { by }).await;
                    self.stored(())
                } else {
                    Err(conflict("no failed request waits in this session", "`agentctl show` tells what it does"))
                };
                let _ = reply.send(result);
            }
            Command::Compact { by, reply } => {
                let _ = reply.send(self.compact(by).await);
            }
            Command::Steer { text, by, reply } => {
                let _ = reply.send(self.steer(text, by).await);
            }
            Command::Configure { wish, by, reply } => {
                let _ = reply.send(self.configure(wish, by).await);
            }
            Command::Rerun { prompt, reply } => {
                let _ = reply.send(self.rerun(prompt).await);
            }
            Command::Answer { approval, digest, verdict, by, reply } => {
                let _ = reply.send(self.answer(approval, digest.as_deref(), verdict, by).await);
            }
            Command::Undo { order, reply } => self.undo(order, reply).await,
            Command::Look { op, resting, reply } => self.look(op, resting, reply),
            Command::Run { call, command, by, reply } => {
                let _ = reply.send(self.run_command(call, command, by).await);
            }
            Command::Jobs { reply } => self.look_at_jobs(Look::List(reply)),
            Command::JobIds { reply } => {
                let _ = reply.send(Ok(self.machine.jobs().all().map(|start| start.job).collect()));
            }
            Command::ReadJob { job, since, max, wait_ms, reply } => self.read_job(job, since, max, wait_ms, reply),
            Command::StopJob { job, by, reply } => {
                let _ = reply.send(self.stop_job(job, by).await);
            }
            Command::Background { by, reply } => {
                let _ = reply.send(self.background(by).await);
            }
            Command::Env { reply } => self.look_at_jobs(Look::Env(reply)),
            Command::KnowsApproval { approval, reply } => {
                let asking = self.machine.asking().is_some_and(|asked| asked.id == approval);
                let _ = reply.send(Ok(asking || self.machine.answer_of(approval).is_some()));
            }
            Command::Attach { client, reply } => {
                let result = self.stored(()).map(|()| {
                    let (id, queue) = self.fanout.add(client);
                    self.fanout.live_to(id, self.open.snapshot(self.id));
                    self.fanout.tell_presence();
                    let leaving = Leaving(std::sync::Arc::clone(&self.left));
                    Subscription { info: self.info(), head: self.head, queue, leaving }
                });
                let _ = reply.send(result);
            }
            Command::Info { reply } => {
                let _ = reply.send(Ok(self.info()));
            }
            Command::Rename { name, by, reply } => {
                self.take(Input::RenameAsked { name, by }).await;
                let _ = reply.send(self.stored(()));
            }
            Command::SetMode { mode, by, reply } => {
                let _ = reply.send(self.set_mode(mode, by).await);
            }
            Command::Archive { by, reply } => {
                if self.machine.turn().is_some() {
                    self.take(Input::InterruptAsked { by: by.clone() }).await;
                }
                self.take(Input::ArchiveAsked { by }).await;
                let result = self.stored(());
                if result.is_ok() {
                    self.deeds.end_shell().await;
                    self.settle_jobs(None);
                }
                let _ = reply.send(result);
            }
            Command::EndShell { reply } => {
                self.deeds.end_shell().await;
                self.settle_jobs(None);
                let _ = reply.send(Ok(()));
            }
            Command::Retire { reply } => {
                self.deeds.end_shell().await;
                self.deeds.drop_tasks();
                let _ = reply.send(Ok(()));
                return Served::Retired;
            }
        }
        Served::Done
    }
}
