//! How a job ends: by itself, by its deadline, on request, with its shell; and what it leaves behind.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::ids::{CallId, JobId};
use proto::shim::outcome::{End, ExitStatus, RunEnd};
use proto::shim::reply::{Refusal, Reply};

use super::{Job, KEPT_MAX, Left, Over, call_of, millis};
use crate::calls::{Body, Stage};
use crate::host::Host;
use crate::journal::Record;
use crate::pipe::Got;
use crate::serve::refuse;
use crate::spool::count_lines;
use crate::tree;

/// What a job's processes have between INT and KILL: a server may have connections to close, and nobody waits.
const GRACE: Duration = Duration::from_secs(1);

/// What its shell has after that to say how it ended.
const PATIENCE: Duration = Duration::from_millis(100);

/// Pause between two looks while a job is being ended.
const STEP: Duration = Duration::from_millis(10);

/// After this long a job is over although killed processes are still there (stuck in the kernel).
const KILL_WAIT: Duration = Duration::from_secs(3);

/// Last bytes of the output that are recorded with the end, for a daemon that finds only the record.
const RECORDED_TAIL: u64 = 4 * 1024;

/// A job that is being ended.
#[derive(Debug)]
pub(crate) struct Ending {
    end: End,
    since: Instant,
    next: Instant,
}

impl Ending {
    pub(super) fn next_time(&self) -> Instant {
        self.next
    }
}

impl Job {
    /// Asks its processes to end.
    fn begin_ending(&mut self, end: End, now: Instant) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(Ending { end, since: now, next: now + STEP });
        if self.dir.is_none() {
            // A shell that was the session's runs the command itself.
            self.bash.abort();
        }
        tree::interrupt(&self.tree.others(self.shell()), self.pipe.path());
    }

    /// Kills its processes. A shell of its own runs nothing of the command and keeps orphans below it until they are dead;
    /// one that was the session's may go on with the command, so it is stopped first and dies too.
    fn kill(&mut self) {
        let shell = self.shell();
        let own = self.dir.is_some();
        if !own {
            let _ = kill(shell, Signal::SIGSTOP);
        }
        let count = self.tree.kill(shell);
        if !own {
            self.bash.kill();
        }
        // The same ones may be met again while they die.
        self.killed = self.killed.max(count);
    }
}

impl Host {
    pub(crate) fn on_stop_job(&mut self, job: JobId, now: Instant) -> Reply {
        if let Some(at) = self.jobs.at(call_of(job)) {
            self.jobs.running[at].begin_ending(End::Interrupted {}, now);
            return Reply::Done {};
        }
        if let Some(over) = self.jobs.over.iter_mut().find(|over| over.job == job) {
            if let Some(left) = &over.left {
                left.tree.kill(left.bash.pid());
            }
            return Reply::Done {};
        }
        refuse(Refusal::UnknownCall, "the job does not run")
    }

    /// The mark came: the command is over, unless processes still have to be ended.
    pub(super) fn end_marked(&mut self, call: CallId, now: Instant) {
        let Some(at) = self.jobs.at(call) else { return };
        let job = &self.jobs.running[at];
        if let (Some(status), None) = (job.marked, &job.ending) {
            self.finish_job(at, End::Exited { status }, now);
        }
    }

    /// A shell that is not the session's is gone.
    pub(crate) fn on_job_shell_end(&mut self, pid: Pid, status: ExitStatus) {
        self.tree.shell_is_gone(pid);
        let Some(call) = self.jobs.running.iter().find(|job| job.shell() == pid).map(Job::call) else { return };
        // The mark may have been said just before.
        self.on_job_said(call);
        let Some(at) = self.jobs.at(call) else { return };
        let job = &mut self.jobs.running[at];
        job.shell_gone = true;
        if job.ending.is_none() {
            self.finish_job(at, End::ShellEnded { status }, Instant::now());
        }
    }

    /// Deadlines, and the steps of what is being ended.
    pub(super) fn tick_job_endings(&mut self, now: Instant) {
        let mut at = 0;
        while let Some(job) = self.jobs.running.get_mut(at) {
            if now >= job.deadline {
                job.begin_ending(End::TimedOut { limit_ms: millis(job.limit) }, now);
            }
            let done = match job.ending.as_mut().filter(|ending| now >= ending.next) {
                None => None,
                Some(ending) => {
                    ending.next = now + STEP;
                    let (age, end) = (now.duration_since(ending.since), ending.end);
                    let none_left = job.tree.others(job.shell()).is_empty();
                    let said = job.marked.is_some() || job.shell_gone;
                    let late = age >= GRACE + PATIENCE;
                    if (none_left && (said || late)) || age >= KILL_WAIT {
                        Some(end)
                    } else {
                        if age >= GRACE && (!none_left || !said) {
                            job.kill();
                        }
                        None
                    }
                }
            };
            match done {
                Some(end) => self.finish_job(at, end, now),
                None => at += 1,
            }
        }
    }

    /// The session's shell is started anew: everything ends with it.
    pub(crate) fn end_jobs_for_restart(&mut self, now: Instant) {
        for job in &mut self.jobs.running {
            job.ending = Some(Ending { end: End::Restarted {}, since: now, next: now + STEP });
        }
        if let Some(call) = self.jobs.starting.as_ref().map(|starting| call_of(starting.job())) {
            self.launch_job(now);
            if let Some(at) = self.jobs.at(call) {
                self.jobs.running[at].ending = Some(Ending { end: End::Restarted {}, since: now, next: now + STEP });
            }
        }
    }

    /// The shim ends: so do all jobs, and that is recorded.
    pub(crate) fn close_jobs(&mut self, now: Instant) {
        while !self.jobs.running.is_empty() {
            self.finish_job(0, End::Restarted {}, now);
        }
    }

    /// The job is over: takes what it printed before its end, keeps the result, says that there is one.
    fn finish_job(&mut self, at: usize, end: End, now: Instant) {
        self.drain_job(at, now);
        let mut job = self.jobs.running.remove(at);
        let others = job.tree.others(job.shell());
        let (call, ran) = (job.call(), now.duration_since(job.began));
        let limits_hit = self.tree.limits_hit_by(&job.tree);
        self.close_job(call, end, |run_end| {
            run_end.duration_ms = millis(ran);
            run_end.killed = job.killed;
            run_end.limits_hit = limits_hit;
            run_end.background = u32::try_from(others.len()).unwrap_or(u32::MAX);
        });
        let left = Left { bash: job.bash, tree: job.tree, dir: job.dir };
        let left = if others.is_empty() {
            drop(job.pipe);
            self.drop_left(&left);
            None
        } else {
            // Without our own end, the pipe ends with the last process that can print to it.
            job.pipe.release();
            if let Some(entry) = self.calls.get_mut(call) {
                entry.late = Some(job.pipe);
            }
            Some(left)
        };
        let (job, cwd, limit, silent) = (job.job, job.cwd, job.limit, job.silent);
        self.jobs.over.push(Over { job, cwd, ran, limit, silent, forgotten: false, left });
        self.prune_jobs();
        self.tell_jobs_changed();
        self.serve_readers(now);
    }

    /// A job that could not be started.
    pub(super) fn job_not_run(&mut self, job: JobId, limit: Duration, cwd: &str) {
        self.close_job(call_of(job), End::NotRun {}, |_| {});
        self.jobs.over.push(Over {
            job,
            cwd: cwd.to_owned(),
            ran: Duration::ZERO,
            limit,
            silent: false,
            forgotten: false,
            left: None,
        });
        self.tell_jobs_changed();
        self.serve_readers(Instant::now());
    }

    fn drain_job(&mut self, at: usize, now: Instant) {
        let mut left = self.jobs.running[at].pipe.waiting();
        let mut buffer = std::mem::take(&mut self.buffer);
        while left > 0 {
            let want = left.min(buffer.len());
            let Got::Bytes(count) = self.jobs.running[at].pipe.read(&mut buffer[..want]) else { break };
            left -= count;
            self.take_job_output(at, &buffer[..count], now);
        }
        self.buffer = buffer;
    }

    fn close_job(&mut self, call: CallId, end: End, fill: impl FnOnce(&mut RunEnd)) {
        let Some(entry) = self.calls.get_mut(call) else { return };
        let spool = &mut entry.spool;
        spool.seal();
        let (body, head_bytes) = spool.ends(0, RECORDED_TAIL).unwrap_or_default();
        let mut run_end = RunEnd {
            end,
            duration_ms: 0,
            output_bytes: spool.total(),
            output_lines: spool.lines(),
            head_bytes,
            omitted_lines: spool.lines().saturating_sub(count_lines(&body)),
            spool: spool.path().map(|path| path.to_string_lossy().into_owned()),
            spool_gap_bytes: spool.gap(),
            killed: 0,
            renewed: None,
            limits_hit: Vec::new(),
            builtin_freed: false,
            background: 0,
        };
        fill(&mut run_end);
        if let Err(error) = self.journal.write(&Record::Ended { call, end: run_end.clone() }, &body) {
            eprintln!("shim: cannot record the end of the job {call}: {error}");
        }
        entry.stage = Stage::Over { end: Box::new(run_end), body: Body::Held(body) };
    }

    /// Lets go of shells whose left-overs are gone, and of the oldest jobs beyond what is kept.
    pub(super) fn prune_jobs(&mut self) {
        for at in 0..self.jobs.over.len() {
            let empty = |left: &mut Left| left.tree.others(left.bash.pid()).is_empty();
            if let Some(left) = self.jobs.over[at].left.take_if(empty) {
                self.drop_left(&left);
            }
        }
        while self.jobs.over.len() > KEPT_MAX {
            let Some(at) = self.jobs.over.iter().position(|over| over.forgotten) else { return };
            let over = self.jobs.over.remove(at);
            if let Some(left) = over.left {
                self.drop_left(&left);
            }
            self.calls.let_go(call_of(over.job));
        }
    }

    fn drop_left(&mut self, left: &Left) {
        left.bash.kill();
        self.tree.remove_job(&left.tree);
        match &left.dir {
            Some(dir) => {
                let _ = std::fs::remove_dir_all(dir);
            }
            // Its earlier background processes are nobody's command now.
            None => self.alone = false,
        }
    }
}
