//! Waiting: with a deadline always, by polling only where nothing announces the change.

use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for something that should happen at once: the machine may be shared by many builds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Time between two looks: short against anything a test measures, long against the cost of a look at `/proc`.
const LOOK: Duration = Duration::from_millis(10);

/// Looks until `probe` has a value.
///
/// # Panics
/// When it has none by the deadline; the message names `what`.
pub fn until<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    until_within(what, PATIENCE, probe)
}

/// As [`until`], with a deadline of its own.
///
/// # Panics
/// When there is no value by the deadline.
pub fn until_within<T>(what: &str, patience: Duration, probe: impl FnMut() -> Option<T>) -> T {
    within(patience, probe).unwrap_or_else(|| panic!("waited {patience:?} for {what}"))
}

/// Looks until `probe` has a value or the time is up.
pub fn within<T>(patience: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + patience;
    loop {
        if let Some(value) = probe() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_comes_later_is_found_and_one_that_never_comes_is_not_waited_for_for_ever() {
        let mut looks = 0;
        let found = within(PATIENCE, || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, Some(3));
        assert_eq!(within(Duration::from_millis(30), || None::<()>), None);
    }
}
