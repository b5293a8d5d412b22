//! Accounting without control groups: the shim is the subreaper of all, so that every process of the session descends
//! from it for ever, and an environment mark says which command a process belongs to.
//!
//! A process that has no readable mark belongs to its parent's command; an orphan without one that was not there when
//! the command began belongs to the command. Shells are subreapers too: what a background command starts stays below its
//! own shell, so that none of it is taken for another command's.

use std::collections::{HashMap, HashSet};
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that carries the mark.
pub const VARIABLE: &str = "AGENTD_CALL";

/// Rounds of looking for new children before killing: a process that forks faster than it is stopped is met again.
const ROUNDS_MAX: usize = 50;

/// A process: pids alone are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pid: i32,
    start: u64,
}

/// A living process as the table shows it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: Id,
    parent: i32,
}

/// The processes of one session.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    serial: u64,
    earlier: HashSet<Id>,
    /// The shells of background commands: what is below them is theirs.
    jobs: Vec<Pid>,
    jobs_made: u64,
}

/// What belongs to a background command.
#[derive(Debug)]
pub(crate) struct JobMarks {
    pub(crate) mark: String,
    earlier: HashSet<Id>,
}

impl Marks {
    /// Before a command; the value of its mark.
    pub(crate) fn begin(&mut self, shell: Pid, alone: bool) -> String {
        self.serial += 1;
        self.earlier.clear();
        if !alone {
            let others = descendants(&self.jobs);
            self.earlier.extend(others.iter().map(|entry| entry.id).filter(|id| id.pid != shell.as_raw()));
        }
        self.mark()
    }

    /// Before a background command gets its shell.
    pub(crate) fn new_job(&mut self) -> JobMarks {
        self.jobs_made += 1;
        JobMarks { mark: format!("j{:x}", self.jobs_made), earlier: HashSet::new() }
    }

    /// The shell of a background command has started.
    pub(crate) fn add_job(&mut self, shell: Pid) {
        self.jobs.push(shell);
    }

    /// The present command becomes a background one, with its shell.
    pub(crate) fn give_away(&mut self, shell: Pid) -> JobMarks {
        self.jobs.push(shell);
        JobMarks { mark: self.mark(), earlier: std::mem::take(&mut self.earlier) }
    }

    /// The shell of a background command is gone.
    pub(crate) fn remove_job(&mut self, shell: Pid) {
        self.jobs.retain(|job| *job != shell);
    }

    fn mark(&self) -> String {
        format!("{:x}", self.serial)
    }

    /// The processes of the present command.
    pub(crate) fn others(&self, shell: Pid) -> Vec<Pid> {
        if self.is_quiet(shell) {
            return Vec::new();
        }
        let mark = self.mark();
        members(descendants(&self.jobs), shell, &mark, &self.earlier, true)
    }

    /// Kills the processes of the present command.
    pub(crate) fn kill_command(&self, shell: Pid) -> u32 {
        kill_until_none(|| self.others(shell))
    }

    /// Kills every process of the session, the shell included.
    pub(crate) fn kill_all(&self) -> u32 {
        kill_until_none(everyone)
    }

    /// Whether there is nothing but the shell, by two short reads instead of the whole table.
    fn is_quiet(&self, shell: Pid) -> bool {
        let children = |pid: i32| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let (Ok(of_shell), Ok(of_shim)) = (children(shell.as_raw()), children(own)) else { return false };
        let is_shell =
            |pid: &str| pid.parse().is_ok_and(|pid| pid == shell.as_raw() || self.jobs.contains(&Pid::from_raw(pid)));
        of_shell.trim().is_empty() && of_shim.split_whitespace().all(is_shell)
    }
}

impl JobMarks {
    /// The command's processes, without its shell.
    pub(crate) fn others(&self, shell: Pid) -> Vec<Pid> {
        members(descendants(&[]), shell, &self.mark, &self.earlier, false)
    }

    /// Kills the command's processes.
    pub(crate) fn kill(&self, shell: Pid) -> u32 {
        kill_until_none(|| self.others(shell))
    }
}

/// Which processes belong to the command with this mark. `orphans`: also those without a mark that are below no shell.
///
/// The answer for one is kept for all that it was found through: a chain of subshells, none of which has a mark, would
/// be climbed from every one of its members else.
fn members(found: Vec<Entry>, shell: Pid, mark: &str, earlier: &HashSet<Id>, orphans: bool) -> Vec<Pid> {
    let all: HashMap<i32, Entry> = found.into_iter().map(|entry| (entry.id.pid, entry)).collect();
    let mut known: HashMap<i32, bool> = HashMap::with_capacity(all.len());
    let own = |entry: &Entry| {
        if entry.id.pid == shell.as_raw() || earlier.contains(&entry.id) {
            return Some(false);
        }
        match mark_of(entry.id.pid) {
            Some(found) if found == mark => return Some(true),
            // `0` is what the shell itself started with: a subshell that has not become another program.
            Some(found) if found != "0" => return Some(false),
            Some(_) | None => {}
        }
        (entry.parent == shell.as_raw()).then_some(true)
    };
    let mut climbed = Vec::new();
    for first in all.values() {
        let mut next = Some(first);
        // A table that changes while it is read may hold a circle.
        let answer = loop {
            let Some(entry) = next.filter(|_| climbed.len() <= all.len()) else { break orphans };
            if let Some(answer) = known.get(&entry.id.pid).copied() {
                break answer;
            }
            climbed.push(entry.id.pid);
            if let Some(answer) = own(entry) {
                break answer;
            }
            next = all.get(&entry.parent);
        };
        known.extend(climbed.drain(..).map(|pid| (pid, answer)));
    }
    known.into_iter().filter_map(|(pid, belongs)| belongs.then_some(Pid::from_raw(pid))).collect()
}

/// Every process of the session.
pub(crate) fn everyone() -> Vec<Pid> {
    descendants(&[]).iter().map(|entry| Pid::from_raw(entry.id.pid)).collect()
}

/// Stops everything first, so that nothing forks while it is killed.
fn kill_until_none(find: impl Fn() -> Vec<Pid>) -> u32 {
    let mut stopped = HashSet::new();
    for _ in 0..ROUNDS_MAX {
        let fresh: Vec<Pid> = find().into_iter().filter(|pid| !stopped.contains(pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in fresh {
            let _ = kill(pid, Signal::SIGSTOP);
            stopped.insert(pid);
        }
    }
    for pid in &stopped {
        let _ = kill(*pid, Signal::SIGKILL);
    }
    u32::try_from(stopped.len()).unwrap_or(u32::MAX)
}

/// All living descendants of this process but those shells and what is below them.
fn descendants(without: &[Pid]) -> Vec<Entry> {
    let table: Vec<Entry> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(read_entry)
        .collect();
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in table {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut open = vec![i32::try_from(std::process::id()).unwrap_or(0)];
    while let Some(pid) = open.pop() {
        let kept = |entry: &Entry| !without.contains(&Pid::from_raw(entry.id.pid));
        for entry in children.remove(&pid).unwrap_or_default().into_iter().filter(kept) {
            open.push(entry.id.pid);
            found.push(entry);
        }
    }
    found
}

fn read_entry(pid: i32) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, so fields are counted from its closing bracket.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(Entry { id: Id { pid, start }, parent })
}

fn mark_of(pid: i32) -> Option<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let prefix = format!("{VARIABLE}=");
    environ
        .split(|&byte| byte == 0)
        .filter_map(|entry| entry.strip_prefix(prefix.as_bytes()))
        .next_back()
        .map(|value| String::from_utf8_lossy(value).into_owned())
}
