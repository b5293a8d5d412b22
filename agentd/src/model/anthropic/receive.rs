//! The body of a successful answer: bytes to events to a reply, under the limits of silence.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::assemble::Assembler;
use super::super::error::{ErrorKind, ModelError, Target};
use super::super::failure::{self, Answer};
use super::super::progress::Outbox;
use super::super::sse::{Decoder, Event};
use super::super::stream::StreamEvent;
use super::super::{Progress, Reply};
use super::{Patience, transport};

/// Wait for the end of an answer after `message_stop`. It mostly comes in the same packet; a new connection with TLS
/// would cost several times as much as this wait.
const END_WAIT: Duration = Duration::from_millis(10);

/// Watches for silence.
#[derive(Debug)]
pub(super) struct Clock {
    patience: Patience,
    /// The first event must come until then; `None` once it came.
    first_event: Option<Instant>,
    last_bytes: Instant,
    last_event: Instant,
    last_word: Instant,
}

/// What has just come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Bytes,
    Ping,
    Word,
}

impl Clock {
    /// A clock that has waited for the first event since the request; `first_event` is when that ends.
    pub(super) fn new(patience: Patience, first_event: Instant) -> Self {
        let now = Instant::now();
        Self { patience, first_event: Some(first_event), last_bytes: now, last_event: now, last_word: now }
    }

    fn saw(&mut self, sign: Sign) {
        let now = Instant::now();
        self.last_bytes = now;
        if sign != Sign::Bytes {
            self.last_event = now;
            self.first_event = None;
        }
        if sign == Sign::Word {
            self.last_word = now;
        }
    }

    /// When silence has lasted too long, and which limit that is.
    fn deadline(&self) -> (Instant, Duration) {
        let Patience { first_event, bytes, events, pings } = self.patience;
        if let Some(deadline) = self.first_event {
            return (deadline, first_event);
        }
        let limits =
            [(self.last_bytes + bytes, bytes), (self.last_event + events, events), (self.last_word + pings, pings)];
        limits.into_iter().min().unwrap_or(limits[0])
    }
}

/// Reads the reply.
pub(super) async fn receive(
    mut response: reqwest::Response,
    answer: Answer,
    target: &Target,
    mut clock: Clock,
    progress: mpsc::Sender<Progress>,
) -> Result<Reply, ModelError> {
    let request_id = answer.request_id.clone();
    let mut reader =
        Reader { answer, target, decoder: Decoder::default(), assembler: Assembler::default(), events: Vec::new() };
    let mut outbox = Outbox::new(progress);
    loop {
        let (deadline, limit) = clock.deadline();
        let chunk = tokio::select! {
            chunk = response.chunk() => chunk,
            () = outbox.drain() => continue,
            () = tokio::time::sleep_until(deadline) => return Err(reader.fail(ErrorKind::Idle(limit))),
        };
        let last = match chunk {
            Ok(Some(chunk)) => {
                clock.saw(Sign::Bytes);
                reader.feed(&chunk)?;
                false
            }
            Ok(None) => true,
            Err(error) if error.is_body() || error.is_decode() => {
                tracing::debug!(host = target.host, cause = ?transport(&error), "stream broke");
                true
            }
            Err(error) => return Err(reader.fail(transport(&error))),
        };
        if last {
            reader.feed_last()?;
        }
        if let Some(sign) = reader.read_events(&mut outbox, last)? {
            clock.saw(sign);
        }
        outbox.flush();
        if reader.assembler.is_complete() || last {
            if !last {
                read_to_the_end(&mut response).await;
            }
            let cut = reader.fail(ErrorKind::Cut);
            return reader.assembler.finish(request_id).ok_or(cut);
        }
    }
}

/// What a server may still send after `message_stop` is of no interest, but a connection whose answer was not read to its
/// end cannot carry the next request.
async fn read_to_the_end(response: &mut reqwest::Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // Late: the connection is given up, the reply is whole all the same.
    let _ = tokio::time::timeout(END_WAIT, rest).await;
}

struct Reader<'a> {
    answer: Answer,
    target: &'a Target,
    decoder: Decoder,
    assembler: Assembler,
    events: Vec<Event>,
}

impl Reader<'_> {
    fn feed(&mut self, chunk: &[u8]) -> Result<(), ModelError> {
        let fed = self.decoder.feed(chunk, &mut self.events);
        fed.map_err(|error| self.fail(ErrorKind::Protocol(error.to_string())))
    }

    /// The stream ended. A last event that is not even UTF-8 was cut inside a character.
    fn feed_last(&mut self) -> Result<(), ModelError> {
        let decoder = std::mem::take(&mut self.decoder);
        decoder.finish(&mut self.events).map_err(|_| self.fail(ErrorKind::Cut))
    }

    /// Takes the events that have come; the answer is the strongest sign of life among them.
    fn read_events(&mut self, outbox: &mut Outbox, last: bool) -> Result<Option<Sign>, ModelError> {
        let mut sign = None;
        for event in std::mem::take(&mut self.events) {
            let step = match StreamEvent::read(&event) {
                Ok(step) => step,
                // Half an event at the end of the stream is a cut, not nonsense.
                Err(_) if last => return Err(self.fail(ErrorKind::Cut)),
                Err(bad) => return Err(self.fail(ErrorKind::Protocol(failure::shorten(&bad.to_string())))),
            };
            let stronger = match &step {
                StreamEvent::Error(body) => return Err(self.error_event(body)),
                StreamEvent::Ping | StreamEvent::Ignored => Sign::Ping,
                StreamEvent::MessageStart(_)
                | StreamEvent::BlockStart { .. }
                | StreamEvent::BlockDelta { .. }
                | StreamEvent::BlockStop { .. }
                | StreamEvent::MessageDelta(_)
                | StreamEvent::MessageStop
                | StreamEvent::Done => Sign::Word,
            };
            sign = if sign == Some(Sign::Word) { sign } else { Some(stronger) };
            let shown = self.assembler.apply(step);
            if let Some(step) = shown.map_err(|error| self.fail(ErrorKind::Protocol(error.to_string())))? {
                outbox.push(step);
            }
            if self.assembler.is_complete() {
                break;
            }
        }
        Ok(sign)
    }

    /// An `error` event: its type counts, not the 200 that it came under.
    fn error_event(&self, body: &str) -> ModelError {
        let answer = Answer { status: None, ..self.answer.clone() };
        failure::read(answer, body, self.target.clone())
    }

    fn fail(&self, kind: ErrorKind) -> ModelError {
        ModelError { request_id: self.answer.request_id.clone(), ..ModelError::new(kind, self.target.clone()) }
    }
}
