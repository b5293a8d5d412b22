//! The HTTP side: receives a request, lets the checkers look at it, plays the reply.
//!
//! All of it runs on one single-threaded runtime in a thread of its own. One thread is what makes a cut exact: a task
//! that yields has let the connection write what it was given.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response, StatusCode};
use tokio::sync::mpsc;

use super::received::{Received, lenient};
use super::reply::{Cut, Delivery, Kind, Reply};
use super::{Admitted, Shared, rules};

type Body = BoxBody<Bytes, io::Error>;
type Answer = Result<Response<Body>, io::Error>;

/// Chunks between the player and the connection: one, so that the player never runs ahead of the socket.
const CHUNKS_WAITING_MAX: usize = 1;

/// Turns the player gives to the connection before a cut, so that all it was given is written.
const YIELDS_BEFORE_CUT: usize = 8;

/// Answers one HTTP request.
pub(super) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    match (request.method().as_str(), path.as_str()) {
        ("POST", "/v1/messages") => messages(shared, request).await,
        ("POST", "/v1/messages/count_tokens") => Ok(json(StatusCode::OK, r#"{"input_tokens":42}"#)),
        ("GET", path) if path.strip_prefix("/v1/models/").is_some_and(|id| shared.model(id).is_some()) => {
            let entry = path.strip_prefix("/v1/models/").and_then(|id| shared.model(id)).unwrap_or_default();
            Ok(json(StatusCode::OK, &entry.to_string()))
        }
        _ => {
            let error = format!(r#"{{"type":"error","error":{{"type":"not_found_error","message":"{path}"}}}}"#);
            Ok(json(StatusCode::NOT_FOUND, &error))
        }
    }
}

async fn messages(shared: Arc<Shared>, request: Request<Incoming>) -> Answer {
    let at = Instant::now();
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    let headers = headers.collect();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes().to_vec();
    let json_body = lenient(&body).unwrap_or_default();
    let received = Received { number: 0, target, headers, body, json: json_body, at };
    if let Some(key) = &shared.key
        && rules::key(&received) != Some(key.as_str())
    {
        shared.note_refused(received);
        let error = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_fake_0401"}"#;
        return Ok(json(StatusCode::UNAUTHORIZED, error));
    }
    // Scripts may look at the machine and wait, so they run off the runtime's thread.
    let worker = Arc::clone(&shared);
    match tokio::task::spawn_blocking(move || worker.admit(received)).await {
        Ok(admitted) => play(&shared, admitted),
        Err(error) => {
            shared.note_failed_script(&error.to_string());
            Err(io::Error::other(error))
        }
    }
}

fn play(shared: &Shared, admitted: Admitted) -> Answer {
    let Admitted { received, reply: Reply { kind, delivery }, mut whole } = admitted;
    let model = received.json["model"].as_str().unwrap_or("fake").to_owned();
    let id = format!("msg_{:06}", received.number);
    // All but a stream is handed over at once.
    whole.set_delivered(true);
    let events = match kind {
        Kind::HangUp => return Err(io::Error::other("the script hangs up")),
        Kind::Http { status, body, content_type } => {
            let status = StatusCode::from_u16(status).map_err(io::Error::other)?;
            let body = Full::new(Bytes::from(body)).map_err(never).boxed();
            return head(status, &content_type, &received, &delivery).body(body).map_err(io::Error::other);
        }
        Kind::Message(message) if received.json["stream"] != true => {
            let body = message.to_value(&id, &model).to_string();
            let body = Full::new(Bytes::from(body)).map_err(never).boxed();
            let head = head(StatusCode::OK, "application/json", &received, &delivery);
            return head.body(body).map_err(io::Error::other);
        }
        Kind::Message(message) => message.events(&id, &model),
        Kind::Raw(stream) => split_events(&stream),
    };
    whole.set_delivered(false);
    let head = head(StatusCode::OK, "text/event-stream; charset=utf-8", &received, &delivery);
    let (chunks, body) = mpsc::channel(CHUNKS_WAITING_MAX);
    shared.tasks.spawn(async move {
        let delivered = deliver(&chunks, events, delivery).await.is_some();
        whole.set_delivered(delivered);
    });
    let body = stream::unfold(body, |mut body| async { body.recv().await.map(|chunk| (chunk, body)) });
    head.body(BodyExt::boxed(StreamBody::new(body))).map_err(io::Error::other)
}

type Chunks = mpsc::Sender<Result<Frame<Bytes>, io::Error>>;

/// Writes the events as the delivery says; `None` when the client hung up before the end.
async fn deliver(chunks: &Chunks, events: Vec<Vec<u8>>, delivery: Delivery) -> Option<()> {
    let mut left = match delivery.cut {
        Some(Cut::Bytes(bytes)) => bytes,
        Some(Cut::Events(_)) | None => usize::MAX,
    };
    for (index, event) in events.into_iter().enumerate() {
        if matches!(delivery.cut, Some(Cut::Events(count)) if count == index) {
            left = 0;
        }
        for (_, gate) in delivery.holds.iter().filter(|(after, _)| *after == index) {
            tokio::select! {
                () = gate.passed() => {}
                () = chunks.closed() => return None,
            }
        }
        if !delivery.pause.is_zero() {
            tokio::time::sleep(delivery.pause).await;
        }
        if let Some(note) = &delivery.note {
            (note.0)(index);
        }
        let size = delivery.piece.unwrap_or(event.len()).max(1);
        for piece in event.chunks(size) {
            let piece = &piece[..piece.len().min(left)];
            left -= piece.len();
            if !piece.is_empty() {
                chunks.send(Ok(Frame::data(Bytes::copy_from_slice(piece)))).await.ok()?;
            }
            if left == 0 {
                for _ in 0..YIELDS_BEFORE_CUT {
                    tokio::task::yield_now().await;
                }
                return chunks.send(Err(io::Error::other("the script cuts the connection"))).await.ok();
            }
        }
    }
    Some(())
}

/// Splits a raw stream after its empty lines, so that holds and pauses count events there, too.
fn split_events(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let mut rest = stream;
    while let Some(end) = rest.windows(2).position(|two| two == b"\n\n") {
        events.push(rest[..end + 2].to_vec());
        rest = &rest[end + 2..];
    }
    if !rest.is_empty() {
        events.push(rest.to_vec());
    }
    events
}

fn head(status: StatusCode, kind: &str, received: &Received, delivery: &Delivery) -> hyper::http::response::Builder {
    let head = Response::builder().status(status).header("content-type", kind);
    let head = head.header("request-id", format!("req_fake_{:04}", received.number));
    delivery.headers.iter().fold(head, |head, (name, value)| head.header(name, value))
}

fn json(status: StatusCode, body: &str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_owned())).map_err(never).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    response
}

fn never(never: Infallible) -> io::Error {
    match never {}
}
