//! Reading output, and waiting for more of a job's on behalf of the controller.

use std::time::Instant;

use proto::ids::CallId;
use proto::shim::reply::{FromShim, Refusal, Reply};

use crate::calls::Stage;
use crate::host::Host;
use crate::serve::refuse;

/// Longest piece of output in one answer.
const READ_MAX: u64 = 1024 * 1024;

/// Readers that may wait; more are answered at once.
const WAITING_MAX: usize = 64;

/// A wish to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// The request that waits for the answer.
    pub(crate) re: u64,
    pub(crate) call: CallId,
    pub(crate) offset: u64,
    pub(crate) max: u64,
    /// Until when it may wait; none = not at all.
    pub(crate) until: Option<Instant>,
    /// Waits for the job's end; else for more output.
    pub(crate) until_end: bool,
    /// The call that waits.
    pub(crate) asker: Option<CallId>,
}

impl Host {
    /// Answers a reader, or lets it wait.
    pub(crate) fn on_read(&mut self, reader: Reader, now: Instant) -> Option<(Reply, Vec<u8>)> {
        if self.jobs.readers.len() < WAITING_MAX && !self.is_served(&reader, now) {
            self.jobs.readers.push(reader);
            return None;
        }
        Some(self.read_now(&reader))
    }

    fn is_served(&self, reader: &Reader, now: Instant) -> bool {
        let Some(entry) = self.calls.get(reader.call).filter(|entry| entry.job) else { return true };
        let over = matches!(entry.stage, Stage::Over { .. });
        let more = !reader.until_end && entry.spool.total() > reader.offset;
        over || more || reader.until.is_none_or(|until| now >= until)
    }

    fn read_now(&self, reader: &Reader) -> (Reply, Vec<u8>) {
        let Some(entry) = self.calls.get(reader.call) else {
            return (refuse(Refusal::UnknownCall, "no such call"), Vec::new());
        };
        let over = matches!(entry.stage, Stage::Over { .. });
        match entry.spool.read(reader.offset, usize::try_from(reader.max.min(READ_MAX)).unwrap_or(0)) {
            Ok((offset, body)) => (Reply::Data { offset, total: entry.spool.total(), over }, body),
            Err(error) => (refuse(Refusal::Failed, &error.to_string()), Vec::new()),
        }
    }

    /// Answers the readers that have waited enough.
    pub(crate) fn serve_readers(&mut self, now: Instant) {
        if self.jobs.readers.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.jobs.readers);
        let (served, waiting): (Vec<Reader>, Vec<Reader>) =
            all.into_iter().partition(|reader| self.is_served(reader, now));
        self.jobs.readers = waiting;
        self.answer_readers(served);
    }

    /// Ends the waits of a call; whether there was one.
    pub(crate) fn interrupt_readers(&mut self, asker: CallId) -> bool {
        let all = std::mem::take(&mut self.jobs.readers);
        let (ended, waiting): (Vec<Reader>, Vec<Reader>) =
            all.into_iter().partition(|reader| reader.asker == Some(asker));
        self.jobs.readers = waiting;
        let any = !ended.is_empty();
        self.answer_readers(ended);
        any
    }

    fn answer_readers(&mut self, readers: Vec<Reader>) {
        for reader in readers {
            let (reply, body) = self.read_now(&reader);
            self.send(&FromShim { re: Some(reader.re), reply }, &body);
        }
    }
}
