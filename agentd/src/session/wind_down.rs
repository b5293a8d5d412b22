//! Before the shells are ended for good: running commands get their grace, then every turn is interrupted, so that none
//! goes on by itself when the daemon is started again.

use std::time::Duration;

use proto::response::SessionState;
use tokio::time::{Instant, sleep};

use super::SessionHandle;
use super::registry::Registry;

/// Pause between two looks at the sessions: short beside any grace.
const LOOK: Duration = Duration::from_millis(50);

/// How long the interrupts may take after the grace: a command that ignores INT is killed 0.1 s later.
const INTERRUPT_WAIT: Duration = Duration::from_secs(3);

/// Who interrupts, for the log.
const BY: &str = "stop of the service";

impl Registry {
    /// Ends every turn: at once where no command runs, else when its command has ended or `grace` is over.
    pub async fn wind_down(&self, grace: Duration) {
        let grace_end = Instant::now() + grace;
        let end = grace_end + INTERRUPT_WAIT;
        loop {
            let mut busy = false;
            for handle in self.all_running().await {
                busy |= wind_down_one(&handle, Instant::now() >= grace_end).await;
            }
            if !busy || Instant::now() >= end {
                return;
            }
            sleep(LOOK).await;
        }
    }
}

/// Returns whether the session is still at work.
async fn wind_down_one(handle: &SessionHandle, grace_is_over: bool) -> bool {
    // One that is going away is at no work.
    let Ok(info) = handle.info().await else { return false };
    match info.state {
        // A parked turn is on disk with the time of its next try: the next daemon goes on with it.
        SessionState::Idle | SessionState::Parked => false,
        SessionState::Running if !grace_is_over => true,
        SessionState::Stopping => true,
        SessionState::Running | SessionState::Thinking | SessionState::Asking | SessionState::Waiting => {
            if let Err(error) = handle.interrupt(BY.to_owned()).await {
                tracing::warn!(session = %handle.id(), %error, "the turn cannot be interrupted");
            }
            true
        }
    }
}
