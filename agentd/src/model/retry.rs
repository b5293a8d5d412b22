//! Whether and when the same request is sent again. Pure.
//!
//! The first waits are those of the official SDKs: half a second, doubled up to 8 s, a quarter of it random, and the
//! server's own wish before all that. Beyond them failures differ: what time heals (overload, rate limits, a lost
//! network, a spend limit that somebody raises) parks the turn: it is tried again every few minutes until it works or the
//! user ends it, since a parked turn costs nothing. What fails for a reason of its own ends soon.

use std::time::Duration;

use super::error::{ErrorKind, ModelError};

/// The longest wait that a server may ask for: a day; whoever means longer is asked again then.
const SERVER_WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// From this wait on a turn counts as parked: nobody keeps looking at a terminal for so long.
const PARKED_FROM: Duration = Duration::from_secs(60);

/// Quick tries where nothing listens or the answer is nonsense: 7.5 s, enough for a server that restarts, short enough
/// for a wrong URL to be told soon.
const FEW_TRIES: u32 = 4;

/// The share of a wait that is random, so that clients that failed together do not come back together.
const RANDOM_SHARE: f64 = 0.25;

/// How long to wait, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Before the second try.
    pub first: Duration,
    /// At most between the quick tries.
    pub longest: Duration,
    /// Quick tries after the first one.
    pub tries: u32,
    /// At most between the tries of a parked turn.
    pub parked: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
            tries: 10,
            parked: Duration::from_secs(300),
        }
    }
}

/// When the request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextTry {
    /// After so long.
    pub after: Duration,
    /// The turn is parked until then: clients are told, and need not stay.
    pub parked: bool,
}

/// What a kind of failure is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// Quick tries, then parked.
    Parks,
    /// Parked at once: only somebody's deed heals it.
    ParksAtOnce,
    /// As [`Self::Parks`], with few quick tries: it may be a mistake that the user wants to hear of.
    FewThenParks,
    /// Quick tries, then the end.
    Quick,
    /// Few of them.
    Few,
    /// None.
    None,
}

/// When to send the request again: after how long, or never.
///
/// `attempt` is the try that failed, from 1; `random` is in 0..1.
#[must_use]
pub fn next_try(error: &ModelError, attempt: u32, random: f64, waits: &Waits) -> Option<NextTry> {
    let quick = match (patience(&error.kind), error.should_retry) {
        (Patience::ParksAtOnce, _) | (Patience::Parks | Patience::FewThenParks, Some(false)) => 0,
        (Patience::Parks, Some(true) | None) => waits.tries,
        (Patience::FewThenParks, Some(true) | None) => waits.tries.min(FEW_TRIES),
        (Patience::Quick, Some(true) | None) | (Patience::None, Some(true)) => waits.tries,
        (Patience::Few, Some(true) | None) => waits.tries.min(FEW_TRIES),
        (Patience::Quick | Patience::Few, Some(false)) | (Patience::None, Some(false) | None) => return None,
    };
    let parks = match patience(&error.kind) {
        Patience::Parks | Patience::ParksAtOnce | Patience::FewThenParks => true,
        Patience::Quick | Patience::Few | Patience::None => false,
    };
    let wish = error.retry_after.map(|wish| wish.min(SERVER_WAIT_MAX));
    if attempt <= quick {
        let after = wish.unwrap_or_else(|| jitter(doubled(waits.first, attempt - 1, waits.longest), random));
        return Some(NextTry { after, parked: after >= PARKED_FROM });
    }
    if !parks {
        return None;
    }
    // From the quick waits on, doubled up to the longest: an overload of a minute is not paid with five.
    let own = match patience(&error.kind) {
        Patience::ParksAtOnce => waits.parked,
        Patience::Parks | Patience::FewThenParks | Patience::Quick | Patience::Few | Patience::None => {
            jitter(doubled(waits.longest * 2, attempt - quick - 1, waits.parked), random)
        }
    };
    Some(NextTry { after: wish.map_or(own, |wish| wish.max(own)), parked: true })
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    // 2^20 times any first wait is beyond every longest one.
    first.saturating_mul(1 << times.min(20)).min(longest)
}

fn jitter(wait: Duration, random: f64) -> Duration {
    wait.mul_f64(1.0 - RANDOM_SHARE * random.clamp(0.0, 1.0))
}

fn patience(kind: &ErrorKind) -> Patience {
    match kind {
        ErrorKind::RateLimited
        | ErrorKind::Overloaded
        | ErrorKind::Network(_)
        | ErrorKind::Server
        | ErrorKind::Timeout
        | ErrorKind::Cut
        | ErrorKind::Idle(_) => Patience::Parks,
        ErrorKind::Refused(_) => Patience::FewThenParks,
        ErrorKind::SpendLimit => Patience::ParksAtOnce,
        ErrorKind::Conflict => Patience::Quick,
        ErrorKind::Protocol(_) => Patience::Few,
        ErrorKind::NoKey
        | ErrorKind::Authentication
        | ErrorKind::Billing
        | ErrorKind::Permission
        | ErrorKind::NotFound
        | ErrorKind::InvalidRequest
        | ErrorKind::PromptTooLong
        | ErrorKind::SignatureInvalid
        | ErrorKind::TooLarge
        | ErrorKind::Certificate(_) => Patience::None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Target;
    use super::*;

    fn error(kind: ErrorKind) -> ModelError {
        ModelError::new(kind, Target::default())
    }

    fn next(error: &ModelError, attempt: u32) -> Option<NextTry> {
        next_try(error, attempt, 0.0, &Waits::default())
    }

    fn waits(error: &ModelError) -> Vec<NextTry> {
        (1..=40).map_while(|attempt| next(error, attempt)).collect()
    }

    #[test]
    fn waits_double_up_to_their_limit() {
        let millis: Vec<u128> = waits(&error(ErrorKind::Conflict)).iter().map(|next| next.after.as_millis()).collect();
        assert_eq!(millis, [500, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000, 8000]);
    }

    #[test]
    fn a_quarter_of_a_wait_is_random() {
        let wait = |random| next_try(&error(ErrorKind::Server), 2, random, &Waits::default()).unwrap().after;
        assert_eq!(wait(0.0), Duration::from_millis(1000));
        assert_eq!(wait(1.0), Duration::from_millis(750));
    }

    #[test]
    fn what_time_heals_is_tried_quickly_and_then_parked_for_as_long_as_it_takes() {
        let network = ErrorKind::Network("reset".to_owned());
        for kind in [ErrorKind::Overloaded, ErrorKind::RateLimited, ErrorKind::Server, ErrorKind::Cut, network] {
            let all = waits(&error(kind));
            assert_eq!(all.len(), 40);
            assert!(all[..10].iter().all(|next| !next.parked && next.after <= Duration::from_secs(8)), "{all:?}");
            let parked: Vec<u64> = all[10..].iter().map(|next| next.after.as_secs()).collect();
            assert_eq!(parked[..6], [16, 32, 64, 128, 256, 300]);
            assert!(all[10..].iter().all(|next| next.parked) && parked[6..].iter().all(|secs| *secs == 300));
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_told_within_seconds() {
        let all = waits(&error(ErrorKind::Refused("refused".to_owned())));
        let quick: Duration = all.iter().take_while(|next| !next.parked).map(|next| next.after).sum();
        assert_eq!(quick, Duration::from_millis(7500));
        assert_eq!(all.len(), 40, "and is waited for");
    }

    #[test]
    fn a_spend_limit_parks_at_once() {
        let mut limit = error(ErrorKind::SpendLimit);
        limit.should_retry = Some(false);
        assert_eq!(next(&limit, 1), Some(NextTry { after: Duration::from_secs(300), parked: true }));
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
            ErrorKind::Certificate("unknown issuer".to_owned()),
        ] {
            assert_eq!(next(&error(kind.clone()), 1), None, "{kind:?}");
        }
    }

    #[test]
    fn the_servers_wish_comes_first() {
        let mut limited = error(ErrorKind::RateLimited);
        limited.retry_after = Some(Duration::from_secs(1800));
        assert_eq!(next(&limited, 1), Some(NextTry { after: Duration::from_secs(1800), parked: true }));
        limited.retry_after = Some(Duration::from_secs(10_000_000));
        assert_eq!(next(&limited, 1).unwrap().after, SERVER_WAIT_MAX);
        limited.retry_after = Some(Duration::from_secs(1));
        assert_eq!(next(&limited, 1), Some(NextTry { after: Duration::from_secs(1), parked: false }));
        assert_eq!(next(&limited, 30).unwrap().after.as_secs(), 300, "a second's wish is not followed for days");
        limited.should_retry = Some(false);
        assert!(next(&limited, 1).unwrap().parked, "not soon, then");
        let mut invalid = error(ErrorKind::InvalidRequest);
        invalid.should_retry = Some(true);
        assert_eq!(waits(&invalid).len(), 10);
        let mut conflict = error(ErrorKind::Conflict);
        conflict.should_retry = Some(false);
        assert_eq!(next(&conflict, 1), None);
    }
}
