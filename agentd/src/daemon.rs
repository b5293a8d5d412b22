//! Wiring: start order, reload, stop order.
//!
//! Start: folders → lock and socket → database → sessions with something under way → accept → READY. A failure before
//! READY is one sentence and an exit code; nothing is left behind.
//!
//! Stop: no new connections → clients told → sessions let go of their shells, which run on (or are ended, when asked or
//! when the unit is stopped for good) → everything queued is on disk → the socket is removed → the lock is free.

use std::io::Write;
use std::os::fd::{AsFd, FromRawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::ids::{Seq, SessionId};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cli::Cli;
use crate::config::load::{self, ConfigError, Loaded};
use crate::config::paths::Paths;
use crate::desktop::Desktop;
use crate::keys::{Keys, Sources};
use crate::server::listener::{self, ListenError};
use crate::server::{ConfigState, Server};
use crate::session::Context;
use crate::session::registry::Registry;
use crate::signals::{Asked, Listener};
use crate::store::{Store, StoreError};
use crate::successor::{self, Successor};
use crate::systemd::{self, manager, notify, watchdog};

/// Why the daemon does not serve.
#[derive(Debug, Error)]
pub enum StartError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No place for files.
    #[error("{0}")]
    Paths(String),
    /// The socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system.
    #[error("agentd cannot start: {0}")]
    System(#[from] std::io::Error),
}

impl StartError {
    /// The process's exit code; `agentd --help` lists them.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 3,
            Self::Listen(ListenError::AlreadyRunning(_)) => 4,
            Self::Store(_) => 5,
            Self::Paths(_) | Self::Listen(_) | Self::System(_) => 1,
        }
    }
}

/// The environment as pairs; what is not UTF-8 is no setting of ours.
#[must_use]
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Reads the configuration as the arguments say.
///
/// # Errors
/// The layer that cannot be used.
pub fn configuration(cli: &Cli, paths: &Paths) -> Result<Loaded, ConfigError> {
    let file = cli.config.clone().unwrap_or_else(|| paths.config_file());
    load::load(&file, cli.config.is_some(), &environment())
}

/// The folders as arguments and environment say.
///
/// # Errors
/// When there is no place for files.
pub fn paths(cli: &Cli) -> Result<Paths, StartError> {
    Paths::new(&|name| std::env::var(name).ok(), cli.socket.as_deref()).map_err(StartError::Paths)
}

/// Whether this program could serve here.
///
/// # Errors
/// Why not.
pub fn check(cli: &Cli) -> Result<(), StartError> {
    let paths = paths(cli)?;
    configuration(cli, &paths)?;
    Store::check(&paths.database())?;
    Ok(())
}

/// Serves until asked to stop, and reports readiness or failure on the ready descriptor.
///
/// # Errors
/// Why it could not start.
pub async fn run(cli: Cli) -> Result<(), StartError> {
    let mut ready = Ready::new(cli.ready_fd);
    let result = serve(&cli, &mut ready).await;
    if let Err(error) = &result {
        ready.say(&format!("ERROR {error}"));
    }
    result
}

async fn serve(cli: &Cli, ready: &mut Ready) -> Result<(), StartError> {
    hide_memory();
    let paths = paths(cli)?;
    let Loaded { config, files, mut warnings, .. } = configuration(cli, &paths)?;
    warnings.extend(crate::logging::start(&config.log, &|name| std::env::var(name).ok()));
    for folder in [&paths.runtime, &paths.state, &paths.shims(), &paths.sessions()] {
        listener::private_folder(folder)?;
    }
    let successor = Successor::new(cli)?;
    let listening = match successor::inherited(cli) {
        Some(inherited) => listener::go_on(&paths.socket, inherited, cli.owns_socket)?,
        None => listener::listen(&paths.socket, systemd::socket()?).await?,
    };
    let (listener, guard) = listening.split();
    let spare = listener.as_fd().try_clone_to_owned()?;
    let store = Store::open(&paths.database(), crate::journal::sink()?)?;
    let mut signals = Listener::new()?;
    let keys = Keys::new(key_sources(&config), &|name| std::env::var(name).ok());
    let program = PathBuf::from("/proc/self/exe");
    let desktop = Desktop::find(&|name| std::env::var(name).ok());
    let context = Arc::new(Context::new(store, keys, paths.clone(), program, config, desktop));
    context.spent.load(&context.store, proto::ids::Timestamp::now()).await?;
    let stop = CancellationToken::new();
    // Sessions stop after the connections: a client's last request is answered.
    let sessions_stop = CancellationToken::new();
    let registry = Registry::new(Arc::clone(&context), sessions_stop.clone());
    warnings.extend(registry.resume_all().await);
    let state = ConfigState { files: files.iter().map(|path| path.display().to_string()).collect(), warnings };
    let (tell, config_state) = watch::channel(state);
    let server = Arc::new(Server::new(registry, config_state, stop.clone(), successor.clone()));
    ready.say("READY");
    notify::ready();
    tracing::info!(pid = std::process::id(), socket = %paths.socket.display(), "serving");
    crate::memory::give_back();
    let (ask, questions) = mpsc::channel(1);
    let serving = server.serve(listener, questions);
    let watchdog = watchdog::feed(watchdog::limit(), || answers(&ask, &context.store), notify::alive);
    tokio::pin!(serving, watchdog);
    let mut for_good = false;
    loop {
        tokio::select! {
            () = &mut serving => break,
            () = &mut watchdog => {}
            asked = signals.next() => match asked {
                Asked::Stop => {
                    notify::stopping();
                    // Asked now: the job that stops us is there for as long as we are.
                    for_good = manager::stops_for_good().await;
                    stop.cancel();
                }
                Asked::Reload => reload(cli, &context, &tell),
            },
        }
    }
    if for_good {
        tracing::info!("the unit is stopped for good; ending the shells");
        server.registry.wind_down(context.config().shell.stop_grace.get()).await;
    }
    if for_good || server.stop_shells.load(Ordering::Relaxed) {
        server.registry.end_shells().await;
    }
    sessions_stop.cancel();
    server.registry.wait().await;
    context.store.flush().await?;
    if server.restart.load(Ordering::Relaxed) {
        tracing::info!("starting the program anew");
        let owns = guard.pass_on()?;
        successor.become_it(&spare, owns)?;
    }
    drop(guard);
    tracing::info!("stopped");
    Ok(())
}

/// Returns when the loop that accepts and both sides of the store have answered; does not return when one never does.
async fn answers(ask: &mpsc::Sender<oneshot::Sender<()>>, store: &Store) {
    let (answer, heard) = oneshot::channel();
    let accepting = ask.send(answer).await.is_ok() && heard.await.is_ok();
    let writing = store.flush().await;
    // A session that does not exist has no rows; finding that out takes a query.
    let reading = store.rows(SessionId(Uuid::nil()), Seq(0), 1).await;
    if let (true, Ok(()), Ok(_)) = (accepting, writing, reading) {
        return;
    }
    std::future::pending().await
}

fn reload(cli: &Cli, context: &Context, tell: &watch::Sender<ConfigState>) {
    notify::reloading();
    match configuration(cli, &context.paths) {
        Ok(loaded) => {
            context.keys.reload(key_sources(&loaded.config));
            context.reload(loaded.config);
            let files = loaded.files.iter().map(|path| path.display().to_string()).collect();
            tell.send_replace(ConfigState { files, warnings: loaded.warnings });
            tracing::info!("configuration read again");
            notify::reloaded("configuration read again");
        }
        Err(error) => {
            tracing::error!(%error, "the configuration cannot be read; the old one stays");
            let warning = format!("{error}; the old configuration stays in force");
            notify::reloaded(&warning);
            tell.send_modify(|state| state.warnings = vec![warning]);
        }
    }
}

fn key_sources(config: &crate::config::Config) -> Sources {
    Sources {
        base_url: config.model.base_url.clone(),
        helper: config.model.key_helper.clone(),
        file: config.model.key_file.clone(),
    }
}

/// Keeps other processes of this user (the agent's own commands among them) from reading this process's memory and
/// environment, where keys are.
fn hide_memory() {
    // SAFETY: prctl with integer arguments only.
    let hidden = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    if hidden != 0 {
        tracing::warn!("the daemon's memory cannot be hidden from processes of the same user");
    }
}

/// The descriptor on which a starter waits.
struct Ready(Option<std::fs::File>);

impl Ready {
    fn new(fd: Option<i32>) -> Self {
        // SAFETY: the starter opened this descriptor for us alone and named it in the arguments.
        Self(fd.filter(|fd| *fd > 2).map(|fd| unsafe { std::fs::File::from_raw_fd(fd) }))
    }

    /// Says it once; the descriptor is closed after that.
    fn say(&mut self, line: &str) {
        if let Some(mut file) = self.0.take() {
            // A starter that is gone waits for nothing.
            let _ = writeln!(file, "{}", line.replace('\n', " "));
        }
    }
}
