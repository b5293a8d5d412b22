//! The tasks of file operations that a user asks for: taking edits back, and looking at what changed.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use proto::ids::CallId;
use proto::response::{ErrorCode, WireError};
use proto::shim::files::{FileOp, FileReply};
use tokio::sync::mpsc;

use super::command::Reply;
use super::machine::Input;
use super::news::News;
use crate::shell::{Shell, ShellError};
use crate::store::entry::{UndoOrder, UndoResult};
use crate::tools::undo;

/// Shells that are asked for one thing because the one before died while it was asked.
pub(super) const TRIES_MAX: u32 = 3;

/// An undo on its way to a shell.
#[derive(Clone, Debug)]
pub(super) struct UndoTry {
    /// What is wanted.
    pub order: UndoOrder,
    /// Shells that were asked before.
    pub tries: u32,
}

/// A look at the files, which is no part of the session's history.
#[derive(Debug)]
pub(super) struct Look {
    /// A preview, or the sum of changes.
    pub op: FileOp,
    /// Who waits.
    pub reply: Reply<FileReply>,
    /// Shells that were asked before.
    pub tries: u32,
}

/// What was asked of a shell that died.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// An undo. The history is on disk: another shim gives the same answer, or does the rest.
    Undo(UndoTry),
    /// A look.
    Look(Look),
}

/// Takes edits back and tells the session.
pub(super) async fn run_undo(this: UndoTry, shell: Shell, news: mpsc::Sender<News>) {
    let op = undo::op(&this.order);
    // A fault of ours ends this undo, not the session.
    let asked = AssertUnwindSafe(shell.file(CallId(this.order.undo.0), &op)).catch_unwind().await;
    let result = match asked {
        Ok(Ok(reply)) => undo::result(&this.order, &reply),
        Ok(Err(ShellError::Lost)) => return lost(Unanswered::Undo(this), &shell, &news).await,
        Ok(Err(error)) => undo::no_shell(&this.order, &error.to_string()),
        Err(_) => {
            tracing::error!(undo = %this.order.undo, "an undo's task panicked");
            undo::no_shell(&this.order, "agentd failed while it asked; its log says how")
        }
    };
    let _ = news.send(over(result)).await;
}

/// The undo is over.
pub(super) fn over(result: UndoResult) -> News {
    News::Happened(Box::new(Input::UndoEnded(Box::new(result))))
}

/// Looks, and tells who asked.
pub(super) async fn run_look(look: Look, shell: Shell, news: mpsc::Sender<News>) {
    let answer = shell.file(CallId::new(), &look.op).await;
    if let Err(ShellError::Lost) = answer {
        return lost(Unanswered::Look(look), &shell, &news).await;
    }
    // A client that is gone does not wait.
    let _ = look.reply.send(answer.map_err(|error| unreachable_shell(&error.to_string())));
}

async fn lost(what: Unanswered, shell: &Shell, news: &mpsc::Sender<News>) {
    let _ = news.send(News::Unanswered { what, instance: shell.instance() }).await;
}

/// The session's shell cannot be asked.
pub(super) fn unreachable_shell(why: &str) -> WireError {
    WireError {
        code: ErrorCode::Shell,
        message: format!("the session's shell cannot be asked ({why})"),
        hint: "try again".into(),
    }
}
