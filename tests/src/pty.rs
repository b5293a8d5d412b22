//! A program in a terminal of its own: what it shows, what is typed.
//!
//! The terminal is its controlling one, so that `agentctl` finds a person there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use nix::pty::{Winsize, openpty};

use crate::machine::Machine;
use crate::wait::{self, PATIENCE};
use crate::{binaries, processes};

/// An ordinary window.
const SIZE: Winsize = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };

/// A program in a terminal.
#[derive(Debug)]
pub struct Pty {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: String,
    searched: usize,
}

impl Machine {
    /// Starts `agentctl` in a terminal.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn ctl_in_terminal(&self, arguments: &[&str]) -> Pty {
        let mut command = self.command(&binaries::agentctl());
        command.args(arguments);
        Pty::start(command)
    }
}

impl Pty {
    /// Starts a command in a terminal.
    ///
    /// # Panics
    /// When there is no terminal or the command cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let pty = openpty(Some(&SIZE), None).expect("a terminal");
        let terminal = File::from(pty.slave);
        let handle = || Stdio::from(terminal.try_clone().expect("another handle"));
        command.stdin(handle()).stdout(handle()).stderr(handle());
        let (fd, master) = (terminal.as_raw_fd(), pty.master.as_raw_fd());
        // SAFETY: between fork and exec only setsid, ioctl and close are called, which are async-signal-safe; `fd` and
        // `master` are open then, as their owners outlive the spawn.
        unsafe {
            command.pre_exec(move || {
                nix::unistd::setsid().map_err(io::Error::from)?;
                if libc::ioctl(fd, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                libc::close(master);
                Ok(())
            });
        }
        let child = command.spawn().expect("the command runs");
        drop(terminal);
        let keyboard = File::from(pty.master);
        let mut reader = keyboard.try_clone().expect("another handle");
        let (sender, screen) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The read fails when the last process in the terminal has ended.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, screen, shown: String::new(), searched: 0 }
    }

    /// Types text.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn type_text(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("a live terminal");
    }

    /// Waits until a text is shown after everything that was waited for before.
    ///
    /// # Panics
    /// When it is not shown in time.
    pub fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = plain(&self.shown[self.searched..]).find(text) {
                // Escape sequences lie between, so the place in the plain text is only a lower bound: good enough to
                // make the next wait look further on.
                self.searched += at;
                while !self.shown.is_char_boundary(self.searched) {
                    self.searched += 1;
                }
                return;
            }
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("waited {PATIENCE:?} for {text:?} on the screen: {}", self.shown)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the program ended before {text:?} was shown: {}", self.shown)
                }
            }
        }
    }

    /// The program's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything shown so far without control sequences.
    #[must_use]
    pub fn shown(&mut self) -> String {
        while let Ok(bytes) = self.screen.try_recv() {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        plain(&self.shown)
    }

    /// Everything shown so far, as the bytes came.
    #[must_use]
    pub fn raw(&mut self) -> String {
        let _ = self.shown();
        self.shown.clone()
    }

    /// Waits for the program's end; returns its status and everything shown.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn finish(mut self) -> (ExitStatus, String) {
        let status = wait::within(PATIENCE, || self.child.try_wait().expect("it is our child"));
        let shown = self.shown();
        let status = status.unwrap_or_else(|| panic!("the program did not end; shown: {shown}"));
        // The reader ends with the terminal, so what was written last is in the channel by then.
        while let Ok(bytes) = self.screen.recv_timeout(PATIENCE) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status, plain(&self.shown))
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            processes::kill_hard(i32::try_from(self.child.id()).unwrap_or(0));
            let _ = self.child.wait();
        }
    }
}

/// Text without escape sequences and carriage returns.
fn plain(text: &str) -> String {
    let pattern = regex::Regex::new(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|\r")
        .expect("a valid pattern");
    pattern.replace_all(text, "").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_terminal_has_one_and_hears_what_is_typed() {
        let mut command = Command::new("sh");
        command.args(["-c", "test -t 0 && test -t 1 && tty >/dev/null && printf 'ready\\n'; read x; printf 'got %s\\n' \"$x\" >/dev/tty; exit 7"]);
        let mut pty = Pty::start(command);
        pty.wait_for("ready");
        pty.type_text("abc\n");
        pty.wait_for("got abc");
        let (status, shown) = pty.finish();
        assert_eq!(status.code(), Some(7));
        assert!(shown.contains("ready"), "{shown}");
    }
}
