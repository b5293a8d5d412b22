//! The real `agentctl`, run without a terminal: its output, its exit code.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use crate::machine::Machine;
use crate::{binaries, processes, wait};

/// Documented exit codes of `agentctl`.
pub mod code {
    /// Done.
    pub const DONE: i32 = 0;
    /// Anything without a code of its own.
    pub const OTHER: i32 = 1;
    /// The command line is wrong.
    pub const USAGE: i32 = 2;
    /// The model or its API failed.
    pub const MODEL: i32 = 3;
    /// A call was denied.
    pub const DENIED: i32 = 4;
    /// Interrupted.
    pub const INTERRUPTED: i32 = 5;
    /// The daemon cannot be reached or refuses.
    pub const DAEMON: i32 = 6;
    /// The model refused.
    pub const REFUSED: i32 = 7;
    /// No such session or approval.
    pub const NOT_FOUND: i32 = 8;
    /// A check found something wrong.
    pub const WRONG: i32 = 9;
    /// `policy check`: a person would be asked.
    pub const WOULD_ASK: i32 = 10;
    /// `policy check`: it would be denied.
    pub const WOULD_DENY: i32 = 11;
}

/// What a run of `agentctl` left.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Output {
    /// Its exit code; -1 when a signal ended it.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// Checks the exit code.
    ///
    /// # Panics
    /// When it is another one.
    #[track_caller]
    #[must_use]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Its standard output as JSON lines.
    ///
    /// # Panics
    /// When a line is no JSON.
    #[must_use]
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        self.stdout.lines().map(parse).collect()
    }
}

/// A running `agentctl`.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: thread::JoinHandle<String>,
    stderr: thread::JoinHandle<String>,
}

/// A run of `agentctl` to be.
#[derive(Debug)]
pub struct Ctl {
    command: Command,
    stdin: Option<Vec<u8>>,
}

impl Machine {
    /// A run of `agentctl` with this machine's environment, without a terminal.
    #[must_use]
    pub fn ctl(&self, arguments: &[&str]) -> Ctl {
        let mut command = self.command(&binaries::agentctl());
        command.args(arguments);
        detach_terminal(&mut command);
        Ctl { command, stdin: None }
    }
}

/// The test itself may run in a terminal; what it runs must not find it.
fn detach_terminal(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: between fork and exec only setsid is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid().map_err(std::io::Error::from)?;
            Ok(())
        });
    }
}

impl Ctl {
    /// In another directory.
    #[must_use]
    pub fn current_dir(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// With a variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.command.env(key, value);
        self
    }

    /// Without a variable.
    #[must_use]
    pub fn without_env(mut self, key: &str) -> Self {
        self.command.env_remove(key);
        self
    }

    /// With something piped in; without, standard input is `/dev/null`.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(mut self) -> Running {
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("agentctl runs");
        if let (Some(bytes), Some(mut pipe)) = (self.stdin, child.stdin.take()) {
            // agentctl may end before it has read everything.
            thread::spawn(move || drop(pipe.write_all(&bytes)));
        }
        let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        Running { child, stdout: collect(stdout), stderr: collect(stderr) }
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it does not end in time.
    #[must_use]
    pub fn run(self) -> Output {
        self.start().finish()
    }
}

impl Running {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// Kills it at once, as a closed terminal's crash would.
    pub fn kill(mut self) {
        processes::kill_hard(self.pid());
        let _ = self.child.wait();
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time.
    #[must_use]
    pub fn finish(mut self) -> Output {
        let status = wait::within(wait::PATIENCE, || self.child.try_wait().expect("it is our child"));
        let Some(status) = status else {
            processes::kill_hard(self.pid());
            let _ = self.child.wait();
            let (stdout, stderr) = (self.stdout.join(), self.stderr.join());
            panic!("agentctl did not end; stdout: {stdout:?}, stderr: {stderr:?}");
        };
        let stdout = self.stdout.join().expect("a reader");
        let stderr = self.stderr.join().expect("a reader");
        Output { status, stdout, stderr }
    }
}

fn collect(mut pipe: impl std::io::Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A killed writer ends the stream like any other.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
