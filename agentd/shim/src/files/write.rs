//! The write: all or nothing.
//!
//! New bytes go to a temporary file beside the target, reach the disk, and take the target's name in one rename. A
//! replaced file keeps owner, mode and attributes; a new file never takes a name that came into being meanwhile.
//!
//! Invariant: at every moment the target's name stands for the old bytes or the new ones, and a failure leaves neither
//! a temporary file nor a directory made on the way. What a kill leaves behind is named in the history beforehand and
//! swept at the next start.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, renameat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, fsync, linkat, unlinkat};
use proto::shim::files::{Action, Fault};

use super::attributes;
use super::path::{Inode, Place, fault, io_fault, kind_of, open_directory, open_step};

/// What takes the place of what.
pub(super) struct Replacement<'a> {
    /// The file that is there, open.
    pub(super) file: &'a File,
    /// What it was when it was read.
    pub(super) stat: &'a FileStat,
    /// The mode afterwards.
    pub(super) mode: u32,
}

/// Whether the file may be written to. The rename alone would not ask: it needs the directory only.
pub(super) fn check_writable(place: &Place) -> Result<(), Fault> {
    faccessat(&place.dir, place.name.as_os_str(), AccessFlags::W_OK, AtFlags::AT_EACCESS)
        .map_err(|errno| fault(errno, Action::Write))
}

/// Replaces the file at a place.
pub(super) fn replace(place: &Place, old: &Replacement<'_>, bytes: &[u8], temp: &OsStr) -> Result<FileStat, Fault> {
    let scratch = Scratch::make(place.dir.as_fd(), temp, Mode::S_IRUSR | Mode::S_IWUSR)?;
    scratch.fill(bytes)?;
    attributes::copy(old.file, old.stat, &scratch.file, old.mode)?;
    let stat = scratch.settle()?;
    let now = fstatat(&place.dir, place.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
        .map_err(|errno| fault(errno, Action::Write))?;
    if !same_content(&now, old.stat) {
        return Err(Fault::ChangedSincePreview {});
    }
    renameat(&place.dir, temp, &place.dir, place.name.as_os_str()).map_err(|errno| fault(errno, Action::Write))?;
    scratch.keep();
    sync_directory(&place.dir, OsStr::new("."));
    Ok(stat)
}

/// Makes a file where there is none, and the directories that lead to it. `mode` is for a file that comes back; a new
/// one gets what the umask and the directory's defaults say.
pub(super) fn create(place: &Place, mode: Option<u32>, bytes: &[u8], temp: &OsStr) -> Result<FileStat, Fault> {
    let parents = Parents::make(place)?;
    let scratch = Scratch::make(parents.last().as_fd(), temp, Mode::from_bits_truncate(0o666))?;
    scratch.fill(bytes)?;
    if let Some(mode) = mode {
        attributes::set_mode(&scratch.file, mode)?;
    }
    let stat = scratch.settle()?;
    rename_new(parents.last(), temp, &place.name)?;
    scratch.keep();
    parents.keep();
    Ok(stat)
}

/// Removes the file at a place.
pub(super) fn remove(place: &Place) -> Result<(), Fault> {
    unlinkat(&place.dir, place.name.as_os_str(), UnlinkatFlags::NoRemoveDir)
        .map_err(|errno| fault(errno, Action::Write))?;
    sync_directory(&place.dir, OsStr::new("."));
    Ok(())
}

/// The name of the temporary file of an edit: short, so that the longest file name has room beside it, and unlike any
/// other name, so that a sweep never takes somebody's file.
pub(super) fn temp_name(number: u64) -> OsString {
    OsString::from(format!(".agentd-{number}-{}", uuid::Uuid::new_v4().simple()))
}

/// Removes a temporary file that a kill left behind.
pub(super) fn sweep(dir: &OwnedFd, temp: &OsStr) {
    // Mostly it is not there; and what cannot be removed now cannot be removed.
    let _ = unlinkat(dir, temp, UnlinkatFlags::NoRemoveDir);
}

/// Removes a directory if it is empty.
pub(super) fn remove_directory(place: &Place) {
    // Not empty: somebody uses it by now.
    let _ = unlinkat(&place.dir, place.name.as_os_str(), UnlinkatFlags::RemoveDir);
}

/// Whether two looks at a name saw the same file with the same content, as far as the system tells.
pub(super) fn same_content(a: &FileStat, b: &FileStat) -> bool {
    Inode::of(a) == Inode::of(b)
        && a.st_size == b.st_size
        && (a.st_mtime, a.st_mtime_nsec) == (b.st_mtime, b.st_mtime_nsec)
        && (a.st_ctime, a.st_ctime_nsec) == (b.st_ctime, b.st_ctime_nsec)
}

/// A temporary file; removed when dropped unless it was renamed into place.
struct Scratch<'a> {
    dir: BorrowedFd<'a>,
    name: &'a OsStr,
    file: File,
    kept: Cell<bool>,
}

impl<'a> Scratch<'a> {
    fn make(dir: BorrowedFd<'a>, name: &'a OsStr, mode: Mode) -> Result<Self, Fault> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(dir, name, flags, mode).map_err(|errno| fault(errno, Action::Write))?;
        Ok(Self { dir, name, file: File::from(file), kept: Cell::new(false) })
    }

    fn fill(&self, bytes: &[u8]) -> Result<(), Fault> {
        (&self.file).write_all(bytes).map_err(|error| io_fault(&error, Action::Write))
    }

    /// Brings it to the disk.
    fn settle(&self) -> Result<FileStat, Fault> {
        fsync(&self.file).map_err(|errno| fault(errno, Action::Write))?;
        fstat(&self.file).map_err(|errno| fault(errno, Action::Write))
    }

    fn keep(&self) {
        self.kept.set(true);
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if !self.kept.get() {
            // A failure here changes nothing for the caller; the history names the file for the sweep at the start.
            let _ = unlinkat(self.dir, self.name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Directories made for a new file; removed when dropped unless the file came to be.
struct Parents<'a> {
    first: &'a OwnedFd,
    made: Vec<(OwnedFd, OsString)>,
    kept: Cell<bool>,
}

impl<'a> Parents<'a> {
    fn make(place: &'a Place) -> Result<Self, Fault> {
        let mut parents = Self { first: &place.dir, made: Vec::new(), kept: Cell::new(false) };
        for name in &place.missing {
            let dir = parents.last();
            mkdirat(dir, name.as_os_str(), Mode::from_bits_truncate(0o777)).map_err(|errno| match errno {
                Errno::EEXIST => Fault::ChangedSincePreview {},
                other => fault(other, Action::Write),
            })?;
            // A directory that was swapped away at once is not ours to remove.
            let opened = open_step(dir, name).map_err(|errno| fault(errno, Action::Write))?;
            let stat = fstat(&opened).map_err(|errno| fault(errno, Action::Write))?;
            if kind_of(&stat) != SFlag::S_IFDIR {
                return Err(Fault::ChangedSincePreview {});
            }
            parents.made.push((opened, name.clone()));
        }
        Ok(parents)
    }

    fn last(&self) -> &OwnedFd {
        self.made.last().map_or(self.first, |(dir, _)| dir)
    }

    fn keep(&self) {
        self.kept.set(true);
        sync_directory(self.last(), OsStr::new("."));
        for index in 0..self.made.len() {
            let above = if index == 0 { self.first } else { &self.made[index - 1].0 };
            sync_directory(above, OsStr::new("."));
        }
    }
}

impl Drop for Parents<'_> {
    fn drop(&mut self) {
        if self.kept.get() {
            return;
        }
        while let Some((_, name)) = self.made.pop() {
            // Fails when somebody put something in meanwhile; then it is theirs.
            let _ = unlinkat(self.last(), name.as_os_str(), UnlinkatFlags::RemoveDir);
        }
    }
}

/// Renames only if nothing has the new name.
fn rename_new(dir: &OwnedFd, temp: &OsStr, name: &OsStr) -> Result<(), Fault> {
    let taken = |errno| match errno {
        Errno::EEXIST => Fault::Exists {},
        other => fault(other, Action::Write),
    };
    match renameat2(dir, temp, dir, name, RenameFlags::RENAME_NOREPLACE) {
        // Not every file system knows the flag; a second name for the file has the same promise.
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            linkat(dir, temp, dir, name, AtFlags::empty()).map_err(taken)?;
            let _ = unlinkat(dir, temp, UnlinkatFlags::NoRemoveDir);
            Ok(())
        }
        other => other.map_err(taken),
    }
}

/// Brings a directory's names to the disk. A directory that may be written but not read cannot be synced; the names
/// then reach the disk with the next commit of the file system.
fn sync_directory(dir: impl AsFd, name: &OsStr) {
    if let Ok(dir) = open_directory(dir, name) {
        let _ = fsync(&dir);
    }
}
