//! What ignore files say: `.gitignore`, `.git/info/exclude`, `.ignore` and `.rgignore`, from the root of the workspace
//! down, with ripgrep's order of precedence.
//!
//! `.gitignore` counts outside a git repository too: an unpacked archive means the same by it. A directory with a `.git`
//! of its own does not hear the `.gitignore` files above it. What lies outside the workspace (the user's own git
//! configuration, directories above) is not read, like everything else there.
//!
//! Invariant: only regular files of a bounded size are read, never through a link: a pipe by that name blocks nobody.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::path::open_directory;
use super::walk::open_regular;

/// The largest ignore file that is read; real ones have a few kilobytes.
const BYTES_MAX: u64 = 1024 * 1024;

/// Names that make a directory have rules of its own.
const NAMES: [&str; 4] = [".gitignore", ".git", ".ignore", ".rgignore"];

/// The rules that hold in one directory.
#[derive(Debug, Default)]
pub(super) struct Ignores {
    above: Option<Arc<Ignores>>,
    git: Option<Gitignore>,
    exclude: Option<Gitignore>,
    plain: Option<Gitignore>,
    is_repository: bool,
}

impl Ignores {
    /// Whether an entry of this name gives its directory rules of its own.
    pub(super) fn is_named(name: &OsStr) -> bool {
        NAMES.iter().any(|own| name == *own)
    }

    /// The rules in a directory at `path` (relative, as entries are asked for later) that has such entries.
    pub(super) fn below(above: &Arc<Self>, dir: &OwnedFd, path: &Path) -> Arc<Self> {
        let is_repository = super::path::open_step(dir, OsStr::new(".git")).is_ok();
        let exclude = if is_repository { exclude_file(dir) } else { None };
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            git: rules(path, [text(dir, ".gitignore")]),
            exclude: rules(path, [exclude]),
            plain: rules(path, [text(dir, ".ignore"), text(dir, ".rgignore")]),
            is_repository,
        })
    }

    /// Whether a path is to be skipped.
    pub(super) fn skips(&self, path: &Path, is_dir: bool) -> bool {
        let plain = self.chain().filter_map(|node| node.plain.as_ref());
        first_word(plain, path, is_dir)
            .or_else(|| first_word(self.repository().filter_map(|node| node.git.as_ref()), path, is_dir))
            .or_else(|| first_word(self.repository().filter_map(|node| node.exclude.as_ref()), path, is_dir))
            .unwrap_or(false)
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |node| node.above.as_deref())
    }

    /// From here up to the root of the git repository that this directory belongs to.
    fn repository(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |node| if node.is_repository { None } else { node.above.as_deref() })
    }
}

/// What the innermost file that knows the path says.
fn first_word<'a>(mut rules: impl Iterator<Item = &'a Gitignore>, path: &Path, is_dir: bool) -> Option<bool> {
    rules.find_map(|rules| {
        let word = rules.matched(path, is_dir);
        if word.is_none() { None } else { Some(word.is_ignore()) }
    })
}

/// The lines of the files that are there, later ones stronger. Lines that are no globs say nothing, as in git.
fn rules<const COUNT: usize>(path: &Path, texts: [Option<String>; COUNT]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(path);
    for text in texts.iter().flatten() {
        for line in text.trim_start_matches('\u{FEFF}').lines() {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

fn exclude_file(dir: &OwnedFd) -> Option<String> {
    let git = open_directory(dir, OsStr::new(".git")).ok()?;
    let info = open_directory(git, OsStr::new("info")).ok()?;
    text(info, "exclude")
}

fn text(dir: impl AsFd, name: &str) -> Option<String> {
    let (file, stat) = open_regular(dir, OsStr::new(name)).ok()?;
    if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    File::take(file, BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
