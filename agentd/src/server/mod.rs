//! Clients: the socket, who may connect, frames, requests, subscriptions.
//!
//! [`listener`] makes or takes over the socket; [`peer`] decides who may connect; `connection` runs one client;
//! `dispatch` turns requests into session calls; `subscription` pumps one session's rows to one client; [`convert`] is
//! the only place that knows both the log's words and the wire's.
//!
//! Invariant: a client that does not read, or sends nonsense, costs nobody else anything.

mod connection;
pub mod convert;
mod dispatch;
mod jobs;
pub mod listener;
mod model_wishes;
pub mod peer;
mod subscription;
mod wire_io;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proto::ids::Timestamp;
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::session::registry::Registry;
use crate::successor::Successor;

/// Pause after a failed `accept` (out of descriptors): long enough not to spin, short enough not to be felt.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What every connection shares.
#[derive(Debug)]
pub struct Server {
    /// The sessions.
    pub registry: Registry,
    /// When the daemon started.
    pub started_at: Timestamp,
    /// Files the configuration came from.
    pub config_files: watch::Receiver<ConfigState>,
    /// Asks the daemon to stop.
    pub stop: CancellationToken,
    /// Whether the stop ends the shells too.
    pub stop_shells: std::sync::atomic::AtomicBool,
    /// Whether the stop is a restart in place.
    pub restart: std::sync::atomic::AtomicBool,
    /// The program that a restart in place starts.
    pub successor: Successor,
    clients: AtomicU32,
}

/// What `status` says of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfigState {
    /// Files that were read.
    pub files: Vec<String>,
    /// Things a person should know.
    pub warnings: Vec<String>,
}

impl Server {
    /// Puts the shared parts together.
    #[must_use]
    pub fn new(
        registry: Registry,
        config: watch::Receiver<ConfigState>,
        stop: CancellationToken,
        successor: Successor,
    ) -> Self {
        Self {
            registry,
            started_at: Timestamp::now(),
            config_files: config,
            stop,
            stop_shells: std::sync::atomic::AtomicBool::new(false),
            restart: std::sync::atomic::AtomicBool::new(false),
            successor,
            clients: AtomicU32::new(0),
        }
    }

    /// Connected clients.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.clients.load(Ordering::Relaxed)
    }

    /// Accepts until the stop, then lets every connection say goodbye. Whoever sends something through `questions`
    /// hears back from the loop that accepts: the proof that it runs.
    pub async fn serve(self: &Arc<Self>, listener: UnixListener, mut questions: mpsc::Receiver<oneshot::Sender<()>>) {
        let limit = self.registry.context().config().server.connections_max;
        let places = Arc::new(Semaphore::new(limit));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                // First: who connects after the stop waits in the socket's queue for the program that takes it over.
                () = self.stop.cancelled() => break,
                accepted = listener.accept() => accepted,
                Some(answer) = questions.recv() => {
                    // Who asked may have given up.
                    let _ = answer.send(());
                    continue;
                }
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            };
            match accepted {
                Ok((stream, _)) => {
                    let server = Arc::clone(self);
                    let place = Arc::clone(&places).try_acquire_owned().ok();
                    connections.spawn(async move {
                        server.clients.fetch_add(1, Ordering::Relaxed);
                        connection::run(&server, stream, place.is_some()).await;
                        server.clients.fetch_sub(1, Ordering::Relaxed);
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }
}
