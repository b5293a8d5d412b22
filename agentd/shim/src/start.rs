//! From the first frame on standard input to a process of its own that listens.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Uid, dup2_stderr, dup2_stdin, dup2_stdout};
use proto::shim::frame::{self, Decoder};
use proto::shim::start::{Start, Started};
use uuid::Uuid;

use crate::files::{Files, FilesError};

/// Longest socket path that every kernel takes (108 bytes with the closing zero).
const SOCKET_PATH_MAX: usize = 107;

/// Why a shim could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("the first frame on standard input is missing or wrong: {0}")]
    Input(String),
    #[error("cannot {what} {}: {source}", path.display())]
    Path { what: &'static str, path: PathBuf, source: io::Error },
    #[error("the socket path is longer than {SOCKET_PATH_MAX} bytes: {}", .0.display())]
    SocketPath(PathBuf),
    #[error("another shim serves this session")]
    Taken,
    #[error("cannot start the shell: {0}")]
    Shell(io::Error),
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
}

/// What a started shim owns besides its shell.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) start: Start,
    pub(crate) instance: Uuid,
    pub(crate) listener: UnixListener,
    pub(crate) runtime_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) _lock: Flock<File>,
}

impl Setup {
    /// Opens the session's files. An extra root that is not there now (a disk that is not mounted) is left out, rather
    /// than keeping the workspace from being edited.
    pub(crate) fn open_files(&self) -> Result<Files, FilesError> {
        let extra = self.start.extra_roots.iter().map(PathBuf::from);
        let extra: Vec<PathBuf> = extra.filter(|root| root.is_absolute() && root.is_dir()).collect();
        Files::open(Path::new(&self.start.cwd), &extra, &self.state_dir.join("files"))
    }
}

/// Reads the one frame.
pub(crate) fn read_start(mut input: impl Read) -> Result<Start, StartError> {
    let (mut decoder, mut buffer) = (Decoder::default(), [0; 16 * 1024]);
    loop {
        if let Some(frame) = decoder.next_frame().map_err(|error| StartError::Input(error.to_string()))? {
            return frame.header().map_err(|error| StartError::Input(error.to_string()));
        }
        match input.read(&mut buffer)? {
            0 => return Err(StartError::Input("the input ended".to_owned())),
            count => decoder.push(&buffer[..count]),
        }
    }
}

/// Answers on standard output.
pub(crate) fn answer(started: &Started) {
    let mut bytes = Vec::new();
    if frame::encode(&mut bytes, started, &[]).is_ok() {
        let mut out = io::stdout().lock();
        let _ = out.write_all(&bytes).and_then(|()| out.flush());
    }
}

/// Makes the directories, takes the session's lock, and listens.
pub(crate) fn set_up(start: Start) -> Result<Setup, StartError> {
    let socket = PathBuf::from(&start.socket);
    let state_dir = PathBuf::from(&start.state_dir);
    if socket.as_os_str().len() > SOCKET_PATH_MAX {
        return Err(StartError::SocketPath(socket));
    }
    let runtime_dir = socket.parent().unwrap_or(Path::new("/")).to_owned();
    for dir in [&runtime_dir, &state_dir] {
        private_dir(dir).map_err(at("use the directory", dir))?;
    }
    let lock_path = state_dir.join("lock");
    let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock_path);
    let lock = Flock::lock(lock.map_err(at("open", &lock_path))?, FlockArg::LockExclusiveNonblock);
    let lock = lock.map_err(|_| StartError::Taken)?;
    let token_path = state_dir.join("token");
    let token = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&token_path);
    token.and_then(|mut file| file.write_all(start.token.expose().as_bytes())).map_err(at("write", &token_path))?;
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).map_err(at("listen on", &socket))?;
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).map_err(at("protect", &socket))?;
    listener.set_nonblocking(true)?;
    Ok(Setup { start, instance: Uuid::new_v4(), listener, runtime_dir, state_dir, _lock: lock })
}

fn at<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StartError + 'a {
    move |source| StartError::Path { what, path: path.to_owned(), source }
}

/// Makes a directory that is ours alone, or checks that an existing one is.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = fs::metadata(dir)?;
    if meta.uid() != Uid::effective().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Points the standard descriptors away from the daemon: nothing of it may stay open here.
pub(crate) fn let_go(state_dir: &Path) -> io::Result<()> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(null.as_fd())?;
    dup2_stdout(null.as_fd())?;
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(state_dir.join("shim.log"))?;
    dup2_stderr(log.as_fd())?;
    Ok(())
}

/// Whether a variable must not reach a shell: `ANTHROPIC_*` and what the configuration names.
#[must_use]
pub fn is_secret(name: &str, secret_names: &[String]) -> bool {
    name.starts_with("ANTHROPIC_")
        || secret_names.iter().any(|secret| match secret.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == secret,
        })
}

/// The shell's environment: the client's, without secrets, with what keeps programs from waiting for a person.
pub(crate) fn shell_env(start: &Start) -> Vec<(String, String)> {
    /// Variables that would make bash run or print something of its own.
    const UNWANTED: [&str; 6] = ["BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "BASH_XTRACEFD", "BASH_FUNC_builtin%%"];
    let usable = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let mut env: Vec<(String, String)> = start.env.0.clone();
    env.retain(|(name, value)| {
        usable(name)
            && !value.contains('\0')
            && !is_secret(name, &start.secret_names)
            && !UNWANTED.contains(&name.as_str())
    });
    let session = start.session.to_string();
    let ours = [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("MANPAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("AGENTD_SESSION", session.as_str()),
        (crate::marks::VARIABLE, "0"),
    ];
    env.retain(|(name, _)| ours.iter().all(|(own, _)| own != name));
    env.extend(ours.map(|(name, value)| (name.to_owned(), value.to_owned())));
    env
}
