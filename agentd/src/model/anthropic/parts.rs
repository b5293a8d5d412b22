//! A request's body in parts, sent one after the other: what a session has written once is not copied for each request.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The parts that are still to be sent.
#[derive(Debug)]
pub(super) struct Parts {
    parts: std::vec::IntoIter<Bytes>,
    left: usize,
}

impl Parts {
    pub(super) fn new(parts: Vec<Bytes>) -> Self {
        let left = parts.iter().map(Bytes::len).sum();
        Self { parts: parts.into_iter(), left }
    }

    /// Bytes still to be sent.
    pub(super) fn left(&self) -> usize {
        self.left
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.parts.next();
        self.left -= next.as_ref().map_or(0, Bytes::len);
        Poll::Ready(next.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    /// The whole length, so that it goes into the head; some servers take no body without.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
