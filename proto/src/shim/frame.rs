//! Frames of the shim protocol: cutting them out of a byte stream and building them. No I/O.
//!
//! Invariant: no input makes this code panic or reserve more than the peer has sent.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest body: a command of 1 MiB, a piece of output, a file's content; twice 4 MiB leaves room for JSON escapes.
pub const BODY_MAX: usize = 8 * 1024 * 1024;

/// Longest header. Headers hold names, numbers, paths and an environment (the kernel's own limit on that is 2 MiB).
pub const HEADER_MAX: usize = 4 * 1024 * 1024;

/// Bytes in front of every frame: its total length and its header's length.
const PREFIX: usize = 8;

/// What is wrong with a frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer announced more than is allowed.
    #[error("a frame of {length} bytes is longer than allowed")]
    TooLong {
        /// What was announced.
        length: u64,
    },
    /// The lengths contradict each other.
    #[error("a frame's lengths contradict each other")]
    Lengths,
    /// The header is not the JSON expected.
    #[error("a frame's header cannot be read: {0}")]
    Header(#[from] serde_json::Error),
}

/// One frame as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// JSON.
    pub header: Vec<u8>,
    /// Raw bytes.
    pub body: Vec<u8>,
}

impl Frame {
    /// What it takes on the wire.
    #[must_use]
    pub fn bytes(&self) -> usize {
        PREFIX + self.header.len() + self.body.len()
    }

    /// The header as a typed value.
    ///
    /// # Errors
    /// [`FrameError::Header`] when the JSON does not fit.
    pub fn header<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        Ok(serde_json::from_slice(&self.header)?)
    }
}

/// Appends a frame to `out`.
///
/// # Errors
/// When the header cannot be written as JSON or a part is too long.
pub fn encode(out: &mut Vec<u8>, header: &impl Serialize, body: &[u8]) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    if let Err(error) = serde_json::to_writer(&mut *out, header) {
        out.truncate(start);
        return Err(error.into());
    }
    let header_length = out.len() - start - PREFIX;
    if header_length > HEADER_MAX || body.len() > BODY_MAX {
        out.truncate(start);
        return Err(FrameError::TooLong { length: (header_length + body.len()) as u64 });
    }
    out.extend_from_slice(body);
    let total = u32::try_from(4 + header_length + body.len()).map_err(|_| FrameError::Lengths)?;
    let header_length = u32::try_from(header_length).map_err(|_| FrameError::Lengths)?;
    out[start..start + 4].copy_from_slice(&total.to_be_bytes());
    out[start + 4..start + PREFIX].copy_from_slice(&header_length.to_be_bytes());
    Ok(())
}

/// Cuts frames out of what a peer sent.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    read: usize,
}

impl Decoder {
    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read == self.buffer.len() {
            self.buffer.clear();
            self.read = 0;
        } else if self.read > 64 * 1024 {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// When the lengths are beyond the limits or contradict each other; the stream is of no use afterwards.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let bytes = &self.buffer[self.read..];
        let Some((total, header)) = lengths(bytes)? else { return Ok(None) };
        let Some(frame) = bytes.get(PREFIX..4 + total) else { return Ok(None) };
        let (header, body) = frame.split_at(header);
        let frame = Frame { header: header.to_vec(), body: body.to_vec() };
        self.read += 4 + total;
        if self.read == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(64 * 1024);
            self.read = 0;
        }
        Ok(Some(frame))
    }
}

/// Total (without its own four bytes) and header length, once both are here.
fn lengths(bytes: &[u8]) -> Result<Option<(usize, usize)>, FrameError> {
    let (Some(total), Some(header)) = (word(bytes, 0), word(bytes, 4)) else { return Ok(None) };
    if total > HEADER_MAX + BODY_MAX + 4 || header > HEADER_MAX {
        return Err(FrameError::TooLong { length: total.max(header) as u64 });
    }
    if total < 4 || header > total - 4 || total - 4 - header > BODY_MAX {
        return Err(FrameError::Lengths);
    }
    Ok(Some((total, header)))
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([four[0], four[1], four[2], four[3]]) as usize)
}
