//! The shell process: starting it, feeding it text, and understanding what it says.
//!
//! How the text reaches it, and by which ways it speaks, is told in [`crate::script`]. It has no descriptor above 2 of
//! ours: the socket on which it waits and marks ends is its standard error between commands, and what the abort trap
//! has to say during a command goes to a named pipe in a private directory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::script::{self, Script};
use crate::sys;

/// A message is short, but a snapshot may hold large functions and variables; beyond this it is not kept.
const HEARD_MAX: usize = 8 * 1024 * 1024;

/// Bytes read at once: most messages are a line.
const READ_BYTES: usize = 4 * 1024;

/// Script that was read is given back to the system in steps of this size.
const PUNCH_BYTES: u64 = 4 * 1024 * 1024;

/// Script before the end that is left alone: what bash may not have read yet, at most two long commands.
const UNREAD_MAX: u64 = 12 * 1024 * 1024;

/// The bytes that are waited for, in turn.
const TOKENS: (u8, u8) = (b'a', b'z');

/// What the wrapper said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The command with this mark ended with this status.
    Mark { end: String, status: i32 },
    /// Abort mode is on; the text restores what it replaced.
    Aborting { saved: String },
    /// The shell's state, as text that makes it again.
    State { text: String },
    /// A function `builtin` stood in the way and was removed.
    Freed,
}

/// A living shell.
#[derive(Debug)]
pub(crate) struct Bash {
    pid: Pid,
    // Kept so that the standard library does not need to reap it; the host waits for all children itself.
    _child: Child,
    script: File,
    written: u64,
    punched: u64,
    token: u8,
    socket: UnixStream,
    ctl: File,
    heard: Vec<u8>,
    heard_ctl: Vec<u8>,
    /// The shell has closed its end of the socket: it is gone, or about to be.
    hung_up: bool,
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
        let script = File::from(memfd_create(c"script", MFdFlags::MFD_CLOEXEC)?);
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        // Its own opening, so that its position in the file is its own.
        let input = File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&script)))?;
        let text = Script::new(&path);
        let first = format!("{}{}", text.prelude(), Script::wait(char::from(TOKENS.0)));
        script.write_all_at(first.as_bytes(), 0)?;
        let mut command = Command::new("/bin/bash");
        // Its own messages begin with this name.
        command.arg0("bash");
        command.args(["--noprofile", "--norc"]).env_clear().envs(birth.env.iter().map(|(k, v)| (k, v)));
        command.current_dir(birth.cwd).stdin(input).stdout(null).stderr(Stdio::from(OwnedFd::from(theirs)));
        sys::prepare_child(&mut command);
        let child = command.spawn()?;
        let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
        Ok(Self {
            pid,
            _child: child,
            script,
            written: first.len() as u64,
            punched: 0,
            token: TOKENS.0,
            socket,
            ctl,
            heard: Vec::new(),
            heard_ctl: Vec::new(),
            hung_up: false,
            text,
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Where the abort trap can be waited for.
    pub(crate) fn ctl(&self) -> BorrowedFd<'_> {
        self.ctl.as_fd()
    }

    /// Where everything else it says can be waited for.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Gives it text to run after what it was given before.
    pub(crate) fn feed(&mut self, text: &[u8]) -> io::Result<()> {
        let go = self.token;
        // Neighbours differ, so that a byte can only be taken for its own wait's.
        self.token = if go == TOKENS.1 { TOKENS.0 } else { go + 1 };
        let mut piece = text.to_vec();
        piece.extend_from_slice(Script::wait(char::from(self.token)).as_bytes());
        self.script.write_all_at(&piece, self.written)?;
        self.written += piece.len() as u64;
        self.punch();
        self.socket.write_all(&[go])
    }

    /// Gives back the memory of script that was read long ago.
    fn punch(&mut self) {
        let end = self.written.saturating_sub(UNREAD_MAX);
        if end < self.punched + PUNCH_BYTES {
            return;
        }
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let (from, length) = (self.punched.cast_signed(), (end - self.punched).cast_signed());
        // Failure only costs memory, and is tried again with the next step.
        if fallocate(&self.script, flags, from, length).is_ok() {
            self.punched = end;
        }
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
    /// Kills the shell. Says whether there was still one: a process that is over and waited for is not.
    pub(crate) fn kill(&self) -> bool {
        kill(self.pid, Signal::SIGKILL) != Err(nix::errno::Errno::ESRCH)
    }

    /// Whether the shell has closed its end of the socket. Such a socket is always ready and has nothing more to say.
    pub(crate) fn hung_up(&self) -> bool {
        self.hung_up
    }

    /// What the wrapper has said on the socket since the last time.
    pub(crate) fn listen(&mut self) -> io::Result<Vec<Said>> {
        self.hung_up |= hear(&mut self.socket, &mut self.heard)? == Heard::End;
        Ok(messages(&mut self.heard, self.text.nonce()))
    }

    /// What the abort trap has said since the last time.
    pub(crate) fn listen_ctl(&mut self) -> io::Result<Vec<Said>> {
        hear(&mut self.ctl, &mut self.heard_ctl)?;
        Ok(messages(&mut self.heard_ctl, self.text.nonce()))
    }
}

fn messages(heard: &mut Vec<u8>, nonce: &str) -> Vec<Said> {
    let mut said = Vec::new();
    while let Some((message, used)) = next_message(heard, nonce) {
        heard.drain(..used);
        said.extend(message);
    }
    said
}

/// Whether more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// That was all for now.
    All,
    /// The other side has closed.
    End,
}

/// Reads what is there.
fn hear(source: &mut impl Read, heard: &mut Vec<u8>) -> io::Result<Heard> {
    let mut buffer = [0; READ_BYTES];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(Heard::End),
            Ok(count) => {
                heard.extend_from_slice(&buffer[..count]);
                if heard.len() > HEARD_MAX {
                    heard.clear();
                }
                if count < buffer.len() {
                    return Ok(Heard::All);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Heard::All),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Random names for the ends of commands, many for one system call.
#[derive(Debug)]
pub(crate) struct Marks {
    random: File,
    left: Vec<u8>,
}

impl Marks {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { random: File::open("/dev/urandom")?, left: Vec::new() })
    }

    pub(crate) fn next(&mut self) -> io::Result<String> {
        if self.left.is_empty() {
            self.left = vec![0; 64 * 16];
            self.random.read_exact(&mut self.left)?;
        }
        let at = self.left.len() - 16;
        let bytes: [u8; 16] = self.left[at..].try_into().map_err(io::Error::other)?;
        self.left.truncate(at);
        Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().simple().to_string())
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
        "B" if second == nonce => return Some((Some(Said::Freed), end + 1)),
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
