//! What a file has beside its bytes and must keep when another file takes its place: owner, mode, extended attributes
//! (access control lists among them).
//!
//! One of the few files with `unsafe`: nix has no calls for extended attributes.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::stat::{FileStat, Mode, fchmod, fstat};
use nix::unistd::{Gid, Uid, fchown};
use proto::shim::files::{Action, Fault};

use super::path::fault;

/// The permission bits of a mode, set-ID bits included.
pub(super) fn permissions(stat: &FileStat) -> u32 {
    stat.st_mode & 0o7777
}

/// Gives `to` the owner, the extended attributes and then the mode of the file behind `from`.
pub(super) fn copy(from: &File, stat: &FileStat, to: &File, mode: u32) -> Result<(), Fault> {
    let now = fstat(to).map_err(|errno| fault(errno, Action::Write))?;
    if (now.st_uid, now.st_gid) != (stat.st_uid, stat.st_gid) {
        let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        fchown(to, Some(owner), Some(group)).map_err(|errno| match errno {
            Errno::EPERM | Errno::EINVAL => Fault::OwnerNotKept {},
            other => fault(other, Action::Write),
        })?;
    }
    copy_extended(from, to)?;
    // Last, because a change of owner takes the set-ID bits away.
    set_mode(to, mode)
}

/// Sets the permission bits.
pub(super) fn set_mode(file: &File, mode: u32) -> Result<(), Fault> {
    fchmod(file, Mode::from_bits_truncate(mode)).map_err(|errno| fault(errno, Action::Write))
}

fn copy_extended(from: &File, to: &File) -> Result<(), Fault> {
    let wanted = list(from)?;
    for name in list(to)?.iter().filter(|name| !wanted.contains(name)) {
        // A default list of the directory gave the new file an entry that the old one does not have.
        remove(to, name)?;
    }
    for name in &wanted {
        let Some(value) = get(from, name)? else { continue };
        match set(to, name, &value) {
            Ok(()) => {}
            // Labels of the system's own (SELinux, file capabilities) are not always ours to set; the system has
            // then given the new file what its rules say.
            Err(_) if name.to_bytes().starts_with(b"security.") => {}
            Err(errno) => return Err(fault(errno, Action::Write)),
        }
    }
    Ok(())
}

fn list(file: &File) -> Result<Vec<CString>, Fault> {
    let bytes = sized(|buffer, size| {
        // SAFETY: `buffer` has room for `size` bytes, or `size` is 0 and it is not written to.
        unsafe { libc::flistxattr(file.as_raw_fd(), buffer.cast(), size) }
    });
    match bytes {
        Ok(bytes) => Ok(bytes
            .split_inclusive(|byte| *byte == 0)
            .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
            .map(CStr::to_owned)
            .collect()),
        Err(Errno::ENOTSUP) => Ok(Vec::new()),
        Err(errno) => Err(fault(errno, Action::Read)),
    }
}

fn get(file: &File, name: &CStr) -> Result<Option<Vec<u8>>, Fault> {
    let value = sized(|buffer, size| {
        // SAFETY: `name` ends in NUL; `buffer` has room for `size` bytes, or `size` is 0 and it is not written to.
        unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), buffer.cast(), size) }
    });
    match value {
        Ok(value) => Ok(Some(value)),
        // Gone since it was listed, or not ours to read.
        Err(Errno::ENODATA | Errno::ENOTSUP) => Ok(None),
        Err(errno) => Err(fault(errno, Action::Read)),
    }
}

fn set(file: &File, name: &CStr, value: &[u8]) -> nix::Result<()> {
    // SAFETY: `name` ends in NUL and `value` is readable for its length.
    let done = unsafe { libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    Errno::result(done).map(drop)
}

fn remove(file: &File, name: &CStr) -> Result<(), Fault> {
    if name.to_bytes().starts_with(b"security.") {
        return Ok(());
    }
    // SAFETY: `name` ends in NUL.
    let done = unsafe { libc::fremovexattr(file.as_raw_fd(), name.as_ptr()) };
    match Errno::result(done) {
        Ok(_) | Err(Errno::ENODATA) => Ok(()),
        Err(errno) => Err(fault(errno, Action::Write)),
    }
}

/// Asks for the size, then for the value; once more when it grew in between.
fn sized(call: impl Fn(*mut u8, usize) -> isize) -> nix::Result<Vec<u8>> {
    loop {
        let size = Errno::result(call(std::ptr::null_mut(), 0))?;
        let mut buffer = vec![0_u8; usize::try_from(size).unwrap_or(0)];
        if buffer.is_empty() {
            return Ok(buffer);
        }
        match Errno::result(call(buffer.as_mut_ptr(), buffer.len())) {
            Ok(filled) => {
                buffer.truncate(usize::try_from(filled).unwrap_or(0));
                return Ok(buffer);
            }
            Err(Errno::ERANGE) => {}
            Err(errno) => return Err(errno),
        }
    }
}
