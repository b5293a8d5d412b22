//! The socket: taken from systemd, or made in a private folder under a lock, so that there is one daemon.
//!
//! Invariant: only the holder of the lock touches the socket's path. The lock is `flock` on a file: it dies with its
//! process, so no stale lock can be left and no process id can be mistaken for another's.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio::net::UnixListener;

/// Longest socket path the kernel takes, in bytes, without its terminating zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

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
    /// The path to remove at the end; `None` when systemd owns it.
    own: Option<PathBuf>,
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
/// # Errors
/// Another daemon, a folder that is not safe, a path that is too long.
pub fn listen(socket: &Path, activated: Option<std::os::unix::net::UnixListener>) -> Result<Listening, ListenError> {
    let bind = |source: std::io::Error| ListenError::Bind { path: socket.to_owned(), source };
    let folder = socket.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let lock = take_lock(folder, socket)?;
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
            (listener, Some(socket.to_owned()))
        }
    };
    listener.set_nonblocking(true).map_err(bind)?;
    let listener = UnixListener::from_std(listener).map_err(bind)?;
    Ok(Listening { listener, _lock: lock, own })
}

fn take_lock(folder: &Path, socket: &Path) -> Result<File, ListenError> {
    let name = socket.file_name().map_or_else(|| "agentd".into(), |name| name.to_string_lossy().into_owned());
    let path = folder.join(format!("{name}.lock"));
    let wrong = |source: std::io::Error| ListenError::Bind { path: path.clone(), source };
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(wrong)?;
    // SAFETY: flock on a descriptor that we own; it has no memory effects.
    let taken = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if taken == 0 {
        return Ok(file);
    }
    match std::io::Error::last_os_error() {
        error if error.kind() == std::io::ErrorKind::WouldBlock => Err(ListenError::AlreadyRunning(socket.to_owned())),
        error => Err(wrong(error)),
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
    own: Option<PathBuf>,
    _lock: File,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(path) = &self.own {
            // Ours for as long as the lock is: the successor waits for it.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_daemon_is_told_and_a_stale_socket_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        std::os::unix::net::UnixListener::bind(&path).map(drop).unwrap();
        assert!(path.exists(), "a socket nobody serves");
        let (_listener, guard) = listen(&path, None).unwrap().split();
        assert!(matches!(listen(&path, None), Err(ListenError::AlreadyRunning(_))));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(guard);
        assert!(!path.exists());
        assert!(listen(&path, None).is_ok());
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
        let error = listen(&dir.path().join("x".repeat(120)), None).unwrap_err().to_string();
        assert!(error.contains("--socket"), "{error}");
    }
}
