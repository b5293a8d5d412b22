//! One client: preface under a time limit, then a reader that serves requests one after the other and a writer of its
//! own, so that a client that does not read stops only itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proto::handshake::{
    self, ANSWER_BYTES_MAX, Answer, Codec, PREFACE_BYTES_MAX, PROTOCOL, Preface, Refusal, Role, version_sentence,
};
use proto::ids::SessionId;
use proto::request::ClientInfo;
use proto::response::{Attendee, ErrorCode, Goodbye, ResponseFrame, ResponseResult, ServerFrame, WireError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::peer::{self, Peer};
use super::wire_io::{self, Outbound, Reader, Received, Writer};
use super::{Server, dispatch};
use crate::faults::{self, Point};

/// Frames that may wait for one client's writer. Subscriptions have queues of their own before this one; a reader that
/// waits here reads no further requests.
const WRITER_QUEUE_MAX: usize = 64;

/// How long the last frames may take when the daemon stops.
const GOODBYE_LIMIT: Duration = Duration::from_millis(500);

/// One client's state.
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    pub(super) role: Role,
    pub(super) client: ClientInfo,
    pub(super) codec: Codec,
    pub(super) frames: mpsc::Sender<Outbound>,
    /// One pump per attached session.
    pub(super) pumps: JoinSet<()>,
    pub(super) attached: HashMap<SessionId, AbortHandle>,
    /// Subscriptions whose response goes out before their rows.
    pub(super) pending: Vec<dispatch::PendingPump>,
}

/// Serves one client until it goes, breaks the protocol, or the daemon stops.
pub(super) async fn run(server: &Arc<Server>, mut stream: UnixStream, has_place: bool) {
    let checked = peer::check(&stream);
    let limit = server.registry.context().config().server.handshake.get();
    let preface = tokio::time::timeout(limit, read_preface(&mut stream)).await;
    let verdict = match (checked, preface) {
        (Err(refused), _) => Err(refused),
        (Ok(_), Err(_)) | (Ok(_), Ok(None)) => Err((
            Refusal::Malformed,
            format!("expected the line `agentd/{PROTOCOL} json driver` or `agentd/{PROTOCOL} bincode driver` first"),
        )),
        (Ok(_), _) if !has_place => {
            Err((Refusal::Busy, "agentd serves as many clients as it may; close one and try again".to_owned()))
        }
        (Ok(peer), Ok(Some(preface))) => check_version(&preface).map(|()| (peer, preface)),
    };
    let answer = match &verdict {
        Ok(_) => Answer::Welcome { version: PROTOCOL, release: env!("CARGO_PKG_VERSION").to_owned() },
        Err((refusal, sentence)) => {
            tracing::info!(?refusal, "connection refused");
            Answer::Refused { version: PROTOCOL, refusal: *refusal, sentence: sentence.clone() }
        }
    };
    let line = answer.to_string();
    debug_assert!(line.len() <= ANSWER_BYTES_MAX, "answers are short");
    if stream.write_all(line.as_bytes()).await.is_err() {
        return;
    }
    if let Ok((peer, preface)) = verdict {
        serve(server, stream, &peer, preface).await;
    }
}

/// bincode is positional, so its versions must be equal; JSON is additive, so an older client is served.
fn check_version(preface: &Preface) -> Result<(), (Refusal, String)> {
    let fits = match preface.codec {
        Codec::Bincode => preface.version == PROTOCOL,
        Codec::Json => preface.version <= PROTOCOL && preface.version > 0,
    };
    if fits { Ok(()) } else { Err((Refusal::Version, version_sentence(preface.version, handshake::PROTOCOL))) }
}

/// The first line, byte by byte so that not one byte of the first frame is taken.
async fn read_preface(stream: &mut UnixStream) -> Option<Preface> {
    let mut line = Vec::with_capacity(PREFACE_BYTES_MAX);
    loop {
        let byte = stream.read_u8().await.ok()?;
        if byte == b'\n' {
            return Preface::parse(std::str::from_utf8(&line).ok()?);
        }
        line.push(byte);
        if line.len() >= PREFACE_BYTES_MAX {
            return None;
        }
    }
}

async fn serve(server: &Arc<Server>, stream: UnixStream, peer: &Peer, preface: Preface) {
    let (read, write) = stream.into_split();
    let (frames, queue) = mpsc::channel(WRITER_QUEUE_MAX);
    let mut tasks = JoinSet::new();
    tasks.spawn(write_frames(Writer::new(preface.codec, write), queue));
    let mut connection = Connection {
        server: Arc::clone(server),
        role: preface.role,
        client: ClientInfo { program: format!("pid {}", peer.pid), terminal: peer.terminal.clone() },
        codec: preface.codec,
        frames,
        pumps: JoinSet::new(),
        attached: HashMap::new(),
        pending: Vec::new(),
    };
    let mut reader = Reader::new(preface.codec, read);
    loop {
        let received = tokio::select! {
            () = server.stop.cancelled() => break,
            // The writer ends when the client no longer takes anything.
            _ = tasks.join_next() => return,
            received = reader.next() => received,
        };
        match received {
            Received::Frame(frame) => {
                let result = match dispatch::serve(&mut connection, frame.request).await {
                    Ok(response) => ResponseResult::Ok(response),
                    Err(error) => ResponseResult::Error(error),
                };
                faults::reach(Point::Served);
                connection.send(ServerFrame::Response(ResponseFrame { id: frame.id, result })).await;
                dispatch::start_pumps(&mut connection);
            }
            Received::Garbage(error) => {
                // The request's number is not known; 0 is no client's.
                let error = WireError {
                    code: ErrorCode::BadRequest,
                    message: error.to_string(),
                    hint: "proto/PROTOCOL.md describes the frames".into(),
                };
                let frame = ResponseFrame { id: 0, result: ResponseResult::Error(error) };
                connection.send(ServerFrame::Response(frame)).await;
                if preface.codec == Codec::Bincode {
                    break;
                }
            }
            Received::End(reason) => {
                if let Some(reason) = reason {
                    tracing::info!(%reason, "connection ended");
                }
                break;
            }
        }
    }
    connection.pumps.shutdown().await;
    if server.stop.is_cancelled() {
        connection.send(ServerFrame::Goodbye(Goodbye { reason: "agentd is stopping".into() })).await;
    }
    drop(connection);
    let _ = tokio::time::timeout(GOODBYE_LIMIT, tasks.join_next()).await;
}

impl Connection {
    /// Queues a frame; a writer that is gone is noticed by the reader's loop.
    pub(super) async fn send(&self, frame: ServerFrame) {
        let _ = self.frames.send(frame.into()).await;
    }

    /// The client as others see it.
    pub(super) fn attendee(&self) -> Attendee {
        let ClientInfo { program, terminal } = self.client.clone();
        Attendee { program, terminal, role: self.role }
    }

    /// The client's name for others.
    pub(super) fn name(&self) -> String {
        match (self.client.program.as_str(), self.client.terminal.as_str()) {
            (program, "") => program.to_owned(),
            (program, terminal) => format!("{program} on {terminal}"),
        }
    }
}

/// Writes frames as they come; those that wait together go out together.
async fn write_frames(mut writer: Writer, mut queue: mpsc::Receiver<Outbound>) {
    let mut batch = Vec::with_capacity(WRITER_QUEUE_MAX);
    while queue.recv_many(&mut batch, WRITER_QUEUE_MAX).await > 0 {
        for frame in batch.drain(..) {
            let bytes = match writer.encode(frame) {
                Ok(bytes) => bytes,
                Err(error) => {
                    wire_io::left_out(&error);
                    continue;
                }
            };
            if writer.feed(bytes).await.is_err() {
                return;
            }
        }
        if writer.flush().await.is_err() {
            return;
        }
    }
}
