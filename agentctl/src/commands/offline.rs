//! The programs behind `policy` and `audit`: `agentd` itself answers, without a daemon, in JSON lines.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::screen::Screen;
use crate::start::daemon_binary;

/// A run of `agentd` to be, with its arguments.
pub(super) struct Asking<'a> {
    context: &'a Context,
    arguments: Vec<String>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(context: &'a Context, words: &[&str]) -> Self {
        Self { context, arguments: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    /// With an option, if it is given.
    pub(super) fn option<T: ToString>(mut self, name: &str, value: Option<T>) -> Self {
        if let Some(value) = value {
            self.arguments.push(format!("{name}={}", value.to_string()));
        }
        self
    }

    /// With a further word.
    pub(super) fn word(mut self, word: String) -> Self {
        self.arguments.push(word);
        self
    }

    fn spawn(&self, stdin: Stdio, stdout: Stdio) -> Result<Child, CtlError> {
        let binary = daemon_binary(self.context).ok_or(CtlError::NoBinary)?;
        let mut command = Command::new(&binary);
        command.args(&self.arguments).stdin(stdin).stdout(stdout).kill_on_drop(true);
        command.spawn().map_err(|source| CtlError::Spawn { binary, source })
    }

    /// Lets its lines through as they are; only a terminal gets them made harmless.
    pub(super) async fn through(self) -> Result<Exit, CtlError> {
        if !self.context.tty.stdout {
            let child = self.spawn(Stdio::inherit(), Stdio::inherit())?;
            return ended(child).await;
        }
        let mut screen = Screen::standard(self.context.tty);
        let child = self.spawn(Stdio::inherit(), Stdio::piped())?;
        each_line(child, |line| screen.raw_json(line)).await
    }

    /// Hands every line, read as a `T`, to `take`; `input` is its standard input.
    pub(super) async fn lines<T: serde::de::DeserializeOwned>(
        self,
        input: Option<String>,
        mut take: impl FnMut(T) -> Result<(), CtlError>,
    ) -> Result<Exit, CtlError> {
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = self.spawn(stdin, Stdio::piped())?;
        if let (Some(text), Some(mut pipe)) = (input, child.stdin.take()) {
            // It is one line; where agentd ends before it has read it, its own words say why.
            let _ = pipe.write_all(text.as_bytes()).await;
        }
        each_line(child, |line| {
            let value = serde_json::from_str(line).map_err(|_| CtlError::Unexpected("a line of agentd"))?;
            take(value)
        })
        .await
    }
}

async fn each_line(mut child: Child, mut take: impl FnMut(&str) -> Result<(), CtlError>) -> Result<Exit, CtlError> {
    let Some(out) = child.stdout.take() else { return ended(child).await };
    let mut lines = BufReader::new(out).lines();
    while let Some(line) = lines.next_line().await.map_err(CtlError::Connection)? {
        take(&line)?;
    }
    ended(child).await
}

/// agentd has said why it failed, on the standard error that it shares with us.
async fn ended(mut child: Child) -> Result<Exit, CtlError> {
    let status = child.wait().await.map_err(CtlError::Connection)?;
    match status.code() {
        Some(0) => Ok(Exit::Done),
        Some(2) => Ok(Exit::Usage),
        Some(8) => Ok(Exit::NotFound),
        Some(9) => Ok(Exit::Unsound),
        Some(_) | None => Ok(Exit::Failed),
    }
}
