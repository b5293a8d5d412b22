//! Accounting by control groups: one leaf for the shell and the command it runs, one for each background command with its
//! own shell, older leaves for processes that went on.
//!
//! The shell is moved to a new leaf only when its present one holds other processes at the start of a command, because a
//! move costs milliseconds. Everything that a command starts is born in the leaf, wherever it hides later.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::shim::outcome::LimitHit;
use proto::shim::start::Limits;

/// Every group of ours is named so; `shell::recover` finds left-overs by it.
pub const PREFIX: &str = "agentd-";

/// The group of the shim itself, in a scope of its own.
const ASIDE: &str = "shim";

/// Where the daemon and the shims themselves are put when the group they were started in is to be divided: a group with
/// members cannot pass controllers on.
const HOME: &str = "home-of-agentd";

/// The leaf that a shell is in.
#[derive(Debug)]
pub(crate) struct Leaf {
    path: PathBuf,
    /// Kills for memory and refused forks that were told already.
    told: (u64, u64),
    /// Its list of members, kept open because it is read after every command.
    members: File,
}

impl Leaf {
    fn open(path: PathBuf) -> io::Result<Self> {
        let members = File::open(path.join("cgroup.procs"))?;
        Ok(Self { path, told: (0, 0), members })
    }

    fn members(&self) -> Vec<Pid> {
        // One page takes some five hundred members; a full one means that there are more to be read.
        let mut text = vec![0; 4096];
        match self.members.read_at(&mut text, 0) {
            Ok(count) if count < text.len() => parse_members(&text[..count]),
            Ok(_) | Err(_) => members(&self.path),
        }
    }

    /// The processes of a command, without its shell.
    pub(crate) fn others(&self, shell: Pid) -> Vec<Pid> {
        let mut pids = self.members();
        pids.retain(|pid| *pid != shell);
        pids
    }

    /// Kills for memory and refused forks since it was made, as far as there are such limits.
    fn counts(&self, limits: &Limits) -> (u64, u64) {
        let kills = limits.memory_max.map_or(0, |_| event_count(&self.path, "memory.events", "oom_kill "));
        let refused = limits.pids_max.map_or(0, |_| event_count(&self.path, "pids.events", "max "));
        (kills, refused)
    }

    /// Puts a shell in.
    pub(crate) fn take_in(&self, shell: Pid) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), shell.to_string())
    }

    /// Kills everything in it, the shell too; how many were there besides the shell.
    pub(crate) fn kill(&self, shell: Pid) -> u32 {
        let others = self.others(shell).len();
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        u32::try_from(others).unwrap_or(u32::MAX)
    }
}

/// The control groups of one session.
#[derive(Debug)]
pub(crate) struct Cgroups {
    base: PathBuf,
    current: Leaf,
    older: Vec<PathBuf>,
    /// Leaves whose members were killed and may not be gone yet.
    dying: Vec<PathBuf>,
    /// Leaves of background commands.
    jobs: Vec<PathBuf>,
    made: u64,
    limits: Limits,
}

impl Cgroups {
    /// Makes the session's group, where there is a version 2 hierarchy that we may write to.
    pub(crate) fn create(name: &str, limits: Limits) -> io::Result<Self> {
        let own = own_group()?;
        step_aside(&own);
        let base = own.join(format!("{PREFIX}{name}"));
        if base.exists() {
            sweep(&base);
        }
        fs::create_dir_all(&base)?;
        enable_controllers(&base);
        let first = make_leaf(&base, 1, limits)?;
        // The proof that it works is a kill file; kernels before 5.14 have none.
        fs::metadata(first.path.join("cgroup.kill"))?;
        Ok(Self { base, current: first, older: Vec::new(), dying: Vec::new(), jobs: Vec::new(), made: 1, limits })
    }

    fn next_leaf(&mut self) -> io::Result<Leaf> {
        self.made += 1;
        make_leaf(&self.base, self.made, self.limits)
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// Puts a new shell into a leaf of its own.
    pub(crate) fn adopt(&mut self, shell: Pid) -> io::Result<()> {
        if !self.current.members().is_empty() {
            let leaf = self.next_leaf()?;
            self.older.push(std::mem::replace(&mut self.current, leaf).path);
        }
        fs::write(self.current.path.join("cgroup.procs"), shell.to_string())
    }

    /// Before a command, when the shell is not alone in its leaf: puts it into a new one.
    pub(crate) fn begin(&mut self, shell: Pid) -> io::Result<()> {
        self.leave(shell)?;
        self.prune();
        Ok(())
    }

    fn leave(&mut self, shell: Pid) -> io::Result<PathBuf> {
        let leaf = self.next_leaf()?;
        fs::write(leaf.path.join("cgroup.procs"), shell.to_string())?;
        let left = std::mem::replace(&mut self.current, leaf).path;
        self.older.push(left.clone());
        Ok(left)
    }

    fn prune(&mut self) {
        for leaves in [&mut self.older, &mut self.dying] {
            leaves.retain(|leaf| fs::remove_dir(leaf).is_err() && leaf.exists());
        }
    }

    /// Makes a leaf for a background command.
    pub(crate) fn new_job(&mut self) -> io::Result<Leaf> {
        let leaf = self.next_leaf()?;
        self.jobs.push(leaf.path.clone());
        Ok(leaf)
    }

    /// The present leaf becomes a background command's, with its shell in it.
    pub(crate) fn give_away(&mut self) -> io::Result<Leaf> {
        let next = self.next_leaf()?;
        let given = std::mem::replace(&mut self.current, next);
        self.jobs.push(given.path.clone());
        Ok(given)
    }

    /// A background command is over; what is left in its leaf goes on.
    pub(crate) fn remove_job(&mut self, leaf: &Leaf) {
        self.jobs.retain(|path| *path != leaf.path);
        self.older.push(leaf.path.clone());
        self.prune();
    }

    /// The processes of the present command.
    pub(crate) fn others(&self, shell: Pid) -> Vec<Pid> {
        let mut pids = self.current.members();
        pids.extend(self.dying.iter().flat_map(|leaf| members(leaf)));
        pids.retain(|pid| *pid != shell);
        pids
    }

    /// Kills the processes of the present command; the shell is moved out of the way.
    pub(crate) fn kill_command(&mut self, shell: Pid) -> u32 {
        let others = self.current.members().iter().filter(|pid| **pid != shell).count();
        if others == 0 {
            return 0;
        }
        let count = u32::try_from(others).unwrap_or(u32::MAX);
        if let Ok(left) = self.leave(shell) {
            let _ = fs::write(left.join("cgroup.kill"), "1");
            self.older.retain(|leaf| *leaf != left);
            self.dying.push(left);
        }
        // What the shell forked between the look and the move was born in the new leaf.
        self.kill_each(shell);
        count
    }

    fn kill_each(&self, shell: Pid) {
        for pid in self.others(shell) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }

    /// Kills every process of the session, the shell included.
    pub(crate) fn kill_all(&mut self) -> u32 {
        let count = self.everyone().len();
        let _ = fs::write(self.base.join("cgroup.kill"), "1");
        self.prune();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Every process of the session.
    pub(crate) fn everyone(&self) -> Vec<Pid> {
        let mut all = self.current.members();
        all.extend(self.older.iter().chain(&self.dying).chain(&self.jobs).flat_map(|leaf| members(leaf)));
        all
    }

    /// Limits that were hit since this was last asked.
    pub(crate) fn limits_hit(&mut self) -> Vec<LimitHit> {
        let hit = self.limits_hit_in(&self.current);
        self.current.told = self.current.counts(&self.limits);
        hit
    }

    /// Limits that were hit in a leaf since its hits were last told.
    pub(crate) fn limits_hit_in(&self, leaf: &Leaf) -> Vec<LimitHit> {
        let (kills, refused) = leaf.counts(&self.limits);
        let mut hit = Vec::new();
        if let Some(bytes) = self.limits.memory_max.filter(|_| kills > leaf.told.0) {
            hit.push(LimitHit::Memory { bytes });
        }
        if let Some(count) = self.limits.pids_max.filter(|_| refused > leaf.told.1) {
            hit.push(LimitHit::Processes { count });
        }
        hit
    }

    /// Removes the empty groups at the end.
    pub(crate) fn remove(&mut self) {
        sweep(&self.base);
    }
}

/// In a scope that is the shim's own the shim moves out of the way: controllers can be passed on only by a group that has
/// no process itself. Anywhere else other processes are there that are not ours to move.
fn step_aside(own: &Path) {
    if own.extension().is_some_and(|kind| kind == "scope") && members(own) == [nix::unistd::getpid()] {
        let aside = own.join(ASIDE);
        // Without it the leaves work, but for their limits.
        let _ = fs::create_dir(&aside).and_then(|()| fs::write(aside.join("cgroup.procs"), "0"));
    }
}

fn make_leaf(base: &Path, number: u64, limits: Limits) -> io::Result<Leaf> {
    let leaf = base.join(format!("c{number}"));
    fs::create_dir(&leaf)?;
    for (file, limit) in [("memory.max", limits.memory_max), ("pids.max", limits.pids_max)] {
        if let Some(limit) = limit {
            // Without the controller there is no such file, and no such limit.
            let _ = fs::write(leaf.join(file), limit.to_string());
        }
    }
    Leaf::open(leaf)
}

/// Kills whatever is left in a group of ours and removes it.
pub fn sweep(base: &Path) {
    let _ = fs::write(base.join("cgroup.kill"), "1");
    // The kernel removes members asynchronously; a group that is still busy is removed by the next sweep.
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
    let _ = fs::remove_dir(base);
}

/// The control group (version 2) that this process is in.
///
/// # Errors
/// When there is no such hierarchy.
pub fn own_group() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mount = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        right.starts_with("cgroup2 ").then(|| left.split(' ').nth(4)).flatten()
    });
    let mount = mount.ok_or(io::ErrorKind::NotFound)?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(io::ErrorKind::NotFound)?;
    let path = Path::new(mount).join(path);
    let above = path.parent().filter(|_| path.ends_with(HOME));
    Ok(above.map_or_else(|| path.clone(), Path::to_owned))
}

/// Passes the memory and pids controllers down to the leaves, where they exist and are delegated.
fn enable_controllers(base: &Path) {
    let Some(parent) = base.parent() else { return };
    for group in [parent, base] {
        let have = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
        for controller in ["memory", "pids"].into_iter().filter(|name| have.split_whitespace().any(|it| it == *name)) {
            let pass_on = || fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
            if pass_on().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) && move_home(group).is_ok() {
                let _ = pass_on();
            }
        }
    }
}

/// Moves the members of a group out of it, if all are daemon and shims.
fn move_home(group: &Path) -> io::Result<()> {
    let program = |pid: Pid| fs::read_link(format!("/proc/{pid}/exe"));
    let own = program(Pid::this())?;
    let members = members(group);
    if !members.iter().all(|pid| program(*pid).is_ok_and(|other| other == own)) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let home = group.join(HOME);
    fs::create_dir_all(&home)?;
    members.iter().try_for_each(|pid| fs::write(home.join("cgroup.procs"), pid.to_string()))
}

fn members(leaf: &Path) -> Vec<Pid> {
    parse_members(&fs::read(leaf.join("cgroup.procs")).unwrap_or_default())
}

fn parse_members(text: &[u8]) -> Vec<Pid> {
    let numbers = text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()?.parse().ok());
    numbers.filter(|pid| *pid > 0).map(Pid::from_raw).collect()
}

fn event_count(leaf: &Path, file: &str, key: &str) -> u64 {
    let text = fs::read_to_string(leaf.join(file)).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok()).unwrap_or(0)
}
