//! What systemd gives and is told: the socket it holds for us, readiness, reload, watchdog; and what kind of stop this is.
//! Without systemd all of it is a no-op.
//!
//! [`notify`](mod@notify) speaks to the manager's socket, [`watchdog`] proves that the daemon is alive, [`manager`] asks
//! why we are being stopped, [`place`] knows where in the control groups a process is.

pub mod manager;
pub mod notify;
pub mod place;
pub mod watchdog;

use std::os::unix::net::UnixListener;

/// The socket that systemd listens on for us, if it does (`LISTEN_FDS` with our own `LISTEN_PID`).
///
/// # Errors
/// When the descriptor is not a Unix stream socket.
pub fn socket() -> std::io::Result<Option<UnixListener>> {
    listenfd::ListenFd::from_env().take_unix_listener(0)
}
