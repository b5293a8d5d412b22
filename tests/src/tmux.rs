//! A program in a real terminal emulator: tmux, with a server of its own. What a person would see there is what claims
//! look at.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use regex::Regex;

use crate::binaries;
use crate::machine::Machine;
use crate::wait;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs a program, keeps its exit code, and keeps the window: tmux itself sometimes forgets the code.
const KEEP: &str = r#"trap : INT; ended=$0; "$@"; echo $? > "$ended"; exec sleep 600"#;

/// One window of a tmux server that ends with it.
#[derive(Debug)]
pub struct Tmux {
    socket: PathBuf,
}

impl Machine {
    /// Starts `agentctl` in a tmux window of this size. The window stays when the program ends.
    ///
    /// # Panics
    /// When tmux cannot be started.
    #[must_use]
    pub fn ctl_in_tmux(&self, size: (u16, u16), arguments: &[&str]) -> Tmux {
        let socket = self.work().with_file_name(format!("tmux-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let tmux = Tmux { socket };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let mut command = self.command(&PathBuf::from("tmux"));
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command.arg("-S").arg(&tmux.socket).args(["-f", "/dev/null", "-u", "start-server", ";"]);
        // Larger than any claim prints; it must be set before the window is made.
        command.args([
            "set-option",
            "-g",
            "history-limit",
            "20000",
            ";",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
        ]);
        command.args(["sh", "-c", KEEP, &tmux.ended().display().to_string()]);
        command.arg(binaries::agentctl()).args(arguments);
        let output = command.output().expect("tmux runs");
        assert!(output.status.success(), "{output:?}");
        tmux
    }
}

impl Tmux {
    fn run(&self, arguments: &[&str]) -> Output {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).output().expect("tmux runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    /// Types text as it is.
    pub fn type_text(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Presses keys by tmux's names: `Enter`, `C-c`, `Tab`.
    pub fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Pastes a file's content as a terminal does, marked when the program asked for that.
    ///
    /// # Panics
    /// When the file's path is not UTF-8.
    pub fn paste(&self, file: &std::path::Path) {
        self.run(&["load-buffer", file.to_str().expect("a plain path")]);
        self.run(&["paste-buffer", "-p"]);
    }

    /// Changes the window's size.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// The visible screen, without empty rows at its end; ids and times of this run are named.
    #[must_use]
    pub fn screen(&self) -> String {
        steady(&String::from_utf8_lossy(&self.run(&["capture-pane", "-p"]).stdout))
    }

    /// All that was printed, with the scrollback.
    #[must_use]
    pub fn history(&self) -> String {
        steady(&String::from_utf8_lossy(&self.run(&["capture-pane", "-p", "-J", "-S", "-"]).stdout))
    }

    /// Waits until the visible screen has a text.
    ///
    /// # Panics
    /// When it does not in time.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        let found = wait::within(wait::PATIENCE, || Some(self.screen()).filter(|screen| screen.contains(text)));
        found.unwrap_or_else(|| panic!("waited for {text:?} on the screen:\n{}", self.screen()))
    }

    /// Waits for the program's end; its exit code.
    ///
    /// # Panics
    /// When it does not end in time.
    #[track_caller]
    pub fn exit_code(&self) -> i32 {
        let read = || std::fs::read_to_string(self.ended()).ok()?.trim().parse().ok();
        wait::within(wait::PATIENCE, read).unwrap_or_else(|| panic!("it has not ended:\n{}", self.screen()))
    }

    fn ended(&self) -> PathBuf {
        self.socket.with_extension("ended")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// Without what differs from run to run.
fn steady(screen: &str) -> String {
    let replace = |text: String, pattern: &str, by: &str| {
        Regex::new(pattern).expect("a valid pattern").replace_all(&text, by).into_owned()
    };
    let text = screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let text = replace(text, r"\b[0-9a-f]{8}\b", "<id>");
    let text = replace(text, r"/tmp/[^ \n]*", "<path>");
    let text = replace(text, r"\d+(\.\d)? s\b", "<time>");
    text.trim_end().to_owned() + "\n"
}
