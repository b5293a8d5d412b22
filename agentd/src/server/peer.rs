//! Who is at the other end of a connection.
//!
//! Invariant: a [`Peer`] exists only after the checks; nothing is read from a connection before it has one.

use std::collections::HashSet;

use proto::handshake::Refusal;
use tokio::net::UnixStream;

use crate::shell::scope;

/// A process that may speak with this daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process id; 0 when the kernel does not say.
    pub pid: i32,
    /// Its terminal, for example `pts/3`; empty without one.
    pub terminal: String,
}

/// Ancestors looked at: a process tree deeper than this is no honest client.
const ANCESTORS_MAX: usize = 256;

/// Checks the peer: our own user, and not a process that one of our shims started.
///
/// # Errors
/// The kind of refusal and a sentence for the person behind it.
pub fn check(stream: &UnixStream) -> Result<Peer, (Refusal, String)> {
    let me = nix::unistd::geteuid().as_raw();
    let credentials =
        stream.peer_cred().map_err(|error| (Refusal::Peer, format!("the peer's user cannot be told ({error})")))?;
    if credentials.uid() != me {
        return Err((
            Refusal::Peer,
            format!("this agentd serves user {me}, you are user {}; start an agentd of your own", credentials.uid()),
        ));
    }
    let pid = credentials.pid().unwrap_or(0);
    if inside_a_shim(pid) {
        return Err((
            Refusal::Inside,
            "this process was started by an agent's own shell, and an agent may not control its daemon".to_owned(),
        ));
    }
    Ok(Peer { pid, terminal: terminal_of(pid) })
}

/// Whether a process belongs to a shim: it or an ancestor is one, or it carries the mark of a session's shell, or is in a
/// shim's scope. A shim adopts the orphans of its tree, so a process that detached is still below it; in a scope it
/// stays when the shim is dead.
fn inside_a_shim(pid: i32) -> bool {
    if pid <= 0 || carries_mark(pid) || scope::is_inside(pid) {
        // A peer that cannot be looked at is not trusted.
        return true;
    }
    let mut seen = HashSet::new();
    let mut at = pid;
    for _ in 0..ANCESTORS_MAX {
        if at <= 1 || !seen.insert(at) {
            return false;
        }
        if is_shim(at) {
            return true;
        }
        let Some(parent) = parent_of(at) else { return false };
        at = parent;
    }
    true
}

/// Whether the process was started with a shim's mark in its environment. Unreadable is unmarked: a client with other
/// credentials than its files', such as one under a debugger, is still told apart by its ancestors.
fn carries_mark(pid: i32) -> bool {
    let prefix = format!("{}=", shim::MARK);
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|variable| variable.starts_with(prefix.as_bytes())))
}

/// Whether the process looks like a shim: a program run as `… shim`. A process that only pretends to be one shuts itself
/// out.
fn is_shim(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| line.split(|byte| *byte == 0).nth(1) == Some(b"shim".as_slice()))
}

fn parent_of(pid: i32) -> Option<i32> {
    stat_field(pid, 1)?.parse().ok()
}

/// Field number `index` after the command name in `/proc/PID/stat` (0 = state, 1 = parent, 4 = terminal). The name may
/// hold anything, so the fields are counted from its last parenthesis.
fn stat_field(pid: i32, index: usize) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = &text[text.rfind(')')? + 1..];
    rest.split_whitespace().nth(index).map(str::to_owned)
}

fn terminal_of(pid: i32) -> String {
    let number: u64 = stat_field(pid, 4).and_then(|text| text.parse().ok()).unwrap_or(0);
    // The kernel's device number: major in bits 8 to 19, minor in the rest (proc_pid_stat(5)).
    let (major, minor) = ((number >> 8) & 0xFFF, (number & 0xFF) | ((number >> 12) & 0xF_FF00));
    match major {
        136..=143 => format!("pts/{}", (major - 136) * 256 + minor),
        4 => format!("tty{minor}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_of_this_user_outside_any_shim_is_welcome() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = check(&one).unwrap();
        assert_eq!(peer.pid, i32::try_from(std::process::id()).unwrap());
    }

    #[test]
    fn a_parent_is_read_past_a_name_with_parentheses() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(parent_of(me), Some(nix::unistd::getppid().as_raw()));
    }
}
