//! Signals → what they mean. TERM and INT stop the daemon (commands go on in their shims), HUP reads the configuration
//! again.

use futures_util::StreamExt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook_tokio::Signals;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Stop.
    Stop,
    /// Read the configuration again.
    Reload,
}

/// The signals this daemon answers.
pub struct Listener(Signals);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("signals::Listener")
    }
}

impl Listener {
    /// Takes the signals over.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> std::io::Result<Self> {
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map(Self)
    }

    /// The next one. Cancel-safe.
    pub async fn next(&mut self) -> Asked {
        match self.0.next().await {
            Some(SIGHUP) => Asked::Reload,
            Some(_) | None => Asked::Stop,
        }
    }
}
