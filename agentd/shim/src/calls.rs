//! The calls a shim knows: what waits, what runs, what is over and not yet forgotten.
//!
//! Invariant: a call id is run at most once, ever: ids stay known after their results are forgotten.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto::ids::CallId;
use proto::shim::outcome::{RestartResult, RunEnd};

use crate::pipe::Pipe;
use crate::spool::Spool;

/// Spool files kept for reading after their results were forgotten; the oldest go first. Each is bounded, so this
/// bounds the session's disk.
const KEPT_SPOOLS_MAX: usize = 64;

/// What is asked to run.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) command: Vec<u8>,
    pub(crate) deadline_ms: u64,
    pub(crate) head_bytes: u64,
    pub(crate) tail_bytes: u64,
}

/// What is asked to run in the background.
#[derive(Debug)]
pub(crate) struct JobOrder {
    pub(crate) command: Vec<u8>,
    pub(crate) limit: Duration,
    pub(crate) silence: Option<Duration>,
    /// The requests that wait for the answer.
    pub(crate) waiting: Vec<u64>,
}

/// Where a call stands. A job is a call too.
#[derive(Debug)]
pub(crate) enum Stage {
    Waiting(Order),
    WaitingJob(JobOrder),
    Running { head_bytes: u64, tail_bytes: u64 },
    Over { end: Box<RunEnd>, body: Body },
    Restarted(RestartResult),
}

/// The output's first and last bytes, or how to read them again.
#[derive(Debug)]
pub(crate) enum Body {
    Held(Vec<u8>),
    InSpool { head_bytes: u64, tail_bytes: u64 },
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) stage: Stage,
    pub(crate) spool: Spool,
    /// Output that may still come from processes that went on.
    pub(crate) late: Option<Pipe>,
    forgotten: bool,
    /// A job: it stays readable after it was forgotten, until [`Calls::let_go`].
    pub(crate) job: bool,
}

impl Call {
    pub(crate) fn new(stage: Stage, spool: Spool) -> Self {
        Self { stage, spool, late: None, forgotten: false, job: false }
    }

    /// The body of the news that it is over.
    pub(crate) fn body(&self) -> Vec<u8> {
        match &self.stage {
            Stage::Over { body: Body::Held(bytes), .. } => bytes.clone(),
            Stage::Over { body: Body::InSpool { head_bytes, tail_bytes }, .. } => {
                self.spool.ends(*head_bytes, *tail_bytes).map(|(bytes, _)| bytes).unwrap_or_default()
            }
            Stage::Waiting(_) | Stage::WaitingJob(_) | Stage::Running { .. } | Stage::Restarted(_) => Vec::new(),
        }
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Calls {
    dir: PathBuf,
    spool_bytes: u64,
    known: HashSet<CallId>,
    live: HashMap<CallId, Call>,
    kept: Vec<PathBuf>,
}

impl Calls {
    pub(crate) fn new(state_dir: &Path, spool_bytes: u64) -> std::io::Result<Self> {
        let dir = state_dir.join("spool");
        crate::start::private_dir(&dir)?;
        Ok(Self { dir, spool_bytes, known: HashSet::new(), live: HashMap::new(), kept: Vec::new() })
    }

    /// Where a call's output goes once it is more than a little.
    pub(crate) fn spool_path(&self, call: CallId) -> PathBuf {
        self.dir.join(format!("{call}.out"))
    }

    /// The file of a call's output, also when there is none yet.
    pub(crate) fn spool_name(&self, call: CallId) -> String {
        self.live
            .get(&call)
            .map_or_else(|| self.spool_path(call).to_string_lossy().into_owned(), |entry| entry.spool.name())
    }

    pub(crate) fn is_known(&self, call: CallId) -> bool {
        self.known.contains(&call)
    }

    pub(crate) fn insert(&mut self, call: CallId, stage: Stage) {
        self.known.insert(call);
        let spool = Spool::new(self.spool_path(call), self.spool_bytes);
        self.live.insert(call, Call::new(stage, spool));
    }

    pub(crate) fn get(&self, call: CallId) -> Option<&Call> {
        self.live.get(&call)
    }

    pub(crate) fn get_mut(&mut self, call: CallId) -> Option<&mut Call> {
        self.live.get_mut(&call)
    }

    pub(crate) fn with_late_output(&self) -> impl Iterator<Item = (CallId, &Pipe)> {
        self.live.iter().filter_map(|(call, entry)| Some((*call, entry.late.as_ref()?)))
    }

    /// A job joins, with the output it has so far.
    pub(crate) fn insert_job(&mut self, call: CallId, stage: Stage, spool: Option<Spool>) {
        self.insert(call, stage);
        if let Some(entry) = self.live.get_mut(&call) {
            entry.job = true;
            if let Some(spool) = spool {
                entry.spool = spool;
            }
        }
    }

    /// A job that ended long ago leaves; its file stays for a while.
    pub(crate) fn let_go(&mut self, call: CallId) {
        if let Some(entry) = self.live.get_mut(&call) {
            entry.job = false;
            entry.forgotten = true;
            entry.late = None;
        }
        self.drop_if_done(call);
    }

    /// An empty spool for a call whose own one went on with a job.
    pub(crate) fn empty_spool(&self, call: CallId) -> Spool {
        Spool::new(self.spool_path(call), self.spool_bytes)
    }

    /// The daemon has the result; whether nothing but running jobs is outstanding now.
    pub(crate) fn forget(&mut self, call: CallId) -> bool {
        if let Some(entry) = self.live.get_mut(&call)
            && matches!(entry.stage, Stage::Over { .. } | Stage::Restarted(_))
        {
            entry.forgotten = true;
        }
        self.drop_if_done(call);
        self.live.values().all(|entry| entry.forgotten || (entry.job && matches!(entry.stage, Stage::Running { .. })))
    }

    /// A call that is forgotten and has no late output any more leaves; its file stays for a while.
    pub(crate) fn drop_if_done(&mut self, call: CallId) {
        let Some(entry) = self.live.get(&call) else { return };
        if !entry.forgotten || entry.late.is_some() || entry.job {
            return;
        }
        if let Some(path) = entry.spool.path() {
            self.kept.push(path.to_owned());
            if self.kept.len() > KEPT_SPOOLS_MAX {
                let _ = std::fs::remove_file(self.kept.remove(0));
            }
        }
        self.live.remove(&call);
    }
}
