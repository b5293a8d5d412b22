//! The watchdog (`WatchdogSec=`): fed only with a proof that the daemon does its work. A daemon that is not fed for that
//! long is aborted and started again; shells and commands do not notice.
//!
//! Costs an idle daemon two wake-ups in each `WatchdogSec`, and nothing where no watchdog is set.

use std::future::Future;
use std::time::Duration;

/// How long the manager waits for a sign of life, if it waits for one.
#[must_use]
pub fn limit() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Feeds the watchdog for as long as it is polled, each time after `proof` was given. Does nothing where there is none.
pub async fn feed<F: Future<Output = ()>>(limit: Option<Duration>, proof: impl Fn() -> F, alive: impl Fn()) {
    let Some(limit) = limit else { return std::future::pending().await };
    // Half of it, as sd_watchdog_enabled(3) asks: one late sign of life is no death.
    let pause = limit / 2;
    loop {
        tokio::time::sleep(pause).await;
        if tokio::time::timeout(pause, proof()).await.is_ok() {
            alive();
        } else {
            tracing::error!(seconds = pause.as_secs(), "the daemon does not answer itself; its watchdog is not fed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(4);

    #[tokio::test(start_paused = true)]
    async fn it_is_fed_twice_in_its_time_while_the_proof_is_given_and_not_once_without() {
        let fed = Cell::new(0);
        let alive = || fed.set(fed.get() + 1);
        let _ = tokio::time::timeout(Duration::from_secs(9), feed(Some(LIMIT), || async {}, alive)).await;
        assert_eq!(fed.get(), 4);
        let never = || std::future::pending::<()>();
        let _ = tokio::time::timeout(Duration::from_secs(99), feed(Some(LIMIT), never, alive)).await;
        let _ = tokio::time::timeout(Duration::from_secs(99), feed(None, || async {}, alive)).await;
        assert_eq!(fed.get(), 4);
    }
}
