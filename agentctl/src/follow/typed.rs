//! What typed lines and Ctrl-C do.

use std::io::BufRead;

use proto::handshake::Role;
use proto::ids::PromptId;
use proto::request::{ApproveMode, Interrupt, PROMPT_BYTES_MAX, Request, SendPrompt, WithdrawPrompt};
use tokio::sync::mpsc;

use super::editor::Edit;
use super::{Follow, Output};
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{Line, Style, notes};

/// Lines read ahead from a pipe: the reader waits while these are being sent.
const LINES_AHEAD: usize = 8;

/// The commands of the line mode, as `/help` shows them.
const HELP: [(&str, &str); 4] = [
    ("/interrupt", "end the running turn (or press Ctrl-C)"),
    ("/quit", "leave; the session goes on (or press Ctrl-D; Ctrl-C twice)"),
    ("/help", "show this"),
    ("anything else", "is a prompt; while a turn runs it waits for its end"),
];

/// Lines from a standard input that is no terminal.
#[derive(Debug)]
pub struct Lines {
    receiver: mpsc::Receiver<String>,
    sent: bool,
    ended: bool,
}

impl Lines {
    /// Starts reading. The reader is a thread of its own: a pipe that stays silent blocks nothing but it.
    #[must_use]
    pub fn read() -> Self {
        let (sender, receiver) = mpsc::channel(LINES_AHEAD);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { receiver, sent: false, ended: false }
    }
}

/// The next line; `None` at the end. Waits for ever without a source or behind its end.
pub(super) async fn next_line(lines: Option<&mut Lines>) -> Option<String> {
    match lines {
        Some(lines) if !lines.ended => lines.receiver.recv().await,
        Some(_) | None => std::future::pending().await,
    }
}

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Input {
    Nothing,
    Quit,
    Interrupt,
    Help,
    Unknown(String),
    Prompt(String),
}

impl Input {
    /// A slash begins a command; a space before it makes it a prompt.
    fn read(line: &str) -> Self {
        let text = line.trim_end();
        match text {
            _ if text.trim().is_empty() => Self::Nothing,
            "/quit" | "/exit" | "/detach" | "/q" => Self::Quit,
            "/interrupt" | "/stop" => Self::Interrupt,
            "/help" | "/?" => Self::Help,
            _ if text.starts_with('/') && !text.contains(['\n', ' ']) && !text[1..].contains('/') => {
                Self::Unknown(text.to_owned())
            }
            _ => Self::Prompt(text.trim_start().to_owned()),
        }
    }
}

impl Follow<'_> {
    pub(super) async fn typed(&mut self, bytes: &[u8]) -> Result<(), CtlError> {
        let Some(editor) = &mut self.editor else { return Ok(()) };
        if bytes.is_empty() {
            self.leaving = Some(Exit::Done);
            return Ok(());
        }
        for edit in editor.feed(bytes) {
            match edit {
                Edit::Submit(text) => self.input(&text).await?,
                Edit::End => self.leaving = Some(Exit::Done),
                Edit::Cancel => {}
            }
        }
        Ok(())
    }

    pub(super) async fn piped_line(&mut self, line: Option<String>) -> Result<(), CtlError> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        match line {
            Some(line) => {
                lines.sent = true;
                self.input(&line).await
            }
            None => {
                lines.ended = true;
                Ok(())
            }
        }
    }

    /// Whether everything that came through the pipe was sent and done.
    pub(super) fn pipe_is_done(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.ended && lines.sent) && self.view.is_idle()
    }

    async fn input(&mut self, line: &str) -> Result<(), CtlError> {
        match Input::read(line) {
            Input::Nothing => Ok(()),
            Input::Quit => {
                self.leaving = Some(Exit::Done);
                Ok(())
            }
            Input::Interrupt => self.send_interrupt().await,
            Input::Help => {
                for (name, meaning) in HELP {
                    let gap = " ".repeat(16 - name.len());
                    self.say(&Line::new().text(Style::Name, name).text(Style::Plain, &gap).lit(Style::Plain, meaning))?;
                }
                Ok(())
            }
            Input::Unknown(command) => self.say(&notes::notice(&format!(
                "there is no command {command}; /help lists them, a space before it makes it a prompt"
            ))),
            Input::Prompt(text) => self.prompt(text).await,
        }
    }

    async fn prompt(&mut self, text: String) -> Result<(), CtlError> {
        if text.len() > PROMPT_BYTES_MAX {
            return self.say(&notes::notice(&CtlError::PromptTooLong.to_string()));
        }
        let prompt = PromptId::new();
        self.view.sent(prompt);
        let approve = if self.answers { ApproveMode::Ask } else { ApproveMode::Deny };
        let request =
            SendPrompt { session: self.session.to_string(), prompt, text, approve, endpoint: self.context.endpoint() };
        match self.connection.call(Request::SendPrompt(request)).await {
            Ok(_) if self.view.turn.is_some() => {
                self.say(&notes::remark("queued; it starts when the running turn ends"))
            }
            Ok(_) => Ok(()),
            Err(CtlError::Wire(error)) => self.say(&notes::notice(&error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Ctrl-C: ends the turn; a second one leaves. With nothing to end it empties the line, then leaves.
    pub(super) async fn interrupt(&mut self) -> Result<(), CtlError> {
        self.dirty = true;
        let may = self.role != Role::Observer;
        let busy = may && (self.view.turn.is_some() || self.goal.is_some());
        if self.interrupted || (!busy && self.editor.as_ref().is_none_or(super::editor::Editor::is_empty)) {
            self.leaving = Some(if self.goal.is_some() { Exit::Interrupted } else { Exit::Done });
            return Ok(());
        }
        if let Some((goal, prompt)) = &self.goal
            && goal.turn().is_none()
        {
            // Another prompt's turn runs: that one is not ours to end.
            let (session, prompt) = (prompt.session.clone(), prompt.prompt);
            self.interrupted = true;
            if self.output != Output::Json {
                self.say(&notes::remark("withdrawing the prompt (Ctrl-C again leaves at once)"))?;
            }
            let request = Request::WithdrawPrompt(WithdrawPrompt { session, prompt });
            return self.connection.post(request).await.map(drop);
        }
        if busy {
            return self.send_interrupt().await;
        }
        if let Some(editor) = &mut self.editor {
            editor.clear();
        }
        Ok(())
    }

    async fn send_interrupt(&mut self) -> Result<(), CtlError> {
        self.interrupted = true;
        if self.output != Output::Json {
            self.say(&notes::remark("interrupting (Ctrl-C again leaves at once)"))?;
        }
        // Not waited for: the turn's end comes as a row, and Ctrl-C must stay alive.
        self.connection.post(Request::Interrupt(Interrupt { session: self.session.to_string() })).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_words_are_commands_and_paths_are_prompts() {
        let prompt = |text: &str| Input::Prompt(text.to_owned());
        let lines = ["", "  ", "/quit", "/help ", "/foo", " /foo", "/etc/hosts", "/etc is full", "hi"];
        let read = lines.map(Input::read);
        assert_eq!(
            read,
            [
                Input::Nothing,
                Input::Nothing,
                Input::Quit,
                Input::Help,
                Input::Unknown("/foo".into()),
                prompt("/foo"),
                prompt("/etc/hosts"),
                prompt("/etc is full"),
                prompt("hi"),
            ]
        );
    }
}
