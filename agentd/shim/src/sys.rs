//! The few system calls that need `unsafe`, each behind a safe face.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{ForkResult, Pid, fork, setsid};

/// Bytes waiting in a pipe.
pub(crate) fn bytes_waiting(pipe: BorrowedFd<'_>) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one c_int to the pointer, which outlives the call.
    let result = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(usize::try_from(count).unwrap_or(0)) }
}

/// Makes a pipe hold more, so that a fast writer is woken less often. Failure only costs speed.
pub(crate) fn widen_pipe(pipe: BorrowedFd<'_>, bytes: libc::c_int) {
    // SAFETY: F_SETPIPE_SZ takes an int and touches no memory of ours.
    let _ = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

/// Closes every descriptor but the standard ones: what a careless parent left open must not reach the shell.
pub(crate) fn close_inherited() {
    // SAFETY: called first of all, before this process has opened anything, so no owned descriptor is closed.
    let _ = unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
}

/// Leaves the caller's session and process tree: the original process returns the child's exit through `None`, the new
/// one goes on with `Some`.
///
/// Must be called while the process has one thread.
pub(crate) fn detach() -> io::Result<Option<Pid>> {
    // SAFETY: the process is single-threaded here (no runtime, no library thread has been started), so the child may
    // use the heap and everything else as before.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => return Ok(Some(child)),
        ForkResult::Child => {}
    }
    setsid()?;
    Ok(None)
}

/// Has ends of children told: where their signal is ignored, which survives exec, the kernel reaps them unseen.
pub(crate) fn hear_of_children() -> io::Result<()> {
    // SAFETY: setting a default action installs no handler.
    unsafe { nix::sys::signal::signal(Signal::SIGCHLD, nix::sys::signal::SigHandler::SigDfl) }?;
    Ok(())
}

/// What a child does between fork and exec: an own session, default signals, death with the shim, and orphans that stay
/// below it.
pub(crate) fn prepare_child(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    let prepare = || {
        setsid()?;
        SigSet::empty().thread_set_mask()?;
        for signal in
            [Signal::SIGPIPE, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGTERM, Signal::SIGCHLD]
        {
            // SAFETY: setting a default action is async-signal-safe and installs no handler.
            unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) }?;
        }
        nix::sys::prctl::set_pdeathsig(Some(Signal::SIGKILL))?;
        nix::sys::prctl::set_child_subreaper(true)?;
        Ok(())
    };
    // SAFETY: the closure makes only async-signal-safe system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}
