//! What the service manager is told, on `$NOTIFY_SOCKET` (sd_notify(3)).

use sd_notify::NotifyState;

/// Clients can connect.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is about to be read again. `Type=notify-reload` waits for [`reloaded`] after it, and takes the
/// answer by its time: one that was on its way before the signal does not count.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the clock cannot be read; systemd is not told of the reload"),
    }
}

/// The configuration was read, or the old one stays; `status` says which.
pub fn reloaded(status: &str) {
    // A message is a line each: what follows a line feed would be another message.
    let status = status.replace('\n', " ");
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The daemon is going away.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// The daemon is alive.
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not told");
    }
}
