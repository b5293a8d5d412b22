//! `agentctl` in a terminal of its own: what it writes is collected, keys are sent, and tests wait for what they see.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};

use super::PATIENCE;

pub struct Terminal {
    child: Child,
    keys: File,
    seen: Arc<(Mutex<Vec<u8>>, Condvar)>,
}

impl Terminal {
    /// Runs a command with all three standard descriptors on a new terminal of 80×24.
    pub fn run(command: &Command) -> Self {
        Self::sized(command, 80)
    }

    pub fn sized(command: &Command, columns: u16) -> Self {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        // A program of a test beside this one must not hold this terminal open.
        for end in [&pty.master, &pty.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        }
        let theirs = File::from(pty.slave);
        // `setsid` makes it the controlling terminal, so that Ctrl-C and job control work as for people.
        let mut outer = Command::new("setsid");
        outer.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args()).env_clear();
        for (name, value) in command.get_envs() {
            outer.env(name, value.unwrap());
        }
        if let Some(dir) = command.get_current_dir() {
            outer.current_dir(dir);
        }
        outer.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = outer.spawn().unwrap();
        let ours = File::from(pty.master);
        let seen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let (mut reader, shared) = (ours.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = reader.read(&mut bytes) {
                if count == 0 {
                    break;
                }
                shared.0.lock().unwrap().extend_from_slice(&bytes[..count]);
                shared.1.notify_all();
            }
        });
        Self { child, keys: ours, seen }
    }

    /// Waits until the terminal got this text; everything it got so far.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |seen| seen.contains(text))
    }

    /// Waits until a text was written a number of times.
    pub fn wait_for_count(&self, text: &str, count: usize) -> String {
        self.wait_until(text, |seen| seen.matches(text).count() >= count)
    }

    fn wait_until(&self, what: &str, done: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            let text = String::from_utf8_lossy(&seen).into_owned();
            if done(&text) {
                return text;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "never saw {what:?} in:\n{text}");
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.0.lock().unwrap()).into_owned()
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end; the exit code and all that was written.
    pub fn end(mut self) -> (i32, String) {
        let status: ExitStatus = self.child.wait().unwrap();
        // Whatever happened, the next program finds the terminal as it was.
        let mode = tcgetattr(&self.keys).unwrap().local_flags;
        assert!(mode.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG), "{mode:?}");
        // The terminal's last bytes may still be under way.
        let deadline = Instant::now() + PATIENCE;
        while Arc::strong_count(&self.seen) > 1 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        (status.code().unwrap(), self.seen())
    }
}
