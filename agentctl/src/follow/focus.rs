//! Whether the user looks at this terminal: it tells when it gets the focus and loses it, among the keys. Pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::notify::{LONG_MS, When};

/// How terminals tell that they have the focus, and that they lost it.
const GOT: &[u8] = b"\x1b[I";
const LOST: &[u8] = b"\x1b[O";

/// What is known of the user's attention.
#[derive(Debug)]
pub(super) struct Focus {
    /// As last told; `None`: never.
    has: Option<bool>,
    /// When the user last did something here.
    active_at: Instant,
}

impl Focus {
    /// Nothing was told yet, and somebody has just started us.
    pub(super) fn new(now: Instant) -> Self {
        Self { has: None, active_at: now }
    }

    /// Takes what the terminal tells out of the keys.
    pub(super) fn take(&mut self, keys: &[u8], now: Instant) -> Vec<u8> {
        let mut rest = Vec::with_capacity(keys.len());
        let mut left = keys;
        while let Some(&first) = left.first() {
            if left.starts_with(GOT) {
                (self.has, self.active_at) = (Some(true), now);
                left = &left[GOT.len()..];
            } else if left.starts_with(LOST) {
                self.has = Some(false);
                left = &left[LOST.len()..];
            } else {
                self.active_at = now;
                rest.push(first);
                left = &left[1..];
            }
        }
        rest
    }

    /// Whether the user is to be told.
    pub(super) fn tells(&self, when: When, now: Instant) -> bool {
        match (when, self.has) {
            (When::Always, _) => true,
            (When::Away, Some(has)) => !has,
            (When::Away, None) => now.duration_since(self.active_at) >= Duration::from_millis(LONG_MS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_focus_is_no_key_and_says_who_looks_elsewhere() {
        let now = Instant::now();
        let mut focus = Focus::new(now);
        assert!(!focus.tells(When::Away, now) && focus.tells(When::Always, now));
        assert!(focus.tells(When::Away, now + Duration::from_secs(11)), "nothing was typed for long");
        assert_eq!(focus.take(b"a\x1b[Ob", now), b"ab");
        assert!(focus.tells(When::Away, now), "typed just now, and gone");
        assert_eq!(focus.take(b"\x1b[I", now), b"");
        assert!(!focus.tells(When::Away, now + Duration::from_secs(60)), "looks at it");
        assert_eq!(focus.take(b"\x1b[A", now), b"\x1b[A", "an arrow is a key");
    }
}
