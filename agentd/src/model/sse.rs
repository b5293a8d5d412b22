//! Server-sent events: bytes in, events out. Pure; it knows nothing of the Messages API.
//!
//! Own code rather than a crate, after reading what there is: `eventsource-stream` decodes UTF-8 before it splits lines,
//! copies the rest of its buffer once per line (quadratic on a chunk of many small events, which is what a fast model
//! sends), has no limit on an event's size and drops the last event when the stream ends without an empty line;
//! `sse-stream` ties itself to an HTTP body type and has no limit either. What is needed fits here, without I/O, and is
//! tested with every way of cutting the bytes.
//!
//! Invariant: how the bytes are cut into chunks never changes the events.
//! Invariant: memory is bounded by [`EVENT_LIMIT`] plus the chunk in hand.

use thiserror::Error;

/// An event's largest size in bytes. A block comes in small deltas; only server-tool results arrive whole, and a request
/// may not exceed 32 MB, so no block that could ever be sent back is larger.
pub const EVENT_LIMIT: usize = 32 * 1024 * 1024;

/// The mark that some servers write before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The `event:` field; empty when there was none.
    pub name: String,
    /// The `data:` lines, joined by line feeds.
    pub data: String,
}

/// The bytes are no event stream.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SseError {
    /// Bytes that are not UTF-8. Replacing them would silently change what a tool is asked to write.
    #[error("the stream holds bytes that are not UTF-8")]
    NotUtf8,
    /// An event grew beyond [`EVENT_LIMIT`].
    #[error("an event is larger than {EVENT_LIMIT} bytes")]
    TooLarge,
}

/// The reader's state between two chunks.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The last chunk ended a line with CR: a LF at the start of the next belongs to it.
    after_cr: bool,
    /// The first line, which may start with a byte order mark, is behind us.
    started: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    /// A `data` field was seen, even an empty one.
    has_data: bool,
}

impl Decoder {
    /// Reads a chunk and appends the events that it completes to `events`.
    ///
    /// # Errors
    /// See [`SseError`]; the stream cannot be read on after one.
    pub fn feed(&mut self, mut chunk: &[u8], events: &mut Vec<Event>) -> Result<(), SseError> {
        if self.after_cr && !chunk.is_empty() {
            self.after_cr = false;
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(end) = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (head, rest) = (&chunk[..end], &chunk[end + 1..]);
            chunk = if chunk[end] == b'\r' {
                self.after_cr = rest.is_empty();
                rest.strip_prefix(b"\n").unwrap_or(rest)
            } else {
                rest
            };
            if self.line.is_empty() {
                self.line_ended(head, events)?;
            } else {
                self.hold(head)?;
                let mut line = std::mem::take(&mut self.line);
                self.line_ended(&line, events)?;
                line.clear();
                self.line = line;
            }
        }
        self.hold(chunk)
    }

    /// The stream ended. An event without its empty line is given out as far as it came: its JSON tells whether it is
    /// whole.
    ///
    /// # Errors
    /// As [`Decoder::feed`].
    pub fn finish(mut self, events: &mut Vec<Event>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line_ended(&line, events)?;
        }
        self.dispatch(events)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        if self.line.len() + self.data.len() + bytes.len() > EVENT_LIMIT {
            return Err(SseError::TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line_ended(&mut self, mut line: &[u8], events: &mut Vec<Event>) -> Result<(), SseError> {
        if !self.started {
            self.started = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(events);
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.len() + value.len() > EVENT_LIMIT {
                    return Err(SseError::TooLarge);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // A comment (no name), `id`, `retry`, and whatever the future brings.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) -> Result<(), SseError> {
        let name = std::mem::take(&mut self.name);
        if std::mem::take(&mut self.has_data) {
            let data = std::mem::take(&mut self.data);
            let name = String::from_utf8(name).map_err(|_| SseError::NotUtf8)?;
            let data = String::from_utf8(data).map_err(|_| SseError::NotUtf8)?;
            events.push(Event { name, data });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Result<Vec<(String, String)>, SseError> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.feed(chunk, &mut events)?;
        }
        decoder.finish(&mut events)?;
        Ok(events.into_iter().map(|event| (event.name, event.data)).collect())
    }

    fn check(bytes: &[u8], expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(n, d)| ((*n).to_owned(), (*d).to_owned())).collect();
        assert_eq!(read(&[bytes]).unwrap(), expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single).unwrap(), expected);
        for cut in 0..=bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &[], &bytes[cut..]]).unwrap(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        check(
            b"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\r\ndata: e\r\n\n",
            &[("", "a"), ("", "b"), ("", "c"), ("", "d"), ("", "e")],
        );
    }

    #[test]
    fn data_lines_are_joined_and_one_space_is_stripped() {
        check(b"event:x\ndata:a\ndata:  b\ndata\ndata: c:d\n\n", &[("x", "a\n b\n\nc:d")]);
    }

    #[test]
    fn a_leading_byte_order_mark_is_dropped_and_a_later_one_kept() {
        check(b"\xEF\xBB\xBFdata: \xEF\xBB\xBFa\n\n", &[("", "\u{feff}a")]);
        check(b"\xEF\xBB\xBF\n\ndata: a\n\n", &[("", "a")]);
    }

    #[test]
    fn comments_unknown_fields_and_events_without_data_are_skipped() {
        check(b": hi\n\nid: 1\nretry: 5\nwhat: ever\n\nevent: lonely\n\ndata: a\n\n", &[("", "a")]);
    }

    #[test]
    fn the_last_event_needs_no_empty_line() {
        check(b"data: a\n\nevent: z\ndata: b\n", &[("", "a"), ("z", "b")]);
        check(b"data: b", &[("", "b")]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error_and_not_replaced() {
        assert_eq!(read(&[b"data: \xff\n\n"]), Err(SseError::NotUtf8));
    }

    #[test]
    fn an_endless_event_is_an_error() {
        let mut decoder = Decoder::default();
        let block = vec![b'x'; 1024 * 1024];
        let mut events = Vec::new();
        let result = (0..64).try_for_each(|_| decoder.feed(&block, &mut events));
        assert_eq!(result, Err(SseError::TooLarge));
    }

    proptest! {
        #[test]
        fn chunking_never_changes_the_events(
            text in "(data: ?[a-zé日]{0,3}|event: x|:|\r|\n|\r\n|\u{feff}){0,30}",
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(0);
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&chunks), read(&[bytes]));
        }
    }
}
