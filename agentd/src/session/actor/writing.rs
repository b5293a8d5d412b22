//! From a step to the disk, to the clients, to the deeds: record, publish, do.
//!
//! A commit costs as much as all else in a round, and between a reply and its command there would be two: the reply's, and
//! that of the intent to run what was looked at meanwhile. So rows after which a call is only looked at wait for what the
//! look brings, and go to the disk with it: rows of a reply and of a call's end, of which nobody has been told. A crash
//! before that is one before the reply, and an end is still known to the shim.
//!
//! Invariant: rows are published only after they are on disk, in order, without gaps. When the disk fails the state in
//! memory is dropped and read again from the log: the log is the truth.
//! Invariant: while rows are held, nothing but a look's result is heard before they are written.

use std::sync::Arc;
use std::time::Duration;

use proto::ids::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use super::super::machine::{Effect, Input, Step};
use super::super::storage_error;
use super::Actor;
use crate::faults::{self, Point};
use crate::session::open::OpenPieces;
use crate::store::entry::Entry;
use crate::store::{LogRow, NewRow, StoreError};

/// How long rows wait for the look at a call: it takes a fraction of this where the shell is there, and where the shell
/// must first be started, nobody sees a reply's end come so much later.
const HOLD: Duration = Duration::from_millis(3);

/// What a step left to be done: its rows, and the deeds that need them on disk.
#[derive(Default)]
struct Work {
    rows: Vec<NewRow>,
    late: Vec<Effect>,
}

/// Work that waits for the next step's.
pub(super) struct Held {
    work: Work,
    until: Instant,
}

impl Held {
    pub(super) fn until(&self) -> Instant {
        self.until
    }
}

impl Actor {
    /// One step: record, publish, do.
    pub(in crate::session) async fn take(&mut self, input: Input) {
        if !matches!(input, Input::CallAssessed { .. }) {
            self.flush().await;
        }
        if self.stale.is_some() {
            return;
        }
        let now = Timestamp::now();
        self.machine.surround(self.surroundings(now));
        // Whoever gave us anything else is told that it is on disk.
        let may_wait = matches!(input, Input::ReplyArrived { .. } | Input::CallEnded { .. });
        let step = self.machine.step(now, &mut Uuid::now_v7, input);
        if let Err(error) = self.carry_out(now, step, may_wait).await {
            self.storage_failed(error);
        }
    }

    /// Writes what is held, if anything is.
    pub(super) async fn flush(&mut self) {
        let Some(held) = self.held.take() else { return };
        if let Err(error) = self.write(held.work, Vec::new()).await {
            self.storage_failed(error);
        }
    }

    async fn carry_out(&mut self, now: Timestamp, step: Step, may_wait: bool) -> Result<(), StoreError> {
        // A prompt that is not on disk was not accepted: nothing is asked of the model for it. Nor for the end of a job.
        let is_beginning = |entry: &Entry| matches!(entry, Entry::PromptAccepted(_) | Entry::TurnWoken { .. });
        let begins = step.entries.iter().any(is_beginning);
        let (late, early): (Vec<Effect>, Vec<Effect>) =
            step.effects.into_iter().partition(|effect| begins || effect.waits_for_disk());
        let rows = self.rows(now, step.entries);
        let looks = early.iter().any(|effect| matches!(effect, Effect::AssessCall { .. }));
        let Some(Held { mut work, .. }) = self.held.take() else {
            let work = Work { rows, late };
            if !(may_wait && looks) || work.rows.is_empty() {
                return self.write(work, early).await;
            }
            self.perform(early);
            self.held = Some(Held { work, until: Instant::now() + HOLD });
            faults::reach(Point::Held);
            return Ok(());
        };
        work.rows.extend(rows);
        work.late.extend(late);
        self.write(work, early).await
    }

    /// The next rows of the log.
    fn rows(&mut self, now: Timestamp, entries: Vec<Entry>) -> Vec<NewRow> {
        let last = self.held.as_ref().and_then(|held| held.work.rows.last()).map(|row| row.seq);
        let mut seq = last.unwrap_or(self.head);
        let row = |entry| {
            seq = seq.next();
            let audited = self.auditor.see(self.id, seq, now, &entry).map(Box::new);
            NewRow { seq, at: now, entry: Arc::new(entry), audited }
        };
        entries.into_iter().map(row).collect()
    }

    /// Has the rows written, and meanwhile does what need not wait for them.
    async fn write(&mut self, work: Work, early: Vec<Effect>) -> Result<(), StoreError> {
        if work.rows.is_empty() {
            self.perform(early);
        } else {
            let done = self.context.store.append(self.id, work.rows.clone()).await?;
            self.perform(early);
            faults::reach(Point::BegunEarly);
            done.await.map_err(|_| StoreError::Closed)??;
            for row in work.rows {
                let entry = Arc::unwrap_or_clone(row.entry);
                self.trail.log(self.id, row.seq, &entry, self.context.config().log.prompts);
                self.context.spent.add(row.at, &entry);
                self.note(row.seq, row.at, &entry);
                self.tell_desktop(&entry);
                self.fanout.row(LogRow { seq: row.seq, at: row.at, entry });
            }
        }
        faults::reach(Point::Published);
        self.perform(work.late);
        faults::reach(Point::Begun);
        Ok(())
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.deeds.perform(effect, &self.machine);
        }
    }

    /// The disk failed: what is in memory may be ahead of the log. Stop everything that could act on it; commands go on
    /// in the shim, which keeps their results.
    fn storage_failed(&mut self, error: StoreError) {
        tracing::error!(session = %self.id, %error, "the session log cannot be written; the session is parked");
        self.deeds.drop_tasks();
        self.held = None;
        self.open = OpenPieces::default();
        for (_, reply) in std::mem::take(&mut self.undo_waiters) {
            let _ = reply.send(Err(storage_error(&error)));
        }
        self.stale = Some(error);
    }
}
