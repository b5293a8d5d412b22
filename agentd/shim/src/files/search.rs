//! A search from the question to the answer: where it starts is found on the shim's one thread, the rest is done
//! wherever [`Search::run`] is called.
//!
//! Invariant: a search reads and changes nothing of [`super::Files`], so that it can run beside everything else.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use ignore::overrides::{Override, OverrideBuilder};
use proto::shim::files::{Bounds, Fault, FileError, FileOp, FileReply, Glob, Grep, SearchLimit};

use super::ignores::Ignores;
use super::path::{Found, Place};
use super::walk::Plan;
use super::{Files, glob, grep};

/// The longest that a search takes, whatever is asked for.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The most that a search brings back, whatever is asked for: it has to fit into one frame with its JSON.
const BYTES_MAX: u64 = 1024 * 1024;

/// The most results of a search.
const RESULTS_MAX: u64 = 100_000;

/// Tells a search when to end. Asked often, on many threads.
#[derive(Debug)]
pub struct Stop {
    why: AtomicU8,
    deadline: Instant,
    limit: Duration,
}

const GOING: u8 = 0;
const INTERRUPTED: u8 = 1;
const LATE: u8 = 2;
const GIVEN_UP: u8 = 3;

impl Stop {
    fn after(limit: Duration) -> Self {
        Self { why: AtomicU8::new(GOING), deadline: Instant::now() + limit, limit }
    }

    /// Ends the search soon.
    pub fn interrupt(&self) {
        self.set(INTERRUPTED);
    }

    /// When it ends by itself.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Too much to look at.
    pub(super) fn give_up(&self) {
        self.set(GIVEN_UP);
    }

    /// Whether to end now.
    pub(super) fn is_reached(&self) -> bool {
        if self.why.load(Ordering::Relaxed) != GOING {
            return true;
        }
        let late = Instant::now() >= self.deadline;
        if late {
            self.set(LATE);
        }
        late
    }

    /// Why it ended early, if that is not told otherwise.
    pub(super) fn limit(&self) -> Option<SearchLimit> {
        match self.why.load(Ordering::Relaxed) {
            INTERRUPTED => Some(SearchLimit::Interrupted {}),
            LATE => Some(SearchLimit::Time { most_ms: u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX) }),
            _ => None,
        }
    }

    /// The first reason stays.
    fn set(&self, why: u8) {
        let _ = self.why.compare_exchange(GOING, why, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A search that can start.
#[derive(Debug)]
pub struct Search {
    wish: Wish,
    start: Start,
    stop: Arc<Stop>,
}

/// What is searched for.
#[derive(Debug)]
pub(super) enum Wish {
    Grep(Grep),
    Glob(Glob),
}

/// Where a search starts.
#[derive(Debug)]
pub(super) struct Start {
    /// As people know it.
    pub(super) shown: String,
    pub(super) at: At,
}

#[derive(Debug)]
pub(super) enum At {
    Directory {
        dir: OwnedFd,
        /// From the directory that the ignore rules start in.
        below: PathBuf,
        /// The directories above it, with their paths, from the one that the ignore rules start in.
        above: Vec<(OwnedFd, PathBuf)>,
    },
    File {
        dir: OwnedFd,
        name: OsString,
    },
}

impl Wish {
    fn path(&self) -> &str {
        match self {
            Self::Grep(grep) => grep.path.as_deref(),
            Self::Glob(glob) => glob.path.as_deref(),
        }
        .unwrap_or(".")
    }

    fn bounds(&self) -> Bounds {
        match self {
            Self::Grep(grep) => grep.bounds,
            Self::Glob(glob) => glob.bounds,
        }
    }
}

impl Files {
    /// Prepares a search; none when the operation is another one.
    ///
    /// # Errors
    /// The answer when there is nothing to search.
    pub fn search(&self, op: &FileOp, cwd: &Path) -> Option<Result<Search, Box<FileReply>>> {
        let wish = match op {
            FileOp::Grep(grep) => Wish::Grep(grep.clone()),
            FileOp::Glob(glob) => Wish::Glob(glob.clone()),
            FileOp::View(_)
            | FileOp::Create(_)
            | FileOp::StrReplace(_)
            | FileOp::Insert(_)
            | FileOp::Undo(_)
            | FileOp::Changes {} => return None,
        };
        Some(self.prepare(wish, cwd))
    }

    pub(super) fn prepare(&self, wish: Wish, cwd: &Path) -> Result<Search, Box<FileReply>> {
        let start = self.start(wish.path(), cwd);
        let start =
            start.map_err(|fault| Box::new(FileReply::Error(FileError { path: wish.path().to_owned(), fault })))?;
        let limit = Duration::from_millis(wish.bounds().time_ms).min(TIME_MAX);
        Ok(Search { wish, start, stop: Arc::new(Stop::after(limit)) })
    }

    fn start(&self, path: &str, cwd: &Path) -> Result<Start, Fault> {
        let place = self.existing(path, cwd)?;
        let shown = place.shown.clone();
        let at = match &place.found {
            Found::File(_) => At::File { name: place.name, dir: place.dir },
            Found::Directory => self.directory(&place)?,
            Found::Other(kind) => return Err(Fault::NotRegular { kind: kind.clone() }),
            Found::Nothing => return Err(self.not_found(&place)),
        };
        Ok(Start { shown, at })
    }

    /// The directory, and those above it as far as they lie inside: their ignore files count too.
    fn directory(&self, place: &Place) -> Result<At, Fault> {
        let mut above = Vec::new();
        let mut top = place.real.as_path();
        for path in place.real.ancestors().skip(1) {
            let Some(text) = path.to_str() else { break };
            let Ok(dir) = self.roots.resolve(text, Path::new("/")).and_then(|place| place.open_directory()) else {
                break;
            };
            above.push((dir, path));
            top = path;
        }
        let below = |path: &Path| path.strip_prefix(top).unwrap_or(Path::new("")).to_owned();
        let above = above.iter().rev().filter_map(|(dir, path)| Some((dir.try_clone().ok()?, below(path)))).collect();
        Ok(At::Directory { dir: place.open_directory()?, below: below(&place.real), above })
    }
}

impl Search {
    /// The handle that ends it.
    #[must_use]
    pub fn stop(&self) -> Arc<Stop> {
        Arc::clone(&self.stop)
    }

    /// Starts the clock, for a search that had to wait.
    pub fn begin(&mut self, now: Instant) {
        let why = AtomicU8::new(self.stop.why.load(Ordering::Relaxed));
        let limit = self.stop.limit;
        self.stop = Arc::new(Stop { why, deadline: now + limit, limit });
    }

    /// Searches.
    #[must_use]
    pub fn run(self) -> FileReply {
        let path = self.start.shown.clone();
        let found = match &self.wish {
            Wish::Grep(wish) => grep::run(wish, self.start, &self.stop).map(FileReply::Matches),
            Wish::Glob(wish) => glob::run(wish, self.start, &self.stop).map(FileReply::Paths),
        };
        found.unwrap_or_else(|fault| FileReply::Error(FileError { path, fault }))
    }
}

/// Bounds that the shim keeps whatever it is asked for.
pub(super) fn bounded(bounds: Bounds) -> Bounds {
    Bounds { results: bounds.results.min(RESULTS_MAX), bytes: bounds.bytes.min(BYTES_MAX), ..bounds }
}

/// The walk from a directory. `glob` leaves out what does not match; a part of it that starts with a dot asks for hidden
/// names.
pub(super) fn plan(
    dir: OwnedFd,
    below: PathBuf,
    above: Vec<(OwnedFd, PathBuf)>,
    glob: Option<&str>,
    all: bool,
) -> Result<Plan, Fault> {
    let mut ignores = Arc::new(Ignores::default());
    for (dir, path) in above {
        ignores = Ignores::below(&ignores, &dir, &path);
    }
    let names = names(&below, glob)?;
    let hidden = all || glob.is_some_and(names_hidden);
    Ok(Plan { dir, below, ignores, names, hidden, ignored: all })
}

/// The glob as a filter of paths; a leading `!` leaves out what matches.
pub(super) fn names(root: &Path, glob: Option<&str>) -> Result<Override, Fault> {
    let Some(glob) = glob else { return Ok(Override::empty()) };
    let bad = |error: ignore::Error| Fault::BadGlob { glob: glob.to_owned(), message: error.to_string() };
    let mut builder = OverrideBuilder::new(root);
    builder.add(glob.strip_prefix("./").unwrap_or(glob)).map_err(bad)?;
    builder.build().map_err(bad)
}

fn names_hidden(glob: &str) -> bool {
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    !glob.starts_with('!')
        && glob.split(['/', '{', ',']).any(|part| part.starts_with('.') && part != "." && part != "..")
}

/// Joins paths as people know them.
pub(super) fn shown(start: &str, below: &Path) -> String {
    let below = below.to_string_lossy();
    if start == "." { below.into_owned() } else { format!("{}/{below}", start.trim_end_matches('/')) }
}
