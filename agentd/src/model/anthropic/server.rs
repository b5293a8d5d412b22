//! For tests: a server on the loopback that answers each request exactly as it is told, byte by byte.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::{Client, Endpoint};
use crate::model::Profile;

/// What the server does with one request, after it has read it.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// Sends the same every so often, for ever.
    Every(Duration, Vec<u8>),
    Hang,
    /// Goes on when the test says so.
    Until(Arc<Notify>),
    /// Ends the connection with a reset instead of an orderly end.
    Reset,
}

pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

pub(super) struct Server {
    pub(super) base_url: String,
    pub(super) requests: mpsc::UnboundedReceiver<Request>,
    _task: JoinSet<()>,
}

impl Server {
    /// Plays one script per request; connections are kept between requests whose script ends without closing.
    pub(super) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(async move {
            for script in scripts {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(request) = read_request(&mut stream).await else { continue };
                let _ = sender.send(request);
                play(stream, script).await;
            }
        });
        Self { base_url, requests, _task: task }
    }

    pub(super) fn client(&self, profile: Profile) -> Client {
        Client::new(&Endpoint::new(profile, &self.base_url)).unwrap()
    }
}

pub(super) async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        (stream.read_buf(&mut bytes).await.unwrap() > 0).then_some(())?;
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let length: usize =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().trim().parse().unwrap();
    while bytes.len() < head_end + length {
        (stream.read_buf(&mut bytes).await.unwrap() > 0).then_some(())?;
    }
    Some(Request { head, body: bytes.split_off(head_end) })
}

async fn play(mut stream: TcpStream, script: Vec<Act>) {
    for act in script {
        match act {
            // The client may have left: that is what some tests are about.
            Act::Send(bytes) => drop(stream.write_all(&bytes).await),
            Act::Wait(time) => tokio::time::sleep(time).await,
            Act::Every(time, bytes) => loop {
                tokio::time::sleep(time).await;
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            },
            Act::Hang => {
                let mut nothing = [0];
                let _ = stream.read(&mut nothing).await;
                return;
            }
            Act::Until(sign) => sign.notified().await,
            Act::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
        }
    }
}

pub(super) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_test\r\nconnection: close\r\n\r\n";

pub(super) fn head() -> Act {
    Act::Send(STREAM_HEAD.as_bytes().to_vec())
}

pub(super) fn answer_of(status: u16, headers: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    vec![Act::Send(format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes())]
}
