//! A gate in a reply: the delivery stands still until the test opens it, so that a test acts in the middle of a reply
//! without timing anything.

use std::sync::Arc;

use tokio::sync::watch;

/// Closed until opened, then open for ever.
#[derive(Clone, Debug)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self { open: Arc::new(watch::Sender::new(false)) }
    }

    /// Opens it.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Returns when it is open.
    pub(super) async fn passed(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
