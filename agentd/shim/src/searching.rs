//! Searches beside the loop: each on a thread of its own, one after the other.
//!
//! A search may take many seconds. The loop hands it away and hears of its end by a pipe whose other end the thread
//! holds: it closes when the thread ends, whatever ends it. Searches change nothing, so one that is asked for again after
//! a lost connection may run again.
//!
//! Invariant: a search that does not end (a file system that does not answer) is left behind, never waited for.

use std::collections::VecDeque;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proto::ids::CallId;
use proto::shim::files::{Fault, FileError, FileReply};
use proto::shim::reply::{FromShim, Refusal, Reply};

use crate::files::{Search, Stop};
use crate::host::Host;

/// Searches that may wait: the calls of one reply, with room.
const WAITING_MAX: usize = 64;

/// What a search has to end after its time is over or it was interrupted, before it is left behind. It looks at the
/// clock between files and between pieces of a large one.
const GRACE: Duration = Duration::from_secs(2);

/// The searches of a shim.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    running: Option<Running>,
    waiting: VecDeque<Order>,
}

/// A search that was asked for.
#[derive(Debug)]
struct Order {
    /// The request that waits for the answer; none when its connection is gone.
    re: Option<u64>,
    call: CallId,
    search: Search,
}

#[derive(Debug)]
struct Running {
    re: Option<u64>,
    call: CallId,
    stop: Arc<Stop>,
    /// Ends when the thread does.
    end: PipeReader,
    thread: JoinHandle<FileReply>,
    left_behind_at: Instant,
}

impl Running {
    fn start(order: Order) -> io::Result<Self> {
        let Order { re, call, search } = order;
        let stop = search.stop();
        let (end, open) = io::pipe()?;
        let work = move || {
            let reply = search.run();
            drop(open);
            reply
        };
        let thread = std::thread::Builder::new().name("search".to_owned()).spawn(work)?;
        let left_behind_at = stop.deadline() + GRACE;
        Ok(Self { re, call, stop, end, thread, left_behind_at })
    }
}

impl Searches {
    /// Readable when the running search is over.
    pub(crate) fn end(&self) -> Option<BorrowedFd<'_>> {
        self.running.as_ref().map(|running| running.end.as_fd())
    }

    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.running.as_ref().map(|running| running.left_behind_at)
    }

    /// The connection is gone: nobody waits for answers any more.
    pub(crate) fn forget_askers(&mut self) {
        self.waiting.clear();
        if let Some(running) = &mut self.running {
            running.re = None;
            // Whoever comes back asks again.
            running.stop.interrupt();
        }
    }
}

impl Host {
    /// Begins a search, or lets it wait for the one before.
    pub(crate) fn on_search(&mut self, re: u64, call: CallId, search: Search, now: Instant) -> Option<Reply> {
        if self.searches.waiting.len() >= WAITING_MAX {
            return Some(Reply::Refused { code: Refusal::Busy, message: "too many searches wait".to_owned() });
        }
        self.searches.waiting.push_back(Order { re: Some(re), call, search });
        self.start_search(now);
        None
    }

    /// Ends a call's search, if there is one.
    pub(crate) fn interrupt_search(&mut self, call: CallId, now: Instant) -> bool {
        for order in self.searches.waiting.iter().filter(|order| order.call == call) {
            order.search.stop().interrupt();
        }
        let waits = self.searches.waiting.iter().any(|order| order.call == call);
        match &mut self.searches.running {
            Some(running) if running.call == call => {
                running.stop.interrupt();
                running.left_behind_at = running.left_behind_at.min(now + GRACE);
                true
            }
            Some(_) | None => waits,
        }
    }

    /// The running search is over.
    pub(crate) fn on_search_end(&mut self, now: Instant) {
        let Some(running) = self.searches.running.take() else { return };
        // It closed its end as the last thing it did.
        let reply = running.thread.join().unwrap_or_else(|_| lost());
        self.answer_search(running.re, &reply);
        self.start_search(now);
    }

    pub(crate) fn tick_searches(&mut self, now: Instant) {
        if self.searches.next_time().is_some_and(|at| now >= at)
            && let Some(running) = self.searches.running.take()
        {
            self.answer_search(running.re, &lost());
            self.start_search(now);
        }
    }

    fn start_search(&mut self, now: Instant) {
        while self.searches.running.is_none() {
            let Some(mut order) = self.searches.waiting.pop_front() else { return };
            order.search.begin(now);
            let re = order.re;
            match Running::start(order) {
                Ok(running) => self.searches.running = Some(running),
                Err(error) => {
                    eprintln!("shim: cannot start a search: {error}");
                    self.answer_search(re, &lost());
                }
            }
        }
    }

    fn answer_search(&mut self, re: Option<u64>, reply: &FileReply) {
        let Some(re) = re else { return };
        let (reply, body) = file_reply(reply);
        self.send(&FromShim { re: Some(re), reply }, &body);
    }
}

/// A file operation's answer as it is sent.
pub(crate) fn file_reply(reply: &FileReply) -> (Reply, Vec<u8>) {
    match serde_json::to_vec(reply) {
        Ok(bytes) => (Reply::File {}, bytes),
        Err(error) => (Reply::Refused { code: Refusal::Failed, message: error.to_string() }, Vec::new()),
    }
}

fn lost() -> FileReply {
    FileReply::Error(FileError { path: ".".to_owned(), fault: Fault::SearchLost {} })
}
