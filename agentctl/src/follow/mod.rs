//! Following one session at a terminal: the loop behind `ask` and `attach`.
//!
//! * [`goal`]: when `ask` is done. [`question`]: the approval on the screen. [`ends`]: how both
//!   end. [`answer`]: the answer as it streams.
//! * [`editor`]: the input of `attach`; [`complete`] what can be put in there, [`command`] what is read of it, [`typed`],
//!   [`wishes`] and [`asks`] what it does, [`confirm`] an undo that waits for a yes.
//! * [`draw`]: what stands below the text. [`reconnect`]: what happens when the daemon goes away.
//!
//! Invariant: a row is shown once, in order, whatever happens to the connection: the cursor is the last row that was
//! folded in, and a new subscription starts after it.

mod answer;
mod asks;
pub mod command;
pub mod complete;
mod confirm;
mod draw;
pub mod editor;
mod ends;
mod focus;
pub mod goal;
mod presence;
pub mod question;
pub mod reconnect;
mod signals;
pub mod typed;
mod wishes;

use std::collections::HashSet;

use proto::event::{Event, EventBody};
use proto::handshake::Role;
use proto::ids::{ApprovalId, SessionId};
use proto::live::Live;
use proto::request::SendPrompt;
use proto::response::{Attendee, Response, ResponseResult, ServerFrame, SessionInfo};
use tokio::time::{Instant, sleep_until};

use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::markdown::Markdown;
use crate::render::notes;
use crate::screen::Screen;
use crate::terminal::Keyboard;
use crate::view::View;
use answer::Written;
use complete::{Known, Menu};
use confirm::Confirm;
use editor::Editor;
use focus::Focus;
use goal::Goal;
use question::{Fed, Question};
use signals::Signals;
use typed::{Files, Lines};

/// What reaches the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Everything, for people.
    Full,
    /// The final answer alone.
    Quiet,
    /// Every frame as a JSON line.
    Json,
}

/// What is followed and how.
pub struct Follow<'a> {
    /// Environment and terminals.
    pub context: &'a Context,
    /// The daemon.
    pub connection: Connection,
    /// The session.
    pub session: SessionId,
    /// What is shown of it.
    pub view: View,
    /// Where it is shown.
    pub screen: Screen,
    /// What reaches the user.
    pub output: Output,
    /// The prompt that is waited for, and as it was sent, to be sent again to a new daemon.
    pub goal: Option<(Goal, SendPrompt)>,
    /// The line that is typed, in `attach`.
    pub editor: Option<Editor>,
    /// Keys, where a person can be asked.
    pub keyboard: Option<Keyboard>,
    /// Lines from a standard input that is no terminal, in `attach`.
    pub lines: Option<Lines>,
    /// Whether a person may be asked and may type here.
    pub interactive: bool,
    /// The session as `attach` knows it, for the status line.
    pub info: Option<SessionInfo>,
    answers: bool,
    /// The text of the answer that is being written, and what was written last.
    markdown: Markdown,
    written: Written,
    branch: Option<String>,
    /// Prompts of the past, oldest first.
    past: Vec<String>,
    menu: Option<Menu>,
    /// Where a list stood that was closed by the user.
    menu_closed: Option<usize>,
    files: Files,
    known: Known,
    confirm: Option<Confirm>,
    focus: Focus,
    role: Role,
    lost: u32,
    /// The connection is over; with the daemon's reason, when it said goodbye.
    gone: Option<Option<String>>,
    question: Option<Question>,
    announced: HashSet<ApprovalId>,
    interrupted: bool,
    /// What comes now happens now; before that it is the past that is shown again.
    pub is_live: bool,
    /// Who is attached, as last told.
    attached: Vec<Attendee>,
    leaving: Option<Exit>,
    /// The last repaint; none yet: the first is due at once.
    painted_at: Option<Instant>,
    dirty: bool,
}

/// The parts a [`Follow`] starts with.
pub struct Parts<'a> {
    /// Environment and terminals.
    pub context: &'a Context,
    /// The daemon.
    pub connection: Connection,
    /// The session.
    pub session: SessionId,
    /// What is shown of it.
    pub view: View,
    /// What reaches the user.
    pub output: Output,
    /// What the connection may do; a new one asks for the same.
    pub role: Role,
}

impl std::fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("session", &self.session).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Follow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follow").field("session", &self.session).field("output", &self.output).finish_non_exhaustive()
    }
}

impl<'a> Follow<'a> {
    /// Ready to run; neither keys nor a goal yet.
    #[must_use]
    pub fn new(parts: Parts<'a>) -> Self {
        Self {
            screen: Screen::standard(parts.context.tty),
            context: parts.context,
            connection: parts.connection,
            session: parts.session,
            view: parts.view,
            output: parts.output,
            goal: None,
            editor: None,
            keyboard: None,
            lines: None,
            interactive: false,
            info: None,
            answers: false,
            markdown: Markdown::default(),
            written: Written::Nothing,
            branch: None,
            past: Vec::new(),
            menu: None,
            menu_closed: None,
            files: Files::Unread,
            known: Known::default(),
            confirm: None,
            focus: Focus::new(Instant::now()),
            role: parts.role,
            lost: 0,
            gone: None,
            question: None,
            announced: HashSet::new(),
            interrupted: false,
            is_live: true,
            attached: Vec::new(),
            leaving: None,
            painted_at: None,
            dirty: true,
        }
    }

    /// Follows until the goal is reached, the user leaves or the daemon is gone for good.
    ///
    /// # Errors
    /// Whatever ends it before that, as a sentence for the user.
    pub async fn run(&mut self) -> Result<Exit, CtlError> {
        let mut signals = Signals::new()?;
        // After the signals: from here on no signal ends us with the terminal's mode changed. Never in the background.
        if self.interactive {
            self.keyboard = Keyboard::open(!self.screen.repaints())?;
            self.answers = self.keyboard.is_some();
            if self.editor.is_some() {
                self.editor = self.keyboard.as_ref().map(|keyboard| Editor::new(keyboard.is_by_line()));
                self.prepare_input()?;
            }
        }
        if self.output != Output::Json {
            self.screen.gather();
        }
        let result = loop {
            if let Some(exit) = self.leaving {
                break Ok(exit);
            }
            if self.goal.as_ref().is_some_and(|(goal, _)| goal.end().is_some()) {
                break self.finish();
            }
            if self.pipe_is_done() {
                break Ok(Exit::Done);
            }
            let result = match self.gone.take() {
                Some(goodbye) => self.reconnect(goodbye).await,
                None => match self.step(&mut signals).await {
                    Err(CtlError::Connection(_) | CtlError::Lost) => {
                        self.gone = Some(None);
                        Ok(())
                    }
                    other => other,
                },
            };
            if let Err(error) = result {
                break Err(error);
            }
        };
        self.end_answer()?;
        self.screen.clear()?;
        self.screen.end_text()?;
        result
    }

    async fn step(&mut self, signals: &mut Signals) -> Result<(), CtlError> {
        let alarm = self.refresh()?;
        let reads_keys = self.question.is_some() || self.editor.is_some();
        tokio::select! {
            frame = self.connection.next() => match frame {
                Ok(Some(frame)) => self.frame(frame).await,
                Ok(None) => { self.gone = Some(None); Ok(()) }
                Err(error) => Err(error),
            },
            keys = read_keys(self.keyboard.as_ref()), if reads_keys => self.keys(&keys?).await,
            line = typed::next_line(self.lines.as_mut()) => self.piped_line(line).await,
            _ = signals.interrupt.recv() => self.interrupt().await,
            _ = signals.terminate.recv() => { self.leaving = Some(Exit::Interrupted); Ok(()) }
            _ = signals.hangup.recv() => { self.leaving = Some(Exit::Interrupted); Ok(()) }
            found = self.files.arrive() => { self.files = Files::Read(found); self.update_menu(); Ok(()) }
            _ = signals.stop.recv() => self.stop(),
            _ = signals.go_on.recv() => self.go_on(),
            _ = signals.resize.recv() => { self.dirty = true; self.screen.resized(); Ok(()) }
            () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => Ok(()),
        }
    }

    /// Ctrl-Z: the terminal is left as it was found, then we stop as everybody does.
    fn stop(&mut self) -> Result<(), CtlError> {
        self.screen.clear()?;
        self.screen.unmark_pastes()?;
        if let Some(keyboard) = &self.keyboard {
            keyboard.suspend();
        }
        crate::terminal::stop_here()
    }

    /// The stop is over: the shell has changed the terminal's mode and its picture.
    fn go_on(&mut self) -> Result<(), CtlError> {
        self.screen.forget();
        self.dirty = true;
        match &self.keyboard {
            Some(keyboard) => keyboard.resume()?,
            None => return Ok(()),
        }
        if self.editor.is_some() { self.screen.mark_pastes() } else { Ok(()) }
    }

    async fn frame(&mut self, frame: ServerFrame) -> Result<(), CtlError> {
        if self.output == Output::Json && !matches!(frame, ServerFrame::Response(_)) {
            self.screen.json(&frame)?;
        }
        match frame {
            ServerFrame::Event(frame) => self.event(&frame.event),
            ServerFrame::Live(live) => self.live(&live),
            ServerFrame::Lagged(_) => self.subscribe().await,
            ServerFrame::Goodbye(goodbye) => {
                self.gone = Some(Some(goodbye.reason));
                Ok(())
            }
            ServerFrame::CaughtUp(_) => Ok(()),
            ServerFrame::Presence(presence) => self.presence(&presence),
            ServerFrame::Response(response) => match response.result {
                ResponseResult::Ok(Response::Session(info)) => {
                    self.info = self.info.is_some().then_some(info);
                    self.dirty = true;
                    Ok(())
                }
                ResponseResult::Ok(_) => Ok(()),
                ResponseResult::Error(error) => self.say(&notes::notice(&error.to_string())),
            },
        }
    }

    /// Folds one row in and shows it.
    pub(crate) fn event(&mut self, event: &Event) -> Result<(), CtlError> {
        if event.seq <= self.view.last {
            return Ok(());
        }
        self.lost = 0;
        if let Some((goal, _)) = &mut self.goal {
            goal.event(event);
        }
        let columns = self.screen.columns();
        let pieces = self.view.event(event, columns);
        if self.view.turn.is_none() {
            self.interrupted = false;
        }
        self.dirty = true;
        if matches!(event.body, EventBody::PromptAccepted(_) | EventBody::TurnStarted(_)) && !pieces.is_empty() {
            self.gap()?;
        }
        self.show(pieces)?;
        self.know(&event.body);
        match &event.body {
            EventBody::TurnEnded(it) => self.turn_ended(it.requests),
            _ => Ok(()),
        }
    }

    pub(crate) fn live(&mut self, live: &Live) -> Result<(), CtlError> {
        let pieces = self.view.live(live);
        self.dirty = true;
        self.show(pieces)
    }

    async fn keys(&mut self, bytes: &[u8]) -> Result<(), CtlError> {
        self.dirty = true;
        let typed = self.focus.take(bytes, Instant::now());
        if typed.is_empty() && !bytes.is_empty() {
            return Ok(());
        }
        let bytes = &typed[..];
        let Some(question) = &mut self.question else { return self.typed(bytes).await };
        if bytes.is_empty() {
            // The terminal is gone: nobody will answer here.
            self.leaving = Some(Exit::Interrupted);
            return Ok(());
        }
        match question.feed(bytes, Instant::now()) {
            Fed::Answer(verdict) => self.answer(verdict).await,
            Fed::Taken => Ok(()),
            Fed::NotMine => self.typed(bytes).await,
        }
    }
}

async fn read_keys(keyboard: Option<&Keyboard>) -> Result<Vec<u8>, CtlError> {
    match keyboard {
        Some(keyboard) => keyboard.read().await,
        None => std::future::pending().await,
    }
}
