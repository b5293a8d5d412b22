//! A client on the wire, in both codecs. It waits for events and keeps every frame in the order it came.
//!
//! Frames that come while another is waited for stay in a backlog, so nothing is lost between two waits.

mod verbs;

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use proto::event::Event;
use proto::frame;
use proto::handshake::{Answer, Codec, PROTOCOL, Preface, Refusal, Role};
use proto::request::{ClientFrame, Request};
use proto::response::{Response, ResponseResult, ServerFrame, WireError};

use crate::wait::PATIENCE;

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    codec: Codec,
    next_id: u64,
    patience: Duration,
    backlog: VecDeque<ServerFrame>,
    /// Every event frame, in the order it came.
    pub events: Vec<Event>,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// Nobody listens, or the connection broke.
    Io(io::Error),
    /// The daemon says no.
    Refused(Refusal, String),
    /// The answer is none.
    Nonsense(String),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Client {
    /// Connects as a driver with bincode.
    ///
    /// # Errors
    /// When nobody listens or the daemon refuses.
    pub fn connect(socket: &Path) -> Result<Self, ConnectError> {
        Self::connect_as(socket, Codec::Bincode, Role::Driver)
    }

    /// Connects with a codec and a role.
    ///
    /// # Errors
    /// When nobody listens or the daemon refuses.
    pub fn connect_as(socket: &Path, codec: Codec, role: Role) -> Result<Self, ConnectError> {
        let mut client = Self::open(socket, &Preface { version: PROTOCOL, codec, role }.to_string())?;
        client.codec = codec;
        Ok(client)
    }

    /// Connects with any first line.
    ///
    /// # Errors
    /// When nobody listens or the daemon refuses.
    pub fn open(socket: &Path, preface: &str) -> Result<Self, ConnectError> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut stream = BufReader::new(stream);
        stream.get_mut().write_all(preface.as_bytes())?;
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match Answer::parse(&line) {
            Some(Answer::Welcome { .. }) => {
                let (backlog, events) = (VecDeque::new(), Vec::new());
                Ok(Self { stream, codec: Codec::Bincode, next_id: 1, patience: PATIENCE, backlog, events })
            }
            Some(Answer::Refused { refusal, sentence, .. }) => Err(ConnectError::Refused(refusal, sentence)),
            None => Err(ConnectError::Nonsense(line)),
        }
    }

    /// The socket itself, for claims about bytes.
    pub fn raw(&mut self) -> &mut UnixStream {
        self.stream.get_mut()
    }

    /// Sends a request without waiting for the answer; returns its number.
    ///
    /// # Panics
    /// When the connection is gone.
    pub fn post(&mut self, request: Request) -> u64 {
        self.try_post(request).expect("the daemon reads")
    }

    fn try_post(&mut self, request: Request) -> io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let frame = ClientFrame { id, request };
        let bytes = match self.codec {
            Codec::Bincode => {
                let payload = frame::encode(&frame).map_err(io::Error::other)?;
                let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
                [&length.to_be_bytes()[..], &payload].concat()
            }
            Codec::Json => frame::encode_line(&frame).map_err(io::Error::other)?,
        };
        self.stream.get_mut().write_all(&bytes)?;
        Ok(id)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// The daemon's own error.
    ///
    /// # Panics
    /// When the connection breaks.
    pub fn call(&mut self, request: Request) -> Result<Response, WireError> {
        let what = format!("{request:?}");
        match self.try_call(request) {
            Ok(result) => result,
            Err(error) => panic!("no answer to {what}: {error}"),
        }
    }

    /// As [`Client::call`], for connections that may break.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn try_call(&mut self, request: Request) -> io::Result<Result<Response, WireError>> {
        let id = self.try_post(request)?;
        self.answer_to(id)
    }

    /// Waits for the answer to a posted request.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn answer_to(&mut self, id: u64) -> io::Result<Result<Response, WireError>> {
        let is_it = |frame: &ServerFrame| matches!(frame, ServerFrame::Response(response) if response.id == id);
        let frame = match self.backlog.iter().position(is_it) {
            Some(position) => self.backlog.remove(position),
            None => None,
        };
        let mut frame = frame;
        loop {
            match frame {
                Some(ServerFrame::Response(response)) if response.id == id => {
                    return Ok(match response.result {
                        ResponseResult::Ok(response) => Ok(response),
                        ResponseResult::Error(error) => Err(error),
                    });
                }
                Some(other) => self.backlog.push_back(other),
                None => {}
            }
            frame = Some(self.read_frame()?);
        }
    }

    /// The next frame that is no answer, from the backlog or the socket.
    ///
    /// # Errors
    /// When the connection breaks or nothing comes in time.
    pub fn next_frame(&mut self) -> io::Result<ServerFrame> {
        match self.backlog.pop_front() {
            Some(frame) => Ok(frame),
            None => self.read_frame(),
        }
    }

    fn read_frame(&mut self) -> io::Result<ServerFrame> {
        let frame = match self.codec {
            Codec::Bincode => {
                let mut length = [0; 4];
                self.stream.read_exact(&mut length)?;
                let length = u32::from_be_bytes(length) as usize;
                if length > frame::FRAME_BYTES_MAX {
                    return Err(io::Error::other(format!("a frame of {length} bytes")));
                }
                let mut payload = vec![0; length];
                self.stream.read_exact(&mut payload)?;
                frame::decode(&payload).map_err(io::Error::other)?
            }
            Codec::Json => {
                let mut line = Vec::new();
                if self.stream.read_until(b'\n', &mut line)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                frame::decode_line(&line).map_err(io::Error::other)?
            }
        };
        if let ServerFrame::Event(event) = &frame {
            self.events.push(event.event.clone());
        }
        Ok(frame)
    }

    /// Changes how long a wait may last: shorter for claims that nothing comes, longer for long turns.
    ///
    /// # Panics
    /// When the socket is gone.
    pub fn patience(&mut self, patience: Duration) {
        self.patience = patience;
        self.raw().set_read_timeout(Some(patience)).expect("a live socket");
    }
}
