//! Fan-out: every attached client's queue. A slow client never slows a session: live pieces are dropped for it first
//! (their offsets show the gap, and the finished row fills it), and when rows do not fit either it is cut off and told
//! where to go on.
//!
//! What goes to all is one [`Shared`]: its bytes are made once for each codec, however many clients there are.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use proto::handshake::Codec;
use proto::live::Live;
use proto::response::Attendee;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::store::LogRow;

/// Frames that may wait for one client. A page of history is sent from the store while these wait, so this is what may
/// happen in a session during that time.
pub const QUEUE_MAX: usize = 1024;

/// Free places below which live pieces are dropped, so that rows still fit.
const LIVE_RESERVE: usize = QUEUE_MAX / 2;

/// What an attached client gets.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// A row.
    Row(Arc<Shared<LogRow>>),
    /// A piece of something unfinished.
    Live(Arc<Shared<Live>>),
    /// Who is attached, now.
    Presence(Arc<[Attendee]>),
}

/// One thing for all clients of a session, and its frames as far as a client asked for them.
#[derive(Debug)]
pub struct Shared<T> {
    /// The thing.
    pub what: T,
    bincode: OnceLock<Bytes>,
    json: OnceLock<Bytes>,
}

impl<T> Shared<T> {
    fn new(what: T) -> Arc<Self> {
        Arc::new(Self { what, bincode: OnceLock::new(), json: OnceLock::new() })
    }

    /// The frame in a codec: made by the first client that wants it.
    ///
    /// # Errors
    /// What `make` says.
    pub fn frame<E>(&self, codec: Codec, make: impl FnOnce(&T) -> Result<Bytes, E>) -> Result<Bytes, E> {
        let place = match codec {
            Codec::Bincode => &self.bincode,
            Codec::Json => &self.json,
        };
        if let Some(made) = place.get() {
            return Ok(made.clone());
        }
        // Two that make it at once make the same.
        let made = make(&self.what)?;
        Ok(place.get_or_init(|| made).clone())
    }
}

/// One attached client.
#[derive(Debug)]
struct Subscriber {
    id: SubscriberId,
    client: Attendee,
    queue: mpsc::Sender<Outgoing>,
}

/// Names a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriberId(u64);

/// All clients attached to one session.
#[derive(Debug, Default)]
pub struct Fanout {
    subscribers: Vec<Subscriber>,
    made: u64,
    /// Whom the clients were last told of.
    told: Vec<Attendee>,
}

impl Fanout {
    /// Attaches a client until it drops its queue's end; the queue closes when it is cut off.
    pub fn add(&mut self, client: Attendee) -> (SubscriberId, mpsc::Receiver<Outgoing>) {
        self.subscribers.retain(|subscriber| !subscriber.queue.is_closed());
        let (queue, receiver) = mpsc::channel(QUEUE_MAX);
        self.made += 1;
        let id = SubscriberId(self.made);
        self.subscribers.push(Subscriber { id, client, queue });
        (id, receiver)
    }

    /// Sends a row to all; who has no room is cut off.
    pub fn row(&mut self, row: LogRow) {
        let row = Shared::new(row);
        self.subscribers.retain(|subscriber| match subscriber.queue.try_send(Outgoing::Row(Arc::clone(&row))) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                tracing::info!(client = %subscriber.client.program, seq = row.what.seq.0, "slow client cut off");
                false
            }
            Err(TrySendError::Closed(_)) => false,
        });
    }

    /// Sends a live piece to all who have room to spare.
    pub fn live(&mut self, live: Live) {
        let live = Shared::new(live);
        for subscriber in &self.subscribers {
            if subscriber.queue.capacity() > LIVE_RESERVE {
                // A queue that closed is noticed at the next row.
                let _ = subscriber.queue.try_send(Outgoing::Live(Arc::clone(&live)));
            }
        }
    }

    /// Sends live pieces to one client: the snapshot of what is open when it attaches.
    pub fn live_to(&self, id: SubscriberId, pieces: Vec<Live>) {
        if let Some(subscriber) = self.subscribers.iter().find(|subscriber| subscriber.id == id) {
            for piece in pieces {
                let _ = subscriber.queue.try_send(Outgoing::Live(Shared::new(piece)));
            }
        }
    }

    /// Tells everybody who is attached, when that is not what they were told last.
    pub fn tell_presence(&mut self) {
        self.subscribers.retain(|subscriber| !subscriber.queue.is_closed());
        let here = self.clients();
        if here == self.told {
            return;
        }
        self.told.clone_from(&here);
        let here: Arc<[Attendee]> = here.into();
        for subscriber in &self.subscribers {
            // Who has no room is told by the next change, or by attaching again.
            let _ = subscriber.queue.try_send(Outgoing::Presence(Arc::clone(&here)));
        }
    }

    /// The attached clients. Who dropped its queue is gone, however its connection ended.
    #[must_use]
    pub fn clients(&self) -> Vec<Attendee> {
        let here = self.subscribers.iter().filter(|subscriber| !subscriber.queue.is_closed());
        here.map(|subscriber| subscriber.client.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::entry::Entry;
    use proto::handshake::Role;
    use proto::ids::{CallId, Seq, SessionId, Timestamp};
    use proto::live::LiveOutput;

    fn row(seq: u64) -> LogRow {
        LogRow { seq: Seq(seq), at: Timestamp(0), entry: Entry::Notice { text: String::new() } }
    }

    fn client(program: &str) -> Attendee {
        Attendee { program: program.into(), terminal: String::new(), role: Role::Driver }
    }

    fn live() -> Live {
        let (session, call) = (SessionId::new(), CallId::new());
        Live::Output(LiveOutput { session, call, offset: 0, bytes: 1, text: "x".into() })
    }

    #[test]
    fn a_frame_is_made_once_for_all_clients_of_a_codec() {
        let mut fanout = Fanout::default();
        let mut queues: Vec<_> = (0..4).map(|_| fanout.add(client("")).1).collect();
        fanout.row(row(7));
        let made = std::cell::Cell::new(0);
        for queue in &mut queues {
            let Ok(Outgoing::Row(row)) = queue.try_recv() else { panic!("a row") };
            for (codec, expected) in [(Codec::Bincode, "b7"), (Codec::Json, "j7")] {
                let frame = row.frame(codec, |row| {
                    made.set(made.get() + 1);
                    Ok::<_, ()>(Bytes::from(format!("{}{}", &expected[..1], row.seq.0)))
                });
                assert_eq!(frame.unwrap(), expected);
            }
        }
        assert_eq!(made.get(), 2);
    }

    #[test]
    fn a_client_that_does_not_read_loses_live_pieces_before_rows_and_is_then_cut_off() {
        let mut fanout = Fanout::default();
        let (_, mut slow) = fanout.add(client(""));
        for _ in 0..QUEUE_MAX * 2 {
            fanout.live(live());
        }
        for seq in 1..=LIVE_RESERVE as u64 {
            fanout.row(row(seq));
        }
        assert_eq!(fanout.clients().len(), 1, "rows still fit");
        for seq in 0..QUEUE_MAX as u64 {
            fanout.row(row(1_000 + seq));
        }
        assert!(fanout.clients().is_empty(), "cut off");
        let mut rows = Vec::new();
        while let Ok(frame) = slow.try_recv() {
            if let Outgoing::Row(row) = frame {
                rows.push(row.what.seq.0);
            }
        }
        let first: Vec<u64> = rows.iter().copied().take(LIVE_RESERVE).collect();
        assert_eq!(first, (1..=LIVE_RESERVE as u64).collect::<Vec<_>>(), "no row before the cut is missing");
    }

    #[test]
    fn a_client_whose_connection_is_gone_is_not_attached() {
        let mut fanout = Fanout::default();
        let (_, gone) = fanout.add(client("gone"));
        let (_, _here) = fanout.add(client("here"));
        drop(gone);
        let programs: Vec<String> = fanout.clients().into_iter().map(|client| client.program).collect();
        assert_eq!(programs, ["here"]);
    }

    #[test]
    fn one_slow_client_costs_the_others_nothing() {
        let mut fanout = Fanout::default();
        let (_, _slow) = fanout.add(client(""));
        let (_, mut quick) = fanout.add(client(""));
        for seq in 1..=3 * QUEUE_MAX as u64 {
            fanout.row(row(seq));
            assert!(matches!(quick.try_recv(), Ok(Outgoing::Row(got)) if got.what.seq.0 == seq));
        }
    }

    #[test]
    fn who_comes_and_goes_is_told_once_to_everybody() {
        let mut fanout = Fanout::default();
        let (_, mut one) = fanout.add(client("one"));
        fanout.tell_presence();
        let (_, two) = fanout.add(client("two"));
        fanout.tell_presence();
        fanout.tell_presence();
        drop(two);
        fanout.tell_presence();
        let mut told = Vec::new();
        while let Ok(Outgoing::Presence(here)) = one.try_recv() {
            told.push(here.iter().map(|client| client.program.clone()).collect::<Vec<_>>());
        }
        assert_eq!(told, [vec!["one"], vec!["one", "two"], vec!["one"]]);
    }
}
