//! Following one session at a terminal: the loop behind `ask` and `attach`.
//!
//! * [`goal`]: when `ask` is done. [`question`]: the approval on the screen. [`editor`]: the line `attach` reads.
//! * [`typed`]: what typed lines and signals do. [`reconnect`]: what happens when the daemon goes away.
//!
//! Invariant: a row is shown once, in order, whatever happens to the connection: the cursor is the last row that was
//! folded in, and a new subscription starts after it.

pub mod editor;
pub mod goal;
pub mod question;
pub mod reconnect;
pub mod typed;

use std::collections::HashSet;
use std::time::Duration;

use proto::approval::Verdict;
use proto::event::Event;
use proto::handshake::Role;
use proto::ids::{ApprovalId, SessionId, Timestamp};
use proto::live::Live;
use proto::request::{AnswerApproval, Request, SendPrompt};
use proto::response::{ResponseResult, ServerFrame};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{Line, Style, notes};
use crate::screen::Screen;
use crate::terminal::Keyboard;
use crate::view::{Piece, View};
use editor::Editor;
use goal::Goal;
use question::Question;
use typed::Lines;

/// Shortest time between two repaints: twenty a second look smooth, more only cost.
const REPAINT_PAUSE: Duration = Duration::from_millis(50);

/// How often running times are brought up to date.
const TICK: Duration = Duration::from_secs(1);

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
    /// Whether questions are answered here.
    pub answers: bool,
    role: Role,
    lost: u32,
    /// The connection is over; with the daemon's reason, when it said goodbye.
    gone: Option<Option<String>>,
    question: Option<Question>,
    announced: HashSet<ApprovalId>,
    interrupted: bool,
    leaving: Option<Exit>,
    painted_at: Instant,
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
            answers: false,
            role: parts.role,
            lost: 0,
            gone: None,
            question: None,
            announced: HashSet::new(),
            interrupted: false,
            leaving: None,
            painted_at: Instant::now(),
            dirty: true,
        }
    }

    /// Takes over the keyboard, where a person can be asked and we are in the foreground.
    ///
    /// # Errors
    /// [`CtlError::Terminal`].
    pub fn take_keyboard(&mut self) -> Result<(), CtlError> {
        self.keyboard = Keyboard::open(!self.screen.repaints())?;
        self.answers = self.keyboard.is_some();
        Ok(())
    }

    /// Follows until the goal is reached, the user leaves or the daemon is gone for good.
    ///
    /// # Errors
    /// Whatever ends it before that, as a sentence for the user.
    pub async fn run(&mut self) -> Result<Exit, CtlError> {
        let mut signals = Signals::new()?;
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
            _ = signals.go_on.recv() => self.go_on(),
            _ = signals.resize.recv() => { self.dirty = true; Ok(()) }
            () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => Ok(()),
        }
    }

    /// A stop by Ctrl-Z is over: the shell has changed the terminal's mode and its picture.
    fn go_on(&mut self) -> Result<(), CtlError> {
        self.screen.forget();
        self.dirty = true;
        match &self.keyboard {
            Some(keyboard) => keyboard.resume(),
            None => Ok(()),
        }
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
            ServerFrame::Response(response) => match response.result {
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
        self.show(pieces)
    }

    pub(crate) fn live(&mut self, live: &Live) -> Result<(), CtlError> {
        let pieces = self.view.live(live);
        self.dirty = true;
        self.show(pieces)
    }

    fn show(&mut self, pieces: Vec<Piece>) -> Result<(), CtlError> {
        if self.output != Output::Full {
            return Ok(());
        }
        // What is typed stands below; before something permanent is written it goes, and comes back with the repaint.
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.screen.text(&text)?,
                Piece::EndText => self.screen.end_text()?,
                Piece::Line(line) => self.screen.line(&line)?,
            }
        }
        Ok(())
    }

    /// Writes a line of ours, in every output but JSON.
    pub(crate) fn say(&mut self, line: &Line) -> Result<(), CtlError> {
        self.dirty = true;
        self.screen.line(line)
    }

    /// Brings questions and the repainted area up to date; says when to do so again.
    fn refresh(&mut self) -> Result<Option<Instant>, CtlError> {
        self.refresh_question()?;
        let now = Instant::now();
        if let Some(question) = &mut self.question
            && let Some(at) = question.settles_at()
        {
            if now < at {
                return Ok(Some(at));
            }
            if let Some(keyboard) = &self.keyboard {
                keyboard.forget();
            }
            question.open();
            self.dirty = true;
            self.draw_choices_by_line()?;
        }
        if self.output == Output::Json || !self.screen.repaints() {
            return Ok(None);
        }
        let due = self.painted_at + if self.dirty { REPAINT_PAUSE } else { TICK };
        if now >= due || self.question.is_some() {
            self.repaint()?;
            self.painted_at = now;
            self.dirty = false;
        }
        let next = if self.dirty { REPAINT_PAUSE } else { TICK };
        Ok((self.dirty || self.view.ticks()).then(|| self.painted_at + next))
    }

    fn repaint(&mut self) -> Result<(), CtlError> {
        let columns = self.screen.columns().saturating_sub(1);
        if let Some(question) = &self.question {
            return match question.prompt(columns) {
                Some((line, column)) => self.screen.repaint(&[line], Some((0, column))),
                None => self.screen.repaint(&[], None),
            };
        }
        let mut lines = if self.output == Output::Full || self.context.tty.stderr {
            self.view.status(Timestamp::now(), columns)
        } else {
            Vec::new()
        };
        match &self.editor {
            Some(editor) if self.keyboard.is_some() && (self.view.turn.is_none() || !editor.is_empty()) => {
                let (text, column) = editor.window(columns.saturating_sub(2));
                lines.push(Line::new().lit(Style::Bold, "› ").text(Style::Plain, &text));
                let row = lines.len() - 1;
                self.screen.repaint(&lines, Some((row, column + 2)))
            }
            Some(_) | None => self.screen.repaint(&lines, None),
        }
    }

    /// Draws the oldest open question when none is drawn; drops the drawn one when it was closed elsewhere.
    fn refresh_question(&mut self) -> Result<(), CtlError> {
        if let Some(question) = &self.question
            && !self.view.open.iter().any(|open| open.id == question.approval.id)
        {
            self.question = None;
            self.dirty = true;
            if !self.screen.repaints() {
                self.say(&Line::new())?;
            }
        }
        if self.output == Output::Json || self.question.is_some() {
            return Ok(());
        }
        let Some(approval) = self.view.open.first().cloned() else { return Ok(()) };
        if self.answers {
            for line in crate::render::approval::question(&approval) {
                self.say(&line)?;
            }
            self.view.drew(&approval);
            self.question = Some(Question::new(approval, Instant::now()));
        } else if self.announced.insert(approval.id) {
            for line in crate::render::session::approval_block(&approval) {
                self.say(&line)?;
            }
        }
        Ok(())
    }

    /// Where nothing can be repainted, the choices are an ordinary line.
    fn draw_choices_by_line(&mut self) -> Result<(), CtlError> {
        match &self.question {
            Some(question) if !self.screen.repaints() => {
                let line = crate::render::approval::choices(&question.approval);
                self.screen.line(&line)
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn keys(&mut self, bytes: &[u8]) -> Result<(), CtlError> {
        self.dirty = true;
        let Some(question) = &mut self.question else { return self.typed(bytes).await };
        if bytes.is_empty() {
            // The terminal is gone: nobody will answer here.
            self.leaving = Some(Exit::Interrupted);
            return Ok(());
        }
        match question.feed(bytes) {
            Some(verdict) => self.answer(verdict).await,
            None => Ok(()),
        }
    }

    async fn answer(&mut self, verdict: Verdict) -> Result<(), CtlError> {
        let Some(question) = self.question.take() else { return Ok(()) };
        let approval = question.approval;
        self.view.answers(approval.id);
        let request = Request::AnswerApproval(AnswerApproval {
            approval: approval.id.to_string(),
            digest: Some(approval.digest),
            verdict,
        });
        let refused = match self.connection.call(request).await {
            Ok(_) => None,
            Err(CtlError::Wire(error)) => Some(error),
            // Not known whether it arrived: the question stays, and is asked again if it is still open then.
            Err(error) => return Err(error),
        };
        // Its row closes it as well; an answer that was refused must not be asked for again and again.
        self.view.open.retain(|open| open.id != approval.id);
        match refused {
            None => Ok(()),
            Some(error) => self.say(&notes::notice(&error.to_string())),
        }
    }

    /// The goal is reached: the last words.
    fn finish(&mut self) -> Result<Exit, CtlError> {
        let Some((goal, _)) = &self.goal else { return Ok(Exit::Done) };
        match self.output {
            Output::Full => {}
            Output::Quiet => {
                self.screen.text(goal.answer())?;
                self.screen.end_text()?;
                if let Some(problem) = goal.problem() {
                    self.screen.line(&notes::problem(problem))?;
                }
            }
            Output::Json => {
                let result = serde_json::json!({ "result": {
                    "session": self.session,
                    "turn": goal.turn(),
                    "outcome": goal.word(),
                    "problem": goal.problem(),
                    "text": goal.answer(),
                    "exit": goal.exit().code(),
                }});
                self.screen.json(&result)?;
            }
        }
        Ok(goal.exit())
    }
}

async fn read_keys(keyboard: Option<&Keyboard>) -> Result<Vec<u8>, CtlError> {
    match keyboard {
        Some(keyboard) => keyboard.read().await,
        None => std::future::pending().await,
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    go_on: Signal,
    resize: Signal,
}

impl Signals {
    fn new() -> Result<Self, CtlError> {
        let listen = |kind| signal(kind).map_err(CtlError::Setup);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            go_on: listen(SignalKind::from_raw(nix::sys::signal::Signal::SIGCONT as i32))?,
            resize: listen(SignalKind::window_change())?,
        })
    }
}
