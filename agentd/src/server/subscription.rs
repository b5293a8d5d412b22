//! One session's rows to one client: those after its cursor from the store, then those that happen, without a gap and
//! without a double.

use std::sync::Arc;

use proto::ids::{Seq, SessionId};
use proto::response::{CaughtUp, EventFrame, Lagged, ServerFrame};
use tokio::sync::mpsc;

use super::Server;
use super::convert;
use crate::session::fanout::Outgoing;
use crate::session::{SessionHandle, Subscription};

/// Rows read from the store at once.
const PAGE: u32 = 500;

/// Pumps until the client goes or is cut off. However this ends, the queue goes with it, and with that the client's place in
/// the session's fan-out.
pub(super) async fn pump(
    server: Arc<Server>,
    session: SessionHandle,
    since: Seq,
    mut subscription: Subscription,
    frames: mpsc::Sender<ServerFrame>,
) {
    let id = session.id();
    let Some(mut sent) = replay(&server, id, since, subscription.head, &frames).await else {
        return;
    };
    while let Some(outgoing) = subscription.queue.recv().await {
        let frame = match outgoing {
            // Rows that came while the store was read are in both.
            Outgoing::Row(row) if row.seq <= sent => continue,
            Outgoing::Row(row) => {
                sent = row.seq;
                ServerFrame::Event(EventFrame { session: id, event: convert::event(&row) })
            }
            Outgoing::Live(live) => ServerFrame::Live(live.as_ref().clone()),
        };
        if frames.send(frame).await.is_err() {
            return;
        }
    }
    // The queue closed: this client was too slow, or the session is gone.
    let _ = frames.send(ServerFrame::Lagged(Lagged { session: id, after: sent })).await;
}

/// Sends the rows after `since` up to `head`; returns the last one sent, or `None` when the client or the store fails.
async fn replay(
    server: &Server,
    session: SessionId,
    since: Seq,
    head: Seq,
    frames: &mpsc::Sender<ServerFrame>,
) -> Option<Seq> {
    let mut sent = since;
    while sent < head {
        let rows = match server.registry.context().store.rows(session, sent, PAGE).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::error!(%session, %error, "the log cannot be read");
                let _ = frames.send(ServerFrame::Lagged(Lagged { session, after: sent })).await;
                return None;
            }
        };
        if rows.is_empty() {
            break;
        }
        for row in rows.into_iter().filter(|row| row.seq <= head) {
            sent = row.seq;
            let frame = ServerFrame::Event(EventFrame { session, event: convert::event(&row) });
            frames.send(frame).await.ok()?;
        }
    }
    let sent = sent.max(head.min(since));
    frames.send(ServerFrame::CaughtUp(CaughtUp { session, seq: sent })).await.ok()?;
    Some(sent)
}
