//! The one loop: it waits for the shell, its output, its end, the controller and the clock, and owns everything.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use proto::ids::CallId;
use proto::shim::outcome::{ExitStatus, Renewed};
use proto::shim::reply::Facts;

use crate::bash::{Bash, Birth, Marks, Said};
use crate::calls::Calls;
use crate::ending::Restarting;
use crate::files::Files;
use crate::forks::Forks;
use crate::haste::Haste;
use crate::jobs::Jobs;
use crate::journal::Journal;
use crate::link::Link;
use crate::pipe::Pipe;
use crate::running::Running;
use crate::searching::Searches;
use crate::start::{Setup, StartError, shell_env};
use crate::state::Saved;
use crate::sys;
use crate::tree::Tree;
use crate::waiting::Source;

/// How long the shell must be idle before it is asked for its state: longer than the pause between two calls of a
/// program that makes them in a row, much shorter than a model needs.
const STATE_AFTER: Duration = Duration::from_millis(20);

/// A state older than this is renewed before the next command even without a pause.
pub(crate) const STATE_STALE: Duration = Duration::from_millis(500);

/// A shell tells its state in about this time; each line would wake the shim otherwise.
const STATE_TAKES: Duration = Duration::from_millis(2);

/// Bytes of output read at once: what a widened pipe can give in one go, without being felt in memory.
const READ_BYTES: usize = 256 * 1024;

/// The shim.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) setup: Setup,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) signals: SignalFd,
    pub(crate) link: Option<Link>,
    pub(crate) strangers: Vec<Link>,
    pub(crate) bash: Bash,
    pub(crate) tree: Tree,
    pub(crate) calls: Calls,
    pub(crate) journal: Journal,
    pub(crate) queue: VecDeque<CallId>,
    pub(crate) running: Option<Running>,
    /// Opened at the first file operation.
    pub(crate) files: Option<Files>,
    pub(crate) searches: Searches,
    pub(crate) jobs: Jobs,
    pub(crate) restarting: Option<Restarting>,
    pub(crate) spare: Option<Pipe>,
    pub(crate) pipes_made: u64,
    /// The shell had no other process at the end of the last command.
    pub(crate) alone: bool,
    pub(crate) marks: Marks,
    pub(crate) last_status: i32,
    pub(crate) saved: Saved,
    pub(crate) state_at: Instant,
    pub(crate) state_due: Option<Instant>,
    /// What the shell told of itself; none while a command has begun since.
    pub(crate) facts: Option<Facts>,
    /// Counts commands and shells: an answer about the state is of use when it has not moved since the question.
    pub(crate) begun: u64,
    pub(crate) asked_at: u64,
    /// The saved state is that of now.
    pub(crate) state_known: bool,
    /// Until then nothing is heard from the shell, because it tells its state line by line.
    pub(crate) deaf_until: Option<Instant>,
    /// A new shell that no result has told of yet.
    pub(crate) untold: Option<Renewed>,
    /// What must be fed to end abort mode.
    pub(crate) aborting: Option<String>,
    pub(crate) forks: Forks,
    pub(crate) haste: Haste,
    pub(crate) born: Instant,
    pub(crate) buffer: Vec<u8>,
    pub(crate) quit: bool,
}

impl Host {
    pub(crate) fn new(setup: Setup) -> Result<Self, StartError> {
        let mut mask = SigSet::empty();
        for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            mask.add(signal);
        }
        mask.thread_block().map_err(io::Error::from)?;
        // Whoever started the daemon may have ignored it, and then the end of the shell would never be told.
        sys::hear_of_children()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
        let signals = signals.map_err(io::Error::from)?;
        let start = &setup.start;
        let name = start.session.0.simple().to_string();
        let mut tree = Tree::new(start.accounting, &name, start.limits);
        let calls = Calls::new(&setup.state_dir, start.limits.spool_bytes)?;
        let journal = Journal::open(&setup.state_dir)?;
        let env = shell_env(start);
        let cwd = PathBuf::from(&start.cwd);
        let birth = Birth { runtime_dir: &setup.runtime_dir, cwd: &cwd, env: &env };
        let bash = Bash::start(&birth).map_err(StartError::Shell)?;
        tree.adopt(bash.pid());
        let now = Instant::now();
        Ok(Self {
            signals,
            link: None,
            strangers: Vec::new(),
            bash,
            tree,
            calls,
            journal,
            queue: VecDeque::new(),
            running: None,
            files: None,
            searches: Searches::default(),
            jobs: Jobs::default(),
            restarting: None,
            spare: None,
            pipes_made: 0,
            alone: true,
            marks: Marks::new()?,
            last_status: 0,
            saved: Saved::new(cwd),
            state_at: now,
            state_due: Some(now + STATE_AFTER),
            facts: None,
            begun: 0,
            asked_at: 0,
            state_known: false,
            deaf_until: None,
            untold: None,
            aborting: None,
            forks: Forks::new(),
            haste: Haste::new(),
            born: now,
            buffer: vec![0; READ_BYTES],
            quit: false,
            env,
            setup,
        })
    }

    /// Runs until it is told to end.
    pub(crate) fn serve(&mut self) {
        while !self.quit {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(nix::Error::EINTR) => continue,
                Err(error) => {
                    eprintln!("shim: cannot wait: {error}");
                    break;
                }
            };
            for source in ready {
                self.on_ready(source);
            }
            self.tick(Instant::now());
        }
        self.shut_down();
    }

    fn on_ready(&mut self, source: Source) {
        match source {
            Source::Listener => self.on_connection(),
            Source::Signals => self.on_signals(),
            Source::Link => self.on_link(),
            Source::Stranger(index) => self.on_stranger(index),
            Source::Ctl => self.on_ctl(),
            Source::Said => self.on_said(),
            Source::Output => self.on_output(),
            Source::Late(call) => self.on_late_output(call),
            Source::JobSaid(call) => self.on_job_said(call),
            Source::JobOutput(call) => self.on_job_output(call),
            Source::Search => self.on_search_end(Instant::now()),
        }
    }

    fn tick(&mut self, now: Instant) {
        if self.deaf_until.is_some_and(|until| now >= until) {
            self.deaf_until = None;
        }
        self.tick_running(now);
        self.tick_restarting(now);
        self.tick_strangers(now);
        self.tick_searches(now);
        self.tick_jobs(now);
        if self.running.is_none() && self.state_due.is_some_and(|due| now >= due) {
            self.ask_state(now);
        }
        self.start_next(now);
    }

    /// Has the shell tell its state; the answer comes on the control pipe.
    pub(crate) fn ask_state(&mut self, now: Instant) {
        self.state_due = None;
        self.state_at = now;
        self.asked_at = self.begun;
        self.deaf_until = Some(now + STATE_TAKES);
        let text = self.bash.text.snapshot();
        let _ = self.bash.feed(text.as_bytes());
    }

    /// The shell may have changed since its state was saved.
    pub(crate) fn state_changed(&mut self, now: Instant) {
        self.state_due = Some(now + STATE_AFTER);
        self.state_known = false;
    }

    /// The abort trap has spoken.
    pub(crate) fn on_ctl(&mut self) {
        for said in self.bash.listen_ctl().unwrap_or_default() {
            self.on_word(said);
        }
    }

    /// The shell has spoken.
    pub(crate) fn on_said(&mut self) {
        if self.running.as_ref().is_some_and(|running| running.ending.is_some()) {
            // What the abort trap replaced must be known before the end is.
            self.on_ctl();
        }
        for said in self.bash.listen().unwrap_or_default() {
            self.on_word(said);
        }
    }

    fn on_word(&mut self, said: Said) {
        match said {
            Said::Mark { end, status } => self.on_mark(&end, status),
            Said::Aborting { saved } => self.on_aborting(saved),
            Said::State { text } => self.on_state(&text),
            Said::Freed => self.on_freed(),
        }
    }

    /// Reads what the running command printed, once.
    fn on_output(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        if let crate::pipe::Got::Bytes(count) = running.pipe.read(&mut buffer) {
            self.take_output(&mut running, &buffer[..count]);
        }
        self.buffer = buffer;
        self.running = Some(running);
    }

    fn on_late_output(&mut self, call: CallId) {
        let mut buffer = std::mem::take(&mut self.buffer);
        if let Some(entry) = self.calls.get_mut(call)
            && let Some(pipe) = entry.late.as_mut()
        {
            match pipe.read(&mut buffer) {
                crate::pipe::Got::Bytes(count) => entry.spool.append(&buffer[..count]),
                crate::pipe::Got::Nothing => {}
                crate::pipe::Got::End => entry.late = None,
            }
        }
        self.buffer = buffer;
        self.calls.drop_if_done(call);
    }

    fn on_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            match i32::try_from(signal.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok()) {
                Some(Signal::SIGCHLD) => self.reap(),
                Some(Signal::SIGTERM) => self.quit = true,
                Some(_) | None => {}
            }
        }
    }

    /// Waits for every child that is over, adopted orphans included.
    pub(crate) fn reap(&mut self) {
        loop {
            let (pid, status) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, ExitStatus::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, ExitStatus::Signal(signal as i32)),
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                Ok(_) => continue,
            };
            if pid == self.bash.pid() {
                self.on_shell_end(status);
            } else {
                self.on_job_shell_end(pid, status);
            }
        }
    }
}
