//! What this session knows of files: how each was when it was last viewed or written here.
//!
//! Held in memory alone: after a restart nothing counts as viewed. Snapshots are bounded; without one a change is still
//! noticed, only not shown.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::stat::FileStat;
use proto::shim::files::Digest;

use super::history::digest;
use super::write::same_content;

/// The largest content that is kept to show later what changed.
const SNAPSHOT_BYTES_MAX: usize = 512 * 1024;

/// All snapshots together; the oldest go first.
const SNAPSHOTS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Files remembered; the oldest go first. A session that touches more has long left the first ones behind.
const FILES_MAX: usize = 10_000;

/// Files as they were last seen, by their path without links.
#[derive(Debug, Default)]
pub(super) struct Seen {
    files: HashMap<PathBuf, Sight>,
    clock: u64,
}

#[derive(Debug)]
struct Sight {
    stat: FileStat,
    digest: Option<Digest>,
    snapshot: Option<Arc<[u8]>>,
    viewed: bool,
    at: u64,
}

/// How a file compares with what was seen of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// It was never seen here.
    None,
    /// It is as it was seen; `viewed`: the model was shown it, not only the result of its own writing.
    Fresh { viewed: bool },
    /// It changed since; with the content that was seen, if that was kept.
    Stale { seen: Option<Arc<[u8]>> },
}

impl Seen {
    /// The model was shown the file; `bytes` when all of it was read.
    pub(super) fn viewed(&mut self, path: &Path, stat: &FileStat, bytes: Option<&[u8]>) {
        self.remember(path, stat, bytes, true);
    }

    /// The session wrote the file. Who had viewed it knows it still.
    pub(super) fn wrote(&mut self, path: &Path, stat: &FileStat, bytes: &[u8]) {
        let viewed = self.files.get(path).is_some_and(|sight| sight.viewed);
        self.remember(path, stat, Some(bytes), viewed);
    }

    /// The file is gone.
    pub(super) fn removed(&mut self, path: &Path) {
        self.files.remove(path);
    }

    /// What is known of a file that is now like this.
    pub(super) fn knowledge(&self, path: &Path, stat: &FileStat, now: &Digest) -> Knowledge {
        let Some(sight) = self.files.get(path) else { return Knowledge::None };
        let same = match &sight.digest {
            Some(seen) => seen == now,
            None => same_content(&sight.stat, stat),
        };
        if same { Knowledge::Fresh { viewed: sight.viewed } } else { Knowledge::Stale { seen: sight.snapshot.clone() } }
    }

    /// The content with this digest, if it is what was last seen of the file and was kept.
    pub(super) fn snapshot(&self, path: &Path, content: &Digest) -> Option<Arc<[u8]>> {
        self.files.get(path).filter(|sight| sight.digest.as_ref() == Some(content))?.snapshot.clone()
    }

    fn remember(&mut self, path: &Path, stat: &FileStat, bytes: Option<&[u8]>, viewed: bool) {
        self.clock += 1;
        let snapshot = bytes.filter(|bytes| bytes.len() <= SNAPSHOT_BYTES_MAX).map(Arc::from);
        let sight = Sight { stat: *stat, digest: bytes.map(digest), snapshot, viewed, at: self.clock };
        self.files.insert(path.to_owned(), sight);
        self.trim();
    }

    fn trim(&mut self) {
        if self.files.len() > FILES_MAX {
            let oldest = self.files.iter().min_by_key(|(_, sight)| sight.at).map(|(path, _)| path.clone());
            if let Some(oldest) = oldest {
                self.files.remove(&oldest);
            }
        }
        let size = |sight: &Sight| sight.snapshot.as_ref().map_or(0, |bytes| bytes.len());
        let mut total: usize = self.files.values().map(size).sum();
        while total > SNAPSHOTS_BYTES_MAX {
            let with = self.files.values_mut().filter(|sight| sight.snapshot.is_some());
            let Some(oldest) = with.min_by_key(|sight| sight.at) else { return };
            total -= size(oldest);
            oldest.snapshot = None;
        }
    }
}
