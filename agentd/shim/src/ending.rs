//! Ending things before they end by themselves: deadline, interrupt, restart, shutdown.
//!
//! A command is ended in steps: the shell is told to drop what it runs, the command's processes get INT and a short
//! grace, then KILL; a shell that does not come back after that is replaced. The shell and jobs of earlier commands are
//! not touched otherwise.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use proto::ids::CallId;
use proto::shim::outcome::{End, ExitStatus, Renewed, RestartResult, Why};
use proto::shim::reply::{FromShim, Reply};

use crate::calls::Stage;
use crate::host::Host;

/// What processes have between INT and KILL: enough to remove a lock file, little beside any deadline.
const GRACE: Duration = Duration::from_millis(100);

/// What the shell has, after its command's processes are gone, to come back before it is replaced.
const PATIENCE: Duration = Duration::from_millis(250);

/// Pause between two looks while something is being ended.
const STEP: Duration = Duration::from_millis(5);

/// After this long a restart or a shutdown goes on although killed processes are still there (stuck in the kernel).
const KILL_WAIT: Duration = Duration::from_secs(2);

/// A command that is being ended.
#[derive(Debug)]
pub(crate) struct Ending {
    end: End,
    since: Instant,
    next: Instant,
    renewed: Option<Renewed>,
    /// The abort trap has run: nothing of it can reach the next command.
    heard: bool,
    /// The shell was woken for a trap that it did not run in time.
    woken: bool,
}

impl Ending {
    /// The abort trap has spoken.
    pub(crate) fn heard(&mut self) {
        self.heard = true;
    }

    pub(crate) fn next_time(&self) -> Instant {
        self.next
    }

    /// The shell did not survive it.
    pub(crate) fn shell_lost(&mut self, renewed: Renewed) {
        self.renewed = Some(renewed);
    }
}

/// A restart on its way.
#[derive(Debug)]
pub(crate) struct Restarting {
    call: CallId,
    /// The requests that wait for the answer.
    waiting: Vec<u64>,
    since: Instant,
    next: Instant,
    killed: u32,
    shell_gone: bool,
}

impl Restarting {
    pub(crate) fn next_time(&self) -> Instant {
        self.next
    }
}

impl Host {
    /// Begins to end the running command.
    pub(crate) fn begin_ending(&mut self, end: End, now: Instant) {
        let Some(running) = self.running.as_mut() else { return };
        if running.ending.is_some() {
            return;
        }
        running.ending = Some(Ending { end, since: now, next: now + STEP, renewed: None, heard: false, woken: false });
        // The shell first: it must not go on to the rest of the command when the part that runs is gone.
        self.bash.abort();
        self.tree.interrupt_command(self.bash.pid(), running.pipe.path());
    }

    pub(crate) fn tick_ending(&mut self, now: Instant) {
        let Some(running) = self.running.as_mut() else { return };
        let Some(ending) = running.ending.as_mut() else { return };
        if now < ending.next {
            return;
        }
        ending.next = now + STEP;
        let age = now.duration_since(ending.since);
        let shell_back = running.marked.is_some() || ending.renewed.is_some();
        let others = self.tree.others(self.bash.pid());
        if running.marked.is_some() && !ending.heard && !ending.woken {
            // The command was over by itself when the signal came, and the shell may sleep without having seen it.
            ending.woken = true;
            let _ = self.bash.feed(&[]);
        }
        // A trap that runs later would abort the next command; one that the user has switched off never runs.
        let heard = ending.heard || ending.renewed.is_some() || age >= GRACE + PATIENCE;
        if others.is_empty() && shell_back && heard {
            let (end, renewed) = (ending.end, ending.renewed.take());
            self.finish(end, renewed, now);
            return;
        }
        if age >= GRACE && !others.is_empty() {
            let count = self.tree.kill_command(self.bash.pid());
            // The same ones may be met again while they die.
            running.killed = running.killed.max(count);
        }
        if !shell_back && age >= GRACE + PATIENCE && !self.bash.kill() {
            // It was waited for and nobody was told: without this the command would never end.
            self.on_shell_end(ExitStatus::Signal(Signal::SIGKILL as i32));
            return;
        }
        if age >= KILL_WAIT && shell_back {
            // What is left cannot be killed now (it is stuck in the kernel); it dies when the kernel lets go.
            let (end, renewed) = (ending.end, ending.renewed.take());
            self.finish(end, renewed, now);
        }
    }

    /// Ends everything and starts a fresh shell.
    pub(crate) fn restart(&mut self, re: u64, call: CallId, now: Instant) {
        if let Some(restarting) = self.restarting.as_mut().filter(|restarting| restarting.call == call) {
            restarting.waiting.push(re);
            return;
        }
        self.end_jobs_for_restart(now);
        let killed = self.tree.kill_all();
        self.restarting = Some(Restarting {
            call,
            waiting: vec![re],
            since: now,
            next: now + STEP,
            killed: killed.saturating_sub(1),
            shell_gone: false,
        });
        self.bash.kill();
    }

    pub(crate) fn on_shell_killed_for_restart(&mut self) {
        if let Some(restarting) = self.restarting.as_mut() {
            restarting.shell_gone = true;
        }
    }

    pub(crate) fn tick_restarting(&mut self, now: Instant) {
        let Some(restarting) = self.restarting.as_mut() else { return };
        if now < restarting.next && !restarting.shell_gone {
            return;
        }
        restarting.next = now + STEP;
        let late = now.duration_since(restarting.since) >= KILL_WAIT;
        let left = self.tree.everyone();
        if !left.is_empty() && !late {
            self.tree.kill_all();
            return;
        }
        if !restarting.shell_gone && !late {
            return;
        }
        let Some(done) = self.restarting.take() else { return };
        if self.running.is_some() {
            if let Some(running) = self.running.as_mut() {
                running.killed = done.killed;
            }
            self.finish(End::Restarted {}, None, now);
        }
        let renewed = self.renew_shell(Why::Asked {});
        self.untold = None;
        let result = RestartResult { cwd: renewed.cwd, killed: done.killed };
        if let Some(entry) = self.calls.get_mut(done.call) {
            entry.stage = Stage::Restarted(result.clone());
        }
        for re in done.waiting {
            let answer = FromShim { re: Some(re), reply: Reply::Restarted { result: result.clone() } };
            self.send(&answer, &[]);
        }
    }

    /// Ends everything; nothing of the session survives.
    pub(crate) fn shut_down(&mut self) {
        let until = Instant::now() + KILL_WAIT;
        self.tree.kill_all();
        self.bash.kill();
        while Instant::now() < until {
            while let Ok(status) = nix::sys::wait::waitpid(None, Some(nix::sys::wait::WaitPidFlag::WNOHANG)) {
                if status == nix::sys::wait::WaitStatus::StillAlive {
                    break;
                }
            }
            if self.tree.everyone().is_empty() {
                break;
            }
            self.tree.kill_all();
            std::thread::sleep(STEP);
        }
        self.close_jobs(Instant::now());
        self.tree.remove();
        let _ = std::fs::remove_file(&self.setup.start.socket);
        let _ = std::fs::remove_file(self.setup.runtime_dir.join("c"));
    }
}
