//! The task that brings a session its shell: the one an earlier daemon left, else a new one.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proto::ids::SessionId;
use proto::secret::EnvVars;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

use super::Context;
use super::news::News;
use super::shell_rest;
use crate::faults::{self, Point};
use crate::shell::{LaunchSpec, Shell, ShellLimits, recover};

/// What is wanted.
#[derive(Debug)]
pub(super) struct Order {
    /// The session.
    pub session: SessionId,
    /// Its workspace.
    pub cwd: PathBuf,
    /// Its client's environment, if this daemon was given it.
    pub env: Option<EnvVars>,
    /// Start one when none is found.
    pub launch: bool,
}

/// Finds or starts the shell and tells the session.
///
/// `looked` is dropped as soon as it is known whether there is one: who ends the shell waits for that, so that none comes
/// up after it.
pub(super) async fn run(order: Order, looked: oneshot::Sender<()>, context: Arc<Context>, news: mpsc::Sender<News>) {
    let answer = find_or_launch(order, &context).await;
    // Before the session hears of it, which may be waiting for just that.
    drop(looked);
    let _ = news.send(answer).await;
}

async fn find_or_launch(order: Order, context: &Context) -> News {
    let limits = limits(context);
    let state_dir = context.paths.sessions();
    let found = Shell::find(order.session, &context.paths.shims(), &state_dir, limits).await;
    match found {
        Ok(Some(shell)) => {
            // It was kept for a rest that did not come, or not to its end.
            shell_rest::forget(order.session, context);
            News::ShellUp { shell, launched: false, back: None }
        }
        Ok(None) if !order.launch => {
            if recover::left_behind(order.session, &context.paths.shims()) {
                sweep(order.session, context).await;
            }
            News::ShellAbsent
        }
        Err(_) if !order.launch => News::ShellAbsent,
        Ok(None) => launch(order, context, state_dir, limits).await,
        Err(error) => {
            tracing::warn!(session = %order.session, %error, "the earlier shell cannot be reached; starting another");
            launch(order, context, state_dir, limits).await
        }
    }
}

async fn launch(order: Order, context: &Context, state_dir: PathBuf, limits: ShellLimits) -> News {
    // What a dead shim left running must not run beside its successor.
    sweep(order.session, context).await;
    let session = order.session;
    let secret_names = context.config().shell.secret_names.clone();
    let file = state_dir.join(order.session.to_string()).join("env");
    let env = match order.env {
        Some(env) => {
            keep_env(&file, &env, &secret_names);
            env
        }
        // Another daemon was given it. Its own environment is that of whoever started this one: only a last resort.
        None => kept_env(&file).unwrap_or_else(|| EnvVars(std::env::vars().collect())),
    };
    let spec = LaunchSpec {
        session: order.session,
        cwd: order.cwd,
        env,
        runtime_dir: context.paths.shims(),
        state_dir,
        program: context.program.clone(),
        limits,
        secret_names,
        extra_roots: context.config().workspace.extra_roots.clone(),
    };
    match Shell::launch(spec).await {
        Ok(shell) => {
            faults::reach(Point::ShellStarted);
            let back = shell_rest::come_back(session, &shell, context).await;
            News::ShellUp { shell, launched: true, back }
        }
        Err(error) => {
            tracing::warn!(session = %order.session, %error, "no shell");
            News::ShellFailed { error: error.to_string() }
        }
    }
}

/// Keeps the client's environment, without secrets, for a shell that a later daemon starts: for the session's owner only, as
/// the shell's own saved state is.
pub(super) fn keep_env(file: &Path, env: &EnvVars, secret_names: &[String]) {
    let kept: Vec<_> = env.0.iter().filter(|(name, _)| !shim::is_secret(name, secret_names)).collect();
    let written = serde_json::to_vec(&kept).map_err(std::io::Error::other).and_then(|bytes| {
        if let Some(folder) = file.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut open = std::fs::OpenOptions::new();
        open.create(true).truncate(true).write(true).mode(0o600).open(file)?.write_all(&bytes)
    });
    if let Err(error) = written {
        tracing::warn!(file = %file.display(), %error, "the session's environment is not kept");
    }
}

fn kept_env(file: &Path) -> Option<EnvVars> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok().map(EnvVars)
}

/// Ends a shell that this daemon has not connected to, or clears away what a dead one left.
pub(super) async fn end_leftover(session: SessionId, context: &Context) {
    let (shims, state_dir) = (context.paths.shims(), context.paths.sessions());
    match Shell::find(session, &shims, &state_dir, limits(context)).await {
        Ok(Some(shell)) => shell.shutdown().await,
        Ok(None) | Err(_) => sweep(session, context).await,
    }
}

/// Clears away what a dead shim left: it reads all of `/proc`, so not on the runtime's own threads.
async fn sweep(session: SessionId, context: &Context) {
    let (shims, state_dir) = (context.paths.shims(), context.paths.sessions());
    // It does not panic; were it cancelled with the runtime, the next daemon would do it.
    let _ = tokio::task::spawn_blocking(move || recover::sweep(&[session], &shims, &state_dir)).await;
}

fn limits(context: &Context) -> ShellLimits {
    let config = context.config();
    ShellLimits {
        deadline: config.shell.deadline.get(),
        spool_bytes: config.shell.spool.0,
        output_chars: config.shell.output_chars,
        ..ShellLimits::default()
    }
}
