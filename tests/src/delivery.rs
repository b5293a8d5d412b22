//! How long a piece of a reply is on its way: from the model server's write to a client's hands. Both are in this process,
//! so one clock measures both ends; what the readers of the test itself cost is part of the figure.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use proto::event::{Block, EventBody};
use proto::ids::{RequestId, SessionId, Timestamp};
use proto::live::{Live, LiveKind};
use proto::response::ServerFrame;

use crate::client::Client;
use crate::model_server::{EVENTS_BEFORE_TEXT, PIECE_BYTES, Reply};

/// When each piece of the replies of one session was written, in their order.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<Mutex<Vec<Instant>>>);

impl Written {
    /// A reply of so many pieces, each noted when it is written.
    #[must_use]
    pub fn reply(&self, pieces: usize, pause: Duration) -> Reply {
        let text: String = (0..pieces).map(|number| format!("{number:0PIECE_BYTES$}")).collect();
        let written = Arc::clone(&self.0);
        Reply::text(&text).pause(pause).noting(move |event| {
            if event >= EVENTS_BEFORE_TEXT && event < EVENTS_BEFORE_TEXT + pieces {
                let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                if event == EVENTS_BEFORE_TEXT {
                    written.clear();
                }
                written.push(Instant::now());
            }
        })
    }

    fn at(&self, piece: usize) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(piece).copied()
    }
}

/// Delays in the order they were measured.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// Of pieces.
    pub pieces: Vec<Duration>,
    /// Of rows, from the time in them, which is before their commit, to the millisecond.
    pub rows: Vec<Duration>,
}

impl Delays {
    /// Adds another's.
    pub fn add(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
        self.rows.extend(other.rows);
    }
}

/// Median, 99th percentile and most, in milliseconds, with how many there are.
#[must_use]
pub fn quantiles(delays: &[Duration]) -> [f64; 3] {
    let mut sorted = delays.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    [50, 99, 100].map(|percent| sorted.get(last * percent / 100).map_or(0.0, |delay| delay.as_secs_f64() * 1000.0))
}

/// Reads frames until a turn has ended; checks on the way that rows and pieces have no gap and no double.
#[derive(Debug)]
pub struct Watcher {
    /// The connection.
    pub client: Client,
    /// What was measured.
    pub delays: Delays,
    session: SessionId,
    written: Written,
    /// Rows so far; the client's own list has those that wait in its backlog, too.
    rows: u64,
    begun: bool,
    /// What was shown of each reply.
    shown: HashMap<RequestId, String>,
}

impl Watcher {
    /// A client that is attached to the session since before anything was streamed.
    #[must_use]
    pub fn new(client: Client, session: SessionId, written: &Written) -> Self {
        Self {
            client,
            delays: Delays::default(),
            session,
            written: written.clone(),
            rows: 0,
            begun: false,
            shown: HashMap::new(),
        }
    }

    /// Reads until the present turn's end.
    ///
    /// # Panics
    /// When something is missing or doubled, or nothing comes in time.
    pub fn turn(&mut self) {
        loop {
            let frame = self.client.next_frame().expect("frames come");
            let now = Instant::now();
            match frame {
                ServerFrame::Live(live) => self.live(&live, now),
                ServerFrame::Event(frame) => {
                    assert_eq!(frame.session, self.session);
                    // Rows from before the first prompt come from the store, long after they were written.
                    self.begun |= matches!(frame.event.body, EventBody::PromptAccepted(_));
                    if self.begun {
                        let late = Timestamp::now().0.saturating_sub(frame.event.at.0);
                        self.delays.rows.push(Duration::from_millis(late));
                    }
                    self.rows += 1;
                    assert_eq!(frame.event.seq.0, self.rows, "no row is missing and none is doubled");
                    match frame.event.body {
                        EventBody::ReplyReceived(reply) => {
                            if let Some(Block::Text { text }) = reply.blocks.first() {
                                let shown = self.shown.remove(&reply.request).unwrap_or_default();
                                assert_eq!(&shown, text, "what was shown in pieces is what the row says");
                            }
                        }
                        EventBody::TurnEnded(_) => return,
                        _ => {}
                    }
                }
                ServerFrame::Lagged(lagged) => panic!("cut off: {lagged:?}"),
                _ => {}
            }
        }
    }

    fn live(&mut self, live: &Live, now: Instant) {
        let Live::Text(piece) = live else { return };
        if piece.kind != LiveKind::Text {
            return;
        }
        let shown = self.shown.entry(piece.request).or_default();
        assert_eq!(piece.offset, shown.len() as u64, "no piece is missing and none is doubled");
        let first = shown.len() / PIECE_BYTES;
        shown.push_str(&piece.text);
        for number in first..shown.len() / PIECE_BYTES {
            let written = self.written.at(number).expect("it was written before it was read");
            self.delays.pieces.push(now.saturating_duration_since(written));
        }
    }
}
