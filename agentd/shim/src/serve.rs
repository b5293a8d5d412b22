//! Connections: who may be the controller, and what it asks.
//!
//! Only the shim's own user may connect, only with the token, and no process of the session itself: what the model runs
//! must not steer the hands. A new controller displaces the old one.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Pid, Uid};
use proto::ids::CallId;
use proto::shim::files::FileOp;
use proto::shim::frame::Frame;
use proto::shim::outcome::End;
use proto::shim::reply::{FromShim, Refusal, Reply, ShellState};
use proto::shim::request::{COMMAND_MAX, Request, ToShim};
use proto::shim::{VERSION, VERSION_MIN};

use crate::calls::{JobOrder, Order, Stage};
use crate::environment;
use crate::host::Host;
use crate::jobs::reading::Reader;
use crate::link::Link;
use crate::running::Closing;
use crate::searching::file_reply;

/// How long a connection may take to say hello.
pub(crate) const HELLO_WAIT: Duration = Duration::from_secs(5);

/// Connections that have not said hello; more are turned away.
const STRANGERS_MAX: usize = 8;

/// Commands that may wait: the calls of one reply, with room.
const QUEUE_MAX: usize = 256;

/// Most head or tail that is told with a result.
const ENDS_MAX: u64 = 256 * 1024;

/// Longest wait of a reader; it may ask again.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// Output sent again to a controller that asks for a running call; older output it reads from the spool.
const CATCH_UP_BYTES: u64 = 256 * 1024;

impl Host {
    pub(crate) fn on_connection(&mut self) {
        while let Ok((stream, _)) = self.setup.listener.accept() {
            let Ok(peer) = getsockopt(&stream, PeerCredentials) else { continue };
            let own_user = peer.uid() == Uid::effective().as_raw();
            if !own_user || self.strangers.len() >= STRANGERS_MAX || self.tree.holds(Pid::from_raw(peer.pid())) {
                continue;
            }
            self.strangers.extend(Link::new(stream, Instant::now()));
        }
    }

    pub(crate) fn tick_strangers(&mut self, now: Instant) {
        self.strangers.retain(|link| now < link.since + HELLO_WAIT);
    }

    pub(crate) fn on_stranger(&mut self, index: usize) {
        if index >= self.strangers.len() {
            return;
        }
        let mut link = self.strangers.swap_remove(index);
        if !link.fill() {
            return;
        }
        match link.next() {
            Ok(None) => self.strangers.push(link),
            Ok(Some(frame)) => {
                if self.greet(&mut link, &frame) {
                    self.searches.forget_askers();
                    self.forget_job_askers();
                    self.link = Some(link);
                    self.serve_link();
                }
            }
            Err(_) => {}
        }
    }

    /// Answers the first frame; whether the peer is the controller now.
    fn greet(&self, link: &mut Link, frame: &Frame) -> bool {
        let Ok(ToShim { id, request: Request::Hello { token, min, max } }) = frame.header() else { return false };
        let refused = |code, message: &str| Reply::Refused { code, message: message.to_owned() };
        let version = max.min(VERSION);
        let reply = if !same(token.expose().as_bytes(), self.setup.start.token.expose().as_bytes()) {
            refused(Refusal::Forbidden, "wrong token")
        } else if version < min.max(VERSION_MIN) {
            refused(Refusal::Version, "no version of the protocol in common")
        } else {
            Reply::Welcome {
                version,
                instance: self.setup.instance,
                pid: std::process::id(),
                accounting: self.tree.accounting(),
            }
        };
        let welcome = matches!(reply, Reply::Welcome { .. });
        link.send(&FromShim { re: Some(id), reply }, &[]) && welcome
    }

    pub(crate) fn on_link(&mut self) {
        let Some(link) = self.link.as_mut() else { return };
        if !link.flush() || !link.fill() {
            self.link = None;
            return;
        }
        self.serve_link();
    }

    fn serve_link(&mut self) {
        while let Some(link) = self.link.as_mut() {
            match link.next() {
                Ok(Some(frame)) => self.serve_frame(frame),
                Ok(None) => return,
                Err(_) => self.link = None,
            }
        }
    }

    fn serve_frame(&mut self, frame: Frame) {
        match frame.header::<ToShim>() {
            Ok(ToShim { id, request }) => {
                if let Some(reply) = self.serve_request(id, request, frame.body) {
                    let (reply, body) = reply;
                    self.send(&FromShim { re: Some(id), reply }, &body);
                }
            }
            Err(error) => {
                // The number is all that is needed to refuse in a way that reaches the asker.
                let id = frame.header::<serde_json::Value>().ok().and_then(|value| value.get("id")?.as_u64());
                let reply = Reply::Refused { code: Refusal::Invalid, message: error.to_string() };
                self.send(&FromShim { re: id, reply }, &[]);
            }
        }
    }

    pub(crate) fn send(&mut self, header: &FromShim, body: &[u8]) {
        if let Some(link) = self.link.as_mut()
            && !link.send(header, body)
        {
            self.link = None;
        }
    }

    fn serve_request(&mut self, id: u64, request: Request, body: Vec<u8>) -> Option<(Reply, Vec<u8>)> {
        let now = Instant::now();
        let plain = |reply| Some((reply, Vec::new()));
        match request {
            Request::Hello { .. } => plain(refuse(Refusal::Invalid, "hello was said already")),
            Request::Run { call, deadline_ms, head_bytes, tail_bytes, offset } => {
                let (head_bytes, tail_bytes) = (head_bytes.min(ENDS_MAX), tail_bytes.min(ENDS_MAX));
                let order = Order { command: body, deadline_ms, head_bytes, tail_bytes };
                self.on_run(call, order, offset, now).map(|reply| (reply, Vec::new()))
            }
            Request::Interrupt { call } => plain(self.on_interrupt(call, now)),
            Request::Restart { call } => match self.calls.get(call).map(|entry| &entry.stage) {
                Some(Stage::Restarted(result)) => plain(Reply::Restarted { result: result.clone() }),
                Some(_) if self.restarting.is_none() => plain(refuse(Refusal::Invalid, "the call is not a restart")),
                None if self.calls.is_known(call) => plain(refuse(Refusal::UnknownCall, "the call is over")),
                Some(_) | None => {
                    if !self.calls.is_known(call) {
                        self.calls.insert(call, Stage::Running { head_bytes: 0, tail_bytes: 0 });
                    }
                    self.restart(id, call, now);
                    None
                }
            },
            Request::Read { call, offset, max, wait_ms, until_end, asker } => {
                let reader = Reader { re: id, call, offset, max, until: after(now, wait_ms), until_end, asker };
                self.on_read(reader, now)
            }
            Request::State {} => plain(Reply::State { state: self.shell_state() }),
            Request::File { call } => self.on_file(id, call, &body, now),
            Request::Forget { call } => {
                self.jobs.forget(call);
                if self.calls.forget(call) {
                    let (calls, jobs) = (&self.calls, &self.jobs);
                    self.journal.settle(|| jobs.records(calls));
                }
                // Nobody waits for it: it must not wake a controller that waits for its next command.
                let done = FromShim { re: Some(id), reply: Reply::Done {} };
                if self.link.as_mut().is_some_and(|link| !link.hold(&done, &[])) {
                    self.link = None;
                }
                None
            }
            Request::Shutdown {} => {
                self.quit = true;
                plain(Reply::Done {})
            }
            Request::StartJob { job, deadline_ms, silence_ms } => {
                let silence = (silence_ms > 0).then(|| Duration::from_millis(silence_ms));
                let limit = Duration::from_millis(deadline_ms);
                let order = JobOrder { command: body, limit, silence, waiting: vec![id] };
                self.on_start_job(job, order, now).map(|reply| (reply, Vec::new()))
            }
            Request::Background { call, job, deadline_ms } => {
                plain(self.on_background(call, job, Duration::from_millis(deadline_ms), now))
            }
            Request::StopJob { job } => plain(self.on_stop_job(job, now)),
            Request::Jobs {} => plain(Reply::Jobs { jobs: self.list_jobs(now) }),
            Request::Env {} => plain(Reply::Env { env: environment::shown(&self.setup.start, self.saved.text()) }),
            Request::Unknown => plain(refuse(Refusal::Unsupported, "this shim does not know the request")),
        }
    }

    /// A file operation, by the shell's present directory.
    fn on_file(&mut self, id: u64, call: CallId, body: &[u8], now: Instant) -> Option<(Reply, Vec<u8>)> {
        let refused = |code, message: &str| Some((refuse(code, message), Vec::new()));
        let op: FileOp = match serde_json::from_slice(body) {
            Ok(op) => op,
            Err(error) => return refused(Refusal::Invalid, &format!("the file operation does not read: {error}")),
        };
        let cwd = PathBuf::from(self.shell_state().cwd);
        let files = match &mut self.files {
            Some(files) => files,
            None => match self.setup.open_files() {
                Ok(files) => self.files.insert(files),
                Err(error) => return refused(Refusal::Failed, &error.to_string()),
            },
        };
        match files.search(&op, &cwd) {
            None => Some(file_reply(&files.handle(&op, &cwd))),
            Some(Err(reply)) => Some(file_reply(&reply)),
            Some(Ok(search)) => self.on_search(id, call, search, now).map(|reply| (reply, Vec::new())),
        }
    }

    fn on_run(&mut self, call: CallId, order: Order, offset: u64, now: Instant) -> Option<Reply> {
        if self.calls.is_known(call) {
            return self.tell_again(call, offset);
        }
        if let Some(refused) = self.check_command(&order.command) {
            return Some(refused);
        }
        self.calls.insert(call, Stage::Waiting(order));
        self.queue.push_back(call);
        self.start_next(now);
        None
    }

    /// Why a command cannot run, whatever it does.
    pub(crate) fn check_command(&self, command: &[u8]) -> Option<Reply> {
        if command.len() > COMMAND_MAX {
            return Some(refuse(Refusal::Invalid, "the command is longer than 1 MiB"));
        }
        if command.contains(&0) {
            return Some(refuse(Refusal::Invalid, "the command contains a NUL byte"));
        }
        (self.queue.len() >= QUEUE_MAX).then(|| refuse(Refusal::Busy, "too many commands wait"))
    }

    /// News of a call that is known already.
    fn tell_again(&mut self, call: CallId, offset: u64) -> Option<Reply> {
        let Some(entry) = self.calls.get(call) else {
            return Some(refuse(Refusal::UnknownCall, "the call is over and its result was forgotten"));
        };
        let (reply, body) = match &entry.stage {
            Stage::Waiting(_) => return None,
            Stage::WaitingJob(_) => return Some(refuse(Refusal::Invalid, "the call is a job")),
            Stage::Running { .. } => {
                let from = offset.max(entry.spool.total().saturating_sub(CATCH_UP_BYTES));
                let (offset, body) = entry.spool.read(from, usize::try_from(CATCH_UP_BYTES).unwrap_or(0)).ok()?;
                (Reply::Output { call, offset }, body)
            }
            Stage::Over { end, .. } => (Reply::Finished { call, end: (**end).clone() }, entry.body()),
            Stage::Restarted(_) => return Some(refuse(Refusal::Invalid, "the call is a restart")),
        };
        self.send(&FromShim { re: None, reply }, &body);
        None
    }

    fn on_interrupt(&mut self, call: CallId, now: Instant) -> Reply {
        if self.running.as_ref().is_some_and(|running| running.call == call) {
            self.begin_ending(End::Interrupted {}, now);
            return Reply::Done {};
        }
        if self.interrupt_search(call, now) || self.interrupt_readers(call) {
            return Reply::Done {};
        }
        let Some(at) = self.queue.iter().position(|waiting| *waiting == call) else {
            return refuse(Refusal::UnknownCall, "the call does not run");
        };
        self.queue.remove(at);
        self.close(call, Closing::of(End::Interrupted {}));
        Reply::Done {}
    }

    fn shell_state(&self) -> ShellState {
        let cwd = self.bash.cwd().unwrap_or_else(|| self.saved.cwd.clone());
        let shell_pid = u32::try_from(self.bash.pid().as_raw()).unwrap_or(0);
        let others = self.tree.everyone().len().saturating_sub(1 + self.jobs.shells());
        ShellState {
            cwd: cwd.to_string_lossy().into_owned(),
            shell_pid,
            running: self.running.as_ref().map(|running| running.call),
            background: u32::try_from(others).unwrap_or(u32::MAX),
            facts: self.facts.clone(),
        }
    }
}

pub(crate) fn refuse(code: Refusal, message: &str) -> Reply {
    Reply::Refused { code, message: message.to_owned() }
}

/// A moment some milliseconds from now; none for no time at all.
fn after(now: Instant, ms: u64) -> Option<Instant> {
    (ms > 0).then(|| now + Duration::from_millis(ms).min(WAIT_MAX))
}

/// Compares without telling by the time it takes where the difference is.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
