//! A Messages API server for tests: plays scripts, records every request, refuses what the real server refuses.
//!
//! A reply comes from the handler when one is set ([`ModelServer::answer_with`]), else from the queue
//! ([`ModelServer::script`]), first in first out. A request for which nothing is scripted, or which breaks a rule of
//! [`rules`] or [`history`], is answered with an error and fails the test when the server is dropped.
//!
//! Invariant: a script that a test did not use up fails the test, too, unless it takes it back.
//! Checked once against the official Python SDK: `tests/sdk_check.py`.

mod events;
mod gate;
mod history;
mod received;
mod reply;
mod rules;
mod serve;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

pub use self::gate::Gate;
pub use self::received::{Received, ToolResult};
pub use self::reply::{Block, Reply};
use crate::wait::PATIENCE;

/// Events of a message before the first piece of its first block.
pub const EVENTS_BEFORE_TEXT: usize = 3;

/// Bytes of a piece of text that one event carries.
pub const PIECE_BYTES: usize = events::PIECE_BYTES;

type Handler = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

/// The server, serving from its start to its drop.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the connections and the test share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    key: Option<String>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    scripts: VecDeque<Reply>,
    handler: Option<Handler>,
    requests: Vec<Received>,
    refused: Vec<Received>,
    hung_up: Vec<usize>,
    histories: history::Histories,
    violations: Vec<String>,
    models: HashMap<String, serde_json::Value>,
    keeps_none: bool,
    checks_only: bool,
    delivered: Vec<(usize, Instant)>,
    count: usize,
}

impl ModelServer {
    /// Serves on a free port, accepting any key.
    #[must_use]
    pub fn start() -> Self {
        Self::serve(None, 0)
    }

    /// As [`Self::start`], on this port: the server that was not there before.
    #[must_use]
    pub fn start_at(port: u16) -> Self {
        Self::serve(None, port)
    }

    /// Serves on a free port; any other key is answered with 401.
    #[must_use]
    pub fn start_with_key(key: &str) -> Self {
        Self::serve(Some(key.to_owned()), 0)
    }

    fn serve(key: Option<String>, port: u16) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port))).expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let shared =
            Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), key, tasks: TaskTracker::new() });
        let (stop, stopped) = oneshot::channel();
        let accepting = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(accepting, listener) => {}
                    _ = stopped => {}
                }
            });
            // Connections and held replies are given up with the runtime.
            runtime.shutdown_background();
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL, without `/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on the client is killed at any moment: see [`history::Histories::killed`].
    pub fn expect_kills(&self) {
        self.shared.lock().histories.killed = true;
    }

    /// Queues a reply to the next request for which none is queued.
    pub fn script(&self, reply: Reply) {
        self.shared.lock().scripts.push_back(reply);
    }

    /// Answers every request from now on with what the handler says; queued scripts come after it is taken back.
    pub fn answer_with(&self, handler: impl Fn(&Received) -> Reply + Send + Sync + 'static) {
        self.shared.lock().handler = Some(Arc::new(handler));
    }

    /// Requests so far, refused keys not counted.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock().requests.clone()
    }

    /// Requests with a wrong key.
    #[must_use]
    pub fn refused(&self) -> Vec<Received> {
        self.shared.lock().refused.clone()
    }

    /// The `number`-th request, from 1, waiting for it.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait_for(&self, number: usize) -> Received {
        self.wait(&format!("request {number}"), |state| state.requests.get(number - 1).cloned())
    }

    /// Waits until the client has closed the connection of request `number` before its reply was whole.
    ///
    /// # Panics
    /// When it does not.
    pub fn wait_for_hang_up(&self, number: usize) {
        self.wait(&format!("the client to hang up request {number}"), |state| {
            state.hung_up.contains(&number).then_some(())
        });
    }

    fn wait<T>(&self, what: &str, probe: impl Fn(&State) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        let mut state = self.shared.lock();
        loop {
            if let Some(value) = probe(&state) {
                return value;
            }
            let left = end.saturating_duration_since(Instant::now());
            let (count, wrong) = (state.requests.len(), state.violations.join("\n"));
            assert!(!left.is_zero(), "waited {PATIENCE:?} for {what}; {count} requests came; violations: {wrong:?}");
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes back the scripts that were not used, for claims about requests that must not come.
    pub fn forget_scripts(&self) {
        self.shared.lock().scripts.clear();
    }

    /// Answers the Models API's question for a model with this entry; without one it does not know any.
    pub fn describe_model(&self, model: &str, entry: serde_json::Value) {
        self.shared.lock().models.insert(model.to_owned(), entry);
    }

    /// Keeps none of the requests from now on, and checks none against its session's earlier ones: for long sessions, whose
    /// handler looks at each itself. Their numbers go on.
    pub fn keep_no_requests(&self) {
        self.shared.lock().keeps_none = true;
    }

    /// Keeps none of the requests from now on, though each is checked: for runs of thousands, whose bodies fill the memory.
    pub fn check_only(&self) {
        self.shared.lock().checks_only = true;
    }

    /// When each reply was handed over to its last byte, by the number of its request.
    #[must_use]
    pub fn delivered(&self) -> Vec<(usize, Instant)> {
        self.shared.lock().delivered.clone()
    }

    /// Forgets the histories seen: what comes next may break with them, for claims about the ways out that do.
    pub fn forget_histories(&self) {
        self.shared.lock().histories = history::Histories::default();
    }

    /// Takes the violations so far, for claims about the server itself.
    #[must_use]
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().violations)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // The thread may be gone after a panic of its own; its join tells.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let joined = self.thread.take().map(JoinHandle::join);
        let state = self.shared.lock();
        let (wrong, unused) = (state.violations.join("\n"), state.scripts.len());
        drop(state);
        if thread::panicking() {
            eprintln!("model server: violations: {wrong:?}, unused scripts: {unused}");
            return;
        }
        assert!(joined.is_none_or(|joined| joined.is_ok()), "the model server's thread panicked");
        assert!(wrong.is_empty(), "requests that the real server would refuse:\n{wrong}");
        assert_eq!(unused, 0, "scripted replies that nobody asked for");
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A handler that panics must not hide its own message behind a poisoned lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records and checks a request and finds its reply. Blocks as long as a handler does.
    fn admit(self: Arc<Self>, mut received: Received) -> Admitted {
        let mut state = self.lock();
        state.count += 1;
        received.number = state.count;
        let mut wrong = rules::check(&received);
        if !state.keeps_none {
            wrong.extend(state.histories.check(&received));
        }
        let handler = state.handler.clone();
        let script = if handler.is_none() && wrong.is_empty() { state.scripts.pop_front() } else { None };
        if handler.is_none() && script.is_none() && wrong.is_empty() {
            wrong.push("no reply is scripted for it".to_owned());
        }
        if !state.keeps_none && !state.checks_only {
            state.requests.push(received.clone());
        }
        let refusal = (!wrong.is_empty()).then(|| Reply::error(400, "invalid_request_error", &wrong.join("; ")));
        state.violations.extend(wrong.iter().map(|wrong| format!("request {}: {wrong}", received.number)));
        drop(state);
        self.changed.notify_all();
        let reply = refusal.or(script).or_else(|| handler.map(|handler| handler(&received)));
        let reply = reply.unwrap_or_else(|| Reply::error(500, "api_error", "nothing is scripted"));
        if reply.is_whole() && !self.lock().keeps_none {
            self.lock().histories.replied(&received, reply.kept());
        }
        let whole = Whole { shared: Arc::clone(&self), number: received.number, delivered: false };
        Admitted { received, reply, whole }
    }

    /// The entry of a model.
    fn model(&self, id: &str) -> Option<serde_json::Value> {
        self.lock().models.get(id).cloned()
    }

    fn note_refused(&self, received: Received) {
        self.lock().refused.push(received);
        self.changed.notify_all();
    }

    fn note_failed_script(&self, error: &str) {
        self.lock().violations.push(format!("the script of a reply failed: {error}"));
        self.changed.notify_all();
    }
}

/// A request that has its reply.
struct Admitted {
    received: Received,
    reply: Reply,
    whole: Whole,
}

/// Whether a reply was delivered; notes that the client hung up when it is dropped before, wherever that was.
struct Whole {
    shared: Arc<Shared>,
    number: usize,
    delivered: bool,
}

impl Whole {
    /// A method, so that a task that calls it owns the whole value and not only its flag.
    fn set_delivered(&mut self, delivered: bool) {
        self.delivered = delivered;
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if self.delivered {
            state.delivered.push((self.number, Instant::now()));
        } else {
            state.hung_up.push(self.number);
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Else the end of a reply waits for the client to acknowledge what came before it, which takes it 40 ms.
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        let service = service_fn({
            let shared = Arc::clone(&shared);
            move |request| serve::answer(Arc::clone(&shared), request)
        });
        shared.tasks.spawn(async move {
            // A cut or a client that goes away is an error here and part of the script.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

#[cfg(test)]
mod tests;
