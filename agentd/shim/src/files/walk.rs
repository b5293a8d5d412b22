//! Walking a directory tree on several threads, for a search.
//!
//! Every step is one plain name in an open directory, never through a link, so that a tree that is changed meanwhile
//! leads nowhere else. Directories are worked off the last found first: what is open and what waits stays bounded by
//! the tree's depth and not by its size.
//!
//! Invariant: nothing waits for a file: what is opened is a regular file, or closed again unread.
//! Not here: what is done with a file ([`Visitor`]), which rules ignore files hold ([`super::ignores`]).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ignore::overrides::Override;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use proto::shim::files::{Looked, SearchLimit};

use super::ignores::Ignores;
use super::path::{kind_of, open_directory};
use super::search::Stop;

/// Files and directories that one search looks at: ten times the largest repositories; bounds what waits in memory.
const ENTRIES_MAX: u64 = 3_000_000;

/// Directories below each other; each on the way holds a descriptor open.
const DEPTH_MAX: usize = 200;

/// Files that are handed to a thread at once: enough to make the hand-over cheap, few enough to share a flat directory.
const BATCH: usize = 128;

/// Batches that may wait; whoever finds more works them off itself.
const BATCHES_MAX: usize = 1024;

/// Threads of one search; the disk and the model's commands want their share.
const THREADS_MAX: usize = 8;

/// Where a walk starts and what it leaves out.
pub(super) struct Plan {
    /// The directory.
    pub(super) dir: OwnedFd,
    /// Its path from the directory that the ignore rules start in.
    pub(super) below: PathBuf,
    /// The rules that hold in it.
    pub(super) ignores: Arc<Ignores>,
    /// Which names are wanted.
    pub(super) names: Override,
    /// Also hidden ones.
    pub(super) hidden: bool,
    /// Also ignored ones.
    pub(super) ignored: bool,
}

/// One file, or a link, in an open directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) dir: &'a OwnedFd,
    pub(super) name: &'a OsStr,
    /// The directory's path, as in [`Plan::below`].
    pub(super) below: &'a Path,
    pub(super) is_link: bool,
}

/// What is done with the files; each thread has its own.
pub(super) trait Visitor: Send {
    fn visit(&mut self, item: &Item<'_>);
}

/// Walks, and gives back the visitors.
pub(super) fn walk<V: Visitor>(plan: Plan, stop: &Stop, make: impl Fn() -> V) -> (Vec<V>, Looked, Vec<SearchLimit>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let first = Work::Directory(Folder {
        parent: Arc::new(plan.dir),
        name: OsString::from("."),
        below: plan.below,
        ignores: plan.ignores,
        depth: 0,
    });
    let shared = Shared {
        pool: Mutex::new(Pool { waiting: vec![first], batches: 0, busy: 0 }),
        more: Condvar::new(),
        entries: AtomicU64::new(0),
        names: plan.names,
        hidden: plan.hidden,
        ignored: plan.ignored,
        stop,
    };
    let mut walkers: Vec<Walker<'_, V>> = (0..threads)
        .map(|_| Walker { shared: &shared, visitor: make(), looked: Looked::default(), too_deep: false })
        .collect();
    std::thread::scope(|scope| {
        let (own, others) = walkers.split_at_mut(1);
        for walker in others {
            // A thread that cannot be started is only missed.
            let _ = std::thread::Builder::new().name("search".to_owned()).spawn_scoped(scope, || walker.run());
        }
        own[0].run();
    });
    let mut looked = Looked::default();
    let mut limits = Vec::new();
    for walker in &walkers {
        add(&mut looked, &walker.looked);
    }
    if shared.entries.load(Ordering::Relaxed) > ENTRIES_MAX {
        limits.push(SearchLimit::Entries { most: ENTRIES_MAX });
    }
    if walkers.iter().any(|walker| walker.too_deep) {
        limits.push(SearchLimit::Depth { most: DEPTH_MAX as u64 });
    }
    (walkers.into_iter().map(|walker| walker.visitor).collect(), looked, limits)
}

/// Adds up what threads looked at.
pub(super) fn add(sum: &mut Looked, part: &Looked) {
    sum.files += part.files;
    sum.ignored += part.ignored;
    sum.hidden += part.hidden;
    sum.binary += part.binary;
    sum.unreadable += part.unreadable;
    sum.too_long += part.too_long;
}

/// Opens a regular file for reading; what is none, or a link to one, is an error.
pub(super) fn open_regular(dir: impl AsFd, name: &OsStr) -> nix::Result<(File, FileStat)> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = openat(dir, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if kind_of(&stat) == SFlag::S_IFREG { Ok((File::from(file), stat)) } else { Err(Errno::EINVAL) }
}

enum Work {
    Directory(Folder),
    Files(Batch),
}

struct Folder {
    parent: Arc<OwnedFd>,
    name: OsString,
    below: PathBuf,
    ignores: Arc<Ignores>,
    depth: usize,
}

struct Batch {
    dir: Arc<OwnedFd>,
    below: Arc<PathBuf>,
    /// Names, and whether they are links.
    names: Vec<(OsString, bool)>,
}

struct Pool {
    waiting: Vec<Work>,
    batches: usize,
    busy: usize,
}

struct Shared<'a> {
    pool: Mutex<Pool>,
    more: Condvar,
    entries: AtomicU64,
    names: Override,
    hidden: bool,
    ignored: bool,
    stop: &'a Stop,
}

impl Shared<'_> {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        // A thread that panicked held no half-made state.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece of work; none when there will be no more.
    fn take(&self) -> Option<(Work, Busy<'_>)> {
        let mut pool = self.pool();
        loop {
            if self.stop.is_reached() {
                pool.waiting.clear();
            }
            if let Some(work) = pool.waiting.pop() {
                pool.batches -= usize::from(matches!(work, Work::Files(_)));
                pool.busy += 1;
                return Some((work, Busy { pool: &self.pool, more: &self.more }));
            }
            if pool.busy == 0 {
                return None;
            }
            pool = self.more.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Leaves work to whoever is free; gives it back when too much waits already.
    fn leave(&self, work: Work) -> Option<Work> {
        let mut pool = self.pool();
        if matches!(work, Work::Files(_)) {
            if pool.batches >= BATCHES_MAX {
                return Some(work);
            }
            pool.batches += 1;
        }
        pool.waiting.push(work);
        drop(pool);
        self.more.notify_one();
        None
    }
}

/// A thread at work: others wait for what it may find, and must hear when it ends, even by a panic.
struct Busy<'a> {
    pool: &'a Mutex<Pool>,
    more: &'a Condvar,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.busy -= 1;
        let over = pool.busy == 0 && pool.waiting.is_empty();
        drop(pool);
        if over {
            self.more.notify_all();
        }
    }
}

struct Walker<'a, V> {
    shared: &'a Shared<'a>,
    visitor: V,
    looked: Looked,
    too_deep: bool,
}

impl<V: Visitor> Walker<'_, V> {
    fn run(&mut self) {
        while let Some((work, _busy)) = self.shared.take() {
            match work {
                Work::Directory(folder) => self.directory(folder),
                Work::Files(batch) => self.files(&batch),
            }
        }
    }

    fn files(&mut self, batch: &Batch) {
        for (name, is_link) in &batch.names {
            if self.shared.stop.is_reached() {
                return;
            }
            let item = Item { dir: &batch.dir, name, below: &batch.below, is_link: *is_link };
            self.visitor.visit(&item);
        }
    }

    fn directory(&mut self, folder: Folder) {
        if folder.depth > DEPTH_MAX {
            self.too_deep = true;
            return;
        }
        let Ok((dir, entries)) = read(&folder) else {
            self.looked.unreadable += 1;
            return;
        };
        let count = entries.len() as u64;
        if self.shared.entries.fetch_add(count, Ordering::Relaxed) + count > ENTRIES_MAX {
            self.shared.stop.give_up();
            return;
        }
        let dir = Arc::new(dir);
        let ignores = if !self.shared.ignored && entries.iter().any(|(name, _)| Ignores::is_named(name)) {
            Ignores::below(&folder.ignores, &dir, &folder.below)
        } else {
            folder.ignores
        };
        let below = Arc::new(folder.below);
        let mut path = below.as_path().to_owned();
        let mut names = Vec::new();
        for (name, kind) in entries {
            path.push(&name);
            let kind = self.wanted(&dir, &name, kind, &path, &ignores);
            match kind {
                Some(Type::Directory) => {
                    let inner = Folder {
                        parent: Arc::clone(&dir),
                        name,
                        below: path.clone(),
                        ignores: Arc::clone(&ignores),
                        depth: folder.depth + 1,
                    };
                    self.hand_over(Work::Directory(inner));
                }
                Some(kind @ (Type::File | Type::Symlink)) => {
                    names.push((name, kind == Type::Symlink));
                    if names.len() == BATCH {
                        let names = std::mem::take(&mut names);
                        self.hand_over(Work::Files(Batch { dir: Arc::clone(&dir), below: Arc::clone(&below), names }));
                    }
                }
                Some(Type::Fifo | Type::Socket | Type::CharacterDevice | Type::BlockDevice) | None => {}
            }
            path.pop();
        }
        self.files(&Batch { dir, below, names });
    }

    fn hand_over(&mut self, work: Work) {
        // Only files come back.
        if let Some(Work::Files(batch)) = self.shared.leave(work) {
            self.files(&batch);
        }
    }

    /// What an entry is, if it is to be looked at.
    fn wanted(
        &mut self,
        dir: &OwnedFd,
        name: &OsStr,
        kind: Option<Type>,
        path: &Path,
        ignores: &Ignores,
    ) -> Option<Type> {
        let kind = kind.or_else(|| kind_at(dir, name))?;
        let is_dir = kind == Type::Directory;
        if self.shared.names.matched(path, is_dir).is_ignore() {
            return None;
        }
        // The repository's own store is nobody's text, whatever is asked for.
        if name == ".git" || (!self.shared.hidden && name.as_bytes().starts_with(b".")) {
            self.looked.hidden += 1;
            return None;
        }
        if !self.shared.ignored && ignores.skips(path, is_dir) {
            self.looked.ignored += 1;
            return None;
        }
        Some(kind)
    }
}

type Names = Vec<(OsString, Option<Type>)>;

fn read(folder: &Folder) -> nix::Result<(OwnedFd, Names)> {
    let dir = open_directory(&folder.parent, &folder.name)?;
    let copy = dir.try_clone().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
    let mut names = Names::new();
    for entry in Dir::from_fd(copy)?.iter() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((OsStr::from_bytes(name).to_owned(), entry.file_type()));
        }
    }
    Ok((dir, names))
}

/// For file systems that do not tell with the name.
fn kind_at(dir: &OwnedFd, name: &OsStr) -> Option<Type> {
    let stat = fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
    match kind_of(&stat) {
        SFlag::S_IFDIR => Some(Type::Directory),
        SFlag::S_IFREG => Some(Type::File),
        SFlag::S_IFLNK => Some(Type::Symlink),
        _ => None,
    }
}
