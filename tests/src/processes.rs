//! Processes as `/proc` shows them: who carries a mark, a token, a path.
//!
//! Zombies are not alive here: their parent's reaping is another claim, and they run nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One live process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its arguments.
    pub argv: Vec<String>,
}

/// Live processes of which `keep` holds.
fn filter(keep: impl Fn(&Path, &[String]) -> bool) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let dir = entry.path();
        let argv = argv(&dir);
        if keep(&dir, &argv) && is_alive(&dir) {
            found.push(Process { pid, argv });
        }
    }
    found
}

fn argv(dir: &Path) -> Vec<String> {
    let bytes = fs::read(dir.join("cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn is_alive(dir: &Path) -> bool {
    let stat = fs::read_to_string(dir.join("stat")).unwrap_or_default();
    // The name in parentheses may hold anything, so the state is looked for after the last one.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Whether this process lives and is no zombie.
#[must_use]
pub fn alive(pid: i32) -> bool {
    is_alive(Path::new(&format!("/proc/{pid}")))
}

/// Live processes that have `token` as one whole argument.
#[must_use]
pub fn with_argument(token: &str) -> Vec<Process> {
    filter(|_, argv| argv.iter().any(|argument| argument == token))
}

/// Live processes that belong to a test: the mark in their environment, or the test's directory in their arguments,
/// as their working directory or among their open files.
#[must_use]
pub fn of_test(mark: &str, root: &Path) -> Vec<Process> {
    let root_text = root.to_string_lossy().into_owned();
    let myself = i32::try_from(std::process::id()).unwrap_or(0);
    filter(|dir, argv| {
        dir.file_name().is_some_and(|name| name.to_string_lossy() != myself.to_string())
            && (fs::read(dir.join("environ")).is_ok_and(|env| contains(&env, mark.as_bytes()))
                || argv.iter().any(|argument| argument.contains(&root_text))
                || fs::read_link(dir.join("cwd")).is_ok_and(|cwd| cwd.starts_with(root))
                || has_open(dir, root))
    })
}

/// Whether a process has a file below a directory open: a shim has an empty environment and `/` as its directory.
fn has_open(dir: &Path, root: &Path) -> bool {
    let fds = fs::read_dir(dir.join("fd")).into_iter().flatten().flatten();
    fds.into_iter().any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target.starts_with(root)))
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Kills a process that a test started; one that is gone already is fine.
pub fn kill_hard(pid: i32) {
    // ESRCH is the wanted state.
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}

/// Seconds of CPU that a process and its threads have used, to the nanosecond.
///
/// # Panics
/// When there is no such process.
#[must_use]
pub fn cpu(pid: u32) -> f64 {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id"));
    let clock = nix::time::clock_getcpuclockid(pid).expect("a living process");
    Duration::from(clock.now().expect("a clock")).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::wait;

    #[test]
    fn a_marked_process_is_found_and_a_killed_one_is_not() {
        let mark = format!("mark-{}", uuid::Uuid::new_v4());
        let mut child = Command::new("sleep")
            .arg("8699001")
            .env("HARNESS_MARK", &mark)
            .stdout(Stdio::null())
            .spawn()
            .expect("sleep starts");
        let pid = i32::try_from(child.id()).expect("a pid");
        let nowhere = Path::new("/nonexistent-root");
        wait::until("the mark", || of_test(&mark, nowhere).iter().any(|process| process.pid == pid).then_some(()));
        assert_eq!(with_argument("8699001").len(), 1);
        kill_hard(pid);
        // Not waited for yet: a zombie must not count.
        wait::until("its death", || (!alive(pid)).then_some(()));
        assert!(of_test(&mark, nowhere).is_empty());
        child.wait().expect("it is ours");
    }
}
