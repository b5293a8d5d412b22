//! A client on the wire, in both codecs. It waits for events and keeps every frame in the order it came.
//!
//! Frames that come while another is waited for stay in a backlog, so nothing is lost between two waits.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use proto::approval::{Approval, Verdict};
use proto::event::{Event, EventBody, TurnEnded};
use proto::frame;
use proto::handshake::{Answer, Codec, PROTOCOL, Preface, Refusal, Role};
use proto::ids::{PromptId, Seq, SessionId};
use proto::request::{
    AnswerApproval, ApproveMode, Attach, ClientFrame, ClientInfo, CreateSession, Hello, ReadLog, Request, SendPrompt,
    ShowSession,
};
use proto::response::{Answered, Response, ResponseResult, ServerFrame, SessionInfo, WireError};

use crate::machine::Machine;
use crate::wait::PATIENCE;

/// Events of one page when a whole log is read.
const PAGE: u32 = 500;

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    codec: Codec,
    next_id: u64,
    patience: Duration,
    backlog: VecDeque<ServerFrame>,
    /// Every event frame, in the order it came.
    pub events: Vec<Event>,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// Nobody listens, or the connection broke.
    Io(io::Error),
    /// The daemon says no.
    Refused(Refusal, String),
    /// The answer is none.
    Nonsense(String),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Client {
    /// Connects as a driver with bincode.
    ///
    /// # Errors
    /// When nobody listens or the daemon refuses.
    pub fn connect(socket: &Path) -> Result<Self, ConnectError> {
        Self::connect_as(socket, Codec::Bincode, Role::Driver)
    }

    /// Connects with a codec and a role.
    ///
    /// # Errors
    /// When nobody listens or the daemon refuses.
    pub fn connect_as(socket: &Path, codec: Codec, role: Role) -> Result<Self, ConnectError> {
        let mut client = Self::open(socket, &Preface { version: PROTOCOL, codec, role }.to_string())?;
        client.codec = codec;
        Ok(client)
    }

    /// Connects with any first line.
    ///
    /// # Errors
    /// When nobody listens or the daemon refuses.
    pub fn open(socket: &Path, preface: &str) -> Result<Self, ConnectError> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut stream = BufReader::new(stream);
        stream.get_mut().write_all(preface.as_bytes())?;
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match Answer::parse(&line) {
            Some(Answer::Welcome { .. }) => {
                let (backlog, events) = (VecDeque::new(), Vec::new());
                Ok(Self { stream, codec: Codec::Bincode, next_id: 1, patience: PATIENCE, backlog, events })
            }
            Some(Answer::Refused { refusal, sentence, .. }) => Err(ConnectError::Refused(refusal, sentence)),
            None => Err(ConnectError::Nonsense(line)),
        }
    }

    /// The socket itself, for claims about bytes.
    pub fn raw(&mut self) -> &mut UnixStream {
        self.stream.get_mut()
    }

    /// Sends a request without waiting for the answer; returns its number.
    ///
    /// # Panics
    /// When the connection is gone.
    pub fn post(&mut self, request: Request) -> u64 {
        self.try_post(request).expect("the daemon reads")
    }

    fn try_post(&mut self, request: Request) -> io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let frame = ClientFrame { id, request };
        let bytes = match self.codec {
            Codec::Bincode => {
                let payload = frame::encode(&frame).map_err(io::Error::other)?;
                let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
                [&length.to_be_bytes()[..], &payload].concat()
            }
            Codec::Json => frame::encode_line(&frame).map_err(io::Error::other)?,
        };
        self.stream.get_mut().write_all(&bytes)?;
        Ok(id)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// The daemon's own error.
    ///
    /// # Panics
    /// When the connection breaks.
    pub fn call(&mut self, request: Request) -> Result<Response, WireError> {
        let what = format!("{request:?}");
        match self.try_call(request) {
            Ok(result) => result,
            Err(error) => panic!("no answer to {what}: {error}"),
        }
    }

    /// As [`Client::call`], for connections that may break.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn try_call(&mut self, request: Request) -> io::Result<Result<Response, WireError>> {
        let id = self.try_post(request)?;
        self.answer_to(id)
    }

    /// Waits for the answer to a posted request.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn answer_to(&mut self, id: u64) -> io::Result<Result<Response, WireError>> {
        let is_it = |frame: &ServerFrame| matches!(frame, ServerFrame::Response(response) if response.id == id);
        let frame = match self.backlog.iter().position(is_it) {
            Some(position) => self.backlog.remove(position),
            None => None,
        };
        let mut frame = frame;
        loop {
            match frame {
                Some(ServerFrame::Response(response)) if response.id == id => {
                    return Ok(match response.result {
                        ResponseResult::Ok(response) => Ok(response),
                        ResponseResult::Error(error) => Err(error),
                    });
                }
                Some(other) => self.backlog.push_back(other),
                None => {}
            }
            frame = Some(self.read_frame()?);
        }
    }

    /// The next frame that is no answer, from the backlog or the socket.
    ///
    /// # Errors
    /// When the connection breaks or nothing comes in time.
    pub fn next_frame(&mut self) -> io::Result<ServerFrame> {
        match self.backlog.pop_front() {
            Some(frame) => Ok(frame),
            None => self.read_frame(),
        }
    }

    fn read_frame(&mut self) -> io::Result<ServerFrame> {
        let frame = match self.codec {
            Codec::Bincode => {
                let mut length = [0; 4];
                self.stream.read_exact(&mut length)?;
                let length = u32::from_be_bytes(length) as usize;
                if length > frame::FRAME_BYTES_MAX {
                    return Err(io::Error::other(format!("a frame of {length} bytes")));
                }
                let mut payload = vec![0; length];
                self.stream.read_exact(&mut payload)?;
                frame::decode(&payload).map_err(io::Error::other)?
            }
            Codec::Json => {
                let mut line = Vec::new();
                if self.stream.read_until(b'\n', &mut line)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                frame::decode_line(&line).map_err(io::Error::other)?
            }
        };
        if let ServerFrame::Event(event) = &frame {
            self.events.push(event.event.clone());
        }
        Ok(frame)
    }

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

    /// Changes how long a wait may last: shorter for claims that nothing comes, longer for long turns.
    ///
    /// # Panics
    /// When the socket is gone.
    pub fn patience(&mut self, patience: Duration) {
        self.patience = patience;
        self.raw().set_read_timeout(Some(patience)).expect("a live socket");
    }
}
