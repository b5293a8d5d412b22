//! The client of one session: what it was told is on disk, it remembers; what it was not told, it sends again.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proto::approval::{Approval, Verdict};
use proto::event::{Event, EventBody};
use proto::ids::{ApprovalId, PromptId, Seq, SessionId};
use proto::request::{AnswerApproval, ApproveMode, Attach, Endpoint, Request, SendPrompt};
use proto::response::{Response, ServerFrame};

use crate::client::{Client, ConnectError};
use crate::random::Random;

/// Pause before the next try while no daemon listens.
const RETRY: Duration = Duration::from_millis(3);

/// Longest time for one turn, restarts included.
const TURN_PATIENCE: Duration = Duration::from_secs(120);

/// One session's client, through all its connections.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) session: SessionId,
    number: usize,
    random: Random,
    jobs: usize,
    /// Every event, once and in order.
    pub(super) events: Vec<Event>,
    /// Prompts that were acknowledged.
    pub(super) accepted: Vec<PromptId>,
    /// Answers that were acknowledged as the ones that won.
    pub(super) answered: Vec<(ApprovalId, Verdict)>,
    open: Option<Approval>,
}

impl Driver {
    pub(super) fn new(session: SessionId, number: usize, seed: u64) -> Self {
        let random = Random::new(seed ^ (number as u64 + 1));
        let (events, accepted, answered) = (Vec::new(), Vec::new(), Vec::new());
        Self { session, number, random, jobs: 0, events, accepted, answered, open: None }
    }

    /// One turn after the other until `stop`; at least one.
    pub(super) fn drive(&mut self, socket: &Path, endpoint: &Endpoint, stop: &AtomicBool) {
        loop {
            self.turn(socket, endpoint);
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    fn turn(&mut self, socket: &Path, endpoint: &Endpoint) {
        self.jobs += 1;
        let send = SendPrompt {
            session: self.session.to_string(),
            prompt: PromptId::new(),
            text: format!("job {}.{}", self.number, self.jobs),
            approve: if self.jobs.is_multiple_of(3) { ApproveMode::Ask } else { ApproveMode::All },
            endpoint: endpoint.clone(),
        };
        let end = Instant::now() + TURN_PATIENCE;
        loop {
            let result = self.connect(socket, endpoint).and_then(|mut client| self.follow(&mut client, &send));
            match result {
                Ok(()) => return,
                Err(error) => assert!(Instant::now() < end, "{} takes too long: {error}; {self:?}", send.text),
            }
            thread::sleep(RETRY);
        }
    }

    fn connect(&self, socket: &Path, endpoint: &Endpoint) -> io::Result<Client> {
        let mut client = Client::connect(socket).map_err(|error| match error {
            ConnectError::Io(error) => error,
            // A daemon that dies in the middle of its first line.
            ConnectError::Nonsense(line) => io::Error::other(format!("{line:?}")),
            ConnectError::Refused(refusal, sentence) => panic!("refused: {refusal:?} {sentence}"),
        })?;
        let since = self.events.last().map_or(Seq(0), |event| event.seq);
        let attach = Attach { session: self.session.to_string(), since, endpoint: endpoint.clone() };
        match client.try_call(Request::Attach(attach))? {
            Ok(Response::Attached(_)) => Ok(client),
            other => panic!("not attached to a session that exists: {other:?}"),
        }
    }

    /// Sends the prompt, again if need be, and stays until its turn is over.
    fn follow(&mut self, client: &mut Client, send: &SendPrompt) -> io::Result<()> {
        if !self.accepted.contains(&send.prompt) {
            match client.try_call(Request::SendPrompt(send.clone()))? {
                Ok(Response::Accepted(_)) => self.accepted.push(send.prompt),
                other => panic!("a prompt was refused: {other:?}"),
            }
        }
        if let Some(asked) = self.open.clone() {
            self.answer(client, &asked)?;
        }
        while !self.is_over(send.prompt) {
            match client.next_frame()? {
                ServerFrame::Event(frame) => {
                    self.take(frame.event);
                    if let Some(asked) = self.open.clone() {
                        self.answer(client, &asked)?;
                    }
                }
                ServerFrame::Lagged(lagged) => return Err(io::Error::other(format!("lagged after {}", lagged.after))),
                ServerFrame::Goodbye(goodbye) => return Err(io::Error::other(goodbye.reason)),
                ServerFrame::Live(_)
                | ServerFrame::CaughtUp(_)
                | ServerFrame::Presence(_)
                | ServerFrame::Response(_) => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, event: Event) {
        let expected = self.events.last().map_or(1, |last| last.seq.0 + 1);
        assert_eq!(event.seq.0, expected, "an event is missing or doubled in {}", self.session);
        match &event.body {
            EventBody::ApprovalAsked(asked) => self.open = Some(asked.approval.clone()),
            EventBody::ApprovalClosed(_) => self.open = None,
            _ => {}
        }
        self.events.push(event);
    }

    fn answer(&mut self, client: &mut Client, asked: &Approval) -> io::Result<()> {
        let verdict = match self.random.below(4) {
            0 => Verdict::Deny { reason: Some("not now".into()) },
            _ => Verdict::Once {},
        };
        let (approval, digest) = (asked.id.to_string(), Some(asked.digest.clone()));
        match client.try_call(Request::AnswerApproval(AnswerApproval { approval, digest, verdict: verdict.clone() }))? {
            Ok(Response::Answered(answered)) => {
                if answered.yours {
                    self.answered.push((asked.id, verdict));
                }
                self.open = None;
                Ok(())
            }
            other => panic!("an open question does not take an answer: {other:?}"),
        }
    }

    fn is_over(&self, prompt: PromptId) -> bool {
        let mut turn = None;
        self.events.iter().any(|event| match &event.body {
            EventBody::TurnStarted(started) if started.prompt == prompt => {
                turn = Some(started.turn);
                false
            }
            EventBody::TurnEnded(ended) => turn == Some(ended.turn),
            _ => false,
        })
    }
}
