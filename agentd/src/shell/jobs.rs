//! Background commands of a session's shell, and its environment.

use std::time::Duration;

use bytes::Bytes;
use proto::ids::{CallId, JobId};
pub use proto::shim::jobs::{JobInfo, ShellEnv};
use proto::shim::reply::Reply;
use proto::shim::request::Request;
use tokio::sync::watch;

use super::{Shell, ShellError, unexpected};

/// A wish to read a job's output.
#[derive(Clone, Copy, Debug)]
pub struct JobRead {
    /// The job.
    pub job: JobId,
    /// From this byte on.
    pub offset: u64,
    /// At most so many bytes.
    pub max: u64,
    /// How long to wait.
    pub wait: Duration,
    /// For its end; else for more output.
    pub until_end: bool,
    /// The call that waits: interrupting it ends the wait.
    pub asker: Option<CallId>,
}

/// A piece of a job's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPiece {
    /// Bytes of output before it; more than was asked for when that part is not kept.
    pub offset: u64,
    /// All bytes of output so far.
    pub total: u64,
    /// Whether the job is over.
    pub over: bool,
    /// The piece.
    pub bytes: Bytes,
}

impl Shell {
    /// Starts a command in the background, once however often this is called with the same id. Returns its directory.
    ///
    /// # Errors
    /// When the shim refuses or is gone.
    pub async fn start_job(
        &self,
        job: JobId,
        command: &str,
        deadline: Duration,
        silence: Option<Duration>,
    ) -> Result<String, ShellError> {
        let silence_ms = silence.map_or(0, millis);
        let start = Request::StartJob { job, deadline_ms: millis(deadline), silence_ms };
        match self.client.ask(start, Bytes::copy_from_slice(command.as_bytes())).await?.0 {
            Reply::JobStarted { cwd, .. } => Ok(cwd),
            reply => Err(unexpected(&reply)),
        }
    }

    /// Moves a running command to the background; its `run` then returns with [`super::End::Moved`].
    ///
    /// # Errors
    /// When the call does not run, too many jobs do, or the shim is gone.
    pub async fn background(&self, call: CallId, job: JobId, deadline: Duration) -> Result<(), ShellError> {
        let request = Request::Background { call, job, deadline_ms: millis(deadline) };
        self.client.ask(request, Bytes::new()).await.map(|_| ())
    }

    /// Begins to end a job and exactly its processes.
    ///
    /// # Errors
    /// When there is no such job, or the shim is gone.
    pub async fn stop_job(&self, job: JobId) -> Result<(), ShellError> {
        self.client.ask(Request::StopJob { job }, Bytes::new()).await.map(|_| ())
    }

    /// The jobs that run, and the last ones that ran.
    ///
    /// # Errors
    /// When the shim is gone, or of a release that knows no jobs.
    pub async fn jobs(&self) -> Result<Vec<JobInfo>, ShellError> {
        match self.client.ask(Request::Jobs {}, Bytes::new()).await?.0 {
            Reply::Jobs { jobs } => Ok(jobs),
            reply => Err(unexpected(&reply)),
        }
    }

    /// Part of a job's output, when there is some or the wait is over.
    ///
    /// # Errors
    /// When the job is not known any more, or the shim is gone.
    pub async fn read_job(&self, read: JobRead) -> Result<JobPiece, ShellError> {
        let request = Request::Read {
            call: CallId(read.job.0),
            offset: read.offset,
            max: read.max,
            wait_ms: millis(read.wait),
            until_end: read.until_end,
            asker: read.asker,
        };
        match self.client.ask(request, Bytes::new()).await? {
            (Reply::Data { offset, total, over }, bytes) => Ok(JobPiece { offset, total, over, bytes }),
            (reply, _) => Err(unexpected(&reply)),
        }
    }

    /// The shell's environment without secrets.
    ///
    /// # Errors
    /// When the shim is gone, or of a release that cannot tell.
    pub async fn env(&self) -> Result<ShellEnv, ShellError> {
        match self.client.ask(Request::Env {}, Bytes::new()).await?.0 {
            Reply::Env { env } => Ok(env),
            reply => Err(unexpected(&reply)),
        }
    }

    /// Changes when a job has ended or is silent, or when that may have been missed: then [`Self::jobs`] tells.
    #[must_use]
    pub fn jobs_changed(&self) -> watch::Receiver<u64> {
        self.client.jobs()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
