//! Whether and when the same request is sent again. Pure.
//!
//! The first waits are those of the official SDKs: half a second, doubled up to 8 s, a quarter of it random, and the
//! server's own wish before all that. Beyond them failures differ: what time heals (overload, rate limits, a lost
//! network) is tried for a day, since a parked turn costs nothing; what fails for a reason of its own ends soon.

use std::time::Duration;

use super::error::{ErrorKind, ModelError};

/// The first wait.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait between the tries of a failure that is expected to be short (the SDKs' limit).
const SHORT_WAIT_MAX: Duration = Duration::from_secs(8);

/// The longest wait between the tries of a failure that may last: often enough to go on soon after it is over, rarely
/// enough to cost nothing.
const LONG_WAIT_MAX: Duration = Duration::from_secs(300);

/// The longest wait that a server may ask for: a day, beyond which no one waits for a turn.
const SERVER_WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Retries of what time heals: with [`LONG_WAIT_MAX`] between them, about a day.
const PATIENT_RETRIES: u32 = 290;

/// Retries of failures of the server or the stream: about a minute, as other agents do.
const SHORT_RETRIES: u32 = 10;

/// Retries where nothing listens or the answer is nonsense: 7.5 s, enough for a server that restarts, short enough for a
/// wrong URL to be told soon.
const FEW_RETRIES: u32 = 4;

/// The share of a wait that is random, so that clients that failed together do not come back together.
const RANDOM_SHARE: f64 = 0.25;

/// When to send the request again: after how long, or never.
///
/// `attempt` is the try that failed, from 1; `random` is in 0..1.
#[must_use]
pub fn next_try(error: &ModelError, attempt: u32, random: f64) -> Option<Duration> {
    let (retries, longest) = match (patience(&error.kind), error.should_retry) {
        (_, Some(false)) | (None, None) => return None,
        (Some(patience), Some(true) | None) => patience,
        (None, Some(true)) => (SHORT_RETRIES, SHORT_WAIT_MAX),
    };
    if attempt > retries {
        return None;
    }
    if let Some(wish) = error.retry_after {
        return Some(wish.min(SERVER_WAIT_MAX));
    }
    let doublings = attempt.saturating_sub(1).min(20);
    let wait = (FIRST_WAIT * (1 << doublings)).min(longest);
    Some(wait.mul_f64(1.0 - RANDOM_SHARE * random.clamp(0.0, 1.0)))
}

/// How often to try again, and how long to wait at most; `None` where a retry cannot help.
fn patience(kind: &ErrorKind) -> Option<(u32, Duration)> {
    match kind {
        ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Network(_) => {
            Some((PATIENT_RETRIES, LONG_WAIT_MAX))
        }
        ErrorKind::Conflict | ErrorKind::Server | ErrorKind::Timeout | ErrorKind::Cut | ErrorKind::Idle(_) => {
            Some((SHORT_RETRIES, SHORT_WAIT_MAX))
        }
        ErrorKind::Refused(_) | ErrorKind::Protocol(_) => Some((FEW_RETRIES, SHORT_WAIT_MAX)),
        ErrorKind::NoKey
        | ErrorKind::Authentication
        | ErrorKind::Billing
        | ErrorKind::Permission
        | ErrorKind::NotFound
        | ErrorKind::InvalidRequest
        | ErrorKind::PromptTooLong
        | ErrorKind::SignatureInvalid
        | ErrorKind::TooLarge
        | ErrorKind::SpendLimit
        | ErrorKind::Certificate(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Target;
    use super::*;

    fn error(kind: ErrorKind) -> ModelError {
        ModelError::new(kind, Target::default())
    }

    fn waits(error: &ModelError) -> Vec<Duration> {
        (1..).map_while(|attempt| next_try(error, attempt, 0.0)).collect()
    }

    #[test]
    fn waits_double_up_to_their_limit() {
        let millis: Vec<u128> = waits(&error(ErrorKind::Server)).iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [500, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000, 8000]);
    }

    #[test]
    fn a_quarter_of_a_wait_is_random() {
        let wait = |random| next_try(&error(ErrorKind::Server), 2, random).unwrap();
        assert_eq!(wait(0.0), Duration::from_millis(1000));
        assert_eq!(wait(1.0), Duration::from_millis(750));
    }

    #[test]
    fn overload_rate_limits_and_lost_networks_are_waited_out_for_a_day() {
        for kind in [ErrorKind::Overloaded, ErrorKind::RateLimited, ErrorKind::Network("reset".to_owned())] {
            let all: Duration = waits(&error(kind)).iter().sum();
            assert!(all > Duration::from_secs(23 * 3600) && all < Duration::from_secs(25 * 3600), "{all:?}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_told_within_seconds() {
        let all: Duration = waits(&error(ErrorKind::Refused("refused".to_owned()))).iter().sum();
        assert_eq!(all, Duration::from_millis(7500));
    }

    #[test]
    fn what_a_retry_cannot_heal_is_not_retried() {
        for kind in [
            ErrorKind::NoKey,
            ErrorKind::Authentication,
            ErrorKind::Billing,
            ErrorKind::Permission,
            ErrorKind::NotFound,
            ErrorKind::InvalidRequest,
            ErrorKind::PromptTooLong,
            ErrorKind::SignatureInvalid,
            ErrorKind::TooLarge,
            ErrorKind::SpendLimit,
            ErrorKind::Certificate("unknown issuer".to_owned()),
        ] {
            assert_eq!(next_try(&error(kind.clone()), 1, 0.5), None, "{kind:?}");
        }
    }

    #[test]
    fn the_servers_wish_comes_first() {
        let mut limited = error(ErrorKind::RateLimited);
        limited.retry_after = Some(Duration::from_secs(1800));
        assert_eq!(next_try(&limited, 1, 0.9), Some(Duration::from_secs(1800)));
        limited.retry_after = Some(Duration::from_secs(10_000_000));
        assert_eq!(next_try(&limited, 1, 0.9), Some(SERVER_WAIT_MAX));
        limited.should_retry = Some(false);
        assert_eq!(next_try(&limited, 1, 0.9), None);
        let mut invalid = error(ErrorKind::InvalidRequest);
        invalid.should_retry = Some(true);
        assert_eq!(waits(&invalid).len(), 10);
    }
}
