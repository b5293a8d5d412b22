//! Whether any process was born since the last look, by one short read: the kernel tells the last number it gave.
//!
//! A shell that was alone before a command during which no process of the whole machine (of its pid namespace) was born
//! is alone after it; to look for processes that cannot be there would cost more than such a command itself. A process
//! born with a number that root chose for it is not noticed here; it is found with the next command's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};

/// A longer command is looked at whatever the number says: numbers are given anew after some ten thousand births, which
/// take longer than this.
const TRUST: Duration = Duration::from_millis(50);

/// The last look.
#[derive(Debug)]
pub(crate) struct Forks {
    /// None where it is not the kernel itself that answers.
    source: Option<File>,
    last: Option<u32>,
}

impl Forks {
    pub(crate) fn new() -> Self {
        let source = File::open("/proc/loadavg").ok();
        let source = source.filter(|file| fstatfs(file).is_ok_and(|fs| fs.filesystem_type() == PROC_SUPER_MAGIC));
        Self { source, last: None }
    }

    /// Looks; whether surely no process was born since the last time, in a command that took this long.
    pub(crate) fn none_since(&mut self, took: Duration) -> bool {
        let before = std::mem::replace(&mut self.last, self.source.as_ref().and_then(last_born));
        took < TRUST && before.is_some() && before == self.last
    }
}

/// The last number of the line.
fn last_born(source: &File) -> Option<u32> {
    let mut text = [0; 128];
    let count = source.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..count]).ok()?.trim_end().rsplit_once(' ')?.1.parse().ok()
}
