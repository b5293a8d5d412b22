//! A controller's connection: frames in, frames out, never blocking.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use proto::shim::frame::{self, Decoder, Frame};
use proto::shim::reply::FromShim;

/// Bytes read at once: most requests are much shorter.
const READ_BYTES: usize = 8 * 1024;

/// Beyond this much unsent, live output is left out: it can be read from the spool.
const CROWDED_BYTES: usize = 256 * 1024;

/// Beyond this much unsent the controller is taken for dead and let go; it may come back and ask again.
const UNSENT_MAX: usize = 64 * 1024 * 1024;

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    decoder: Decoder,
    out: Vec<u8>,
    sent: usize,
    /// The socket takes no more for now.
    full: bool,
    /// When it came, for those that have not said hello.
    pub(crate) since: Instant,
}

impl Link {
    pub(crate) fn new(stream: UnixStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, decoder: Decoder::default(), out: Vec::new(), sent: 0, full: false, since: now })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub(crate) fn wants_room(&self) -> bool {
        self.full
    }

    /// Whether something is held back that could be sent.
    pub(crate) fn holds(&self) -> bool {
        self.sent < self.out.len() && !self.full
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.out.len() - self.sent > CROWDED_BYTES
    }

    /// Reads what is there; false when the peer is gone.
    pub(crate) fn fill(&mut self) -> bool {
        let mut buffer = [0; READ_BYTES];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    self.decoder.push(&buffer[..count]);
                    if count < buffer.len() {
                        return true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// The next request; an error means the stream is of no use any more.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, frame::FrameError> {
        self.decoder.next_frame()
    }

    /// Sends a frame, or as much of it as the socket takes now; false when the peer is gone.
    pub(crate) fn send(&mut self, header: &FromShim, body: &[u8]) -> bool {
        self.hold(header, body) && self.flush()
    }

    /// Sends a frame with what is sent next, or when the loop has waited for a moment; false when the peer is gone.
    pub(crate) fn hold(&mut self, header: &FromShim, body: &[u8]) -> bool {
        self.out.len() - self.sent <= UNSENT_MAX && frame::encode(&mut self.out, header, body).is_ok()
    }

    pub(crate) fn flush(&mut self) -> bool {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return false,
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.full = true;
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.full = false;
        self.out.clear();
        self.out.shrink_to(CROWDED_BYTES);
        self.sent = 0;
        true
    }
}
