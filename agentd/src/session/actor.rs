//! One session's actor: it owns the machine, stores what the machine records, publishes it, and carries its effects out.
//!
//! Everything that happens comes through one loop: a client's command, news from a task (a reply's progress, a call's
//! output or result, the shell), or the timer. The actor never waits for a client, the model or a command; it waits for
//! the disk only where an intent must be on it before the deed (`writing`).

mod info;
mod jobs;
mod rest;
mod telling;
pub(super) mod wishes;
mod writing;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use proto::ids::{CallId, PromptId, Seq, SessionId, Timestamp, UndoId};
use proto::response::Undone;
use proto::secret::EnvVars;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::writing::Held;
use super::Context;
use super::audit::Auditor;
use super::command::{Command, Reply};
use super::deeds::Deeds;
use super::fanout::Fanout;
use super::machine::{Input, Machine};
use super::news::News;
use super::open::OpenPieces;
use super::serving::Served;
use super::spec::Spec;
use super::trail::Trail;
use crate::store::entry::Entry;
use crate::store::{SessionRow, StoreError};

/// News that may wait: progress is coalesced by its senders when this fills.
const NEWS_MAX: usize = 256;

/// How often a session whose log could not be written tries again by itself.
const RECOVER_PAUSE: Duration = Duration::from_secs(5);

/// Rows read at once when a log is replayed.
const REPLAY_PAGE: u32 = 1_000;

/// One session.
pub(super) struct Actor {
    pub(super) id: SessionId,
    pub(super) row: SessionRow,
    pub(super) spec: Arc<Spec>,
    pub(super) context: Arc<Context>,
    pub(super) machine: Machine,
    pub(super) head: Seq,
    pub(super) active_at: Timestamp,
    /// When a client was last there, or it was last looked whether the shell may rest.
    pub(super) used_at: Timestamp,
    pub(super) prompts: HashMap<PromptId, Seq>,
    /// The rows of undos that are over.
    pub(super) undos: HashMap<UndoId, Seq>,
    /// Clients that wait for the row of an undo.
    pub(super) undo_waiters: Vec<(UndoId, Reply<Undone>)>,
    /// Commands that users ran, by the ids of their clients.
    pub(super) entered: HashSet<CallId>,
    pub(super) fanout: Fanout,
    /// Told by clients that go.
    pub(super) left: Arc<Notify>,
    pub(super) open: OpenPieces,
    pub(super) trail: Trail,
    pub(super) auditor: Auditor,
    pub(super) deeds: Deeds,
    pub(super) news: mpsc::Receiver<News>,
    /// Rows that are written with the next ones.
    held: Option<Held>,
    /// The disk failed: the state in memory is not to be trusted until the log was read again.
    pub(super) stale: Option<StoreError>,
}

impl Actor {
    /// Reads the session's log and stands ready; [`Self::run`] goes on with what was under way.
    pub(super) async fn load(
        row: SessionRow,
        spec: Arc<Spec>,
        env: Option<EnvVars>,
        context: Arc<Context>,
    ) -> Result<Self, StoreError> {
        let (sender, news) = mpsc::channel(NEWS_MAX);
        let deeds = Deeds::new(row.id, row.cwd.clone(), Arc::clone(&spec), env, Arc::clone(&context), sender);
        let mut actor = Self {
            id: row.id,
            machine: Machine::new(row.id, context.limits(&spec)),
            head: Seq(0),
            active_at: row.active_at,
            used_at: Timestamp::now(),
            prompts: HashMap::new(),
            undos: HashMap::new(),
            undo_waiters: Vec::new(),
            entered: HashSet::new(),
            fanout: Fanout::default(),
            left: Arc::default(),
            open: OpenPieces::default(),
            trail: Trail::default(),
            auditor: Auditor::default(),
            deeds,
            news,
            held: None,
            stale: None,
            row,
            spec,
            context,
        };
        actor.replay().await?;
        Ok(actor)
    }

    async fn replay(&mut self) -> Result<(), StoreError> {
        self.machine = Machine::new(self.id, self.context.limits(&self.spec));
        self.head = Seq(0);
        self.prompts.clear();
        self.undos.clear();
        self.entered.clear();
        self.auditor = Auditor::default();
        // The store keeps these in step with the log, and knows better where rows came from another session.
        let (name, archived) = (self.row.name.clone(), self.row.archived);
        loop {
            let rows = self.context.store.rows(self.id, self.head, REPLAY_PAGE).await?;
            let whole = rows.len() == REPLAY_PAGE as usize;
            for row in rows {
                self.machine.apply(&row.entry);
                // It was written with the row; here it only brings the fold to where it was.
                let _ = self.auditor.see(self.id, row.seq, row.at, &row.entry);
                self.note(row.seq, row.at, &row.entry);
            }
            if !whole {
                (self.row.name, self.row.archived) = (name, archived);
                return Ok(());
            }
        }
    }

    /// What the actor itself keeps of a row.
    fn note(&mut self, seq: Seq, at: Timestamp, entry: &Entry) {
        self.head = seq;
        self.active_at = at;
        self.trail.note(entry);
        match entry {
            Entry::PromptAccepted(prompt) => {
                if self.row.title.is_empty() {
                    self.row.title = crate::store::title_of(&prompt.text);
                }
                self.prompts.insert(prompt.prompt, seq);
            }
            Entry::Renamed { name, .. } => self.row.name = Some(name.clone()),
            Entry::Archived { .. } => self.row.archived = true,
            Entry::ModeChanged { mode, .. } => self.row.mode = *mode,
            Entry::ReplyReceived(_) => self.open.end_reply(),
            // What a failed try has shown stays open: when its blocks begin again, clients are told that it is void.
            Entry::RequestSent { .. } | Entry::RequestFailed { .. } => {}
            Entry::TurnEnded { .. } => {
                self.open.end_reply();
                self.open.end_output();
            }
            Entry::CallFinished(_) => self.open.end_output(),
            Entry::UndoEnded(result) => self.undo_over(seq, result),
            Entry::CommandEntered(entered) => {
                self.entered.insert(entered.call);
            }
            Entry::Created(_)
            | Entry::PromptWithdrawn { .. }
            | Entry::TurnStarted { .. }
            | Entry::Nudged { .. }
            | Entry::ApprovalAsked { .. }
            | Entry::ApprovalClosed { .. }
            | Entry::CallStarted { .. }
            | Entry::InterruptRequested { .. }
            | Entry::PauseAsked { .. }
            | Entry::PauseClosed { .. }
            | Entry::SettingsChanged { .. }
            | Entry::CompactionStarted { .. }
            | Entry::Compacted(_)
            | Entry::Steered { .. }
            | Entry::NotesGiven { .. }
            | Entry::Rewound { .. }
            | Entry::ThinkingStripped { .. }
            | Entry::UndoStarted(_)
            | Entry::JobStarted(_)
            | Entry::JobEnded(_)
            | Entry::JobSilent(_)
            | Entry::JobStopAsked { .. }
            | Entry::BackgroundAsked { .. }
            | Entry::TurnWoken { .. }
            | Entry::JobsTold { .. }
            | Entry::WakesSpent { .. }
            | Entry::Forked(_)
            | Entry::RuleKept { .. }
            | Entry::Notice { .. } => {}
        }
    }

    /// Serves the session until `stop`. Running commands go on in the shim.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Command>, stop: CancellationToken) {
        self.deeds.find_shell();
        self.take(Input::Resumed).await;
        let left = Arc::clone(&self.left);
        loop {
            let deadline = self.machine.deadline();
            let rest = self.rest_at();
            let held = self.held.as_ref().map(Held::until);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                command = inbox.recv() => match command {
                    Some(command) => {
                        self.flush().await;
                        match self.command(command).await {
                            Served::Done => {}
                            Served::Retired => break,
                        }
                    }
                    None => break,
                },
                Some(news) = self.news.recv() => self.hear(news).await,
                () = tokio::time::sleep_until(held.unwrap_or_else(Instant::now)), if held.is_some() => self.flush().await,
                () = left.notified() => {
                    self.used_at = Timestamp::now();
                    self.fanout.tell_presence();
                }
                () = tokio::time::sleep(RECOVER_PAUSE), if self.stale.is_some() => self.recover().await,
                () = sleep_until(rest), if rest.is_some() => self.look_for_rest(),
                () = sleep_until(deadline), if deadline.is_some() && self.stale.is_none() => self.take(Input::TimerFired).await,
            }
        }
        self.flush().await;
        self.deeds.stop();
    }

    async fn hear(&mut self, news: News) {
        if !news.is_look() {
            self.flush().await;
        }
        if self.stale.is_some() {
            // Nothing can be recorded: results stay with the shim, replies are asked for again.
            return;
        }
        match news {
            // A summary is for the model.
            News::Progress { .. } if self.machine.is_compacting() => {}
            News::Progress { request, progress } => {
                for live in self.open.progress(self.id, request, progress) {
                    self.fanout.live(live);
                }
            }
            News::Output { call, chunk } => {
                if let Some(live) = self.open.output(self.id, call, &chunk) {
                    self.fanout.live(live);
                }
            }
            News::ShellIdle { instance } => self.rest(instance).await,
            News::ShellUp { shell, launched, back } => {
                let instance = shell.instance();
                self.deeds.shell_up(shell);
                self.take(Input::ShellReady { instance }).await;
                self.settle_jobs(Some(instance));
                if let Some(text) = back {
                    self.deeds.had_shell();
                    self.take(Input::Noticed { text }).await;
                } else if launched && self.head > Seq(1) && self.deeds.had_shell() {
                    let text =
                        "A new shell was started; variables, functions and background jobs of the old one are gone.";
                    self.take(Input::Noticed { text: text.to_owned() }).await;
                }
            }
            News::ShellAbsent => {
                self.deeds.shell_absent();
                self.settle_jobs(None);
            }
            News::ShellFailed { error } => {
                self.deeds.shell_failed(error);
                self.settle_jobs(None);
            }
            News::JobsChanged { instance } => {
                if self.deeds.is_up(instance) {
                    self.deeds.sync_jobs(&self.machine);
                }
            }
            News::ShellLost { instance } => self.shell_lost(instance).await,
            News::Unanswered { what, instance } => {
                // Else the next try would go to the shell that is gone.
                self.shell_lost(instance).await;
                self.ask_again(what).await;
            }
            News::Happened(input) => self.take(*input).await,
        }
    }

    async fn shell_lost(&mut self, instance: Uuid) {
        if self.deeds.shell_lost(instance) {
            let text = "The session's shell process died; its commands were ended. The next call gets a new shell.";
            self.take(Input::Noticed { text: text.to_owned() }).await;
            self.settle_jobs(None);
        }
    }

    /// Reads the log again and goes on, if the disk lets us.
    pub(super) async fn recover(&mut self) {
        if self.replay().await.is_err() {
            return;
        }
        self.stale = None;
        self.deeds.find_shell();
        self.take(Input::Noticed { text: "The session log could not be written for a while; going on.".into() }).await;
        self.take(Input::Resumed).await;
    }
}

async fn sleep_until(deadline: Option<Timestamp>) {
    if let Some(deadline) = deadline {
        let left = deadline.0.saturating_sub(Timestamp::now().0);
        tokio::time::sleep(Duration::from_millis(left)).await;
    }
}
