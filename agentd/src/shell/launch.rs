//! Starting a shim, and where its things are. [`super::scope`] says where in systemd it belongs.

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

use super::{LaunchSpec, ShellError, scope};

/// A shim that has not answered by then will not: it does a few system calls and starts bash.
const LAUNCH_WAIT: Duration = Duration::from_secs(10);

/// How long the service manager may take to make a scope; with more the shim is started without one.
const SCOPE_WAIT: Duration = Duration::from_secs(3);

/// How much of what systemd-run says is worth repeating.
const SAID_BYTES_MAX: u64 = 1024;

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
        Started::Ready { pid, .. } => {
            scope::record(spec.session, pid, &state_of(spec.session, &spec.state_dir));
            Ok(Address { socket, token })
        }
        Started::Failed { message } => Err(ShellError::Launch(message)),
    }
}

fn not_text(path: &Path) -> ShellError {
    ShellError::Launch(format!("the path {} is not UTF-8", path.display()))
}

/// Starts the program, in a scope of its own where there are scopes.
async fn exchange(program: &Path, start: &Start) -> Result<Started, ShellError> {
    for way in scope::ways() {
        match tokio::time::timeout(SCOPE_WAIT, exchange_in_scope(program, start, *way)).await {
            Ok(Ok(started)) => return Ok(started),
            Ok(Err(error)) => tracing::warn!(session = %start.session, ?way, %error, "no scope for the shell"),
            Err(_) => {
                tracing::warn!(session = %start.session, "no scope for the shell: systemd did not answer");
                break;
            }
        }
    }
    // The shim needs nothing of the daemon's environment, and its own is for everybody of this user to read.
    exchange_with(Command::new(program).env_clear().stderr(Stdio::null()), start).await
}

async fn exchange_in_scope(program: &Path, start: &Start, way: scope::Way) -> Result<Started, ShellError> {
    let failed = |error: std::io::Error| ShellError::Launch(error.to_string());
    let (mut command, _program) = scope::command(program, start.session, way).map_err(failed)?;
    // What is not the shim yet when we give up must not become it.
    let command = command.stderr(Stdio::piped()).kill_on_drop(true);
    if let Some(path) = std::env::var_os("XDG_RUNTIME_DIR") {
        return exchange_with(command.env_clear().env("XDG_RUNTIME_DIR", path), start).await;
    }
    Err(ShellError::Launch("XDG_RUNTIME_DIR is not set".to_owned()))
}

/// Writes the one frame and reads the one answer.
async fn exchange_with(command: &mut Command, start: &Start) -> Result<Started, ShellError> {
    let failed = |error: &dyn std::fmt::Display| ShellError::Launch(error.to_string());
    let mut frame = Vec::new();
    frame::encode(&mut frame, start, &[]).map_err(|error| failed(&error))?;
    let name = command.as_std().get_program().display().to_string();
    let mut child = command
        .arg("shim")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| ShellError::Launch(format!("{name}: {error}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not take it says below why.
        let _ = stdin.write_all(&frame).await;
    }
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.as_mut() {
        stdout.read_to_end(&mut answer).await.map_err(|error| failed(&error))?;
    }
    // What was started has forked and ends at once.
    child.wait().await.map_err(|error| failed(&error))?;
    let mut decoder = Decoder::default();
    decoder.push(&answer);
    match decoder.next_frame().map_err(|error| failed(&error))? {
        Some(frame) => frame.header().map_err(|error| failed(&error)),
        None => {
            let mut said = String::new();
            if let Some(stderr) = child.stderr.take() {
                stderr.take(SAID_BYTES_MAX).read_to_string(&mut said).await.map_err(|error| failed(&error))?;
            }
            Err(ShellError::Launch(format!("{name} ended without an answer {}", said.trim()).trim_end().to_owned()))
        }
    }
}
