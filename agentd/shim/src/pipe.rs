//! The pipe that takes a command's output: a named one, so that the shell opens it for each command by itself.
//!
//! The shim holds a writing end, so that the pipe never ends. When a command leaves no process behind, its pipe serves the
//! next one; else the shim lets go of it and reads on, as the late output of its command, until it ends.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::sys;

/// What a pipe is widened to: the most that an unprivileged user may have.
const PIPE_BYTES: libc::c_int = 1024 * 1024;

/// One pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    path: PathBuf,
    read: File,
    write: Option<File>,
}

/// What one read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Bytes(usize),
    Nothing,
    /// No writer is left.
    End,
}

impl Pipe {
    pub(crate) fn make(path: PathBuf) -> io::Result<Self> {
        let _ = std::fs::remove_file(&path);
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let read = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path)?;
        sys::widen_pipe(read.as_fd(), PIPE_BYTES);
        let mut pipe = Self { path, read, write: None };
        pipe.hold()?;
        Ok(pipe)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// Keeps the pipe from ending.
    fn hold(&mut self) -> io::Result<()> {
        let file = std::fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&self.path)?;
        self.write = Some(file);
        Ok(())
    }

    /// Lets the pipe end when nobody else can write to it any more.
    pub(crate) fn release(&mut self) {
        self.write = None;
    }

    /// Bytes waiting now.
    pub(crate) fn waiting(&self) -> usize {
        sys::bytes_waiting(self.read.as_fd()).unwrap_or(0)
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Got {
        loop {
            match self.read.read(buffer) {
                Ok(0) => return Got::End,
                Ok(count) => return Got::Bytes(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Got::Nothing,
                Err(_) => return Got::End,
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
