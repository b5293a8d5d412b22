//! What a new shell takes over from the one before it: directory, exported variables, options, functions, aliases.
//!
//! The old shell tells its state when it has been idle for a moment, never while it matters for speed; the directory is
//! the kernel's word after every command.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// The last good state of a shell.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) cwd: PathBuf,
    /// Text that makes the state again, as the shell itself quoted it.
    text: Option<String>,
}

/// What a new shell is given.
#[derive(Debug)]
pub(crate) struct Restore {
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    /// A file to be read by the new shell.
    pub(crate) file: Option<PathBuf>,
    /// `set -e` was on: a shell that ended by it would end by it again.
    pub(crate) errexit_dropped: bool,
}

impl Saved {
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self { cwd, text: None }
    }

    pub(crate) fn keep(&mut self, text: String) {
        self.text = Some(text);
    }

    /// What the shell told, if it did.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Prepares a new shell; `env` is the session's first environment, `path` the file that it will read.
    pub(crate) fn restore(&self, env: &[(String, String)], path: PathBuf) -> io::Result<Restore> {
        let cwd = enterable(&self.cwd);
        let Some(text) = &self.text else {
            return Ok(Restore { cwd, env: env.to_vec(), file: None, errexit_dropped: false });
        };
        // Functions and values may span lines, but the options are told last.
        let (text, options) = text.rsplit_once("O ").unwrap_or((text, ""));
        let (set, shopt) = options.trim_end().split_once(' ').unwrap_or((options, ""));
        let errexit_dropped = set.split(':').any(|name| name == "errexit");
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        file.write_all(options_text(set, shopt).as_bytes())?;
        // What the old shell had unset or no longer exported must not come back with the first environment.
        let exported = |name: &str| {
            text.lines().any(|line| {
                let rest = line.strip_prefix("declare -").and_then(|line| line.split_once(' '));
                rest.is_some_and(|(_, rest)| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
            })
        };
        let env = env.iter().filter(|(name, _)| exported(name) || name.starts_with("BASH_FUNC_")).cloned().collect();
        Ok(Restore { cwd, env, file: Some(path), errexit_dropped })
    }
}

/// Options that a new shell has on; one that is not told was switched off.
pub(crate) const SET_DEFAULT: [&str; 3] = ["braceexpand", "hashall", "interactive-comments"];

/// The same for `shopt`.
pub(crate) const SHOPT_DEFAULT: [&str; 11] = [
    "checkwinsize",
    "cmdhist",
    "complete_fullquote",
    "extquote",
    "force_fignore",
    "globasciiranges",
    "globskipdots",
    "patsub_replacement",
    "progcomp",
    "promptvars",
    "sourcepath",
];

/// Text that sets the options as they were. `errexit` would end the new shell as it may have ended the old one; the
/// others left out cannot be set in a running shell, or would make it useless.
fn options_text(set: &str, shopt: &str) -> String {
    let (set, shopt): (Vec<&str>, Vec<&str>) = (set.split(':').collect(), shopt.split(':').collect());
    let mut text = String::new();
    for name in SHOPT_DEFAULT.iter().filter(|name| !shopt.contains(name)) {
        text.push_str(&format!("shopt -u {name}\n"));
    }
    for name in shopt.iter().filter(|name| !["", "login_shell", "restricted_shell", "extdebug"].contains(name)) {
        text.push_str(&format!("shopt -s {name}\n"));
    }
    for name in SET_DEFAULT.iter().filter(|name| !set.contains(name)) {
        text.push_str(&format!("set +o {name}\n"));
    }
    for name in set.iter().filter(|name| !["", "errexit", "noexec", "onecmd", "privileged"].contains(name)) {
        text.push_str(&format!("set -o {name}\n"));
    }
    text
}

/// The directory itself, or the nearest one above it that can be entered.
pub(crate) fn enterable(dir: &Path) -> PathBuf {
    let good = dir.ancestors().find(|dir| dir.is_absolute() && dir.is_dir() && access(*dir, AccessFlags::X_OK).is_ok());
    good.unwrap_or(Path::new("/")).to_owned()
}
