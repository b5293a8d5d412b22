//! The socket: taken from systemd, or made in a private folder under a lock, so that there is one daemon.
//!
//! Invariant: only the holder of the lock touches the socket's path. The lock is a record lock on a file: it dies with its
//! process, so no stale lock can be left and no process id can be mistaken for another's. (`flock` would live on in a child
//! that was forked and not yet executed when the daemon was killed.) Nothing else in the process may open that file: closing
//! it there would give the lock away.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use thiserror::Error;
use tokio::net::UnixListener;

/// Longest socket path the kernel takes, in bytes, without its terminating zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// How long a daemon that is asked to end may take: it lets go of its sessions and writes what is queued.
const SUCCESSION_WAIT: Duration = Duration::from_secs(10);

/// Pause between two looks at its lock.
const SUCCESSION_LOOK: Duration = Duration::from_millis(20);

/// Why the daemon cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// A daemon holds the lock.
    #[error("agentd is already running on {0}")]
    AlreadyRunning(PathBuf),
    /// The folder is not ours, or others may write it.
    #[error("the folder {path} cannot be used: {reason}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The path is too long for a socket.
    #[error(
        "the socket path {path} is {bytes} bytes long, the kernel takes {SOCKET_PATH_BYTES_MAX}; choose a shorter one with --socket"
    )]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// The socket cannot be made.
    #[error("cannot listen on {path}: {source}")]
    Bind {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The socket and what keeps others from it.
#[derive(Debug)]
pub struct Listening {
    /// Accepts clients.
    pub listener: UnixListener,
    _lock: File,
    /// What to remove at the end; `None` when systemd owns it.
    own: Option<OwnSocket>,
}

/// A socket that this daemon made: the path and what it made there.
#[derive(Debug)]
struct OwnSocket {
    path: PathBuf,
    file: FileId,
}

/// Device and inode: which file it is, whatever its name.
type FileId = (u64, u64);

fn file_id(path: &Path) -> std::io::Result<FileId> {
    std::fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()))
}

/// A private folder of this user: made with mode 0700, or checked to be so.
///
/// # Errors
/// Another owner, a link, or a mode that lets others in and cannot be changed.
pub fn private_folder(path: &Path) -> Result<(), ListenError> {
    let wrong = |reason: String| ListenError::Folder { path: path.to_owned(), reason };
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| wrong(error.to_string()))?;
    let meta = std::fs::symlink_metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !meta.is_dir() {
        return Err(wrong("it is not a folder".into()));
    }
    let me = nix::unistd::geteuid().as_raw();
    if meta.uid() != me {
        return Err(wrong(format!("it belongs to user {}, not to you ({me}); move it away", meta.uid())));
    }
    if meta.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
            .map_err(|error| wrong(format!("others may enter it and that cannot be changed: {error}")))?;
    }
    Ok(())
}

/// Takes the lock and listens: on systemd's socket if there is one, else on a socket of our own.
///
/// With systemd's socket a daemon that was started without systemd is asked to end first: systemd has put its socket in
/// the place of that daemon's, so no client reaches it any more. Its sessions and commands go on here.
///
/// # Errors
/// Another daemon, a folder that is not safe, a path that is too long.
pub async fn listen(
    socket: &Path,
    activated: Option<std::os::unix::net::UnixListener>,
) -> Result<Listening, ListenError> {
    let folder = socket.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let lock = match take_lock(folder, socket) {
        Err(ListenError::AlreadyRunning(_)) if activated.is_some() => succeed(folder, socket).await?,
        other => other?,
    };
    serve_on(socket, activated, lock)
}

/// Takes the lock, which this process has had all along, and goes on with a socket that the program before handed over.
///
/// # Errors
/// When either is not so.
pub fn go_on(socket: &Path, inherited: std::os::unix::net::UnixListener, owns: bool) -> Result<Listening, ListenError> {
    let bind = |source: std::io::Error| ListenError::Bind { path: socket.to_owned(), source };
    let folder = socket.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let lock = take_lock(folder, socket)?;
    let mut listening = serve_on(socket, Some(inherited), lock)?;
    if owns {
        let file = file_id(socket).map_err(bind)?;
        listening.own = Some(OwnSocket { path: socket.to_owned(), file });
    }
    Ok(listening)
}

fn serve_on(
    socket: &Path,
    activated: Option<std::os::unix::net::UnixListener>,
    lock: File,
) -> Result<Listening, ListenError> {
    let bind = |source: std::io::Error| ListenError::Bind { path: socket.to_owned(), source };
    let (listener, own) = match activated {
        Some(listener) => (listener, None),
        None => {
            use std::os::unix::ffi::OsStrExt;
            let bytes = socket.as_os_str().as_bytes().len();
            if bytes > SOCKET_PATH_BYTES_MAX {
                return Err(ListenError::TooLong { path: socket.to_owned(), bytes });
            }
            // Under the lock whatever lies there is a dead daemon's.
            match std::fs::remove_file(socket) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(bind(error)),
            }
            let listener = std::os::unix::net::UnixListener::bind(socket).map_err(bind)?;
            std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600)).map_err(bind)?;
            let file = file_id(socket).map_err(bind)?;
            (listener, Some(OwnSocket { path: socket.to_owned(), file }))
        }
    };
    listener.set_nonblocking(true).map_err(bind)?;
    let listener = UnixListener::from_std(listener).map_err(bind)?;
    Ok(Listening { listener, _lock: lock, own })
}

/// Asks the daemon that holds the lock to end, and takes the lock when it has.
async fn succeed(folder: &Path, socket: &Path) -> Result<File, ListenError> {
    let end = tokio::time::Instant::now() + SUCCESSION_WAIT;
    let mut asked = None;
    loop {
        let refused = match take_lock(folder, socket) {
            Err(refused @ ListenError::AlreadyRunning(_)) => refused,
            other => return other,
        };
        let holder = lock_holder(&lock_path(folder, socket));
        if holder.is_some() && holder != asked {
            asked = holder;
            if let Some(pid) = holder {
                tracing::info!(pid, "another agentd was started without systemd; asking it to end");
                // One that is gone meanwhile has freed the lock.
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGTERM);
            }
        }
        if tokio::time::Instant::now() >= end {
            return Err(refused);
        }
        tokio::time::sleep(SUCCESSION_LOOK).await;
    }
}

/// The process that holds the lock.
fn lock_holder(path: &Path) -> Option<i32> {
    let file = File::open(path).ok()?;
    let mut lock = whole_file();
    fcntl(&file, FcntlArg::F_GETLK(&mut lock)).ok()?;
    (lock.l_type != whole_file_type(libc::F_UNLCK) && lock.l_pid > 1).then_some(lock.l_pid)
}

fn whole_file_type(kind: i32) -> i16 {
    i16::try_from(kind).unwrap_or_default()
}

/// A write lock on all of a file.
fn whole_file() -> libc::flock {
    libc::flock {
        l_type: whole_file_type(libc::F_WRLCK),
        l_whence: whole_file_type(libc::SEEK_SET),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn lock_path(folder: &Path, socket: &Path) -> PathBuf {
    let name = socket.file_name().map_or_else(|| "agentd".into(), |name| name.to_string_lossy().into_owned());
    folder.join(format!("{name}.lock"))
}

fn take_lock(folder: &Path, socket: &Path) -> Result<File, ListenError> {
    let path = lock_path(folder, socket);
    let wrong = |source: std::io::Error| ListenError::Bind { path: path.clone(), source };
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(wrong)?;
    match fcntl(&file, FcntlArg::F_SETLK(&whole_file())) {
        Ok(_) => Ok(file),
        Err(Errno::EAGAIN | Errno::EACCES) => Err(ListenError::AlreadyRunning(socket.to_owned())),
        Err(error) => Err(wrong(error.into())),
    }
}

impl Listening {
    /// Splits off what accepts; the rest keeps the lock and removes the socket.
    #[must_use]
    pub fn split(self) -> (UnixListener, Guard) {
        (self.listener, Guard { own: self.own, _lock: self._lock })
    }
}

/// Removes the socket when the daemon ends, then frees the lock.
#[derive(Debug)]
pub struct Guard {
    own: Option<OwnSocket>,
    _lock: File,
}

impl Guard {
    /// Keeps the lock through an exec, and the socket where it is. Returns whether that is ours to remove.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn pass_on(&self) -> std::io::Result<bool> {
        fcntl(&self._lock, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(self.own.is_some())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Ours for as long as the lock is: the successor waits for it. But systemd does not know of the lock: its socket
        // may lie there by now.
        if let Some(own) = &self.own
            && file_id(&own.path).is_ok_and(|file| file == own.file)
        {
            let _ = std::fs::remove_file(&own.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stale_socket_is_no_obstacle_and_ones_own_goes_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        std::os::unix::net::UnixListener::bind(&path).map(drop).unwrap();
        assert!(path.exists(), "a socket nobody serves");
        let (_listener, guard) = listen(&path, None).await.unwrap().split();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(guard);
        assert!(!path.exists());
        assert!(listen(&path, None).await.is_ok());
    }

    #[tokio::test]
    async fn a_socket_that_systemd_put_in_the_place_of_ours_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let (_listener, guard) = listen(&path, None).await.unwrap().split();
        std::fs::rename(&path, dir.path().join("ours")).unwrap();
        let _systemds = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(guard);
        assert!(path.exists());
    }

    #[test]
    fn a_folder_that_others_may_enter_is_closed_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentd");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        private_folder(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[tokio::test]
    async fn a_path_too_long_for_a_socket_is_named_with_the_cure() {
        let dir = tempfile::tempdir().unwrap();
        let error = listen(&dir.path().join("x".repeat(120)), None).await.unwrap_err().to_string();
        assert!(error.contains("--socket"), "{error}");
    }
}
