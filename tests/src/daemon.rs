//! The real `agentd`, in the foreground under a test's control: ready, killed, stopped, started again.
//!
//! It says that it accepts connections on a descriptor of its own (`--ready-fd`), so no start is ever polled for.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::request::{Request, Shutdown};

use crate::client::Client;
use crate::machine::Machine;
use crate::{binaries, wait};

/// The descriptor on which the daemon says that it is ready: the first one after the standard three.
const READY_FD: i32 = 3;

/// What it says there.
const READY: &[u8] = b"READY\n";

/// Longest start: opening a database and binding a socket on a loaded machine.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// Longest stop with all shells: longer than the kill ladder of a shim.
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// A running daemon; told to stop with all its shells when dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    socket: PathBuf,
    /// Kept open, so that a daemon that writes late does not die of a broken pipe.
    _ready: File,
}

/// A daemon that did not become ready: its exit status and what it said.
#[derive(Debug)]
pub struct StartFailure {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard error.
    pub stderr: String,
}

impl Daemon {
    /// Starts a daemon and waits until it is ready.
    ///
    /// # Panics
    /// When it ends instead or does not say so in time.
    #[must_use]
    pub fn start(machine: &Machine) -> Self {
        match Self::try_start(machine) {
            Ok(daemon) => daemon,
            Err(failure) => panic!("agentd did not start: {failure:?}"),
        }
    }

    /// As [`Daemon::start`], for a daemon that may refuse to start.
    ///
    /// # Errors
    /// When it ended before it was ready.
    ///
    /// # Panics
    /// When it neither ends nor becomes ready in time.
    pub fn try_start(machine: &Machine) -> Result<Self, StartFailure> {
        Self::try_start_with(machine, &[])
    }

    /// As [`Daemon::try_start`], with arguments.
    ///
    /// # Errors
    /// As [`Daemon::try_start`].
    ///
    /// # Panics
    /// As [`Daemon::try_start`].
    pub fn try_start_with(machine: &Machine, arguments: &[&str]) -> Result<Self, StartFailure> {
        Self::try_start_program(machine, &binaries::agentd(), arguments)
    }

    /// As [`Daemon::start`], for another program.
    ///
    /// # Panics
    /// As [`Daemon::start`].
    #[must_use]
    pub fn start_program(machine: &Machine, program: &Path) -> Self {
        match Self::try_start_program(machine, program, &[]) {
            Ok(daemon) => daemon,
            Err(failure) => panic!("agentd did not start: {failure:?}"),
        }
    }

    fn try_start_program(machine: &Machine, program: &Path, arguments: &[&str]) -> Result<Self, StartFailure> {
        let mut command = machine.command(program);
        command.args(["--ready-fd", &READY_FD.to_string()]).args(arguments);
        let number = fs::read_dir(machine.logs()).map_or(0, Iterator::count);
        let log = machine.logs().join(format!("agentd-{number:02}.log"));
        let stderr = File::create(&log).expect("a log file");
        command.stdin(Stdio::null()).stdout(stderr.try_clone().expect("a second handle")).stderr(stderr);
        let (ready, write_end) = nix::unistd::pipe2(OFlag::O_CLOEXEC).expect("a pipe");
        pass_fd(&mut command, &write_end, READY_FD);
        let mut child = command.spawn().expect("agentd runs");
        drop(write_end);
        let mut ready = File::from(ready);
        if is_ready(&mut ready) {
            return Ok(Self { child, socket: machine.socket(), _ready: ready });
        }
        let status = child.wait().expect("it is our child");
        Err(StartFailure { status, stderr: fs::read_to_string(log).unwrap_or_default() })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// Kills it at once, as a crash would.
    ///
    /// # Panics
    /// When it is not our child any more.
    pub fn kill(mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }

    /// Waits for the end of a daemon that is killed by something else.
    ///
    /// # Panics
    /// When it ends otherwise.
    pub fn expect_killed(mut self) {
        use std::os::unix::process::ExitStatusExt;
        let status = self.wait();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    }

    /// Asks it to stop, and waits for the end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn terminate(mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it runs");
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn wait(&mut self) -> ExitStatus {
        wait::until("agentd to end", || self.child.try_wait().expect("it is our child"))
    }

    /// A connected driver that has said hello.
    ///
    /// # Panics
    /// When the daemon refuses.
    #[must_use]
    pub fn client(&self, machine: &Machine) -> Client {
        let mut client = Client::connect(&machine.socket()).expect("the daemon accepts");
        client.hello("harness", "");
        client
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_some() {
            return;
        }
        // As a user would end it with everything it started; the daemon may close the connection before it answers.
        // A test that used up all connections gives them back a moment before; one told to stop before just ends.
        let client = wait::within(STOP_PATIENCE, || match self.child.try_wait() {
            Ok(None) => Client::connect(&self.socket).ok().map(Some),
            Ok(Some(_)) | Err(_) => Some(None),
        });
        if let Some(mut client) = client.flatten() {
            let _ = client.try_call(Request::Shutdown(Shutdown { stop_shells: true }));
        }
        if wait::within(STOP_PATIENCE, || self.child.try_wait().ok().flatten()).is_none() {
            eprintln!("agentd did not stop within {STOP_PATIENCE:?} and is killed");
            let _ = self.child.kill();
            let _ = self.child.wait();
            assert!(std::thread::panicking(), "agentd did not stop when it was told to");
        }
    }
}

/// Makes `fd` the child's descriptor `number`.
fn pass_fd(command: &mut Command, fd: &OwnedFd, number: i32) {
    let fd = fd.as_raw_fd();
    // SAFETY: between fork and exec only dup2 and fcntl are called, which are async-signal-safe; `fd` is open then, as
    // its owner outlives the spawn.
    unsafe {
        command.pre_exec(move || {
            let result = if fd == number { libc::fcntl(fd, libc::F_SETFD, 0) } else { libc::dup2(fd, number) };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
    }
}

/// Whether the daemon says that it is ready; `false` when it ends instead.
fn is_ready(ready: &mut File) -> bool {
    let mut said = Vec::new();
    let mut buffer = [0; 16];
    while said != READY {
        let timeout = PollTimeout::try_from(START_PATIENCE).expect("a short time");
        let mut polled = [PollFd::new(ready.as_fd(), PollFlags::POLLIN)];
        let count = poll(&mut polled, timeout).expect("poll works");
        assert!(count > 0, "agentd did not say that it is ready within {START_PATIENCE:?}; it said {said:?}");
        match ready.read(&mut buffer).expect("a readable pipe") {
            0 => return false,
            count => said.extend_from_slice(&buffer[..count]),
        }
    }
    true
}
