//! Where files live: the XDG folders, with private fall-backs, and short socket paths.

use std::path::{Path, PathBuf};

/// The folders of one daemon. Made private (0700) by [`super::super::daemon`] before anything is put there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The socket, the lock and the shims' sockets. Gone after a reboot.
    pub runtime: PathBuf,
    /// The database, the shims' spools and journals.
    pub state: PathBuf,
    /// The user's configuration.
    pub config: PathBuf,
    /// The daemon's socket.
    pub socket: PathBuf,
}

impl Paths {
    /// From the environment (`XDG_RUNTIME_DIR`, `XDG_STATE_HOME`, `XDG_CONFIG_HOME`, `HOME`) and an explicit socket
    /// path. With an explicit socket the runtime files live beside it, so that two daemons never share them.
    ///
    /// # Errors
    /// A sentence when neither an XDG variable nor `HOME` says where state belongs.
    pub fn new(env: &dyn Fn(&str) -> Option<String>, socket: Option<&Path>) -> Result<Self, String> {
        let set = |name: &str| env(name).filter(|value| value.starts_with('/')).map(PathBuf::from);
        let home = set("HOME");
        let under_home = |name: &str, below: &str| {
            set(name).or_else(|| home.as_ref().map(|home| home.join(below))).map(|base| base.join("agentd")).ok_or_else(
                || format!("neither {name} nor HOME is set to an absolute path; set one so that agentd knows where its files belong"),
            )
        };
        let default_runtime = set("XDG_RUNTIME_DIR").map_or_else(fallback_runtime, |dir| dir.join("agentd"));
        let (runtime, socket) = match socket {
            Some(socket) => {
                let folder = socket.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                (folder.to_owned(), socket.to_owned())
            }
            None => (default_runtime.clone(), default_runtime.join("agentd.sock")),
        };
        Ok(Self {
            runtime,
            state: under_home("XDG_STATE_HOME", ".local/state")?,
            config: under_home("XDG_CONFIG_HOME", ".config")?,
            socket,
        })
    }

    /// The database file.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.state.join("agentd.db")
    }

    /// The user's configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config.join("agentd.toml")
    }

    /// Private folder of one session: spools, journal, prior versions of files.
    #[must_use]
    pub fn session(&self, session: proto::ids::SessionId) -> PathBuf {
        self.sessions().join(session.to_string())
    }

    /// Parent of the sessions' private folders.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// Where the shims' sockets are.
    #[must_use]
    pub fn shims(&self) -> PathBuf {
        self.runtime.join("shims")
    }
}

/// Without `XDG_RUNTIME_DIR`: the folder a user manager would have made, if it is the user's, else one of our own under
/// /tmp, whose owner and mode are checked before use. `agentctl` looks in the same places by the same rule.
fn fallback_runtime() -> PathBuf {
    let uid = nix::unistd::getuid().as_raw();
    let run = PathBuf::from(format!("/run/user/{uid}"));
    if owned(&run, uid) { run.join("agentd") } else { PathBuf::from(format!("/tmp/agentd-{uid}")) }
}

/// A directory of the user's, not a link to one.
fn owned(dir: &Path, uid: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    dir.symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_socket_takes_the_runtime_files_along() {
        let env = |name: &str| match name {
            "HOME" => Some("/home/u".to_owned()),
            "XDG_RUNTIME_DIR" => Some("/run/user/7".to_owned()),
            _ => None,
        };
        let default = Paths::new(&env, None).unwrap();
        assert_eq!(default.socket, Path::new("/run/user/7/agentd/agentd.sock"));
        assert_eq!(default.database(), Path::new("/home/u/.local/state/agentd/agentd.db"));
        let own = Paths::new(&env, Some(Path::new("/tmp/x/a.sock"))).unwrap();
        assert_eq!(own.runtime, Path::new("/tmp/x"));
    }

    #[test]
    fn a_runtime_folder_counts_only_when_it_is_the_users_own() {
        let dir = tempfile::tempdir().unwrap();
        let uid = nix::unistd::getuid().as_raw();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(owned(dir.path(), uid));
        assert!(!owned(dir.path(), uid + 1) && !owned(&link, uid) && !owned(&dir.path().join("none"), uid));
    }

    #[test]
    fn without_a_home_the_error_names_what_to_set() {
        let error = Paths::new(&|_| None, None).unwrap_err();
        assert!(error.contains("XDG_STATE_HOME"), "{error}");
    }
}
