//! The watchdog (`WatchdogSec=`): fed only with a proof that the daemon does its work. A daemon that is not fed for that
//! long is aborted and started again; shells and commands do not notice.
//!
//! Costs an idle daemon two wake-ups in each `WatchdogSec`, and nothing where no watchdog is set.

use std::future::Future;
use std::time::Duration;

use super::notify;

/// How long the manager waits for a sign of life, if it waits for one.
#[must_use]
pub fn limit() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Feeds the watchdog for as long as it is polled, each time after `proof` was given. Returns at once, for ever silent,
/// where there is none to feed.
pub async fn feed<F: Future<Output = ()>>(limit: Option<Duration>, proof: impl Fn() -> F) {
    let Some(limit) = limit else { return std::future::pending().await };
    // Half of it, as sd_watchdog_enabled(3) asks: one late sign of life is no death.
    let pause = limit / 2;
    loop {
        tokio::time::sleep(pause).await;
        if tokio::time::timeout(pause, proof()).await.is_ok() {
            notify::alive();
        } else {
            tracing::error!(seconds = pause.as_secs(), "the daemon does not answer itself; its watchdog is not fed");
        }
    }
}
