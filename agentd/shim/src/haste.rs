//! Short commands in a row: while they come, the loop looks again for a moment before it sleeps.
//!
//! To be put to sleep and woken costs more than a short command itself. So when the last command was over within that
//! moment, the loop expects the next event within it too. A command that takes longer costs one such moment and ends
//! the expectation; on one processor there is none, because looking would keep the shell from running.

use std::time::{Duration, Instant};

/// How long the loop looks. A command that forks takes ten times as long, a simple one with its round trip half of it.
const MOMENT: Duration = Duration::from_micros(60);

/// How many expectations are passed over after one that was in vain.
const TIRED: u32 = 16;

/// Whether, and until when, the loop looks again instead of sleeping.
#[derive(Debug)]
pub(crate) struct Haste {
    /// There is another processor for the shell.
    possible: bool,
    expected: bool,
    until: Option<Instant>,
    /// Commands to come for which it does not look, because it looked in vain: the processors are busy.
    tired: u32,
}

impl Haste {
    pub(crate) fn new() -> Self {
        let possible = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Self { possible, expected: false, until: None, tired: 0 }
    }

    /// A command was given to the shell.
    pub(crate) fn began(&mut self, now: Instant) {
        self.expect(now);
    }

    /// A command is over that took this long.
    pub(crate) fn ended(&mut self, took: Duration, now: Instant) {
        self.expected = self.possible && took < MOMENT;
        self.expect(now);
    }

    fn expect(&mut self, now: Instant) {
        self.tired = self.tired.saturating_sub(1);
        self.until = (self.expected && self.tired == 0).then(|| now + MOMENT);
    }

    /// Whether to look again; says no once and for all when the moment is over.
    pub(crate) fn looks(&mut self) -> bool {
        let Some(until) = self.until else { return false };
        let looks = Instant::now() < until;
        if !looks {
            self.until = None;
            self.tired = TIRED;
        }
        looks
    }
}
