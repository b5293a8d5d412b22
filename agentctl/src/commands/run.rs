//! `run`: a command in the session's shell, as the user.

use proto::command::RunCommand;
use proto::event::{CallFinished, EventBody, Outcome};
use proto::handshake::Role;
use proto::ids::{CallId, Seq, SessionId, TurnId};
use proto::live::Live;
use proto::request::{Attach, Interrupt, Request, ShowSession};
use proto::response::{ResponseResult, ServerFrame};
use tokio::signal::unix::{SignalKind, signal};

use super::session::selector;
use crate::cli::RunArgs;
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{call, notes};
use crate::screen::Screen;
use crate::start;

pub(super) async fn run(args: RunArgs, context: &Context) -> Result<Exit, CtlError> {
    let mut connection = start::connect(context, Role::Driver).await?;
    let session = selector(args.session, &mut connection, context).await?;
    let info = crate::answer!(connection, Request::ShowSession(ShowSession { session }), Session)?;
    let mut interrupts = signal(SignalKind::interrupt()).map_err(CtlError::Setup)?;
    let screen = Screen::standard(context.tty);
    let (session, last) = (info.id, info.head);
    let mut watch =
        Watch { session, last, call: CallId::new(), turn: None, received: 0, end: None, screen, json: args.json };
    // First the subscription, then the command: so none of its output can be missed.
    watch.attach(&mut connection, context).await?;
    let command = args.command.join(" ");
    let request = RunCommand { session: session.to_string(), call: watch.call, command };
    connection.call(Request::RunCommand(request)).await?;
    let mut interrupted = false;
    loop {
        let frame = tokio::select! {
            frame = connection.next() => frame?.ok_or(CtlError::Gone)?,
            _ = interrupts.recv() => {
                if interrupted {
                    return Ok(Exit::Interrupted);
                }
                interrupted = true;
                connection.post(Request::Interrupt(Interrupt { session: session.to_string() })).await?;
                continue;
            }
        };
        if let ServerFrame::Lagged(_) = frame {
            watch.attach(&mut connection, context).await?;
        } else if let Some(exit) = watch.frame(frame)? {
            return Ok(exit);
        }
    }
}

/// One command on its way to its end.
struct Watch {
    session: SessionId,
    /// The last row that was seen.
    last: Seq,
    call: CallId,
    turn: Option<TurnId>,
    /// Bytes of its output so far.
    received: u64,
    end: Option<CallFinished>,
    screen: Screen,
    json: bool,
}

impl Watch {
    async fn attach(&self, connection: &mut Connection, context: &Context) -> Result<(), CtlError> {
        let session = self.session.to_string();
        let attach = Attach { session, since: self.last, endpoint: context.endpoint() };
        crate::answer!(connection, Request::Attach(attach), Attached).map(drop)
    }

    /// Takes a frame; the exit code when the command is over.
    fn frame(&mut self, frame: ServerFrame) -> Result<Option<Exit>, CtlError> {
        if self.json && matches!(frame, ServerFrame::Event(_) | ServerFrame::Live(_)) {
            self.screen.json(&frame)?;
        }
        match frame {
            ServerFrame::Event(frame) => {
                self.last = frame.event.seq;
                match frame.event.body {
                    EventBody::CommandEntered(it) if it.call == self.call => self.turn = Some(it.turn),
                    EventBody::CallFinished(it) if it.call == self.call => self.end = Some(it),
                    EventBody::TurnEnded(it) if Some(it.turn) == self.turn => return self.over().map(Some),
                    _ => {}
                }
            }
            ServerFrame::Live(Live::Output(piece)) if piece.call == self.call && !self.json => {
                let missing = piece.offset.saturating_sub(self.received);
                if missing > 0 {
                    self.screen.line(&notes::notice(&format!("{missing} bytes of output are left out here")))?;
                }
                self.received = piece.offset + piece.bytes;
                self.screen.text(&piece.text)?;
            }
            ServerFrame::Goodbye(_) => return Err(CtlError::Gone),
            ServerFrame::Response(response) => {
                if let ResponseResult::Error(error) = response.result {
                    return Err(CtlError::Wire(error));
                }
            }
            ServerFrame::Live(_) | ServerFrame::Lagged(_) | ServerFrame::CaughtUp(_) | ServerFrame::Presence(_) => {}
        }
        Ok(None)
    }

    fn over(&mut self) -> Result<Exit, CtlError> {
        let exit = match self.end.as_ref().map(|end| &end.outcome) {
            Some(Outcome::Exited { status: 0 } | Outcome::Background { .. }) => Exit::Done,
            Some(Outcome::Interrupted {}) => Exit::Interrupted,
            Some(_) | None => Exit::Failed,
        };
        if self.json {
            let outcome = self.end.as_ref().map(|end| &end.outcome);
            let result = serde_json::json!({ "result": {
                "session": self.session, "call": self.call, "outcome": outcome, "exit": exit.code(),
            }});
            self.screen.json(&result)?;
            return Ok(exit);
        }
        self.screen.end_text()?;
        if let Some(end) = &self.end
            && exit != Exit::Done
        {
            let words = call::ending_words(end);
            // What did not run has its reason in place of an output.
            let words = if matches!(end.outcome, Outcome::Failed {}) { end.text.trim().to_owned() } else { words };
            self.screen.line(&notes::remark(&words))?;
        }
        Ok(exit)
    }
}
