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

/// What has just come, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    let mut reader = Reader::default();
    let mut outbox = Outbox::new(progress);
    let end = loop {
        let (deadline, limit) = clock.deadline();
        let chunk = tokio::select! {
            chunk = response.chunk() => chunk,
            () = outbox.drain() => continue,
            () = tokio::time::sleep_until(deadline) => break Err(End::Failed(ErrorKind::Idle(limit))),
        };
        // A stream that breaks is one that ends: whether the reply is whole is told by its last event.
        let chunk = chunk.unwrap_or_else(|error| {
            tracing::debug!(host = target.host, cause = ?transport(&error), "stream broke");
            None
        });
        let read = match &chunk {
            Some(bytes) => reader.read(bytes, &mut outbox),
            None => reader.read_last(&mut outbox),
        };
        outbox.flush();
        match read {
            Ok(_) if reader.assembler.is_complete() => {
                if chunk.is_some() {
                    read_to_the_end(&mut response).await;
                }
                break reader.assembler.finish(answer.request_id.clone()).ok_or(End::Failed(ErrorKind::Cut));
            }
            Ok(_) if chunk.is_none() => break Err(End::Failed(ErrorKind::Cut)),
            Ok(sign) => clock.saw(sign),
            Err(end) => break Err(end),
        }
    };
    end.map_err(|end| match end {
        End::Failed(kind) => ModelError { request_id: answer.request_id, ..ModelError::new(kind, target.clone()) },
        // Its type counts, not the 200 that it came under.
        End::ErrorEvent(body) => failure::read(Answer { status: None, ..answer }, &body, target.clone()),
    })
}

/// What a server may still send after `message_stop` is of no interest, but a connection whose answer was not read to its
/// end cannot carry the next request.
async fn read_to_the_end(response: &mut reqwest::Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // Late: the connection is given up, the reply is whole all the same.
    let _ = tokio::time::timeout(END_WAIT, rest).await;
}

/// Why a stream ends without a reply.
#[derive(Debug)]
enum End {
    Failed(ErrorKind),
    /// The text of an `error` event.
    ErrorEvent(String),
}

#[derive(Debug, Default)]
struct Reader {
    decoder: Decoder,
    assembler: Assembler,
}

impl Reader {
    /// Reads a piece of the stream; the answer is the strongest sign of life in it.
    fn read(&mut self, chunk: &[u8], outbox: &mut Outbox) -> Result<Sign, End> {
        let mut events = Vec::new();
        let fed = self.decoder.feed(chunk, &mut events);
        fed.map_err(|error| End::Failed(ErrorKind::Protocol(error.to_string())))?;
        let mut strongest = Sign::Bytes;
        for event in events {
            let sign = self.take(&event, outbox)?;
            strongest = strongest.max(sign);
            if self.assembler.is_complete() {
                break;
            }
        }
        Ok(strongest)
    }

    /// Reads what the end of the stream left. Half an event, or half a character, is a cut and not nonsense.
    fn read_last(&mut self, outbox: &mut Outbox) -> Result<Sign, End> {
        let cut = || End::Failed(ErrorKind::Cut);
        let mut events = Vec::new();
        std::mem::take(&mut self.decoder).finish(&mut events).map_err(|_| cut())?;
        for event in events {
            self.take(&event, outbox).map_err(|end| match end {
                End::Failed(_) => cut(),
                End::ErrorEvent(body) => End::ErrorEvent(body),
            })?;
        }
        Ok(Sign::Bytes)
    }

    fn take(&mut self, event: &Event, outbox: &mut Outbox) -> Result<Sign, End> {
        let nonsense = |what: String| End::Failed(ErrorKind::Protocol(failure::shorten(&what)));
        let step = StreamEvent::read(event).map_err(|bad| nonsense(bad.to_string()))?;
        let sign = match &step {
            StreamEvent::Error(body) => return Err(End::ErrorEvent(body.clone())),
            StreamEvent::Ping | StreamEvent::Ignored => Sign::Ping,
            StreamEvent::MessageStart(_)
            | StreamEvent::BlockStart { .. }
            | StreamEvent::BlockDelta { .. }
            | StreamEvent::BlockStop { .. }
            | StreamEvent::MessageDelta(_)
            | StreamEvent::MessageStop
            | StreamEvent::Done => Sign::Word,
        };
        if let Some(shown) = self.assembler.apply(step).map_err(|error| nonsense(error.to_string()))? {
            outbox.push(shown);
        }
        Ok(sign)
    }
}
