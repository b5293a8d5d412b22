//! Which processes a command started, and ending exactly those: by control groups or, without them, by marks.

use std::io;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::shim::outcome::LimitHit;
use proto::shim::start::{Accounting, Limits, Wish};

use crate::cgroup::{Cgroups, Leaf};
use crate::marks::{self, JobMarks, Marks};

/// The processes of one session.
#[derive(Debug)]
pub(crate) enum Tree {
    Cgroup(Cgroups),
    Marks(Marks),
}

/// The processes of one background command.
#[derive(Debug)]
pub(crate) enum JobTree {
    Cgroup(Leaf),
    Marks(JobMarks),
}

impl JobTree {
    /// The value of the command's environment mark, where marks are used.
    pub(crate) fn mark(&self) -> Option<&str> {
        match self {
            Self::Cgroup(_) => None,
            Self::Marks(marks) => Some(&marks.mark),
        }
    }

    /// The command's processes, without its shell.
    pub(crate) fn others(&self, shell: Pid) -> Vec<Pid> {
        match self {
            Self::Cgroup(leaf) => leaf.others(shell),
            Self::Marks(marks) => marks.others(shell),
        }
    }

    /// Kills the command's processes and counts them. Its shell may be killed with them.
    pub(crate) fn kill(&self, shell: Pid) -> u32 {
        match self {
            Self::Cgroup(leaf) => leaf.kill(shell),
            Self::Marks(marks) => marks.kill(shell),
        }
    }
}

impl Tree {
    pub(crate) fn new(wish: Wish, name: &str, limits: Limits) -> Self {
        let groups = match wish {
            Wish::Auto => Cgroups::create(name, limits).ok(),
            Wish::Marks => None,
        };
        groups.map_or_else(|| Self::Marks(Marks::default()), Self::Cgroup)
    }

    pub(crate) fn accounting(&self) -> Accounting {
        match self {
            Self::Cgroup(_) => Accounting::Cgroup,
            Self::Marks(_) => Accounting::Marks,
        }
    }

    /// A new shell joins. Should its group refuse it, marks are what is left.
    pub(crate) fn adopt(&mut self, shell: Pid) {
        if let Self::Cgroup(groups) = self
            && groups.adopt(shell).is_err()
        {
            *self = Self::Marks(Marks::default());
        }
    }

    /// Before a command; the value of its environment mark, where marks are used. `alone`: the shell had no other process
    /// at the end of the command before and has done nothing since, so there is still none.
    pub(crate) fn begin(&mut self, shell: Pid, alone: bool) -> io::Result<Option<String>> {
        match self {
            Self::Cgroup(_) if alone => Ok(None),
            Self::Cgroup(groups) => groups.begin(shell).map(|()| None),
            Self::Marks(marks) => Ok(Some(marks.begin(shell, alone))),
        }
    }

    /// The processes of the present command, without the shell.
    pub(crate) fn others(&self, shell: Pid) -> Vec<Pid> {
        match self {
            Self::Cgroup(groups) => groups.others(shell),
            Self::Marks(marks) => marks.others(shell),
        }
    }

    /// Asks the processes of the present command to end; stopped ones are woken to hear it.
    ///
    /// INT is what a person would send. A child of the shell that prints elsewhere than to `output` may be a command
    /// substitution, though: when one dies of INT, bash ends itself by INT, so it gets TERM.
    pub(crate) fn interrupt_command(&self, shell: Pid, output: &Path) {
        interrupt(&self.others(shell), output);
    }

    /// Before a background command gets its shell.
    pub(crate) fn new_job(&mut self) -> io::Result<JobTree> {
        match self {
            Self::Cgroup(groups) => groups.new_job().map(JobTree::Cgroup),
            Self::Marks(marks) => Ok(JobTree::Marks(marks.new_job())),
        }
    }

    /// The shell of a background command has started.
    pub(crate) fn add_job(&mut self, job: &JobTree, shell: Pid) -> io::Result<()> {
        match (self, job) {
            (_, JobTree::Cgroup(leaf)) => leaf.take_in(shell),
            (Self::Marks(marks), JobTree::Marks(_)) => {
                marks.add_job(shell);
                Ok(())
            }
            // Marks never become groups.
            (Self::Cgroup(_), JobTree::Marks(_)) => Ok(()),
        }
    }

    /// The present command becomes a background one, with its shell.
    pub(crate) fn give_away(&mut self, shell: Pid) -> io::Result<JobTree> {
        match self {
            Self::Cgroup(groups) => groups.give_away().map(JobTree::Cgroup),
            Self::Marks(marks) => Ok(JobTree::Marks(marks.give_away(shell))),
        }
    }

    /// A background command is over and nothing of it is left; its shell is being killed.
    pub(crate) fn remove_job(&mut self, job: &JobTree) {
        if let (Self::Cgroup(groups), JobTree::Cgroup(leaf)) = (self, job) {
            groups.remove_job(leaf);
        }
    }

    /// A shell was waited for that is not the session's.
    pub(crate) fn shell_is_gone(&mut self, shell: Pid) {
        if let Self::Marks(marks) = self {
            marks.remove_job(shell);
        }
    }

    pub(crate) fn limits_hit_by(&self, job: &JobTree) -> Vec<LimitHit> {
        match (self, job) {
            (Self::Cgroup(groups), JobTree::Cgroup(leaf)) => groups.limits_hit_in(leaf),
            (Self::Cgroup(_) | Self::Marks(_), _) => Vec::new(),
        }
    }

    /// Kills the processes of the present command and counts them.
    pub(crate) fn kill_command(&mut self, shell: Pid) -> u32 {
        match self {
            Self::Cgroup(groups) => groups.kill_command(shell),
            Self::Marks(marks) => marks.kill_command(shell),
        }
    }

    /// Kills every process of the session, the shell included, and counts them.
    pub(crate) fn kill_all(&mut self) -> u32 {
        match self {
            Self::Cgroup(groups) => groups.kill_all().max(Marks::default().kill_all()),
            Self::Marks(marks) => marks.kill_all(),
        }
    }

    /// Every living process of the session.
    pub(crate) fn everyone(&self) -> Vec<Pid> {
        match self {
            Self::Cgroup(groups) => groups.everyone(),
            Self::Marks(_) => marks::everyone(),
        }
    }

    pub(crate) fn limits_hit(&mut self) -> Vec<LimitHit> {
        match self {
            Self::Cgroup(groups) => groups.limits_hit(),
            Self::Marks(_) => Vec::new(),
        }
    }

    /// Whether a process belongs to the session: such a one may not control it.
    pub(crate) fn holds(&self, pid: Pid) -> bool {
        self.group().is_some_and(|base| is_in_group(pid, base)) || marks::everyone().contains(&pid)
    }

    fn group(&self) -> Option<&Path> {
        match self {
            Self::Cgroup(groups) => Some(groups.base()),
            Self::Marks(_) => None,
        }
    }

    pub(crate) fn remove(&mut self) {
        if let Self::Cgroup(groups) = self {
            groups.remove();
        }
    }
}

/// Asks processes to end, as [`Tree::interrupt_command`] says.
pub(crate) fn interrupt(pids: &[Pid], output: &Path) {
    for pid in pids {
        let prints = std::fs::read_link(format!("/proc/{pid}/fd/1"));
        let signal = if prints.is_ok_and(|path| path == output) { Signal::SIGINT } else { Signal::SIGTERM };
        let _ = kill(*pid, signal);
        let _ = kill(*pid, Signal::SIGCONT);
    }
}

fn is_in_group(pid: Pid, base: &Path) -> bool {
    let Some(name) = base.file_name().and_then(|name| name.to_str()) else { return false };
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().filter_map(|line| line.strip_prefix("0::/")).any(|path| path.split('/').any(|part| part == name))
}
