//! The daemon's side of a shim: one handle per session, whatever becomes of the connection.
//!
//! [`launch`] starts a shim, in a [`scope`] of systemd's where there is one; [`client`] keeps the connection (a dropped socket is opened again in silence while the shim
//! lives), [`jobs`] are its background commands, [`recover`] finds what earlier daemons and dead shims left behind.
//!
//! Invariant: nothing here waits on a receiver of live output: a slow one misses pieces, which it can read from the
//! spool by their offsets.
//! Not here: what the model is told (`tools::bash`), when a command may run (`policy`).

mod client;
pub mod jobs;
mod launch;
pub mod recover;
pub mod scope;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::ids::{CallId, SessionId};
use proto::secret::EnvVars;
use proto::shim::files::{FileOp, FileReply};
pub use proto::shim::outcome::{End, ExitStatus, LimitHit, Renewed, RestartResult, RunEnd, Why};
pub use proto::shim::reply::ShellState;
use proto::shim::reply::{Refusal, Reply};
use proto::shim::request::Request;
pub use proto::shim::start::{Accounting, Wish};
use tokio::sync::mpsc;
use uuid::Uuid;

/// What a shim is started with.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// The session.
    pub session: SessionId,
    /// The shell's first directory.
    pub cwd: PathBuf,
    /// The client's environment; secrets are removed by the shim.
    pub env: EnvVars,
    /// The daemon's runtime directory; the shim's socket gets a directory of its own in it.
    pub runtime_dir: PathBuf,
    /// The daemon's state directory; spool and journal get a directory of the session's in it.
    pub state_dir: PathBuf,
    /// The program that is the shim when its first argument is `shim`: `/proc/self/exe` in the daemon.
    pub program: PathBuf,
    /// Limits.
    pub limits: ShellLimits,
    /// Variables that must not reach the shell, besides `ANTHROPIC_*`; a trailing `*` stands for any ending.
    pub secret_names: Vec<String>,
    /// Directories beside the workspace in which files may be viewed and edited.
    pub extra_roots: Vec<String>,
}

/// Limits of a session's shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellLimits {
    /// A command's deadline when none is asked for.
    pub deadline: Duration,
    /// The longest deadline that may be asked for.
    pub deadline_max: Duration,
    /// Largest spool of one command, in bytes; beyond it the first and the last half are kept.
    pub spool_bytes: u64,
    /// Characters of output that the model receives.
    pub output_chars: usize,
    /// `memory.max` of one command, in bytes, where the system has such a limit.
    pub memory_max: Option<u64>,
    /// `pids.max` of one command, where the system has such a limit.
    pub pids_max: Option<u64>,
    /// How processes are accounted for.
    pub accounting: Wish,
}

impl Default for ShellLimits {
    /// 120 s and at most 600 s; 64 MiB of spool, 30,000 characters for the model; no limits on memory and processes.
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(120),
            deadline_max: Duration::from_secs(600),
            spool_bytes: 64 * 1024 * 1024,
            output_chars: 30_000,
            memory_max: None,
            pids_max: None,
            accounting: Wish::Auto,
        }
    }
}

/// Why a shell did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The shim could not be started.
    #[error("cannot start the session's shell: {0}")]
    Launch(String),
    /// The shim is gone: what was running may or may not have run. [`recover::remains`] knows what is left.
    #[error("the session's shell process is gone")]
    Lost,
    /// The shim refused.
    #[error("the session's shell refused: {message}")]
    Refused {
        /// For programs.
        code: Refusal,
        /// For people.
        message: String,
    },
    /// The shim speaks no version of the protocol that this daemon speaks, or answers nonsense.
    #[error("the session's shell cannot be understood: {0}")]
    Protocol(String),
}

/// A piece of live output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputChunk {
    /// Bytes of output before it; a gap to the chunk before is in the spool.
    pub offset: u64,
    /// The bytes as they were written.
    pub bytes: Bytes,
}

/// A command's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// How it ended.
    pub end: RunEnd,
    /// Its output's first and last bytes.
    pub body: Bytes,
}

impl RunResult {
    /// The output's first bytes; all of it when [`RunResult::tail`] is empty.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        self.body.get(..self.head_bytes()).unwrap_or_default()
    }

    /// The output's last bytes, after a gap.
    #[must_use]
    pub fn tail(&self) -> &[u8] {
        self.body.get(self.head_bytes()..).unwrap_or_default()
    }

    fn head_bytes(&self) -> usize {
        usize::try_from(self.end.head_bytes).unwrap_or(usize::MAX).min(self.body.len())
    }
}

/// A session's shell. Clones are the same shell; when the last one goes, the shim lives on.
#[derive(Clone, Debug)]
pub struct Shell {
    client: Arc<client::Client>,
    limits: ShellLimits,
}

impl Shell {
    /// Starts a shim.
    ///
    /// # Errors
    /// [`ShellError::Launch`] with the reason; [`ShellError::Lost`] when it is gone before the first word.
    pub async fn launch(spec: LaunchSpec) -> Result<Self, ShellError> {
        let limits = spec.limits;
        let address = launch::launch(spec).await?;
        let client = client::Client::connect(address).await?;
        Ok(Self { client: Arc::new(client), limits })
    }

    /// Finds the living shim of an earlier daemon; none when there is none.
    ///
    /// # Errors
    /// When there is one that cannot be spoken to.
    pub async fn find(
        session: SessionId,
        runtime_dir: &Path,
        state_dir: &Path,
        limits: ShellLimits,
    ) -> Result<Option<Self>, ShellError> {
        let Some(address) = launch::address_of(session, runtime_dir, state_dir) else { return Ok(None) };
        match client::Client::connect(address).await {
            Ok(client) => Ok(Some(Self { client: Arc::new(client), limits })),
            Err(ShellError::Lost) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// This shim's own id, unlike that of any other.
    #[must_use]
    pub fn instance(&self) -> Uuid {
        self.client.about().instance
    }

    /// The limits it was made or found with.
    #[must_use]
    pub fn limits(&self) -> &ShellLimits {
        &self.limits
    }

    /// The shim's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.client.about().pid
    }

    /// How processes are accounted for.
    #[must_use]
    pub fn accounting(&self) -> Accounting {
        self.client.about().accounting
    }

    /// Runs a command, once however often this is called with the same call id, and waits for its end. Live output goes
    /// to `output` as far as that has room.
    ///
    /// # Errors
    /// [`ShellError::Lost`] when the shim is gone before the end is known, [`ShellError::Refused`] when it did not run.
    pub async fn run(
        &self,
        call: CallId,
        command: &str,
        deadline: Duration,
        output: mpsc::Sender<OutputChunk>,
    ) -> Result<RunResult, ShellError> {
        let deadline = deadline.min(self.limits.deadline_max);
        let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        // Every character is at least one byte; escapes and redrawn lines that are removed leave room for more.
        let ends = u64::try_from(self.limits.output_chars).unwrap_or(u64::MAX).saturating_mul(2);
        let run = Request::Run { call, deadline_ms, head_bytes: ends, tail_bytes: ends, offset: 0 };
        self.client.run(call, run, Bytes::copy_from_slice(command.as_bytes()), output).await
    }

    /// Ends a running command; its `run` then returns with [`End::Interrupted`].
    ///
    /// # Errors
    /// When the call does not run, or the shim is gone.
    pub async fn interrupt(&self, call: CallId) -> Result<(), ShellError> {
        self.client.ask(Request::Interrupt { call }, Bytes::new()).await.map(|_| ())
    }

    /// Ends every process of the session and starts a fresh shell in the session's first directory; once for a call.
    ///
    /// # Errors
    /// When the shim is gone.
    pub async fn restart(&self, call: CallId) -> Result<RestartResult, ShellError> {
        match self.client.ask(Request::Restart { call }, Bytes::new()).await?.0 {
            Reply::Restarted { result } => Ok(result),
            reply => Err(unexpected(&reply)),
        }
    }

    /// The call's result is on the daemon's disk; the shim need not keep it.
    pub async fn forget(&self, call: CallId) {
        // A shim that is gone has forgotten already.
        let _ = self.client.ask(Request::Forget { call }, Bytes::new()).await;
    }

    /// Does a file operation.
    ///
    /// # Errors
    /// When the shim is gone or refuses. What the operation itself could not do is in its answer.
    pub async fn file(&self, call: CallId, op: &FileOp) -> Result<FileReply, ShellError> {
        let body = serde_json::to_vec(op).map_err(|error| ShellError::Protocol(error.to_string()))?;
        match self.client.ask(Request::File { call }, Bytes::from(body)).await? {
            (Reply::File {}, body) => {
                serde_json::from_slice(&body).map_err(|error| ShellError::Protocol(error.to_string()))
            }
            (reply, _) => Err(unexpected(&reply)),
        }
    }

    /// The shell's directory and process.
    ///
    /// # Errors
    /// When the shim is gone.
    pub async fn state(&self) -> Result<ShellState, ShellError> {
        match self.client.ask(Request::State {}, Bytes::new()).await?.0 {
            Reply::State { state } => Ok(state),
            reply => Err(unexpected(&reply)),
        }
    }

    /// A call's output from `offset` on, at most `max` bytes; empty at the end. Works until the call is forgotten.
    ///
    /// # Errors
    /// When the call is not known or the shim is gone.
    pub async fn read_spool(&self, call: CallId, offset: u64, max: u64) -> Result<OutputChunk, ShellError> {
        let read = Request::Read { call, offset, max, wait_ms: 0, until_end: false, asker: None };
        match self.client.ask(read, Bytes::new()).await? {
            (Reply::Data { offset, .. }, bytes) => Ok(OutputChunk { offset, bytes }),
            (reply, _) => Err(unexpected(&reply)),
        }
    }

    /// Ends every process of the session and the shim; returns when it is gone.
    pub async fn shutdown(&self) {
        if self.client.ask(Request::Shutdown {}, Bytes::new()).await.is_ok() {
            self.lost().await;
        }
    }

    /// Returns when the shim is gone.
    pub async fn lost(&self) {
        self.client.lost().await;
    }
}

/// How shims started now will account for processes: by control groups where this process may divide its own group.
#[must_use]
pub fn accounting_available() -> Accounting {
    let writable = shim::cgroup::own_group()
        .is_ok_and(|group| nix::unistd::access(&group, nix::unistd::AccessFlags::W_OK).is_ok());
    if writable { Accounting::Cgroup } else { Accounting::Marks }
}

fn unexpected(reply: &Reply) -> ShellError {
    ShellError::Protocol(format!("unexpected answer {reply:?}"))
}
