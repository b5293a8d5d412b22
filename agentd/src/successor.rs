//! Upgrade in place: this process becomes the program that now lies where it was started from. The listening socket and
//! the lock stay open through it, so a client that connects meanwhile waits a moment and is served; the shims do not notice.
//!
//! The program is asked first whether it could serve here: one that could not is told to whoever asked, and nothing changes.

use std::convert::Infallible;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::cli::Cli;

/// How long the program may take to say whether it could serve: it reads a few files.
const CHECK_WAIT: Duration = Duration::from_secs(10);

/// The program that this daemon becomes, and the arguments it gets.
#[derive(Clone, Debug)]
pub struct Successor {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Successor {
    /// The program at the path this one was started from, with the same socket and configuration.
    ///
    /// # Errors
    /// When the system does not tell the path.
    pub fn new(cli: &Cli) -> std::io::Result<Self> {
        let path = |name: &str, path: Option<&PathBuf>| {
            path.map(|path| vec![name.to_owned(), path.display().to_string()]).unwrap_or_default()
        };
        let arguments = [path("--socket", cli.socket.as_ref()), path("--config", cli.config.as_ref())].concat();
        Ok(Self { program: std::env::current_exe()?, arguments })
    }

    /// Asks the program whether it could serve in this one's place.
    ///
    /// # Errors
    /// Why not, as a sentence.
    pub async fn check(&self) -> Result<(), String> {
        let program = self.program.display();
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.arguments).arg("check").stdin(Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(CHECK_WAIT, command.output()).await {
            Err(_) => return Err(format!("{program} does not say whether it can serve here")),
            Ok(Err(error)) => return Err(format!("{program} cannot be started: {error}")),
            Ok(Ok(output)) => output,
        };
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program} cannot serve here: {}", said.trim().trim_start_matches("agentd: ")))
    }

    /// Becomes the program. `listener` is handed to it; `owns` says whether the socket's path is ours to remove.
    ///
    /// # Errors
    /// When the system refuses: nothing serves any more then.
    pub fn become_it(&self, listener: &OwnedFd, owns: bool) -> std::io::Result<Infallible> {
        keep_open(listener)?;
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.arguments).args(["--inherited-fd", &listener.as_raw_fd().to_string()]);
        if owns {
            command.arg("--owns-socket");
        }
        Err(command.exec())
    }
}

/// Lets a descriptor outlive the exec.
///
/// # Errors
/// When the system refuses.
pub fn keep_open(fd: impl std::os::fd::AsFd) -> std::io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

/// The listener that the program before this one handed over.
#[must_use]
pub fn inherited(cli: &Cli) -> Option<UnixListener> {
    let fd = cli.inherited_fd.filter(|fd| *fd > 2)?;
    // SAFETY: the program before this one left the descriptor open for us alone and named it in the arguments.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // Children must not hold it: it would be listened on for ever.
    fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    Some(UnixListener::from(fd))
}
