//! Starting a shim, and where its things are.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use proto::ids::SessionId;
use proto::secret::Secret;
use proto::shim::frame::{self, Decoder};
use proto::shim::start::{Limits, Start, Started};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use uuid::Uuid;

use super::{LaunchSpec, ShellError};

/// A shim that has not answered by then will not: it does a few system calls and starts bash.
const LAUNCH_WAIT: Duration = Duration::from_secs(10);

/// Hex digits of the session id that name the socket's directory: socket paths must be short.
const NAME_DIGITS: usize = 12;

/// Where a shim is reached.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) socket: PathBuf,
    pub(super) token: Secret,
}

/// Where a session's shim listens.
pub(super) fn socket_of(session: SessionId, runtime_dir: &Path) -> PathBuf {
    let name = session.0.simple().to_string();
    // The last digits of a version 7 id are its random part.
    runtime_dir.join(&name[name.len() - NAME_DIGITS..]).join("s")
}

/// A session's own directory for spool, journal and token.
pub(super) fn state_of(session: SessionId, state_dir: &Path) -> PathBuf {
    state_dir.join(session.to_string())
}

/// Where an earlier shim of the session would be reached; none when there never was one.
pub(super) fn address_of(session: SessionId, runtime_dir: &Path, state_dir: &Path) -> Option<Address> {
    let token = std::fs::read_to_string(state_of(session, state_dir).join("token")).ok()?;
    Some(Address { socket: socket_of(session, runtime_dir), token: Secret::new(token) })
}

/// Starts a shim and waits until it listens.
pub(super) async fn launch(spec: LaunchSpec) -> Result<Address, ShellError> {
    let socket = socket_of(spec.session, &spec.runtime_dir);
    let token = Secret::new(format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()));
    let text = |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| not_text(path));
    let start = Start {
        session: spec.session,
        cwd: text(&spec.cwd)?,
        env: spec.env,
        socket: text(&socket)?,
        state_dir: text(&state_of(spec.session, &spec.state_dir))?,
        token: token.clone(),
        limits: Limits {
            spool_bytes: spec.limits.spool_bytes,
            memory_max: spec.limits.memory_max,
            pids_max: spec.limits.pids_max,
        },
        secret_names: spec.secret_names,
        accounting: spec.limits.accounting,
        extra_roots: spec.extra_roots,
    };
    let started = tokio::time::timeout(LAUNCH_WAIT, exchange(&spec.program, &start)).await;
    match started.map_err(|_| ShellError::Launch("no answer in time".to_owned()))?? {
        Started::Ready { .. } => Ok(Address { socket, token }),
        Started::Failed { message } => Err(ShellError::Launch(message)),
    }
}

fn not_text(path: &Path) -> ShellError {
    ShellError::Launch(format!("the path {} is not UTF-8", path.display()))
}

/// Starts the program, writes the one frame and reads the one answer.
async fn exchange(program: &Path, start: &Start) -> Result<Started, ShellError> {
    let failed = |error: &dyn std::fmt::Display| ShellError::Launch(error.to_string());
    let mut frame = Vec::new();
    frame::encode(&mut frame, start, &[]).map_err(|error| failed(&error))?;
    let mut child = Command::new(program)
        .arg("shim")
        // The shim needs nothing of the daemon's environment, and its own is for everybody of this user to read.
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| ShellError::Launch(format!("{}: {error}", program.display())))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&frame).await.map_err(|error| failed(&error))?;
    }
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.as_mut() {
        stdout.read_to_end(&mut answer).await.map_err(|error| failed(&error))?;
    }
    // What was started has forked and ends at once.
    child.wait().await.map_err(|error| failed(&error))?;
    let mut decoder = Decoder::default();
    decoder.push(&answer);
    let frame = decoder.next_frame().map_err(|error| failed(&error))?;
    let frame = frame.ok_or_else(|| ShellError::Launch("it ended without an answer".to_owned()))?;
    frame.header().map_err(|error| failed(&error))
}
