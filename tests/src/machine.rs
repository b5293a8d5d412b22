//! One test's machine: a user's home, XDG directories, a workspace, an environment; and the proof at its end that
//! nothing of the test is left.
//!
//! Paths are short: a Unix socket's must stay under 108 bytes. Every process of the test carries [`Machine::mark`] in
//! its environment or lives in the machine's directory.
//!
//! Invariant: after the drop no process of the test is alive and its directory is gone; a test that leaves one fails.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use proto::request::{Endpoint, Request, Shutdown};
use proto::secret::{EnvVars, Secret};
use tempfile::TempDir;

use crate::client::Client;
use crate::daemon::Daemon;
use crate::processes::{self, Process};
use crate::{binaries, wait};

/// The variable that marks every process of a test. Not one of `AGENTD_…`, which are the product's own.
const MARK: &str = "HARNESS_MARK";

/// How long the shells of a test may take to end once they were told to: longer than the kill ladder of a shim.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// How much of each log a failing test prints.
const LOG_TAIL_BYTES: usize = 16 * 1024;

/// A machine of one test.
#[derive(Debug)]
pub struct Machine {
    directory: TempDir,
    mark: String,
    env: BTreeMap<String, String>,
}

impl Machine {
    /// A machine without a key and without a model server.
    ///
    /// # Panics
    /// When the temporary directory cannot be made.
    #[must_use]
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("ad-").rand_bytes(6).tempdir_in("/tmp").expect("a directory");
        let root = directory.path().to_owned();
        let mark = format!("agentd-test-{}", uuid::Uuid::new_v4().simple());
        for name in ["home", "run", "state", "config", "data", "cache", "tmp", "work", "logs"] {
            fs::create_dir(root.join(name)).expect("a directory of the machine");
        }
        fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o700)).expect("a private run directory");
        let path = |name: &str| root.join(name).to_string_lossy().into_owned();
        let agentd = binaries::agentd().to_string_lossy().into_owned();
        let pairs = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("HOME", path("home")),
            ("USER", "tester".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("TMPDIR", path("tmp")),
            ("XDG_RUNTIME_DIR", path("run")),
            ("XDG_STATE_HOME", path("state")),
            ("XDG_CONFIG_HOME", path("config")),
            ("XDG_DATA_HOME", path("data")),
            ("XDG_CACHE_HOME", path("cache")),
            ("AGENTD_BIN", agentd),
            // The journal of whoever runs the tests is not theirs to fill.
            ("AGENTD_LOG_AUDIT_JOURNAL", "false".to_owned()),
            (MARK, mark.clone()),
        ];
        let env = pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { directory, mark, env }
    }

    /// A machine whose user has a key and this model server.
    #[must_use]
    pub fn with_model(url: &str) -> Self {
        let mut machine = Self::new();
        machine.set_env("ANTHROPIC_BASE_URL", url);
        machine.set_env("ANTHROPIC_API_KEY", "sk-test-key");
        machine
    }

    /// Sets a variable of everything started from now on.
    pub fn set_env(&mut self, key: &str, value: &str) {
        self.env.insert(key.to_owned(), value.to_owned());
    }

    /// Removes a variable of everything started from now on.
    pub fn unset_env(&mut self, key: &str) {
        self.env.remove(key);
    }

    /// Overrides a configuration key, `shell.deadline` for example, in everything started from now on.
    pub fn configure(&mut self, key: &str, value: &str) {
        self.set_env(&format!("AGENTD_{}", key.replace('.', "_").to_uppercase()), value);
    }

    /// The directory of everything.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// The workspace.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// The daemon's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.root().join("run/agentd/agentd.sock")
    }

    /// The daemon's database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.root().join("state/agentd/agentd.db")
    }

    /// The user's configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.root().join("config/agentd/agentd.toml")
    }

    /// Writes the user's configuration file.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_config(&self, text: &str) {
        let file = self.config_file();
        fs::create_dir_all(file.parent().expect("a file in a directory")).expect("a configuration directory");
        fs::write(file, text).expect("the configuration file");
    }

    /// Where logs of this machine go.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.root().join("logs")
    }

    /// The mark in every environment of this machine.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// A command with this machine's environment and nothing else, in its workspace.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.env).current_dir(self.work());
        command
    }

    /// The environment as a client sends it.
    #[must_use]
    pub fn env_vars(&self) -> EnvVars {
        EnvVars(self.env.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// The endpoint as a client sends it.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        let get = |key: &str| self.env.get(key).cloned();
        Endpoint {
            base_url: get("ANTHROPIC_BASE_URL"),
            api_key: get("ANTHROPIC_API_KEY").map(Secret::new),
            auth_token: get("ANTHROPIC_AUTH_TOKEN").map(Secret::new),
        }
    }

    /// The processes of this test.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        processes::of_test(&self.mark, self.root())
    }

    /// The daemons of this test, however they were started.
    #[must_use]
    pub fn daemons(&self) -> Vec<Process> {
        let is_daemon = |process: &Process| {
            process.argv.first().is_some_and(|program| program.ends_with("agentd"))
                && process.argv.get(1).is_none_or(|argument| argument != "shim")
        };
        let mut daemons: Vec<Process> = self.processes().into_iter().filter(is_daemon).collect();
        // A daemon hides its environment and files from everybody but root: then the one that serves is what is seen.
        let serving = self.serving().filter(|serving| daemons.iter().all(|process| process.pid != serving.pid));
        daemons.extend(serving);
        daemons
    }

    /// The process behind the socket.
    fn serving(&self) -> Option<Process> {
        let stream = UnixStream::connect(self.socket()).ok()?;
        let peer = getsockopt(&stream, PeerCredentials).ok()?;
        processes::alive(peer.pid()).then(|| Process { pid: peer.pid(), argv: vec!["agentd".into()] })
    }

    /// The end of each log of this machine.
    #[must_use]
    pub fn log_tails(&self) -> String {
        let mut files = Vec::new();
        for directory in [self.logs(), self.root().join("state/agentd")] {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.path().extension().is_some_and(|extension| extension == "log") {
                    files.push(entry.path());
                }
            }
        }
        files.sort();
        files.iter().map(|file| format!("--- {}\n{}\n", file.display(), tail(file))).collect()
    }

    /// Ends daemon and shells as a user would.
    fn end(&self) {
        // A killed daemon's socket is the next one's to clear away, too.
        let daemon = if self.processes().is_empty() && !self.socket().exists() {
            return;
        } else if Client::connect(&self.socket()).is_ok() {
            None
        } else {
            // Shells outlive a killed daemon on purpose; only a daemon can end them.
            Daemon::try_start(self).ok()
        };
        let serving = self.serving();
        if let Ok(mut client) = Client::connect(&self.socket()) {
            // The daemon may close the connection before it answers.
            let _ = client.try_call(Request::Shutdown(Shutdown { stop_shells: true }));
        }
        drop(daemon);
        if let Some(serving) = serving {
            wait::within(END_PATIENCE, || (!processes::alive(serving.pid)).then_some(()));
        }
    }

    fn survivors(&self) -> Vec<Process> {
        let gone = || {
            let left = self.processes();
            left.is_empty().then_some(())
        };
        match wait::within(END_PATIENCE, gone) {
            Some(()) => Vec::new(),
            None => self.processes(),
        }
    }

    fn kill_all(&self) {
        let none = || {
            let left = self.processes();
            left.iter().for_each(|process| processes::kill_hard(process.pid));
            left.is_empty().then_some(())
        };
        wait::within(END_PATIENCE, none);
    }

    /// Files that nothing should leave: sockets and locks of ended processes, temporary files, droppings in the home.
    fn strays(&self) -> Vec<PathBuf> {
        let mut strays = Vec::new();
        for directory in ["home", "tmp"] {
            walk(&self.root().join(directory), &mut |path| {
                // vim, which a case of the corpus runs, keeps this of its own accord.
                if path.file_name().is_none_or(|name| name != ".viminfo") {
                    strays.push(path.to_owned());
                }
            });
        }
        let is_socket = |path: &Path| {
            use std::os::unix::fs::FileTypeExt;
            path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket() || meta.file_type().is_fifo())
        };
        walk(&self.root().join("run"), &mut |path| {
            if is_socket(path) {
                strays.push(path.to_owned());
            }
        });
        strays
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.log_tails());
            self.kill_all();
            return;
        }
        self.end();
        let left = self.survivors();
        if !left.is_empty() {
            eprintln!("{}", self.log_tails());
            self.kill_all();
            panic!("processes of the test are left: {left:#?}");
        }
        let strays = self.strays();
        assert!(strays.is_empty(), "stray files are left: {strays:#?}");
    }
}

/// The last part of a file.
fn tail(file: &Path) -> String {
    let mut bytes = Vec::new();
    // A log that cannot be read is an empty tail: this only decorates a failure.
    let _ = fs::File::open(file).and_then(|mut file| file.read_to_end(&mut bytes));
    let from = bytes.len().saturating_sub(LOG_TAIL_BYTES);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// Calls `visit` on everything below a directory, links not followed.
fn walk(directory: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            walk(&path, visit);
        }
        visit(&path);
    }
}
