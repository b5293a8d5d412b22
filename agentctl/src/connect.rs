//! One connection to the daemon: preface, frames, requests and their answers.
//!
//! Frames of subscriptions that arrive while a request waits for its answer are kept in order and handed out by
//! [`Connection::next`] afterwards: nothing is lost between the two.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use proto::frame::{self, FRAME_BYTES_MAX};
use proto::handshake::{ANSWER_BYTES_MAX, Answer, Codec, PROTOCOL, Preface, Refusal, Role, version_sentence};
use proto::request::{ClientFrame, ClientInfo, Hello, Request};
use proto::response::{Response, ResponseFrame, ResponseResult, ServerFrame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::codec::{Framed, FramedParts, LengthDelimitedCodec};

use crate::error::CtlError;

/// How long connect and preface may take: the daemon answers in a millisecond, a machine that swaps in seconds.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// How long a request may take: the slowest one starts a shell and waits for the disk.
const CALL_WAIT: Duration = Duration::from_secs(30);

/// Bytes of a foreign answer that are quoted in the error.
const QUOTED_BYTES: usize = 40;

/// An open connection after its preface.
#[derive(Debug)]
pub struct Connection {
    framed: Framed<UnixStream, LengthDelimitedCodec>,
    socket: PathBuf,
    last_id: u64,
    kept: VecDeque<ServerFrame>,
    /// The daemon's release.
    pub release: String,
    /// The daemon's process, as the kernel knows it.
    pub pid: Option<i32>,
}

/// Takes the variant a request is answered with, or reports the answer as unexpected.
#[macro_export]
macro_rules! answer {
    ($connection:expr, $request:expr, $variant:ident) => {
        match $connection.call($request).await? {
            proto::response::Response::$variant(answer) => Ok(answer),
            _ => Err($crate::error::CtlError::Unexpected(stringify!($variant))),
        }
    };
}

impl Connection {
    /// Connects, agrees on the protocol and says who we are.
    ///
    /// # Errors
    /// [`CtlError::Unreachable`] with the system's error when nothing listens; else why the daemon is not ours to use.
    pub async fn open(socket: &Path, uid: u32, role: Role, client: ClientInfo) -> Result<Self, CtlError> {
        let silent = |_| CtlError::Silent { socket: socket.to_owned(), seconds: HANDSHAKE_WAIT.as_secs() };
        timeout(HANDSHAKE_WAIT, Self::greet(socket, uid, role, client)).await.map_err(silent)?
    }

    async fn greet(socket: &Path, uid: u32, role: Role, client: ClientInfo) -> Result<Self, CtlError> {
        let unreachable = |source| CtlError::Unreachable { socket: socket.to_owned(), source };
        let mut stream = UnixStream::connect(socket).await.map_err(unreachable)?;
        let peer = stream.peer_cred().map_err(CtlError::Connection)?;
        if peer.uid() != uid {
            return Err(CtlError::OtherUser { path: socket.to_owned(), owner: peer.uid(), me: uid });
        }
        let preface = Preface { version: PROTOCOL, codec: Codec::Bincode, role };
        // A daemon that refuses at once may have closed its end already; its answer can still be read.
        let written = stream.write_all(preface.to_string().as_bytes()).await;
        let (line, rest) = read_line(&mut stream, socket).await?;
        if line.is_empty() {
            written.map_err(CtlError::Connection)?;
            return Err(CtlError::Connection(io::ErrorKind::UnexpectedEof.into()));
        }
        let release = welcome(&line, socket)?;
        let codec = LengthDelimitedCodec::builder().max_frame_length(FRAME_BYTES_MAX).new_codec();
        let mut parts = FramedParts::new::<Bytes>(stream, codec);
        parts.read_buf = rest;
        let framed = Framed::from_parts(parts);
        let mut connection =
            Self { framed, socket: socket.to_owned(), last_id: 0, kept: VecDeque::new(), release, pid: peer.pid() };
        // Its answer carries nothing; the first call skips over it.
        connection.post(Request::Hello(Hello { client })).await?;
        Ok(connection)
    }

    /// Sends a request without waiting for its answer.
    ///
    /// # Errors
    /// The request is over the frame limit, or the connection broke.
    pub async fn post(&mut self, request: Request) -> Result<u64, CtlError> {
        self.last_id += 1;
        let bytes = frame::encode(&ClientFrame { id: self.last_id, request })?;
        self.framed.send(Bytes::from(bytes)).await.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => CtlError::Lost,
            _ => CtlError::Connection(error),
        })?;
        Ok(self.last_id)
    }

    /// Sends a request and waits for its answer; other frames are kept for [`Self::next`].
    ///
    /// # Errors
    /// [`CtlError::Wire`] when the daemon says no, [`CtlError::Silent`] after half a minute, or the connection broke.
    pub async fn call(&mut self, request: Request) -> Result<Response, CtlError> {
        let id = self.post(request).await?;
        let Ok(result) = timeout(CALL_WAIT, self.wait_for(id)).await else {
            return Err(CtlError::Silent { socket: self.socket.clone(), seconds: CALL_WAIT.as_secs() });
        };
        match result? {
            ResponseResult::Ok(response) => Ok(response),
            ResponseResult::Error(error) => Err(CtlError::Wire(error)),
        }
    }

    async fn wait_for(&mut self, id: u64) -> Result<ResponseResult, CtlError> {
        loop {
            match self.read().await? {
                Some(ServerFrame::Response(response)) if response.id == id => return Ok(response.result),
                // The answer to an earlier `post`.
                Some(ServerFrame::Response(_)) => {}
                Some(frame) => self.kept.push_back(frame),
                None => return Err(CtlError::Lost),
            }
        }
    }

    /// The next frame of a subscription, a session's state or a refusal that was posted for; `None` when the daemon closed the
    /// connection. May be cancelled and called again without losing a frame.
    ///
    /// # Errors
    /// The connection broke or carried something that is no frame.
    pub async fn next(&mut self) -> Result<Option<ServerFrame>, CtlError> {
        if let Some(frame) = self.kept.pop_front() {
            return Ok(Some(frame));
        }
        loop {
            match self.read().await? {
                frame @ Some(ServerFrame::Response(ResponseFrame {
                    result: ResponseResult::Ok(Response::Session(_)),
                    ..
                })) => return Ok(frame),
                Some(ServerFrame::Response(ResponseFrame { result: ResponseResult::Ok(_), .. })) => {}
                other => return Ok(other),
            }
        }
    }

    async fn read(&mut self) -> Result<Option<ServerFrame>, CtlError> {
        match self.framed.next().await {
            None => Ok(None),
            Some(Ok(bytes)) => Ok(Some(frame::decode(&bytes)?)),
            // A daemon that was killed resets the connection when requests of ours were still unread.
            Some(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Some(Err(error)) => Err(CtlError::Connection(error)),
        }
    }
}

/// Reads up to the first line feed; what follows it belongs to the frames.
async fn read_line(stream: &mut UnixStream, socket: &Path) -> Result<(String, BytesMut), CtlError> {
    let mut buffer = BytesMut::with_capacity(ANSWER_BYTES_MAX);
    loop {
        if let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let line = buffer.split_to(end + 1);
            return Ok((String::from_utf8_lossy(&line).into_owned(), buffer));
        }
        if buffer.len() >= ANSWER_BYTES_MAX {
            return Err(not_agentd(&buffer, socket));
        }
        if stream.read_buf(&mut buffer).await.map_err(CtlError::Connection)? == 0 {
            if buffer.is_empty() {
                return Ok((String::new(), buffer));
            }
            return Err(not_agentd(&buffer, socket));
        }
    }
}

fn welcome(line: &str, socket: &Path) -> Result<String, CtlError> {
    match Answer::parse(line) {
        Some(Answer::Welcome { version, .. }) if version != PROTOCOL => {
            Err(CtlError::Version { sentence: version_sentence(PROTOCOL, version) })
        }
        Some(Answer::Welcome { release, .. }) => Ok(release),
        Some(Answer::Refused { version, refusal: Refusal::Version, sentence }) => {
            let sentence = if sentence.is_empty() { version_sentence(PROTOCOL, version) } else { sentence };
            Err(CtlError::Version { sentence })
        }
        Some(Answer::Refused { refusal, sentence, .. }) => {
            Err(CtlError::Refused { socket: socket.to_owned(), refusal, sentence })
        }
        None => Err(not_agentd(line.as_bytes(), socket)),
    }
}

fn not_agentd(answer: &[u8], socket: &Path) -> CtlError {
    let quoted = &answer[..answer.len().min(QUOTED_BYTES)];
    CtlError::NotAgentd { socket: socket.to_owned(), answer: String::from_utf8_lossy(quoted).trim_end().to_owned() }
}
