//! Finding files by name. The last changed come first: they are what the work is about.

use std::path::{Path, PathBuf};

use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;
use proto::shim::files::{Fault, Glob, Looked, Paths, SearchLimit};

use super::search::{At, Start, Stop, bounded, names, plan, shown};
use super::walk::{Item, Visitor, add, walk};

/// Seconds and nanoseconds of the last change of the content.
type Changed = (i64, i64);

pub(super) fn run(wish: &Glob, start: Start, stop: &Stop) -> Result<Paths, Fault> {
    let bounds = bounded(wish.bounds);
    let mut found = Paths { path: start.shown.clone(), ..Paths::default() };
    let (dir, below, above) = match start.at {
        At::Directory { dir, below, above } => (dir, below, above),
        At::File { name, .. } => {
            let matches = !names(Path::new(""), Some(&wish.pattern))?.matched(&name, false).is_ignore();
            found.looked.files = 1;
            found.total = u64::from(matches);
            found.paths.extend(matches.then_some(start.shown));
            return Ok(found);
        }
    };
    let base = below.clone();
    let keep = usize::try_from(bounds.results).unwrap_or(usize::MAX);
    let plan = plan(dir, below, above, Some(&wish.pattern), wish.all)?;
    let make = || Names { keep, found: Vec::new(), total: 0, looked: Looked::default() };
    let (visitors, looked, limits) = walk(plan, stop, make);
    found.looked = looked;
    found.limits = limits;
    let mut all = Vec::new();
    for visitor in visitors {
        add(&mut found.looked, &visitor.looked);
        found.total += visitor.total;
        all.extend(visitor.found);
    }
    sort(&mut all);
    let mut bytes = 0;
    for (_, path) in all {
        let path = shown(&start.shown, path.strip_prefix(&base).unwrap_or(&path));
        bytes += path.len() as u64;
        if found.paths.len() == keep {
            found.limits.push(SearchLimit::Results { most: bounds.results });
            break;
        }
        if bytes > bounds.bytes {
            found.limits.push(SearchLimit::Bytes { most: bounds.bytes });
            break;
        }
        found.paths.push(path);
    }
    found.limits.extend(stop.limit());
    Ok(found)
}

/// The last changed first; by name where that is the same.
fn sort(found: &mut [(Changed, PathBuf)]) {
    found.sort_by(|(a_changed, a), (b_changed, b)| b_changed.cmp(a_changed).then_with(|| a.cmp(b)));
}

struct Names {
    keep: usize,
    found: Vec<(Changed, PathBuf)>,
    total: u64,
    looked: Looked,
}

impl Visitor for Names {
    fn visit(&mut self, item: &Item<'_>) {
        self.looked.files += 1;
        let Ok(stat) = fstatat(item.dir, item.name, AtFlags::AT_SYMLINK_NOFOLLOW) else { return };
        self.total += 1;
        self.found.push(((stat.st_mtime, stat.st_mtime_nsec), item.below.join(item.name)));
        // One more than is wanted shows that something is left out.
        if self.found.len() > 2 * self.keep + 1000 {
            sort(&mut self.found);
            self.found.truncate(self.keep + 1);
        }
    }
}
