//! A daemon that plays a script, and ways to run the real `agentctl` against it: with pipes or in a terminal.
//!
//! It speaks the real wire through `proto` over a real socket, so what is tested is the client whole.

#![allow(
    dead_code,
    unreachable_pub,
    missing_debug_implementations,
    reason = "each test file is a crate and uses a part"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop at the first surprise")]

pub mod rows;
pub mod terminal;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::approval::{Approval, Decider, Verdict};
use proto::event::{Event, EventBody, PromptAccepted, TurnStarted};
use proto::frame;
use proto::handshake::{Answer, PROTOCOL, Preface};
use proto::ids::{Seq, SessionId, Timestamp, TurnId};
use proto::live::Live;
use proto::request::{AnswerApproval, ClientFrame, ClientInfo, Request, SendPrompt};
use proto::response::{
    Accepted, Answered, Approvals, Attached, Done, EventFrame, LogPage, Response, ResponseFrame, ResponseResult,
    ServerFrame, SessionInfo, SessionState, Sessions, Undone, WireError,
};
use proto::usage::UsageReport;

/// Longest wait for anything in a test.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What the fake knows; tests may look at it afterwards.
#[derive(Debug, Default)]
pub struct Record {
    /// Every request of every connection.
    pub requests: Vec<Request>,
    /// Rows of the one session.
    pub rows: Vec<Event>,
    /// The session, once created or given.
    pub session: Option<SessionInfo>,
    /// The open question that any connection may answer, and where the answer is reported.
    pub question: Option<(Approval, Sender<Verdict>)>,
    attached: Vec<UnixStream>,
}

pub type Shared = Arc<Mutex<Record>>;
type Turn = dyn Fn(&mut Peer, &SendPrompt) + Send + Sync;

/// The daemon. Its socket goes with it.
pub struct Fake {
    pub home: tempfile::TempDir,
    pub record: Shared,
}

impl Fake {
    /// A daemon whose turns are played by a script.
    pub fn start(turn: impl Fn(&mut Peer, &SendPrompt) + Send + Sync + 'static) -> Self {
        let home = tempfile::tempdir().unwrap();
        let record = Shared::default();
        let turn: Arc<Turn> = Arc::new(turn);
        listen(home.path().join("s.sock"), Arc::clone(&record), turn);
        Self { home, record }
    }

    /// A daemon that answers the preface with these bytes and closes.
    pub fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(home.path().join("s.sock")).unwrap();
        let answer = answer.into();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new());
                let _ = stream.write_all(&answer);
            }
        });
        Self { home, record: Shared::default() }
    }

    pub fn socket(&self) -> PathBuf {
        self.home.path().join("s.sock")
    }

    /// The real binary with a clean environment. When this daemon goes away, it finds no other to start: one would outlive the
    /// test.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = agentctl(args);
        command.env("AGENTD_BIN", "/nonexistent/agentd");
        command.env("HOME", self.home.path()).env("AGENTD_SOCKET", self.socket()).current_dir(self.home.path());
        command
    }

    /// Runs with no input; the output as it was.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    pub fn requests(&self) -> Vec<Request> {
        self.record.lock().unwrap().requests.clone()
    }

    /// Prompts that were sent.
    pub fn prompts(&self) -> Vec<SendPrompt> {
        let prompt = |request| match request {
            Request::SendPrompt(prompt) => Some(prompt),
            _ => None,
        };
        self.requests().into_iter().filter_map(prompt).collect()
    }
}

pub fn agentctl(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TZ", "UTC");
    command
}

pub fn listen(socket: PathBuf, record: Shared, turn: Arc<Turn>) {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (record, turn) = (Arc::clone(&record), Arc::clone(&turn));
            std::thread::spawn(move || Peer::new(stream.unwrap(), record).serve(&*turn));
        }
    });
}

/// One connection, as the script sees it.
pub struct Peer {
    stream: UnixStream,
    record: Shared,
    client: ClientInfo,
    pub turn: TurnId,
}

impl Peer {
    fn new(stream: UnixStream, record: Shared) -> Self {
        let mut line = Vec::new();
        let mut byte = [0];
        let mut stream = stream;
        while line.last() != Some(&b'\n') {
            stream.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        assert!(Preface::parse(std::str::from_utf8(&line).unwrap()).is_some());
        let welcome = Answer::Welcome { version: PROTOCOL, release: env!("CARGO_PKG_VERSION").into() };
        stream.write_all(welcome.to_string().as_bytes()).unwrap();
        Self { stream, record, client: ClientInfo::default(), turn: TurnId::new() }
    }

    /// The next request; `None` when the client is gone.
    pub fn request(&mut self) -> Option<(u64, Request)> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut bytes).ok()?;
        let ClientFrame { id, request } = frame::decode(&bytes).unwrap();
        if let Request::Hello(hello) = &request {
            self.client = hello.client.clone();
        }
        self.record.lock().unwrap().requests.push(request.clone());
        Some((id, request))
    }

    pub fn send(&mut self, message: &ServerFrame) {
        // Under the lock, because rows of other connections are written to this stream too.
        let _record = self.record.lock().unwrap();
        write(&mut self.stream, message);
    }

    pub fn ok(&mut self, id: u64, response: Response) {
        self.send(&ServerFrame::Response(ResponseFrame { id, result: ResponseResult::Ok(response) }));
    }

    pub fn fail(&mut self, id: u64, error: WireError) {
        self.send(&ServerFrame::Response(ResponseFrame { id, result: ResponseResult::Error(error) }));
    }

    /// Commits a row and shows it to every attached connection.
    pub fn row(&mut self, body: EventBody) -> Seq {
        let mut record = self.record.lock().unwrap();
        let seq = Seq(u64::try_from(record.rows.len()).unwrap() + 1);
        let event = Event { seq, at: Timestamp(1_700_000_000_000 + seq.0), body };
        record.rows.push(event.clone());
        let session = record.session.as_ref().unwrap().id;
        let frame = ServerFrame::Event(EventFrame { session, event });
        record.attached.iter_mut().for_each(|stream| write(stream, &frame));
        seq
    }

    pub fn live(&mut self, live: Live) {
        let frame = ServerFrame::Live(live);
        self.record.lock().unwrap().attached.iter_mut().for_each(|stream| write(stream, &frame));
    }

    pub fn session(&self) -> SessionInfo {
        self.record.lock().unwrap().session.clone().expect("a session")
    }

    /// The client as others see it.
    pub fn name(&self) -> String {
        format!("{} on {}", self.client.program, self.client.terminal)
    }

    pub fn close(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    fn serve(mut self, turn: &Turn) {
        while let Some((id, request)) = self.request() {
            match request {
                Request::SendPrompt(prompt) => self.prompt(id, &prompt, turn),
                other => self.answer(id, other),
            }
        }
    }

    fn prompt(&mut self, id: u64, prompt: &SendPrompt, turn: &Turn) {
        let known = self
            .record
            .lock()
            .unwrap()
            .rows
            .iter()
            .any(|row| matches!(&row.body, EventBody::PromptAccepted(it) if it.prompt == prompt.prompt));
        let session = self.session().id;
        if known {
            return self.ok(id, Response::Accepted(Accepted { session, prompt: prompt.prompt, seq: Seq(0) }));
        }
        let accepted = PromptAccepted {
            prompt: prompt.prompt,
            text: prompt.text.clone(),
            approve: prompt.approve,
            by: "agentctl".into(),
        };
        let seq = self.row(EventBody::PromptAccepted(accepted));
        self.ok(id, Response::Accepted(Accepted { session, prompt: prompt.prompt, seq }));
        self.turn = TurnId::new();
        let started = TurnStarted { turn: self.turn, prompt: prompt.prompt };
        self.row(EventBody::TurnStarted(started));
        turn(self, prompt);
    }

    fn answer(&mut self, id: u64, request: Request) {
        let found = {
            let record = self.record.lock().unwrap();
            let head = record.rows.last().map_or(Seq(0), |row| row.seq);
            record.session.clone().map(|info| SessionInfo { head, ..info })
        };
        let response = match request {
            Request::Hello(_)
            | Request::Interrupt(_)
            | Request::Detach(_)
            | Request::Retry(_)
            | Request::Compact(_)
            | Request::Steer(_) => Response::Done(Done {}),
            Request::CreateSession(create) => {
                let info = rows::session(&create.cwd);
                self.record.lock().unwrap().session = Some(info.clone());
                Response::Session(info)
            }
            Request::ListSessions(_) => Response::Sessions(Sessions { sessions: found.into_iter().collect() }),
            Request::ShowSession(show) if found.is_none() => return self.fail(id, rows::no_session(&show.session)),
            Request::Usage(_) => Response::Usage(UsageReport { days: Vec::new(), turns: Vec::new() }),
            Request::ShowSession(_) | Request::ChangeSession(_) | Request::Configure(_) => {
                Response::Session(found.unwrap())
            }
            Request::SetMode(set) => Response::Session(SessionInfo { mode: set.mode, ..found.unwrap() }),
            Request::ReadLog(read) => {
                let rows = self.record.lock().unwrap().rows.clone();
                let events: Vec<Event> = rows.into_iter().filter(|row| row.seq > read.since).collect();
                Response::Log(LogPage { session: found.unwrap().id, events, more: false })
            }
            Request::Attach(attach) => return self.attach(id, attach.since),
            Request::ListApprovals(_) => Response::Approvals(Approvals { approvals: found.unwrap().approvals }),
            Request::Status(_) => Response::Status(rows::status()),
            Request::AnswerApproval(answer) => return self.answered(id, answer),
            Request::Undo(undo) => {
                let applied = !undo.preview;
                let diffs = vec![rows::diff("src/a.rs")];
                Response::Undone(Undone { undo: undo.undo, applied, diffs, left: 2, newest: 7 })
            }
            Request::SessionDiff(_) => Response::Changes(rows::changes()),
            Request::Shutdown(_) => {
                self.ok(id, Response::Done(Done {}));
                return self.close();
            }
            Request::ListJobs(_)
            | Request::ReadJob(_)
            | Request::StopJob(_)
            | Request::Background(_)
            | Request::RunCommand(_)
            | Request::ShowEnv(_)
            | Request::SendPrompt(_)
            | Request::WithdrawPrompt(_)
            | Request::Rerun(_)
            | Request::Search(_)
            | Request::ForkSession(_)
            | Request::Prune(_)
            | Request::Restart(_) => unreachable!("handled before, or never sent"),
        };
        self.ok(id, response);
    }

    /// The first answer wins, from whatever connection.
    fn answered(&mut self, id: u64, answer: AnswerApproval) {
        let question = self.record.lock().unwrap().question.take();
        let Some((approval, reports)) = question.filter(|(open, _)| open.id.to_string() == answer.approval) else {
            return self.fail(id, rows::not_found(&format!("there is no open approval {}", answer.approval)));
        };
        let by = self.name();
        self.closes(&approval, answer.verdict.clone(), &by);
        let (verdict, by) = (answer.verdict.clone(), Decider::Client { name: by });
        self.ok(id, Response::Answered(Answered { approval: approval.id, verdict, by, yours: true }));
        reports.send(answer.verdict).unwrap();
    }

    fn attach(&mut self, id: u64, since: Seq) {
        let mut info = self.session();
        let mut record = self.record.lock().unwrap();
        let session = info.id;
        let head = record.rows.last().map_or(Seq(0), |row| row.seq);
        info.head = head;
        let result = ResponseResult::Ok(Response::Attached(Attached { session: info }));
        write(&mut self.stream, &ServerFrame::Response(ResponseFrame { id, result }));
        for event in record.rows.iter().filter(|row| row.seq > since).cloned() {
            write(&mut self.stream, &ServerFrame::Event(EventFrame { session, event }));
        }
        write(&mut self.stream, &ServerFrame::CaughtUp(proto::response::CaughtUp { session, seq: head }));
        record.attached.push(self.stream.try_clone().unwrap());
    }
}

fn write(stream: &mut UnixStream, message: &ServerFrame) {
    let bytes = frame::encode(message).unwrap();
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    // A client that left is no failure of the daemon.
    let _ = stream.write_all(&length).and_then(|()| stream.write_all(&bytes));
}

/// Standard output as text.
pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error as text.
pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// An idle session that exists before the client comes.
pub fn with_session(fake: &Fake, change: impl FnOnce(&mut SessionInfo)) -> SessionId {
    let mut info = rows::session(&fake.home.path().display().to_string());
    info.state = SessionState::Idle;
    change(&mut info);
    let id = info.id;
    fake.record.lock().unwrap().session = Some(info);
    id
}
