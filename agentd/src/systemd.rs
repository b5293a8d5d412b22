//! What systemd is told and gives: readiness, status, and the socket it holds for us. Without systemd all of it is a
//! no-op.

use std::os::unix::net::UnixListener;

use sd_notify::NotifyState;

/// The socket that systemd listens on for us, if it does (`LISTEN_FDS` with our own `LISTEN_PID`).
///
/// # Errors
/// When the descriptor is not a Unix stream socket.
pub fn socket() -> std::io::Result<Option<UnixListener>> {
    listenfd::ListenFd::from_env().take_unix_listener(0)
}

/// Clients can connect.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is being read again, or was.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// The daemon is going away.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not told");
    }
}
