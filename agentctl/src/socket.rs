//! Where the daemon's socket is, and whether it is safe to talk to.
//!
//! Invariant: nothing is sent through a socket or a directory that another user owns. A planted socket in `/tmp` would
//! else receive prompts, environment and key.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use proto::secret::EnvVars;

use crate::error::CtlError;

/// The socket's path and whether it is where the installed unit listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPlace {
    /// The path.
    pub path: PathBuf,
    /// Whether nobody named another: only then may the systemd unit be started for it.
    pub default: bool,
}

/// The path: as named, else in the runtime directory, else in a private directory under `/tmp`.
#[must_use]
pub fn find(named: Option<&Path>, vars: &EnvVars, uid: u32) -> SocketPlace {
    if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        return SocketPlace { path, default: false };
    }
    let runtime = vars.get("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let user = PathBuf::from(format!("/run/user/{uid}"));
    let dir = match runtime {
        Some(dir) => dir.join("agentd"),
        None if owned(&user, uid) => user.join("agentd"),
        None => PathBuf::from(format!("/tmp/agentd-{uid}")),
    };
    SocketPlace { path: dir.join("agentd.sock"), default: true }
}

fn owned(dir: &Path, uid: u32) -> bool {
    dir.symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == uid)
}

/// Checks the owner of the socket and of its directory, and the directory's mode where we chose it.
///
/// # Errors
/// [`CtlError::OtherUser`], [`CtlError::OpenDirectory`]. A socket that is not there is no error here.
pub fn check(place: &SocketPlace, uid: u32) -> Result<(), CtlError> {
    if place.default
        && let Some(dir) = place.path.parent()
        && let Some(meta) = metadata(dir)
    {
        if meta.uid() != uid {
            return Err(CtlError::OtherUser { path: dir.to_owned(), owner: meta.uid(), me: uid });
        }
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o022 != 0 {
            return Err(CtlError::OpenDirectory { path: dir.to_owned(), mode });
        }
    }
    match metadata(&place.path) {
        Some(meta) if meta.uid() != uid => {
            Err(CtlError::OtherUser { path: place.path.clone(), owner: meta.uid(), me: uid })
        }
        Some(_) | None => Ok(()),
    }
}

/// Metadata of the thing itself, not of what a link in its place points to.
fn metadata(path: &Path) -> Option<std::fs::Metadata> {
    path.symlink_metadata().ok()
}

/// Whether a failed connect means that no daemon is there (and one may be started).
#[must_use]
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Whether a connection was taken and let go before anybody said a word.
#[must_use]
pub fn is_given_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> EnvVars {
        EnvVars(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_named_socket_wins_and_is_not_the_default() {
        let place = find(Some(Path::new("/x/y.sock")), &vars(&[("XDG_RUNTIME_DIR", "/run/user/7")]), 7);
        assert_eq!(place, SocketPlace { path: "/x/y.sock".into(), default: false });
    }

    #[test]
    fn without_a_name_it_is_in_the_runtime_directory_else_in_tmp() {
        let place = find(None, &vars(&[("XDG_RUNTIME_DIR", "/run/user/7")]), 7);
        assert_eq!(place, SocketPlace { path: "/run/user/7/agentd/agentd.sock".into(), default: true });
        let place = find(None, &vars(&[("XDG_RUNTIME_DIR", "relative")]), 4_000_000_001);
        assert_eq!(place, SocketPlace { path: "/tmp/agentd-4000000001/agentd.sock".into(), default: true });
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let uid = dir.path().metadata().unwrap().uid();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let place = SocketPlace { path: dir.path().join("agentd.sock"), default: true };
        assert!(matches!(check(&place, uid), Err(CtlError::OpenDirectory { mode: 0o777, .. })));
        assert!(matches!(check(&place, uid + 1), Err(CtlError::OtherUser { .. })));
    }
}
