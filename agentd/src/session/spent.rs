//! What all sessions spent today, in memory: read from the store when the daemon starts, brought up to date with each reply.

use std::sync::{Mutex, PoisonError};

use proto::ids::Timestamp;

use crate::store::entry::Entry;
use crate::store::{Store, StoreError};

/// The day's sum.
#[derive(Debug, Default)]
pub struct Spent(Mutex<Day>);

#[derive(Debug, Default)]
struct Day {
    /// Since 1970, UTC.
    day: u64,
    nanousd: u64,
}

impl Spent {
    /// Reads the day's sum.
    ///
    /// # Errors
    /// What the store says.
    pub async fn load(&self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        let rows = store.usage(now.day(), None).await?;
        let nanousd = rows.iter().filter_map(|row| row.usage.cost_nanousd).sum();
        *self.lock() = Day { day: now.day(), nanousd };
        Ok(())
    }

    /// Billionths of a dollar.
    pub(super) fn today(&self, now: Timestamp) -> u64 {
        let day = self.lock();
        if day.day == now.day() { day.nanousd } else { 0 }
    }

    /// Takes note of a row that is on disk.
    pub(super) fn add(&self, at: Timestamp, entry: &Entry) {
        let Some(cost) = entry.usage().and_then(|usage| usage.cost_nanousd) else { return };
        let mut day = self.lock();
        if day.day != at.day() {
            *day = Day { day: at.day(), nanousd: 0 };
        }
        day.nanousd = day.nanousd.saturating_add(cost);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Day> {
        // Numbers only: whatever panicked elsewhere left them usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
