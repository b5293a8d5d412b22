//! What keys, lines and Ctrl-C do.

use std::io::BufRead;
use std::path::Path;

use proto::event::Event;
use proto::handshake::Role;
use proto::ids::PromptId;
use proto::request::{ApproveMode, Interrupt, PROMPT_BYTES_MAX, Request, SendPrompt, WithdrawPrompt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::command::Input;
use super::complete::{self, Menu};
use super::editor::{Edit, Editor};
use super::{Follow, Output};
use crate::branch;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::notes;

/// Lines read ahead from a pipe: the reader waits while these are being sent.
const LINES_AHEAD: usize = 8;

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

/// The workspace's files, read when they are first asked for.
#[derive(Debug)]
pub(super) enum Files {
    Unread,
    Reading(JoinHandle<Vec<String>>),
    Read(Vec<String>),
}

impl Files {
    /// Waits for the files that are being read; for ever when none are.
    pub(super) async fn arrive(&mut self) -> Vec<String> {
        match self {
            // A walk that failed found nothing.
            Self::Reading(handle) => handle.await.unwrap_or_default(),
            Self::Unread | Self::Read(_) => std::future::pending().await,
        }
    }
}

impl Follow<'_> {
    /// The input's surroundings: pastes are marked, earlier prompts can be recalled.
    pub(super) fn prepare_input(&mut self) -> Result<(), CtlError> {
        self.branch = self.info.as_ref().and_then(|info| branch::of(Path::new(&info.cwd)));
        if let Some(editor) = &mut self.editor {
            self.past.iter().for_each(|text| editor.remember(text));
            self.screen.mark_pastes()?;
        }
        Ok(())
    }

    /// Keeps the prompts of the past for the history.
    pub(crate) fn recall(&mut self, event: &Event) {
        if let proto::event::EventBody::PromptAccepted(it) = &event.body {
            self.past.push(it.text.clone());
        }
    }

    pub(super) async fn typed(&mut self, bytes: &[u8]) -> Result<(), CtlError> {
        if bytes.is_empty() {
            self.leaving = Some(Exit::Done);
            return Ok(());
        }
        if let Some(confirm) = self.confirm.take() {
            return self.confirmed(confirm, bytes).await;
        }
        let Some(editor) = &mut self.editor else { return Ok(()) };
        editor.give(bytes);
        loop {
            self.take_choice();
            let Some(edit) = self.editor.as_mut().and_then(Editor::next_edit) else { break };
            // The keys before this one may have changed what is offered.
            self.update_menu();
            self.edited(edit).await?;
        }
        self.update_menu();
        Ok(())
    }

    /// Enter takes what is selected; a command it runs as well.
    fn take_choice(&mut self) {
        let (Some(menu), Some(editor)) = (&self.menu, &mut self.editor) else { return };
        if editor.enter_is_next() {
            editor.replace(menu.start, &menu.choice());
            if menu.fills {
                editor.skip_enter();
            }
            self.menu = None;
        }
    }

    async fn edited(&mut self, edit: Edit) -> Result<(), CtlError> {
        match edit {
            Edit::Submit(text) => return self.input(&text).await,
            Edit::End => self.leaving = Some(Exit::Done),
            Edit::Cancel => self.menu_closed = self.menu.take().map(|menu| menu.start),
            Edit::Complete { back: false } => {
                if let (Some(menu), Some(editor)) = (self.menu.take(), &mut self.editor) {
                    editor.replace(menu.start, &menu.choice());
                }
            }
            Edit::Complete { back: true } => self.menu.iter_mut().for_each(|menu| menu.step(true)),
            Edit::Recall { back } => match (&mut self.menu, &mut self.editor) {
                (Some(menu), _) => menu.step(back),
                (None, Some(editor)) => editor.recall(back),
                (None, None) => {}
            },
            Edit::Redraw => return self.screen.wipe(),
        }
        Ok(())
    }

    /// The candidates at the cursor, with the selection that stands.
    pub(super) fn update_menu(&mut self) {
        self.dirty = true;
        let Some(editor) = &self.editor else { return };
        if matches!(self.files, Files::Unread)
            && editor.text().contains('@')
            && let Some(info) = &self.info
        {
            let directory = info.cwd.clone();
            self.files = Files::Reading(tokio::task::spawn_blocking(move || complete::files(Path::new(&directory))));
        }
        let files: &[String] = match &self.files {
            Files::Read(files) => files,
            Files::Unread | Files::Reading(_) => &[],
        };
        let menu = Menu::at(editor.text(), editor.cursor(), files, &self.known);
        if menu.as_ref().map(|menu| menu.start) != self.menu_closed {
            self.menu_closed = None;
        }
        self.menu = match (menu, &self.menu) {
            (Some(_), _) if self.menu_closed.is_some() => None,
            (Some(new), Some(old)) if new.same_list(old) => Some(old.clone()),
            (menu, _) => menu,
        };
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
            Input::Command(wish, argument) => self.wish(wish, &argument).await,
            Input::Unknown(command) => self.say(&notes::notice(&format!(
                "there is no command {command}; /help lists them, a space before it makes it a prompt"
            ))),
            Input::Run(command) => self.run_command(command).await,
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
            // Where nothing is painted below the text, it is said.
            Ok(_) if self.view.turn.is_some() && !self.screen.repaints() => {
                self.say(&notes::remark("queued; it starts when the running turn ends"))
            }
            Ok(_) => Ok(()),
            Err(CtlError::Wire(error)) => {
                self.view.not_sent(prompt);
                self.say(&notes::notice(&error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    /// Ctrl-C: empties the input; else ends the turn; a second one leaves.
    pub(super) async fn interrupt(&mut self) -> Result<(), CtlError> {
        self.dirty = true;
        self.confirm = None;
        let typed = self.editor.as_ref().is_some_and(|editor| !editor.is_empty());
        if typed && !self.interrupted {
            self.editor.iter_mut().for_each(Editor::clear);
            self.update_menu();
            return Ok(());
        }
        let may = self.role != Role::Observer;
        let busy = may && (self.view.turn.is_some() || self.goal.is_some());
        if self.interrupted || !busy {
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
        self.send_interrupt().await
    }

    pub(super) async fn send_interrupt(&mut self) -> Result<(), CtlError> {
        self.interrupted = true;
        if self.output != Output::Json {
            self.say(&notes::remark("interrupting (Ctrl-C again leaves at once)"))?;
        }
        // Not waited for: the turn's end comes as a row, and Ctrl-C must stay alive.
        self.connection.post(Request::Interrupt(Interrupt { session: self.session.to_string() })).await.map(drop)
    }
}
