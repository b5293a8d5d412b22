//! Background commands: jobs.
//!
//! A job has a shell of its own, which waits for its command and is never the session's: so the session's shell is free
//! at once, `wait` and `jobs` in it know nothing of the job, and no deadline but the job's own ends it. It starts with the
//! session shell's directory, exported variables, options, functions and aliases, told by that shell at this moment. A
//! running command that is moved here takes its shell along, and a new one becomes the session's.
//!
//! [`launch`] starts and moves, [`ending`] ends, [`reading`] waits for output on behalf of the controller. Ends are kept
//! until the controller forgets them, the output for [`KEPT_MAX`] jobs longer.
//!
//! Invariant: a job's processes are counted apart from every other command's, in both ways of accounting.
//! Invariant: news only says that something changed; a controller that missed it learns the same by asking.

pub(crate) mod ending;
pub(crate) mod launch;
pub(crate) mod reading;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use proto::ids::{CallId, JobId};
use proto::shim::jobs::JobInfo;
use proto::shim::reply::{FromShim, Reply};

use crate::bash::{Bash, Said};
use crate::calls::{Calls, Stage};
use crate::host::Host;
use crate::journal::Record;
use crate::pipe::{Got, Pipe};
use crate::tree::JobTree;
use ending::Ending;
use launch::Starting;
use reading::Reader;

/// Jobs that may run at once: more are a mistake in a loop, and each has a shell of its own.
pub(crate) const RUNNING_MAX: usize = 16;

/// Jobs that are over and can still be read: what a conversation may come back to.
pub(crate) const KEPT_MAX: usize = 32;

/// Output that waits in memory is written to disk after this long, so that it is there should the shim be killed.
const PERSIST_AFTER: Duration = Duration::from_millis(200);

/// The jobs of a shim.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    running: Vec<Job>,
    over: Vec<Over>,
    starting: Option<Starting>,
    readers: Vec<Reader>,
    made: u64,
}

/// A job that runs.
#[derive(Debug)]
pub(crate) struct Job {
    job: JobId,
    pub(crate) bash: Bash,
    tree: JobTree,
    /// The mark of its end.
    mark: String,
    pub(crate) pipe: Pipe,
    /// Its own directory; none when its shell was the session's.
    dir: Option<PathBuf>,
    cwd: String,
    began: Instant,
    /// When it may run no longer.
    deadline: Instant,
    limit: Duration,
    silence: Option<Duration>,
    printed_at: Instant,
    silent: bool,
    ending: Option<Ending>,
    /// The mark came while processes still had to be ended.
    marked: Option<i32>,
    shell_gone: bool,
    killed: u32,
    persist_at: Option<Instant>,
}

/// A job that is over.
#[derive(Debug)]
struct Over {
    job: JobId,
    cwd: String,
    ran: Duration,
    limit: Duration,
    silent: bool,
    forgotten: bool,
    left: Option<Left>,
}

/// What a job left behind, with the shell that it is below.
#[derive(Debug)]
struct Left {
    bash: Bash,
    tree: JobTree,
    dir: Option<PathBuf>,
}

/// A job as the call that it is among the calls.
pub(crate) fn call_of(job: JobId) -> CallId {
    CallId(job.0)
}

impl Job {
    pub(crate) fn call(&self) -> CallId {
        call_of(self.job)
    }

    fn shell(&self) -> Pid {
        self.bash.pid()
    }

    fn next_time(&self) -> Instant {
        let main = self.ending.as_ref().map_or(self.deadline, Ending::next_time);
        let silence = self.silence.filter(|_| !self.silent && self.ending.is_none());
        let silence = silence.map(|silence| self.printed_at + silence);
        [silence, self.persist_at].into_iter().flatten().fold(main, Instant::min)
    }
}

impl Jobs {
    pub(crate) fn running(&self) -> &[Job] {
        &self.running
    }

    pub(crate) fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// Shells that serve jobs, living or just dead.
    pub(crate) fn shells(&self) -> usize {
        self.running.len() + self.over.iter().filter(|over| over.left.is_some()).count()
    }

    pub(crate) fn next_time(&self) -> Option<Instant> {
        let running = self.running.iter().map(Job::next_time);
        let starting = self.starting.as_ref().map(Starting::until);
        running.chain(starting).chain(self.readers.iter().filter_map(|reader| reader.until)).min()
    }

    /// The records of jobs that run, for a journal that starts over.
    pub(crate) fn records(&self, calls: &Calls) -> Vec<Record> {
        let began = |job: &Job| Record::Began { call: job.call(), spool: calls.spool_name(job.call()) };
        self.running.iter().map(began).collect()
    }

    /// The controller has the end of a job on disk.
    pub(crate) fn forget(&mut self, call: CallId) {
        if let Some(over) = self.over.iter_mut().find(|over| call_of(over.job) == call) {
            over.forgotten = true;
        }
    }

    fn at(&self, call: CallId) -> Option<usize> {
        self.running.iter().position(|job| job.call() == call)
    }
}

impl Host {
    /// The controller is another one: what the old one waited for it asks again, if it wants it.
    pub(crate) fn forget_job_askers(&mut self) {
        self.jobs.readers.clear();
        if let Some(starting) = &mut self.jobs.starting {
            starting.order.waiting.clear();
        }
        for call in &self.queue {
            if let Some(Stage::WaitingJob(order)) = self.calls.get_mut(*call).map(|entry| &mut entry.stage) {
                order.waiting.clear();
            }
        }
    }

    pub(crate) fn list_jobs(&mut self, now: Instant) -> Vec<JobInfo> {
        self.prune_jobs();
        let over = self.jobs.over.iter().map(|over| {
            let left = over.left.as_ref().map_or(0, |left| left.tree.others(left.bash.pid()).len());
            let info = JobInfo {
                job: over.job,
                running_ms: millis(over.ran),
                quiet_ms: 0,
                deadline_ms: millis(over.limit),
                silent: over.silent,
                output_bytes: 0,
                spool: None,
                processes: u32::try_from(left).unwrap_or(u32::MAX),
                end: None,
            };
            self.with_output(info)
        });
        let running = self.jobs.running.iter().map(|job| {
            let info = JobInfo {
                job: job.job,
                running_ms: millis(now.duration_since(job.began)),
                quiet_ms: millis(now.duration_since(job.printed_at)),
                deadline_ms: millis(job.limit),
                silent: job.silent,
                output_bytes: 0,
                spool: None,
                processes: u32::try_from(job.tree.others(job.shell()).len()).unwrap_or(u32::MAX),
                end: None,
            };
            self.with_output(info)
        });
        over.chain(running).collect()
    }

    fn with_output(&self, mut info: JobInfo) -> JobInfo {
        if let Some(entry) = self.calls.get(call_of(info.job)) {
            info.output_bytes = entry.spool.total();
            info.spool = entry.spool.path().map(|path| path.to_string_lossy().into_owned());
            if let Stage::Over { end, .. } = &entry.stage {
                info.end = Some((**end).clone());
            }
        }
        info
    }

    fn tell_jobs_changed(&mut self) {
        self.send(&FromShim { re: None, reply: Reply::JobsChanged {} }, &[]);
    }

    /// A job's shell has spoken.
    pub(crate) fn on_job_said(&mut self, call: CallId) {
        let Some(job) = self.jobs.at(call).and_then(|at| self.jobs.running.get_mut(at)) else { return };
        for said in job.bash.listen().unwrap_or_default() {
            match said {
                Said::Mark { end, status } if end == job.mark => job.marked = Some(status),
                // Nothing else is asked of such a shell; what is left of an abort or of a snapshot is of no use.
                Said::Mark { .. } | Said::Aborting { .. } | Said::State { .. } | Said::Freed => {}
            }
        }
        self.end_marked(call, Instant::now());
    }

    /// Reads what a job printed, once.
    pub(crate) fn on_job_output(&mut self, call: CallId) {
        let Some(at) = self.jobs.at(call) else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        if let Got::Bytes(count) = self.jobs.running[at].pipe.read(&mut buffer) {
            self.take_job_output(at, &buffer[..count], Instant::now());
        }
        self.buffer = buffer;
        self.serve_readers(Instant::now());
    }

    fn take_job_output(&mut self, at: usize, bytes: &[u8], now: Instant) {
        let job = &mut self.jobs.running[at];
        job.printed_at = now;
        let Some(entry) = self.calls.get_mut(job.call()) else { return };
        entry.spool.append(bytes);
        if entry.spool.is_volatile() && job.persist_at.is_none() {
            job.persist_at = Some(now + PERSIST_AFTER);
        }
    }

    pub(crate) fn tick_jobs(&mut self, now: Instant) {
        self.tick_starting(now);
        let mut changed = false;
        for job in &mut self.jobs.running {
            if job.persist_at.is_some_and(|at| now >= at) {
                job.persist_at = None;
                if let Some(entry) = self.calls.get_mut(call_of(job.job)) {
                    let _ = entry.spool.persist();
                }
            }
            let due = |silence: Duration| !job.silent && job.ending.is_none() && now >= job.printed_at + silence;
            if job.silence.is_some_and(due) {
                job.silent = true;
                changed = true;
            }
        }
        if changed {
            self.tell_jobs_changed();
        }
        self.tick_job_endings(now);
        self.serve_readers(now);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
