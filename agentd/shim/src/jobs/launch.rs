//! How a job begins: started by the controller, or a running command that is moved to the background.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use proto::ids::{CallId, JobId};
use proto::shim::outcome::{End, RunEnd, Why};
use proto::shim::reply::{FromShim, Refusal, Reply};

use super::{Job, RUNNING_MAX, call_of, millis};
use crate::bash::{Bash, Birth};
use crate::calls::{Body, JobOrder, Stage};
use crate::host::Host;
use crate::journal::Record;
use crate::pipe::Pipe;
use crate::running::Running;
use crate::script::{Run, quote};
use crate::serve::refuse;
use crate::spool::count_lines;
use crate::start::private_dir;
use crate::tree::JobTree;

/// How long the session's shell may take to tell its state before a job starts with the last one known. It is idle then,
/// so only a huge environment or a loaded machine comes near.
const STATE_WAIT: Duration = Duration::from_secs(1);

/// First and last bytes of a moved command's output that its call is told.
const MOVED_ENDS: u64 = 60_000;

/// A job for which the session's shell is asked for its state.
#[derive(Debug)]
pub(crate) struct Starting {
    job: JobId,
    pub(super) order: JobOrder,
    until: Instant,
}

impl Starting {
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    pub(super) fn job(&self) -> JobId {
        self.job
    }
}

impl Host {
    pub(crate) fn on_start_job(&mut self, job: JobId, order: JobOrder, now: Instant) -> Option<Reply> {
        let call = call_of(job);
        if self.calls.is_known(call) {
            return self.job_again(job, order);
        }
        if let Some(refused) = self.check_command(&order.command) {
            return Some(refused);
        }
        if self.jobs.running.len() >= RUNNING_MAX {
            return Some(full());
        }
        self.calls.insert_job(call, Stage::WaitingJob(order), None);
        self.queue.push_back(call);
        self.start_next(now);
        None
    }

    /// A job that is known already: the answer once more.
    fn job_again(&mut self, job: JobId, order: JobOrder) -> Option<Reply> {
        if let Some(starting) = self.jobs.starting.as_mut().filter(|starting| starting.job == job) {
            starting.order.waiting.extend(order.waiting);
            return None;
        }
        if let Some(Stage::WaitingJob(known)) = self.calls.get_mut(call_of(job)).map(|entry| &mut entry.stage) {
            known.waiting.extend(order.waiting);
            return None;
        }
        let running = self.jobs.running.iter().find(|known| known.job == job).map(|known| known.cwd.clone());
        let cwd = running.or_else(|| self.jobs.over.iter().find(|over| over.job == job).map(|over| over.cwd.clone()));
        Some(cwd.map_or_else(
            || refuse(Refusal::UnknownCall, "the job is over and was forgotten"),
            |cwd| Reply::JobStarted { job, cwd },
        ))
    }

    /// Begins what waits if it is a job.
    pub(crate) fn begin_job(&mut self, call: CallId, now: Instant) -> bool {
        let Some(entry) = self.calls.get_mut(call) else { return false };
        if !matches!(entry.stage, Stage::WaitingJob(_)) {
            return false;
        }
        let stage = std::mem::replace(&mut entry.stage, Stage::Running { head_bytes: 0, tail_bytes: 0 });
        let Stage::WaitingJob(order) = stage else { return false };
        self.jobs.starting = Some(Starting { job: JobId(call.0), order, until: now + STATE_WAIT });
        if self.state_known {
            self.launch_job(now);
        } else {
            self.ask_state(now);
        }
        true
    }

    /// The session's shell does not tell its state: the last one must do.
    pub(super) fn tick_starting(&mut self, now: Instant) {
        if self.jobs.starting.as_ref().is_some_and(|starting| now >= starting.until) {
            self.launch_job(now);
        }
    }

    /// Starts the job that waits for the shell's state, if there is one.
    pub(crate) fn launch_job(&mut self, now: Instant) {
        let Some(starting) = self.jobs.starting.take() else { return };
        let Starting { job, order, .. } = starting;
        if let Some(cwd) = self.bash.cwd() {
            self.saved.cwd = cwd;
        }
        let cwd = self.saved.cwd.to_string_lossy().into_owned();
        let waiting = order.waiting.clone();
        if let Err(error) = self.launch(job, &order, &cwd, now) {
            eprintln!("shim: cannot start the job {job}: {error}");
            self.job_not_run(job, order.limit, &cwd);
        }
        for re in waiting {
            let reply = Reply::JobStarted { job, cwd: cwd.clone() };
            self.send(&FromShim { re: Some(re), reply }, &[]);
        }
        self.start_next(now);
    }

    fn launch(&mut self, job: JobId, order: &JobOrder, cwd: &str, now: Instant) -> io::Result<()> {
        let call = call_of(job);
        let spool = self.calls.spool_path(call).to_string_lossy().into_owned();
        self.journal.write(&Record::Began { call, spool }, &[])?;
        self.jobs.made += 1;
        let dir = self.setup.runtime_dir.join(format!("j{}", self.jobs.made));
        private_dir(&dir)?;
        let tree = self.tree.new_job()?;
        let begun = self.job_shell(&dir, &tree, order);
        let (bash, pipe, mark) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                let _ = std::fs::remove_dir_all(&dir);
                return Err(error);
            }
        };
        self.jobs.running.push(Job {
            job,
            bash,
            tree,
            mark,
            pipe,
            dir: Some(dir),
            cwd: cwd.to_owned(),
            began: now,
            deadline: now + order.limit,
            limit: order.limit,
            silence: order.silence,
            printed_at: now,
            silent: false,
            ending: None,
            marked: None,
            shell_gone: false,
            killed: 0,
            persist_at: None,
        });
        Ok(())
    }

    /// The job's own shell, with the command in it.
    fn job_shell(&mut self, dir: &Path, tree: &JobTree, order: &JobOrder) -> io::Result<(Bash, Pipe, String)> {
        let mut restore = self.saved.restore(&self.env, dir.join("restore"))?;
        if let Some(mark) = tree.mark() {
            restore.env.retain(|(name, _)| name != crate::marks::VARIABLE);
            restore.env.push((crate::marks::VARIABLE.to_owned(), mark.to_owned()));
        }
        let pipe = Pipe::make(dir.join("d"))?;
        let mark = self.marks.next()?;
        let mut bash = Bash::start(&Birth { runtime_dir: dir, cwd: &restore.cwd, env: &restore.env })?;
        if let Err(error) = self.tree.add_job(tree, bash.pid()) {
            bash.kill();
            return Err(error);
        }
        let run = Run { data: pipe.path(), end: &mark, mark: tree.mark(), last_status: 0 };
        let text = bash.text.job(&order.command, &run, restore.errexit_dropped);
        // A shell that cannot be fed is dead: its end is reaped and told as the job's.
        if let Some(file) = &restore.file {
            let file = quote(file.as_os_str().as_encoded_bytes());
            let _ = bash.feed(format!("\\builtin . {file}\n").as_bytes());
        }
        let _ = bash.feed(&text);
        Ok((bash, pipe, mark))
    }

    /// Moves the running command to the background, with its shell.
    pub(crate) fn on_background(&mut self, call: CallId, job: JobId, limit: Duration, now: Instant) -> Reply {
        if self.calls.is_known(call_of(job)) {
            return Reply::Done {};
        }
        let runs = |running: &Running| running.call == call && running.ending.is_none();
        if self.restarting.is_some() || !self.running.as_ref().is_some_and(runs) {
            return refuse(Refusal::UnknownCall, "the call does not run");
        }
        if self.jobs.running.len() >= RUNNING_MAX {
            return full();
        }
        match self.move_to_background(job, limit, now) {
            Ok(()) => Reply::Done {},
            Err(error) => refuse(Refusal::Failed, &format!("the command cannot be moved: {error}")),
        }
    }

    fn move_to_background(&mut self, job: JobId, limit: Duration, now: Instant) -> io::Result<()> {
        let restore = self.restore();
        // The new shell first: without one the command stays where it is.
        let fresh = self.start_shell(&restore)?;
        let tree = match self.tree.give_away(self.bash.pid()) {
            Ok(tree) => tree,
            Err(error) => {
                fresh.kill();
                return Err(error);
            }
        };
        let Some(mut running) = self.running.take() else { return Ok(()) };
        self.drain(&mut running);
        let call = running.call;
        let cwd = self.bash.cwd().unwrap_or_else(|| self.saved.cwd.clone()).to_string_lossy().into_owned();
        let bash = std::mem::replace(&mut self.bash, fresh);
        let renewed = self.settle_shell(Why::Moved {}, &restore);
        let empty = self.calls.empty_spool(call);
        let Some(entry) = self.calls.get_mut(call) else { return Ok(()) };
        let spool = std::mem::replace(&mut entry.spool, empty);
        let (body, head_bytes) = spool.ends(MOVED_ENDS, MOVED_ENDS).unwrap_or_default();
        let end = RunEnd {
            end: End::Moved { job },
            duration_ms: millis(now.duration_since(running.began)),
            output_bytes: spool.total(),
            output_lines: spool.lines(),
            head_bytes,
            omitted_lines: spool.lines().saturating_sub(count_lines(&body)),
            spool: spool.path().map(|path| path.to_string_lossy().into_owned()),
            spool_gap_bytes: spool.gap(),
            killed: 0,
            renewed: Some(renewed),
            limits_hit: Vec::new(),
            builtin_freed: false,
            background: 0,
        };
        entry.stage = Stage::Over { end: Box::new(end.clone()), body: Body::Held(body.clone()) };
        let name = spool.name();
        self.calls.insert_job(call_of(job), Stage::Running { head_bytes: 0, tail_bytes: 0 }, Some(spool));
        self.jobs.running.push(Job {
            job,
            bash,
            tree,
            mark: running.mark,
            pipe: running.pipe,
            dir: None,
            cwd,
            began: running.began,
            deadline: now + limit,
            limit,
            silence: None,
            printed_at: now,
            silent: false,
            ending: None,
            marked: None,
            shell_gone: false,
            killed: 0,
            persist_at: Some(now),
        });
        // The job first: whoever reads the call's end in the journal finds the job there too.
        self.journal.write(&Record::Began { call: call_of(job), spool: name }, &[])?;
        self.journal.write(&Record::Ended { call, end: end.clone() }, &body)?;
        self.send(&FromShim { re: None, reply: Reply::Finished { call, end } }, &body);
        Ok(())
    }
}

fn full() -> Reply {
    refuse(Refusal::Busy, &format!("{RUNNING_MAX} background commands run already; stop one or wait for its end"))
}
