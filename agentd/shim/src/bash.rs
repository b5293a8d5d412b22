//! The shell process: starting it, feeding it text, and understanding what it says on its control pipe.
//!
//! Bash reads its script from standard input, which is a pipe that only the shim writes to. The wrapper answers on a
//! named pipe in a private directory, opened by name for each message, so that there is no descriptor that a command
//! could close, inherit or write to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::script::{self, Script};
use crate::sys;

/// A control message is short, but a snapshot may hold large functions and variables; beyond this it is not kept.
const CTL_MAX: usize = 8 * 1024 * 1024;

/// Bytes read at once from the control pipe: its capacity.
const CTL_READ: usize = 64 * 1024;

/// What the wrapper said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The command with this mark ended with this status.
    Mark { end: String, status: i32 },
    /// Abort mode is on; the text restores what it replaced.
    Aborting { saved: String },
    /// The shell's state, as text that makes it again.
    State { text: String },
}

/// A living shell.
#[derive(Debug)]
pub(crate) struct Bash {
    pid: Pid,
    // Kept so that the standard library does not need to reap it; the host waits for all children itself.
    _child: Child,
    script: File,
    unsent: VecDeque<u8>,
    ctl: File,
    heard: Vec<u8>,
    pub(crate) text: Script,
}

/// What a shell starts with.
#[derive(Debug)]
pub(crate) struct Birth<'a> {
    pub(crate) runtime_dir: &'a Path,
    pub(crate) cwd: &'a Path,
    pub(crate) env: &'a [(String, String)],
}

impl Bash {
    /// Starts a shell; `birth.cwd` must be a directory that can be entered.
    pub(crate) fn start(birth: &Birth<'_>) -> io::Result<Self> {
        let path = birth.runtime_dir.join("c");
        let ctl = open_fifo(&path)?;
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&write, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let mut command = Command::new("/bin/bash");
        // Its own messages begin with this name.
        command.arg0("bash");
        command.args(["--noprofile", "--norc"]).env_clear().envs(birth.env.iter().map(|(k, v)| (k, v)));
        command.current_dir(birth.cwd).stdin(read).stdout(Stdio::null()).stderr(Stdio::null());
        sys::prepare_child(&mut command);
        let child = command.spawn()?;
        let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
        let text = Script::new(&path);
        let prelude = text.prelude();
        let script = File::from(write);
        let mut bash = Self { pid, _child: child, script, unsent: VecDeque::new(), ctl, heard: Vec::new(), text };
        bash.feed(prelude.as_bytes())?;
        Ok(bash)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Where the control pipe can be waited for.
    pub(crate) fn ctl(&self) -> BorrowedFd<'_> {
        self.ctl.as_fd()
    }

    /// Where room for more text can be waited for, while some is unsent.
    pub(crate) fn wants_room(&self) -> Option<BorrowedFd<'_>> {
        (!self.unsent.is_empty()).then(|| self.script.as_fd())
    }

    /// Feeds text; what does not fit the pipe waits for [`Bash::flush`].
    pub(crate) fn feed(&mut self, text: &[u8]) -> io::Result<()> {
        self.unsent.extend(text);
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let (front, _) = self.unsent.as_slices();
            match self.script.write(front) {
                Ok(count) => {
                    self.unsent.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether bash has read everything it was fed: then the last line, the mark, has been reached.
    pub(crate) fn has_read_all(&self) -> bool {
        self.unsent.is_empty() && sys::bytes_waiting(self.script.as_fd()).is_ok_and(|count| count == 0)
    }

    /// The shell's directory by the kernel's word; none once it is gone.
    pub(crate) fn cwd(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()
    }

    /// Asks the shell to drop what it runs.
    pub(crate) fn abort(&self) {
        // SAFETY: kill with a valid signal number touches no memory. nix has no type for real-time signals.
        let _ = unsafe { libc::kill(self.pid.as_raw(), script::abort_signal()) };
    }

    /// Ends the shell at once.
    pub(crate) fn kill(&self) {
        let _ = kill(self.pid, Signal::SIGKILL);
    }

    /// Everything the wrapper has said since the last time.
    pub(crate) fn listen(&mut self) -> io::Result<Vec<Said>> {
        let mut buffer = [0; CTL_READ];
        loop {
            match self.ctl.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    self.heard.extend_from_slice(&buffer[..count]);
                    if self.heard.len() > CTL_MAX {
                        self.heard.clear();
                    }
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut said = Vec::new();
        while let Some((message, used)) = next_message(&self.heard, self.text.nonce()) {
            self.heard.drain(..used);
            said.extend(message);
        }
        Ok(said)
    }
}

/// Makes the named pipe afresh and opens it so that it never ends and never blocks.
pub(crate) fn open_fifo(path: &Path) -> io::Result<File> {
    let _ = std::fs::remove_file(path);
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
    std::fs::OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// The first message in `heard` and how many bytes it took; lines that are none are skipped.
fn next_message(heard: &[u8], nonce: &str) -> Option<(Option<Said>, usize)> {
    let end = heard.iter().position(|&byte| byte == b'\n')?;
    let line = std::str::from_utf8(&heard[..end]).unwrap_or("");
    let Some((first, second)) = line.split_once(' ') else { return Some((None, end + 1)) };
    let closing = match first {
        "A" if second == nonce => format!("Z {nonce}\n"),
        "S" if second == nonce => format!("E {nonce}\n"),
        _ => {
            let said = first.parse().ok().map(|status| Said::Mark { end: second.to_owned(), status });
            return Some((said, end + 1));
        }
    };
    let rest = &heard[end + 1..];
    let at = find_line(rest, closing.as_bytes())?;
    let text = String::from_utf8_lossy(&rest[..at]).into_owned();
    let said = if first == "A" { Said::Aborting { saved: text } } else { Said::State { text } };
    Some((Some(said), end + 1 + at + closing.len()))
}

/// Where a whole line stands.
fn find_line(bytes: &[u8], line: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at + line.len() <= bytes.len() {
        if bytes[at..].starts_with(line) {
            return Some(at);
        }
        at += bytes[at..].iter().position(|&byte| byte == b'\n')? + 1;
    }
    None
}
