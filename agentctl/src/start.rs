//! Starts the daemon when none runs: the systemd user unit where it is installed, else the program itself, detached.
//!
//! Twenty clients may do this at once: the daemon's own lock lets one win, the others say `already running`, and every
//! client then connects to the winner. Nobody polls for the socket: a started daemon writes `READY` to a pipe.
//!
//! One `unsafe` is here: `setsid` between fork and exec.

use std::fs::{self, DirBuilder, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::{pipe, setsid};
use proto::handshake::Role;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::socket::{check, is_absent, is_given_up};

/// How long a daemon may take to say READY: it opens its database and finds its shells again, on a slow disk too.
const READY_WAIT: Duration = Duration::from_secs(20);

/// Longest message on the ready descriptor: one sentence.
const READY_BYTES_MAX: u64 = 4096;

/// How often a daemon is started in one command. The one that said `already running` may have been on its way out, or the
/// starter that won may have died: then somebody must start again.
const STARTS_MAX: u32 = 8;

/// How often a connect is tried after a start. With the pauses below this is 0.3 s: long beside the time between another
/// starter's lock and its socket, short for who waits. All starts together make it 2.5 s, for a slow disk.
const CONNECT_TRIES: u32 = 7;

/// Pause before the first new try; it doubles up to [`CONNECT_PAUSE_MAX`].
const CONNECT_PAUSE: Duration = Duration::from_millis(5);

/// Longest pause between two tries.
const CONNECT_PAUSE_MAX: Duration = Duration::from_millis(640);

/// Size of the log over which a start puts it aside: one old and one new log of this size are the most it ever takes.
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What the daemon says on the ready descriptor when another one holds the lock.
const ALREADY_RUNNING: &str = "already running";

/// How a daemon's last sentence begins in its journal.
const LAST_WORDS: &str = "agentd: ";

/// What a daemon says there once it serves.
const SERVING: &str = "serving";

/// How far back its last sentence is looked for: the longest ones are a dozen lines.
const LAST_LINES: &str = "--lines=30";

/// How long the journal may take.
const JOURNAL_WAIT: Duration = Duration::from_secs(3);

/// Connects; starts the daemon first when none runs and that is allowed.
///
/// # Errors
/// Whatever keeps us from a connection, as a sentence for the user.
pub async fn connect(context: &Context, role: Role) -> Result<Connection, CtlError> {
    let mut result = try_connect(context, role).await;
    for _ in 0..STARTS_MAX {
        match &result {
            Err(CtlError::Unreachable { source, .. }) if context.may_start && is_absent(source) => {}
            // systemd took the connection for a daemon that then did not start; the unit knows why.
            Err(CtlError::Connection(source)) if context.may_start && is_given_up(source) && has_unit(context) => {}
            Ok(_) | Err(_) => break,
        }
        start(context).await?;
        result = connect_soon(context, role).await;
    }
    result
}

/// Connects to a daemon that is just starting.
async fn connect_soon(context: &Context, role: Role) -> Result<Connection, CtlError> {
    let mut pause = CONNECT_PAUSE;
    for _ in 1..CONNECT_TRIES {
        match try_connect(context, role).await {
            Err(CtlError::Unreachable { source, .. }) if is_absent(&source) => {}
            other => return other,
        }
        sleep(pause).await;
        pause = (pause * 2).min(CONNECT_PAUSE_MAX);
    }
    try_connect(context, role).await
}

/// Connects without starting anything.
///
/// # Errors
/// As [`connect`].
pub async fn try_connect(context: &Context, role: Role) -> Result<Connection, CtlError> {
    check(&context.socket, context.uid)?;
    Connection::open(&context.socket.path, context.uid, role, context.client()).await
}

async fn start(context: &Context) -> Result<(), CtlError> {
    if has_unit(context) { start_unit().await } else { spawn(context).await }
}

/// Whether the unit is what serves our socket.
fn has_unit(context: &Context) -> bool {
    context.socket.default && unit_file(context).is_some() && user_manager(context)
}

/// The installed user unit, if there is one.
#[must_use]
pub fn unit_file(context: &Context) -> Option<PathBuf> {
    let home = Path::new(context.var("HOME").unwrap_or("/"));
    let under = |var: &str, fallback: &str| context.var(var).map_or_else(|| home.join(fallback), PathBuf::from);
    let mut places = vec![
        under("XDG_CONFIG_HOME", ".config").join("systemd/user"),
        under("XDG_DATA_HOME", ".local/share").join("systemd/user"),
    ];
    places.extend(
        [
            "/etc/systemd/user",
            "/run/systemd/user",
            "/usr/local/share/systemd/user",
            "/usr/share/systemd/user",
            "/usr/local/lib/systemd/user",
            "/usr/lib/systemd/user",
        ]
        .map(PathBuf::from),
    );
    places.into_iter().map(|dir| dir.join("agentd.service")).find(|file| file.exists())
}

/// Whether a systemd user manager runs for us.
#[must_use]
pub fn user_manager(context: &Context) -> bool {
    context.var("XDG_RUNTIME_DIR").is_some_and(|dir| Path::new(dir).join("systemd/private").exists())
}

async fn start_unit() -> Result<(), CtlError> {
    let failed = |detail: String| CtlError::Unit { detail };
    let output = Command::new("systemctl").args(["--user", "start", "agentd"]).stdin(Stdio::null()).output().await;
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    if let Some(sentence) = last_words().await {
        return Err(failed(sentence));
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    Err(failed(first.trim_end_matches('.').to_owned()))
}

/// Why the unit's daemon ended, in its own words: the last sentence it wrote to the journal.
async fn last_words() -> Option<String> {
    let mut journal = Command::new("journalctl");
    journal.args(["--user", "--unit=agentd", "--output=cat", "--no-pager", LAST_LINES, "SYSLOG_IDENTIFIER=agentd"]);
    let output = timeout(JOURNAL_WAIT, journal.stdin(Stdio::null()).kill_on_drop(true).output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Whatever comes after it is of a daemon that served.
    let last = text.lines().rfind(|line| line.starts_with(LAST_WORDS) || *line == SERVING)?;
    last.strip_prefix(LAST_WORDS).map(str::to_owned)
}

/// The daemon's program: as named, else our neighbour, else in PATH.
#[must_use]
pub fn daemon_binary(context: &Context) -> Option<PathBuf> {
    if let Some(named) = context.var("AGENTD_BIN") {
        return Some(PathBuf::from(named));
    }
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("agentd"));
    let in_path = context.var("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(in_path).filter(|dir| dir.is_absolute()).map(|dir| dir.join("agentd"));
    beside.into_iter().chain(in_path).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

async fn spawn(context: &Context) -> Result<(), CtlError> {
    let binary = daemon_binary(context).ok_or(CtlError::NoBinary)?;
    let log = context.state_dir().join("agentd.log");
    let spawn_error = |source| CtlError::Spawn { binary: binary.clone(), source };
    let (ready, ready_end) = pipe().map_err(|errno| spawn_error(errno.into()))?;
    fcntl(&ready, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|errno| spawn_error(errno.into()))?;
    let mut child = detached(context, &binary, &log, &ready_end).map_err(spawn_error)?;
    // Ours must go, or the daemon's death would not end the pipe.
    drop(ready_end);
    let ready = Receiver::from_owned_fd(ready).map_err(spawn_error)?;
    let mut said = Vec::new();
    let silent = |what: String| CtlError::StartSilent { what, log: log.clone() };
    match timeout(READY_WAIT, ready.take(READY_BYTES_MAX).read_to_end(&mut said)).await {
        Err(_) => return Err(silent(format!("was not ready after {} s", READY_WAIT.as_secs()))),
        Ok(Err(error)) => return Err(silent(format!("its ready pipe broke ({error})"))),
        Ok(Ok(_)) => {}
    }
    let said = String::from_utf8_lossy(&said);
    match said.trim_end().strip_prefix("ERROR") {
        Some(sentence) if sentence.contains(ALREADY_RUNNING) => Ok(()),
        Some(sentence) => Err(CtlError::StartFailed { sentence: sentence.trim().to_owned() }),
        None if said.starts_with("READY") => Ok(()),
        None => Err(silent(ending(&mut child).await)),
    }
}

/// How a daemon ended that closed its pipe without a word.
async fn ending(child: &mut Child) -> String {
    match timeout(CONNECT_PAUSE_MAX, child.wait()).await {
        Ok(Ok(status)) => format!("ended at once ({status})"),
        Ok(Err(_)) | Err(_) => "never said that it is ready".to_owned(),
    }
}

/// Starts the program in a session of its own, with nothing of our terminal.
fn detached(context: &Context, binary: &Path, log: &Path, ready: &OwnedFd) -> std::io::Result<Child> {
    DirBuilder::new().recursive(true).mode(0o700).create(context.state_dir())?;
    if fs::metadata(log).is_ok_and(|meta| meta.len() > LOG_BYTES_MAX) {
        // Of several starters one does it; the others find nothing to do.
        let _ = fs::rename(log, log.with_extension("log.old"));
    }
    let out = OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
    let err = out.try_clone()?;
    let mut command = Command::new(binary);
    command
        .arg("--ready-fd")
        .arg(ready.as_raw_fd().to_string())
        // What we found is where it must listen, also when both sides would find different defaults.
        .env("AGENTD_SOCKET", &context.socket.path)
        // Not a directory of ours: it must not keep a mount busy.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err);
    // SAFETY: the closure runs between fork and exec and calls setsid alone, which is async-signal-safe and touches no
    // memory of the parent.
    unsafe {
        command.pre_exec(|| setsid().map(drop).map_err(std::io::Error::from));
    }
    command.spawn()
}
