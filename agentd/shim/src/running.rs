//! A command's life: handed to the shell, its output taken, its end noticed, its result kept and told.

use std::time::{Duration, Instant};

use proto::ids::CallId;
use proto::shim::outcome::{End, ExitStatus, Renewed, RunEnd, Why};
use proto::shim::reply::{FromShim, Reply};

use crate::calls::{Body, Order, Stage};
use crate::ending::Ending;
use crate::host::{Host, STATE_STALE};
use crate::journal::Record;
use crate::pipe::{Got, Pipe};
use crate::script::Run;
use crate::spool::count_lines;

/// Output of one command that is streamed as it comes; what follows is streamed in pieces, because nobody can watch more
/// and everything can be read from the spool.
const STREAM_WHOLE_BYTES: u64 = 256 * 1024;

/// Size of those pieces.
const STREAM_PIECE_BYTES: usize = 64 * 1024;

/// Time between them.
const STREAM_PAUSE: Duration = Duration::from_millis(50);

/// Output that waits in memory is written to disk after this long, so that it is there should the shim be killed.
const PERSIST_AFTER: Duration = Duration::from_millis(200);

/// The command that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) call: CallId,
    pub(crate) mark: String,
    pub(crate) began: Instant,
    pub(crate) limit_ms: u64,
    pub(crate) pipe: Pipe,
    pub(crate) ending: Option<Ending>,
    /// The mark came while processes still had to be ended.
    pub(crate) marked: Option<i32>,
    pub(crate) killed: u32,
    freed: bool,
    streamed: u64,
    stream_at: Instant,
    persist_at: Option<Instant>,
}

/// What is known of a command's end besides its output.
#[derive(Debug)]
pub(crate) struct Closing {
    end: End,
    duration: Duration,
    killed: u32,
    renewed: Option<Renewed>,
    freed: bool,
    others: usize,
}

impl Closing {
    /// The end of a command that never began.
    pub(crate) fn of(end: End) -> Self {
        Self { end, duration: Duration::ZERO, killed: 0, renewed: None, freed: false, others: 0 }
    }
}

impl Running {
    pub(crate) fn deadline(&self) -> Instant {
        self.began + Duration::from_millis(self.limit_ms)
    }

    pub(crate) fn next_time(&self) -> Instant {
        let main = self.ending.as_ref().map_or_else(|| self.deadline(), Ending::next_time);
        self.persist_at.map_or(main, |at| at.min(main))
    }
}

impl Host {
    /// Starts the next command, if none runs.
    pub(crate) fn start_next(&mut self, now: Instant) {
        while self.running.is_none() && self.restarting.is_none() && !self.jobs.is_starting() && !self.quit {
            let Some(call) = self.queue.pop_front() else { return };
            if self.begin_job(call, now) {
                continue;
            }
            let Some(entry) = self.calls.get_mut(call) else { continue };
            let stage = Stage::Running { head_bytes: 0, tail_bytes: 0 };
            let Stage::Waiting(order) = std::mem::replace(&mut entry.stage, stage) else { continue };
            entry.stage = Stage::Running { head_bytes: order.head_bytes, tail_bytes: order.tail_bytes };
            if let Err(error) = self.start(call, &order, now) {
                eprintln!("shim: cannot run {call}: {error}");
                self.close(call, Closing::of(End::NotRun {}));
            }
        }
    }

    fn start(&mut self, call: CallId, order: &Order, now: Instant) -> std::io::Result<()> {
        let spool = self.calls.spool_path(call).to_string_lossy().into_owned();
        self.journal.write(&Record::Began { call, spool }, &[])?;
        let pipe = match self.spare.take() {
            Some(pipe) => pipe,
            None => {
                self.pipes_made += 1;
                Pipe::make(self.setup.runtime_dir.join(format!("d{}", self.pipes_made)))?
            }
        };
        if self.state_due.is_some() && now.duration_since(self.state_at) > STATE_STALE {
            self.ask_state(now);
        }
        self.state_due = None;
        self.forget_facts();
        let call_mark = self.tree.begin(self.bash.pid(), self.alone)?;
        let mark = self.marks.next()?;
        let run = Run { data: pipe.path(), end: &mark, mark: call_mark.as_deref(), last_status: self.last_status };
        let script = self.bash.text.command(&order.command, &run);
        self.deaf_until = None;
        self.running = Some(Running {
            call,
            mark,
            began: now,
            limit_ms: order.deadline_ms,
            pipe,
            ending: None,
            marked: None,
            killed: 0,
            freed: false,
            streamed: 0,
            stream_at: now,
            persist_at: None,
        });
        // A shell that cannot be fed is dead: its end is reaped and told as the command's.
        let _ = self.bash.feed(&script);
        self.haste.began(Instant::now());
        Ok(())
    }

    /// Takes a piece of output into the spool and on to the controller.
    pub(crate) fn take_output(&mut self, running: &mut Running, bytes: &[u8]) {
        let Some(entry) = self.calls.get_mut(running.call) else { return };
        let offset = entry.spool.total();
        entry.spool.append(bytes);
        let now = Instant::now();
        if entry.spool.is_volatile() && running.persist_at.is_none() {
            running.persist_at = Some(now + PERSIST_AFTER);
        }
        let Some(link) = self.link.as_mut() else { return };
        let piece = if offset + bytes.len() as u64 <= STREAM_WHOLE_BYTES {
            bytes
        } else if now >= running.stream_at {
            running.stream_at = now + STREAM_PAUSE;
            &bytes[..bytes.len().min(STREAM_PIECE_BYTES)]
        } else {
            return;
        };
        if link.is_crowded() {
            return;
        }
        let news = FromShim { re: None, reply: Reply::Output { call: running.call, offset } };
        running.streamed = offset + piece.len() as u64;
        if !link.send(&news, piece) {
            self.link = None;
        }
    }

    pub(crate) fn tick_running(&mut self, now: Instant) {
        let Some(running) = self.running.as_mut() else { return };
        if running.persist_at.is_some_and(|at| now >= at) {
            running.persist_at = None;
            if let Some(entry) = self.calls.get_mut(running.call) {
                let _ = entry.spool.persist();
            }
        }
        if running.ending.is_some() {
            self.tick_ending(now);
        } else if now >= running.deadline() {
            let (call, limit_ms) = (running.call, running.limit_ms);
            // It may be over and have said so since the loop looked.
            self.on_said();
            if self.running.as_ref().is_some_and(|running| running.call == call) {
                self.begin_ending(End::TimedOut { limit_ms }, now);
            }
        }
    }

    /// The mark did not come, because a function `builtin` took its place; the command is over all the same.
    pub(crate) fn on_freed(&mut self) {
        let Some(running) = self.running.as_mut() else { return };
        running.freed = true;
        let mark = running.mark.clone();
        self.on_mark(&mark, 0);
    }

    /// The shell said that a command is over.
    pub(crate) fn on_mark(&mut self, mark: &str, status: i32) {
        let Some(running) = self.running.as_mut() else { return };
        if running.mark != mark || running.marked.is_some() {
            return;
        }
        if running.ending.is_some() {
            running.marked = Some(status);
            return;
        }
        self.finish(End::Exited { status }, None, Instant::now());
    }

    /// The shell is gone.
    pub(crate) fn on_shell_end(&mut self, status: ExitStatus) {
        // The mark may have been said just before.
        self.on_said();
        if self.restarting.is_some() {
            self.on_shell_killed_for_restart();
            return;
        }
        let why = match self.running.as_ref() {
            Some(running) if running.ending.is_some() => Why::Stuck {},
            Some(_) | None => Why::Ended { status },
        };
        let renewed = self.renew_shell(why);
        let Some(running) = self.running.as_mut() else {
            self.untold = Some(renewed);
            return;
        };
        match running.ending.as_mut() {
            Some(ending) => ending.shell_lost(renewed),
            None => self.finish(End::ShellEnded { status }, Some(renewed), Instant::now()),
        }
    }

    /// The command is over: takes what it printed before its end, keeps the result, tells it.
    pub(crate) fn finish(&mut self, end: End, renewed: Option<Renewed>, now: Instant) {
        let Some(mut running) = self.running.take() else { return };
        self.drain(&mut running);
        if let End::Exited { status } = end {
            self.last_status = status;
        }
        if running.ending.is_some() && renewed.is_none() {
            // A shell that was started since knows nothing of it, and might not have its trap yet.
            self.end_abort();
        }
        let freed = running.freed;
        let call = running.call;
        let duration = now.duration_since(running.began);
        // The look comes first, so that a process born after it is met by the next one.
        let none_born = self.forks.none_since(duration);
        let others = if self.alone && none_born { 0 } else { self.tree.others(self.bash.pid()).len() };
        self.alone = others == 0;
        let same_shell = renewed.is_none();
        // Processes that the end of their shell left behind are no longer counted with this command.
        if self.alone && same_shell {
            self.spare = Some(running.pipe);
        } else if let Some(entry) = self.calls.get_mut(call) {
            // Without our own end, the pipe ends with the last process that can print to it.
            running.pipe.release();
            entry.late = Some(running.pipe);
        }
        let renewed = renewed.or_else(|| self.untold.take());
        self.state_changed(now);
        let closing = Closing { end, duration, killed: running.killed, renewed, freed, others };
        self.close(call, closing);
        if same_shell && let Some(cwd) = self.bash.cwd() {
            self.saved.cwd = cwd;
        }
        self.haste.ended(duration, now);
    }

    /// Lets the shell run commands again. It may still hold a signal back that came while its trap ran; one more lets it
    /// see that now and not in the middle of the next command.
    fn end_abort(&mut self) {
        self.bash.abort();
        let saved = self.aborting.take().unwrap_or_default();
        let text = self.bash.text.end_abort(&saved);
        // A shell that cannot be fed is dead, which its end will tell.
        let _ = self.bash.feed(text.as_bytes());
    }

    /// The abort trap told what it replaced: our own trap, when it ran before, or the user's.
    pub(crate) fn on_aborting(&mut self, saved: String) {
        if saved.contains("__agentd") {
            return;
        }
        self.aborting = Some(saved);
        match self.running.as_mut().and_then(|running| running.ending.as_mut()) {
            Some(ending) => ending.heard(),
            // It was waited for in vain, and runs now.
            None => self.end_abort(),
        }
    }

    /// Reads exactly what is in the pipe now: that was written before the end, and a process that goes on printing
    /// cannot make this last.
    pub(crate) fn drain(&mut self, running: &mut Running) {
        let mut left = running.pipe.waiting();
        let mut buffer = vec![0; left.min(STREAM_PIECE_BYTES)];
        while left > 0 {
            let want = left.min(buffer.len());
            let Got::Bytes(count) = running.pipe.read(&mut buffer[..want]) else { return };
            left -= count;
            self.take_output(running, &buffer[..count]);
        }
    }

    /// Keeps a result and tells it.
    pub(crate) fn close(&mut self, call: CallId, closing: Closing) {
        let limits_hit = self.tree.limits_hit();
        let Some(entry) = self.calls.get_mut(call) else { return };
        let (head, tail) = match entry.stage {
            Stage::Running { head_bytes, tail_bytes } => (head_bytes, tail_bytes),
            Stage::Waiting(_) | Stage::WaitingJob(_) | Stage::Over { .. } | Stage::Restarted(_) => (0, 0),
        };
        entry.spool.seal();
        let (body, head_bytes) = entry.spool.ends(head, tail).unwrap_or_default();
        let run_end = RunEnd {
            end: closing.end,
            duration_ms: u64::try_from(closing.duration.as_millis()).unwrap_or(u64::MAX),
            output_bytes: entry.spool.total(),
            output_lines: entry.spool.lines(),
            head_bytes,
            omitted_lines: entry.spool.lines().saturating_sub(count_lines(&body)),
            spool: entry.spool.path().map(|path| path.to_string_lossy().into_owned()),
            spool_gap_bytes: entry.spool.gap(),
            killed: closing.killed,
            renewed: closing.renewed,
            limits_hit,
            builtin_freed: closing.freed,
            background: u32::try_from(closing.others).unwrap_or(u32::MAX),
        };
        if let Err(error) = self.journal.write(&Record::Ended { call, end: run_end.clone() }, &body) {
            eprintln!("shim: cannot record the end of {call}: {error}");
        }
        let news = FromShim { re: None, reply: Reply::Finished { call, end: run_end.clone() } };
        if let Some(link) = self.link.as_mut()
            && !link.send(&news, &body)
        {
            self.link = None;
        }
        let body = if run_end.spool.is_some() {
            Body::InSpool { head_bytes: head, tail_bytes: tail }
        } else {
            Body::Held(body)
        };
        entry.stage = Stage::Over { end: Box::new(run_end), body };
    }
}
