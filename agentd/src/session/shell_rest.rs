//! An idle session's shell at rest: what is kept of it, and how the next one begins with that.
//!
//! Kept are the directory and the exported variables, without secrets, beside the session's other files. What else was set
//! in the shell is gone, and the session's log says so when it comes back.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proto::ids::{CallId, SessionId};
use proto::secret::EnvVars;
use tokio::sync::mpsc;

use super::Context;
use super::news::News;
use super::shell_task::keep_env;
use crate::shell::{Shell, ShellError};

/// Variables that a shell sets for itself.
const ITS_OWN: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

/// A change of directory that takes longer has met a file system that does not answer.
const CD_LIMIT: Duration = Duration::from_secs(5);

/// Where the directory is kept, as JSON; its presence says that a shell is at rest.
fn place(session: SessionId, context: &Context) -> PathBuf {
    context.paths.session(session).join("rest")
}

/// Nobody comes back from a rest any more.
pub(super) fn forget(session: SessionId, context: &Context) {
    // Mostly there is none.
    let _ = std::fs::remove_file(place(session, context));
}

/// Looks at the shell and, when nothing runs in it, keeps what is needed and tells the session.
pub(super) async fn keep(
    session: SessionId,
    workspace: String,
    shell: Shell,
    context: Arc<Context>,
    news: mpsc::Sender<News>,
) {
    match try_keep(session, &workspace, &shell, &context).await {
        Ok(true) => {
            let _ = news.send(News::ShellIdle { instance: shell.instance() }).await;
        }
        Ok(false) => {}
        Err(error) => tracing::info!(%session, %error, "the idle shell is not put to rest"),
    }
}

async fn try_keep(session: SessionId, workspace: &str, shell: &Shell, context: &Context) -> Result<bool, ShellError> {
    let state = shell.state().await?;
    if state.running.is_some() || state.background > 0 || !shell.jobs().await?.is_empty() {
        return Ok(false);
    }
    let kept = |(name, _): &(String, String)| !ITS_OWN.contains(&name.as_str()) && !name.starts_with("AGENTD_");
    let variables = shell.env().await?.variables.into_iter().filter(kept).collect();
    let folder = context.paths.session(session);
    keep_env(&folder.join("env"), &EnvVars(variables), &context.config().shell.secret_names);
    let cwd = if state.cwd == workspace { String::new() } else { state.cwd };
    let written = std::fs::write(place(session, context), serde_json::Value::from(cwd).to_string());
    written.map(|()| true).map_err(|error| ShellError::Launch(error.to_string()))
}

/// Brings a new shell to where the one at rest was; says so when there was one.
pub(super) async fn come_back(session: SessionId, shell: &Shell, context: &Context) -> Option<String> {
    let kept = std::fs::read_to_string(place(session, context)).ok()?;
    forget(session, context);
    let cwd: String = serde_json::from_str(&kept).ok()?;
    let mut there = true;
    if !cwd.is_empty() {
        let call = CallId::new();
        let command = format!("cd -- '{}'", cwd.replace('\'', "'\\''"));
        let (output, _) = mpsc::channel(1);
        let ran = shell.run(call, &command, CD_LIMIT, output).await;
        shell.forget(call).await;
        there = ran.is_ok() && shell.state().await.is_ok_and(|state| state.cwd == cwd);
    }
    let lost = if there { "" } else { " Its directory is gone; it begins in the session's." };
    Some(format!(
        "The idle shell was at rest and is back, with its directory and its exported variables but those that hold secrets; \
         other variables, functions and aliases are gone.{lost}"
    ))
}
