//! One session's rows to one client: those after its cursor from the store, then those that happen, without a gap and
//! without a double.

use std::sync::Arc;

use bytes::Bytes;
use proto::frame::FrameError;
use proto::handshake::Codec;
use proto::ids::{Seq, SessionId};
use proto::response::{Attendee, CaughtUp, EventFrame, Lagged, Presence, ServerFrame};
use tokio::sync::mpsc;

use super::wire_io::{self, Outbound};
use super::{Server, convert};
use crate::session::Subscription;
use crate::session::fanout::Outgoing;
use crate::store::{LogRow, SessionRow};

/// Rows read from the store at once.
const PAGE: u32 = 500;

/// What a pump starts from.
pub(super) enum Source {
    /// A session with an actor, which the client is attached to.
    Awake(Box<Subscription>),
    /// A session that rests with a long log: its rows are sent before it is woken.
    Resting {
        /// The session.
        row: Box<SessionRow>,
        /// Who attaches.
        client: Attendee,
    },
}

/// The client's writer, and what it writes.
pub(super) struct Destination {
    pub(super) codec: Codec,
    pub(super) frames: mpsc::Sender<Outbound>,
}

/// Pumps until the client goes or is cut off. However this ends, the queue goes with it, and with that the client's place in
/// the session's fan-out.
pub(super) async fn pump(server: Arc<Server>, id: SessionId, since: Seq, source: Source, to: Destination) {
    let Destination { codec, frames } = to;
    let head = match &source {
        Source::Awake(subscription) => subscription.head,
        Source::Resting { row, .. } => row.head,
    };
    let Some(mut sent) = replay(&server, id, since, head, &frames).await else { return };
    if frames.send(ServerFrame::CaughtUp(CaughtUp { session: id, seq: sent }).into()).await.is_err() {
        return;
    }
    let mut subscription = match source {
        Source::Awake(subscription) => subscription,
        Source::Resting { row, client } => match wake(&server, *row, client).await {
            Some(subscription) => {
                let Some(now) = replay(&server, id, sent, subscription.head, &frames).await else { return };
                sent = now;
                subscription
            }
            None => {
                let _ = frames.send(ServerFrame::Lagged(Lagged { session: id, after: sent }).into()).await;
                return;
            }
        },
    };
    while let Some(outgoing) = subscription.queue.recv().await {
        let frame = match outgoing {
            // Rows that came while the store was read are in both.
            Outgoing::Row(row) if row.what.seq <= sent => continue,
            Outgoing::Row(row) => {
                sent = row.what.seq;
                let frame = |row: &LogRow| ServerFrame::Event(EventFrame { session: id, event: convert::event(row) });
                encoded(row.frame(codec, |row| wire_io::encode(codec, &frame(row))))
            }
            Outgoing::Live(live) => {
                encoded(live.frame(codec, |live| wire_io::encode(codec, &ServerFrame::Live(live.clone()))))
            }
            Outgoing::Presence(clients) => {
                Some(ServerFrame::Presence(Presence { session: id, clients: clients.to_vec() }).into())
            }
        };
        if let Some(frame) = frame
            && frames.send(frame).await.is_err()
        {
            return;
        }
    }
    // The queue closed: this client was too slow, or the session is gone.
    let _ = frames.send(ServerFrame::Lagged(Lagged { session: id, after: sent }).into()).await;
}

fn encoded(made: Result<Bytes, FrameError>) -> Option<Outbound> {
    made.inspect_err(wire_io::left_out).ok().map(Outbound::Encoded)
}

/// Sends the rows after `since` up to `head`; returns the last one sent, or `None` when the client or the store fails.
async fn replay(
    server: &Server,
    session: SessionId,
    since: Seq,
    head: Seq,
    frames: &mpsc::Sender<Outbound>,
) -> Option<Seq> {
    let mut sent = since;
    while sent < head {
        let rows = match server.registry.context().store.rows(session, sent, PAGE).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::error!(%session, %error, "the log cannot be read");
                let _ = frames.send(ServerFrame::Lagged(Lagged { session, after: sent }).into()).await;
                return None;
            }
        };
        if rows.is_empty() {
            break;
        }
        for row in rows.into_iter().filter(|row| row.seq <= head) {
            sent = row.seq;
            let frame = ServerFrame::Event(EventFrame { session, event: convert::event(&row) });
            frames.send(frame.into()).await.ok()?;
        }
    }
    Some(sent)
}

async fn wake(server: &Server, row: SessionRow, client: Attendee) -> Option<Box<Subscription>> {
    let id = row.id;
    let attached = match server.registry.wake(row).await {
        Ok(session) => session.attach(client).await,
        Err(error) => Err(error),
    };
    attached.inspect_err(|error| tracing::error!(session = %id, %error, "a session cannot be woken")).ok().map(Box::new)
}
