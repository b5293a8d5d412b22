//! Showing a directory: two levels, sorted, hidden entries left out, links not followed.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::dir::Dir;
use nix::fcntl::{AtFlags, readlinkat};
use nix::sys::stat::{SFlag, fstatat};
use proto::shim::files::{Action, Entry, Fault, FileKind, Listing};

use super::path::{fault, kind_of, open_directory, special};

/// Entries in one answer: what a model can still make sense of.
const ENTRIES_MAX: usize = 1000;

/// Entries of one directory on the second level, so that one large directory does not crowd out the others.
const INNER_MAX: usize = 100;

/// Names that are suggested; more would be noise.
const SIMILAR_MAX: usize = 5;

/// Names read of one directory at most; more would cost time and memory for nothing that is shown.
const NAMES_MAX: usize = 50_000;

/// Lists the directory behind a descriptor.
pub(super) fn directory(dir: OwnedFd, path: &str) -> Result<Listing, Fault> {
    let names = Names::read(dir.try_clone().map_err(|error| super::path::io_fault(&error, Action::Read))?)?;
    let mut listing = Listing { path: path.to_owned(), entries: Vec::new(), left_out: 0, hidden: names.hidden };
    listing.left_out = (names.shown.len().saturating_sub(ENTRIES_MAX)) as u64 + names.unread;
    let mut room = ENTRIES_MAX.saturating_sub(names.shown.len());
    for name in names.shown.iter().take(ENTRIES_MAX) {
        let kind = kind(&dir, name);
        let inner = matches!(kind, FileKind::Directory).then(|| open_directory(&dir, name));
        let mut entry = Entry { path: name.to_string_lossy().into_owned(), kind, left_out: 0 };
        // A directory that may not be read is listed without its entries.
        let Some(Ok(inner)) = inner else {
            listing.entries.push(entry);
            continue;
        };
        let below = level_below(&entry.path, inner, room.min(INNER_MAX), &mut entry.left_out);
        room -= below.len();
        listing.entries.push(entry);
        listing.entries.extend(below);
    }
    Ok(listing)
}

fn level_below(above: &str, dir: OwnedFd, room: usize, left_out: &mut u64) -> Vec<Entry> {
    let Ok(copy) = dir.try_clone() else { return Vec::new() };
    let Ok(names) = Names::read(copy) else { return Vec::new() };
    *left_out = (names.shown.len().saturating_sub(room)) as u64 + names.unread;
    let entry = |name: &OsString| Entry {
        path: format!("{above}/{}", name.to_string_lossy()),
        kind: kind(&dir, name),
        left_out: 0,
    };
    names.shown.iter().take(room).map(entry).collect()
}

/// Up to a few names that look like a wanted one: what a mistyped path may have meant.
pub(super) fn similar(dir: OwnedFd, wanted: &OsStr) -> Vec<String> {
    let Ok(names) = Names::read(dir) else { return Vec::new() };
    let wanted = wanted.to_string_lossy().to_lowercase();
    let mut scored: Vec<(usize, String)> = names
        .shown
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .filter_map(|name| likeness(&wanted, &name.to_lowercase()).map(|score| (score, name)))
        .collect();
    scored.sort();
    scored.truncate(SIMILAR_MAX);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// Where a file of this name lies below a directory: what a path that lacks its first parts may have meant. Looks at a
/// bounded number of entries and not into what is hidden or made by tools.
pub(super) fn elsewhere(dir: OwnedFd, wanted: &OsStr) -> Vec<String> {
    let mut search = Search { wanted, found: Vec::new(), budget: SEARCH_ENTRIES_MAX };
    search.below(dir, &mut PathBuf::new(), SEARCH_DEPTH_MAX);
    search.found.truncate(SIMILAR_MAX);
    search.found
}

/// Entries that one search looks at: some ten milliseconds.
const SEARCH_ENTRIES_MAX: usize = 10_000;

/// Directories below each other; each holds a descriptor open.
const SEARCH_DEPTH_MAX: usize = 8;

/// Directories full of files that nobody means by their bare name.
const SEARCH_SKIPPED: [&str; 3] = ["node_modules", "target", "__pycache__"];

struct Search<'a> {
    wanted: &'a OsStr,
    found: Vec<String>,
    budget: usize,
}

impl Search<'_> {
    fn below(&mut self, dir: OwnedFd, path: &mut PathBuf, depth: usize) {
        let Ok(copy) = dir.try_clone() else { return };
        let Ok(names) = Names::read(copy) else { return };
        for name in names.shown {
            if self.budget == 0 || self.found.len() == SIMILAR_MAX {
                return;
            }
            self.budget -= 1;
            path.push(&name);
            if name == self.wanted {
                self.found.push(path.to_string_lossy().into_owned());
            } else if depth > 0 && !SEARCH_SKIPPED.iter().any(|skipped| name == *skipped) {
                // What is no directory is not opened.
                if let Ok(inner) = open_directory(&dir, &name) {
                    self.below(inner, path, depth - 1);
                }
            }
            path.pop();
        }
    }
}

/// A score for two names that are alike, lower is closer; none when they are not.
fn likeness(wanted: &str, name: &str) -> Option<usize> {
    let stem = |name: &str| name.rsplit_once('.').map_or(name.to_owned(), |(stem, _)| stem.to_owned());
    let distance = edit_distance(wanted, name);
    let near = distance <= 1 + wanted.chars().count() / 4;
    let sorted = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    let related = stem(wanted) == stem(name)
        || (wanted.len() >= 3 && name.contains(wanted))
        || (wanted.len() == name.len() && sorted(wanted) == sorted(name));
    (near || related).then_some(distance)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The names of one directory, sorted.
struct Names {
    shown: Vec<OsString>,
    hidden: u64,
    unread: u64,
}

impl Names {
    fn read(dir: OwnedFd) -> Result<Self, Fault> {
        let mut dir = Dir::from_fd(dir).map_err(|errno| fault(errno, Action::Read))?;
        let mut names = Self { shown: Vec::new(), hidden: 0, unread: 0 };
        for entry in dir.iter() {
            let entry = entry.map_err(|errno| fault(errno, Action::Read))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if name.as_bytes().starts_with(b".") {
                names.hidden += 1;
            } else if names.shown.len() == NAMES_MAX {
                names.unread += 1;
            } else {
                names.shown.push(name.to_owned());
            }
        }
        names.shown.sort();
        Ok(names)
    }
}

fn kind(dir: impl AsFd, name: &OsStr) -> FileKind {
    let Ok(stat) = fstatat(&dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) else { return FileKind::File };
    match kind_of(&stat) {
        SFlag::S_IFREG => FileKind::File,
        SFlag::S_IFDIR => FileKind::Directory,
        SFlag::S_IFLNK => {
            let target = readlinkat(&dir, name).unwrap_or_default();
            FileKind::Symlink { target: target.to_string_lossy().into_owned() }
        }
        other => special(other),
    }
}
