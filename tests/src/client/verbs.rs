//! What a client asks and waits for, in the words of the claims.

use std::path::Path;
use std::time::Instant;

use proto::approval::{Approval, Verdict};
use proto::event::{Event, EventBody, TurnEnded};
use proto::ids::{PromptId, Seq, SessionId};
use proto::mode::Mode;
use proto::request::{
    AnswerApproval, ApproveMode, Attach, ClientInfo, CreateSession, Hello, ReadLog, Request, SendPrompt, SetMode,
    ShowSession,
};
use proto::response::{Answered, Response, ServerFrame, SessionInfo, WireError};

use super::Client;
use crate::machine::Machine;

/// Events of one page when a whole log is read.
const PAGE: u32 = 500;

impl Client {
    /// Says who this is.
    ///
    /// # Panics
    /// When the daemon refuses.
    pub fn hello(&mut self, program: &str, terminal: &str) {
        let client = ClientInfo { program: program.to_owned(), terminal: terminal.to_owned() };
        self.call(Request::Hello(Hello { client })).expect("hello is accepted");
    }

    /// Creates a session in the machine's workspace with its environment and endpoint.
    ///
    /// # Panics
    /// When the daemon refuses.
    pub fn create(&mut self, machine: &Machine) -> SessionId {
        self.create_in(machine, &machine.work())
    }

    /// Creates a session in a directory.
    ///
    /// # Panics
    /// When the daemon refuses.
    pub fn create_in(&mut self, machine: &Machine, cwd: &Path) -> SessionId {
        let request = CreateSession {
            cwd: cwd.to_string_lossy().into_owned(),
            env: machine.env_vars(),
            name: None,
            model: None,
            scenario: None,
            endpoint: machine.endpoint(),
            mode: Mode::Ask,
        };
        match self.call(Request::CreateSession(request)) {
            Ok(Response::Session(info)) => info.id,
            other => panic!("no session was created: {other:?}"),
        }
    }

    /// Subscribes to a session from a position.
    ///
    /// # Panics
    /// When the daemon refuses.
    pub fn attach(&mut self, machine: &Machine, session: SessionId, since: Seq) -> SessionInfo {
        let request = Attach { session: session.to_string(), since, endpoint: machine.endpoint() };
        match self.call(Request::Attach(request)) {
            Ok(Response::Attached(attached)) => attached.session,
            other => panic!("not attached: {other:?}"),
        }
    }

    /// A session by its name.
    ///
    /// # Panics
    /// When there is none.
    pub fn show_named(&mut self, name: &str) -> SessionInfo {
        match self.call(Request::ShowSession(ShowSession { session: name.to_owned() })) {
            Ok(Response::Session(info)) => info,
            other => panic!("no session {name}: {other:?}"),
        }
    }

    /// Sends a prompt.
    ///
    /// # Panics
    /// When the daemon refuses.
    pub fn prompt(&mut self, machine: &Machine, session: SessionId, text: &str, approve: ApproveMode) -> PromptId {
        let prompt = PromptId::new();
        let request = SendPrompt {
            session: session.to_string(),
            prompt,
            text: text.to_owned(),
            approve,
            endpoint: machine.endpoint(),
        };
        match self.call(Request::SendPrompt(request)) {
            Ok(Response::Accepted(accepted)) => assert_eq!(accepted.prompt, prompt),
            other => panic!("the prompt was not accepted: {other:?}"),
        }
        prompt
    }

    /// The next frame for which `pick` has a value; frames before it are consumed.
    ///
    /// # Panics
    /// When none comes in time.
    pub fn until<T>(&mut self, what: &str, mut pick: impl FnMut(&ServerFrame) -> Option<T>) -> T {
        let end = Instant::now() + self.patience;
        loop {
            match self.next_frame() {
                Ok(frame) => {
                    if let Some(value) = pick(&frame) {
                        return value;
                    }
                }
                Err(error) => panic!("waited for {what}: {error}; events so far: {:#?}", self.events),
            }
            assert!(Instant::now() < end, "waited {:?} for {what}; events so far: {:#?}", self.patience, self.events);
        }
    }

    /// The next event for which `pick` has a value; events before it are consumed.
    ///
    /// # Panics
    /// When none comes in time.
    pub fn until_event<T>(&mut self, what: &str, mut pick: impl FnMut(&EventBody) -> Option<T>) -> T {
        self.until(what, |frame| match frame {
            ServerFrame::Event(event) => pick(&event.event.body),
            ServerFrame::Response(_)
            | ServerFrame::Live(_)
            | ServerFrame::CaughtUp(_)
            | ServerFrame::Lagged(_)
            | ServerFrame::Presence(_)
            | ServerFrame::Goodbye(_) => None,
        })
    }

    /// Waits for the end of a turn.
    ///
    /// # Panics
    /// When none comes in time.
    pub fn until_turn_ended(&mut self) -> TurnEnded {
        self.until_event("a turn's end", |body| match body {
            EventBody::TurnEnded(ended) => Some(ended.clone()),
            _ => None,
        })
    }

    /// Waits for a question.
    ///
    /// # Panics
    /// When none comes in time.
    pub fn until_asked(&mut self) -> Approval {
        self.until_event("an approval", |body| match body {
            EventBody::ApprovalAsked(asked) => Some(asked.approval.clone()),
            _ => None,
        })
    }

    /// Waits until everything before the subscription was sent.
    ///
    /// # Panics
    /// When that is not told in time.
    pub fn until_caught_up(&mut self) -> Seq {
        self.until("the end of the replay", |frame| match frame {
            ServerFrame::CaughtUp(caught) => Some(caught.seq),
            _ => None,
        })
    }

    /// Answers a question.
    ///
    /// # Errors
    /// The daemon's own error.
    ///
    /// # Panics
    /// When the answer to it is of another kind.
    pub fn answer(&mut self, approval: &Approval, verdict: Verdict) -> Result<Answered, WireError> {
        let (id, digest) = (approval.id.to_string(), Some(approval.digest.clone()));
        match self.call(Request::AnswerApproval(AnswerApproval { approval: id, digest, verdict }))? {
            Response::Answered(answered) => Ok(answered),
            other => panic!("an answer of another kind: {other:?}"),
        }
    }

    /// Switches a session's mode, confirmed.
    ///
    /// # Panics
    /// When the daemon refuses.
    pub fn set_mode(&mut self, session: SessionId, mode: Mode) -> SessionInfo {
        match self.call(Request::SetMode(SetMode { session: session.to_string(), mode, confirmed: true })) {
            Ok(Response::Session(info)) => info,
            other => panic!("the mode is not switched: {other:?}"),
        }
    }

    /// One session's present state.
    ///
    /// # Panics
    /// When the daemon refuses.
    pub fn show(&mut self, session: SessionId) -> SessionInfo {
        match self.call(Request::ShowSession(ShowSession { session: session.to_string() })) {
            Ok(Response::Session(info)) => info,
            other => panic!("the session is not shown: {other:?}"),
        }
    }

    /// A session's whole log. Its positions are checked to be 1, 2, 3 …
    ///
    /// # Panics
    /// When the daemon refuses or a position is missing or doubled.
    pub fn log(&mut self, session: SessionId) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        loop {
            let since = events.last().map_or(Seq(0), |event| event.seq);
            let request = ReadLog { session: session.to_string(), since, limit: PAGE };
            let Ok(Response::Log(page)) = self.call(Request::ReadLog(request)) else { panic!("no page of the log") };
            events.extend(page.events);
            if !page.more {
                break;
            }
        }
        let positions: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
        let expected: Vec<u64> = (1..=positions.len() as u64).collect();
        assert_eq!(positions, expected, "a log has no gaps");
        events
    }
}
