//! Frames: how one message becomes bytes and back. The only file that names the bincode crate.
//!
//! A bincode frame on the socket is a u32 big-endian length and that many bytes; a JSON frame is one line. Both ends
//! cut the stream with [`FRAME_BYTES_MAX`] before they come here.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Largest frame in either direction: the longest prompt (1 MiB), a client's environment (the kernel's 2 MiB) and the
/// largest tool result fit several times; a peer that claims more is broken or hostile.
pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

/// bincode with a limit: without it nine hostile bytes that claim a string of 2^63 bytes abort the whole process.
const CONFIG: Configuration<LittleEndian, Varint, Limit<FRAME_BYTES_MAX>> =
    bincode::config::standard().with_limit::<FRAME_BYTES_MAX>();

/// Why a frame cannot be written or read.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The message does not fit a frame.
    #[error("a message of {bytes} bytes is over the frame limit of {FRAME_BYTES_MAX} bytes")]
    TooLarge {
        /// Size of the encoded message.
        bytes: usize,
    },
    /// The bytes are not such a message.
    #[error("the frame is not a valid message: {0}")]
    Malformed(String),
    /// A message was read, and bytes were left over.
    #[error("the frame has {0} bytes after its message")]
    LeftOver(usize),
}

/// Writes a message as bincode, without the length in front.
///
/// # Errors
/// [`FrameError::TooLarge`] over [`FRAME_BYTES_MAX`]; [`FrameError::Malformed`] for a type the codec cannot carry.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let bytes =
        bincode::serde::encode_to_vec(message, CONFIG).map_err(|error| FrameError::Malformed(error.to_string()))?;
    check(bytes)
}

/// Reads a bincode message that fills the slice exactly.
///
/// # Errors
/// [`FrameError::Malformed`] or [`FrameError::LeftOver`]; never a panic or an abort, whatever the bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    let (message, used) =
        bincode::serde::decode_from_slice(bytes, CONFIG).map_err(|error| FrameError::Malformed(error.to_string()))?;
    match bytes.len() - used {
        0 => Ok(message),
        left => Err(FrameError::LeftOver(left)),
    }
}

/// Writes a message as one JSON line, line feed included.
///
/// # Errors
/// As [`encode`].
pub fn encode_line<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut bytes = serde_json::to_vec(message).map_err(|error| FrameError::Malformed(error.to_string()))?;
    bytes.push(b'\n');
    check(bytes)
}

/// Reads a message from one JSON line, with or without its line feed.
///
/// # Errors
/// [`FrameError::Malformed`].
pub fn decode_line<T: DeserializeOwned>(line: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(line).map_err(|error| FrameError::Malformed(error.to_string()))
}

fn check(bytes: Vec<u8>) -> Result<Vec<u8>, FrameError> {
    if bytes.len() > FRAME_BYTES_MAX {
        return Err(FrameError::TooLarge { bytes: bytes.len() });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_hostile_bytes_are_an_error_and_not_an_abort() {
        // 253 announces a u64; 2^63 as the length of a string.
        let hostile = [253, 0, 0, 0, 0, 0, 0, 0, 0x80];
        assert!(matches!(decode::<String>(&hostile), Err(FrameError::Malformed(_))));
        assert!(matches!(decode::<Vec<u64>>(&hostile), Err(FrameError::Malformed(_))));
    }

    #[test]
    fn bytes_after_the_message_are_refused() {
        let mut bytes = encode(&7_u32).unwrap();
        bytes.push(0);
        assert!(matches!(decode::<u32>(&bytes), Err(FrameError::LeftOver(1))));
    }

    #[test]
    fn a_message_over_the_limit_is_not_written() {
        let big = "x".repeat(FRAME_BYTES_MAX + 1);
        assert!(matches!(encode_line(&big), Err(FrameError::TooLarge { .. })));
    }
}
