//! Reading keys from a terminal: without waiting for Enter, without echo, and only while we are in the foreground.
//!
//! Invariant: the terminal's mode is put back when the [`Keyboard`] goes, also on a panic. Two `unsafe` are here: one
//! registers standard input with the runtime, one stops the process as Ctrl-Z does.

use std::cell::Cell;
use std::io::{self, Stdin};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use nix::sys::termios::{
    FlushArg, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, read, tcgetpgrp};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::CtlError;

/// Bytes taken in one read: a key is a few, a paste is many reads.
const READ_BYTES: usize = 4096;

/// The terminal on standard input.
#[derive(Debug)]
pub struct Keyboard {
    stdin: AsyncFd<Stdin>,
    saved: Termios,
    /// Whole lines with the terminal's own echo, for terminals that cannot repaint.
    by_line: bool,
    /// What was typed before we set the mode: there the terminal made a line feed of Enter.
    early: Cell<bool>,
}

impl Keyboard {
    /// Takes over the keys; `None` when we run in the background, where touching the terminal would stop us.
    ///
    /// # Errors
    /// [`CtlError::Terminal`].
    pub fn open(by_line: bool) -> Result<Option<Self>, CtlError> {
        if !in_foreground() {
            return Ok(None);
        }
        let saved = tcgetattr(io::stdin()).map_err(|errno| CtlError::Terminal(errno.into()))?;
        // SAFETY: the descriptor must stay open and the same for as long as it is registered. It is standard input, which
        // nothing in this program closes or replaces.
        let stdin = unsafe { AsyncFd::register_with_interest(io::stdin(), Interest::READABLE) };
        let stdin = stdin.map_err(|error| CtlError::Terminal(error.into()))?;
        let keyboard = Self { stdin, saved, by_line, early: Cell::new(typed() && !by_line) };
        keyboard.resume()?;
        Ok(Some(keyboard))
    }

    /// Sets the mode again, after we were stopped and continued.
    ///
    /// # Errors
    /// [`CtlError::Terminal`].
    pub fn resume(&self) -> Result<(), CtlError> {
        if self.by_line || !in_foreground() {
            return Ok(());
        }
        let mut mode = self.saved.clone();
        // Signals stay on: Ctrl-C and Ctrl-Z come as signals, as everywhere.
        mode.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::IEXTEN);
        // Enter and Ctrl-J are two keys: the first submits, the second is a line break.
        mode.input_flags.remove(InputFlags::ICRNL);
        mode.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        mode.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(io::stdin(), SetArg::TCSADRAIN, &mode).map_err(|errno| CtlError::Terminal(errno.into()))
    }

    /// Puts the terminal's mode back while somebody else has it.
    pub fn suspend(&self) {
        if in_foreground() {
            // Who stopped us has a shell there, which sets a mode of its own.
            let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.saved);
        }
    }

    /// Whether whole lines come, with the terminal's own echo.
    #[must_use]
    pub fn is_by_line(&self) -> bool {
        self.by_line
    }

    /// The next keys; empty at the end of input. May be cancelled.
    ///
    /// # Errors
    /// [`CtlError::Stdin`].
    pub async fn read(&self) -> Result<Vec<u8>, CtlError> {
        loop {
            let mut ready = self.stdin.readable().await.map_err(CtlError::Stdin)?;
            // The descriptor blocks and readiness comes once per change, so the truth is asked for before each read.
            if !typed() {
                ready.clear_ready();
                continue;
            }
            let mut bytes = vec![0; READ_BYTES];
            match read(self.stdin.get_ref().as_fd(), &mut bytes) {
                Ok(count) => {
                    bytes.truncate(count);
                    if self.early.take() {
                        bytes.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b'\r');
                    }
                    return Ok(bytes);
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                // The terminal went away.
                Err(Errno::EIO) => return Ok(Vec::new()),
                Err(errno) => return Err(CtlError::Stdin(errno.into())),
            }
        }
    }

    /// Drops what was typed so far: it was typed for something else.
    pub fn forget(&self) {
        self.early.set(false);
        forget_typed();
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if in_foreground() {
            // A terminal that is gone needs no mode.
            let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.saved);
        }
    }
}

/// Stops this process as Ctrl-Z does, until it is continued. Where nobody could continue it, nothing happens.
///
/// # Errors
/// [`CtlError::Terminal`].
pub fn stop_here() -> Result<(), CtlError> {
    let usual = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    let failed = |errno: Errno| CtlError::Terminal(errno.into());
    // SAFETY: the default action runs no code of ours; the handler that is put back is the one that was there.
    unsafe {
        let ours = sigaction(Signal::SIGTSTP, &usual).map_err(failed)?;
        let stopped = raise(Signal::SIGTSTP);
        sigaction(Signal::SIGTSTP, &ours).map_err(failed)?;
        stopped.map_err(failed)
    }
}

/// Drops what was typed at the terminal and not read yet.
pub fn forget_typed() {
    // Where it fails there is no terminal any more, and nothing typed.
    let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
}

fn in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Whether a read would return at once.
fn typed() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0)
}
