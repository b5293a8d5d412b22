//! Frames on a socket: one stream of requests in, one stream of frames out, whatever the codec.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use proto::frame::{self, FRAME_BYTES_MAX, FrameError};
use proto::handshake::Codec;
use proto::request::ClientFrame;
use proto::response::ServerFrame;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec, LinesCodec, LinesCodecError};

/// Requests from one client.
pub(super) enum Reader {
    Bincode(FramedRead<OwnedReadHalf, LengthDelimitedCodec>),
    Json(FramedRead<OwnedReadHalf, LinesCodec>),
}

/// Frames to one client.
pub(super) enum Writer {
    Bincode(FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>),
    Json(FramedWrite<OwnedWriteHalf, tokio_util::codec::BytesCodec>),
}

/// What came from the client.
pub(super) enum Received {
    /// A request.
    Frame(ClientFrame),
    /// Not a request; the stream goes on (JSON) or not (bincode).
    Garbage(FrameError),
    /// The client is gone, or its stream can no longer be cut into frames.
    End(Option<String>),
}

/// What waits for a client's writer.
pub(super) enum Outbound {
    /// A frame of its own.
    Frame(Box<ServerFrame>),
    /// The bytes of one that others get, too.
    Encoded(Bytes),
}

impl From<ServerFrame> for Outbound {
    fn from(frame: ServerFrame) -> Self {
        Self::Frame(Box::new(frame))
    }
}

/// A frame as the bytes of a codec.
pub(super) fn encode(codec: Codec, frame: &ServerFrame) -> Result<Bytes, FrameError> {
    match codec {
        Codec::Bincode => frame::encode(frame).map(Bytes::from),
        Codec::Json => frame::encode_line(frame).map(Bytes::from),
    }
}

/// Tells of a frame that no codec can carry; the client's stream goes on without it.
pub(super) fn left_out(error: &FrameError) {
    tracing::error!(%error, "a frame cannot be written and is left out");
}

fn lengths() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(FRAME_BYTES_MAX).new_codec()
}

impl Reader {
    pub(super) fn new(codec: Codec, half: OwnedReadHalf) -> Self {
        match codec {
            Codec::Bincode => Self::Bincode(FramedRead::new(half, lengths())),
            Codec::Json => Self::Json(FramedRead::new(half, LinesCodec::new_with_max_length(FRAME_BYTES_MAX))),
        }
    }

    /// The next request. Cancel-safe.
    pub(super) async fn next(&mut self) -> Received {
        match self {
            Self::Bincode(frames) => match frames.next().await {
                None => Received::End(None),
                Some(Err(error)) => Received::End(Some(error.to_string())),
                Some(Ok(bytes)) => match frame::decode(&bytes) {
                    Ok(frame) => Received::Frame(frame),
                    Err(error) => Received::Garbage(error),
                },
            },
            Self::Json(lines) => loop {
                return match lines.next().await {
                    None => Received::End(None),
                    Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                        Received::End(Some(format!("a line is over {FRAME_BYTES_MAX} bytes")))
                    }
                    Some(Err(LinesCodecError::Io(error))) => Received::End(Some(error.to_string())),
                    Some(Ok(line)) if line.trim().is_empty() => continue,
                    Some(Ok(line)) => match frame::decode_line(line.as_bytes()) {
                        Ok(frame) => Received::Frame(frame),
                        Err(error) => Received::Garbage(error),
                    },
                };
            },
        }
    }
}

impl Writer {
    pub(super) fn new(codec: Codec, half: OwnedWriteHalf) -> Self {
        match codec {
            Codec::Bincode => Self::Bincode(FramedWrite::new(half, lengths())),
            Codec::Json => Self::Json(FramedWrite::new(half, tokio_util::codec::BytesCodec::new())),
        }
    }

    /// The frame as this client's bytes.
    pub(super) fn encode(&self, outbound: Outbound) -> Result<Bytes, FrameError> {
        let codec = match self {
            Self::Bincode(_) => Codec::Bincode,
            Self::Json(_) => Codec::Json,
        };
        match outbound {
            Outbound::Frame(frame) => encode(codec, &frame),
            Outbound::Encoded(bytes) => Ok(bytes),
        }
    }

    /// Takes bytes into the buffer, writing when it is full.
    pub(super) async fn feed(&mut self, bytes: Bytes) -> std::io::Result<()> {
        match self {
            Self::Bincode(sink) => sink.feed(bytes).await,
            Self::Json(sink) => sink.feed(bytes).await,
        }
    }

    /// Writes what is buffered.
    pub(super) async fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Bincode(sink) => SinkExt::<Bytes>::flush(sink).await,
            Self::Json(sink) => SinkExt::<Bytes>::flush(sink).await,
        }
    }
}
