//! Signals → what they mean. TERM and INT stop the daemon (commands go on in their shims), HUP reads the configuration
//! again. XFSZ is only kept from ending the daemon: a write beyond a limit then fails like one on a full disk.

use std::sync::Arc;

use futures_util::StreamExt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
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

/// What a file that may not grow does is nothing; the write that was refused tells.
fn outlive_file_limits() -> std::io::Result<()> {
    // A handler, since an ignored signal would be ignored by every command of the shells, too.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}

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
        outlive_file_limits()?;
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
