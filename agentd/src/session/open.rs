//! What is being written right now: pieces of the reply and of the running command's output, kept so that a client that
//! attaches in the middle sees them too.

use proto::ids::{CallId, RequestId, SessionId};
use proto::live::{Live, LiveKind, LiveOutput, LiveRestarted, LiveText};

use crate::model::{BlockKind, Progress};
use crate::shell::OutputChunk;

/// Bytes of a running command's output kept for clients that attach: a screenful or three; the whole is in the spool.
const OUTPUT_KEPT: usize = 16 * 1024;

/// The unfinished pieces of one session.
#[derive(Debug, Default)]
pub(super) struct OpenPieces {
    reply: Option<OpenReply>,
    output: Option<OpenOutput>,
}

#[derive(Debug)]
struct OpenReply {
    request: RequestId,
    blocks: Vec<OpenBlock>,
}

#[derive(Debug)]
struct OpenBlock {
    index: u32,
    kind: LiveKind,
    text: String,
}

#[derive(Debug)]
struct OpenOutput {
    call: CallId,
    /// Offset of the first kept byte.
    start: u64,
    kept: Vec<u8>,
    /// Bytes at the end that may be the beginning of a character.
    tail: Vec<u8>,
}

impl OpenPieces {
    /// The reply is complete, or will not be.
    pub(super) fn end_reply(&mut self) {
        self.reply = None;
    }

    /// The command is over.
    pub(super) fn end_output(&mut self) {
        self.output = None;
    }

    /// Takes a reply's progress; returns what clients are told.
    pub(super) fn progress(&mut self, session: SessionId, request: RequestId, progress: Progress) -> Vec<Live> {
        let mut out = Vec::new();
        let (index, kind, text) = match progress {
            Progress::BlockStarted { index, kind } => {
                // A block that starts again: the stream was cut and is sent anew.
                if self.reply.as_ref().is_some_and(|reply| {
                    reply.request == request && reply.blocks.iter().any(|block| block.index == index)
                }) {
                    self.reply = None;
                    out.push(Live::Restarted(LiveRestarted { session, request }));
                }
                let (kind, text) = match kind {
                    BlockKind::Text(text) => (LiveKind::Text, text),
                    BlockKind::Thinking(text) => (LiveKind::Thinking, text),
                    BlockKind::ToolUse(call) => (LiveKind::Call, call.name),
                    BlockKind::Other(_) => return out,
                };
                self.reply_of(request).blocks.push(OpenBlock { index, kind, text: String::new() });
                (index, kind, text)
            }
            Progress::Delta { index, text } => {
                let Some(block) = self.reply_of(request).blocks.iter().find(|block| block.index == index) else {
                    return out;
                };
                (index, block.kind, text)
            }
        };
        if text.is_empty() {
            return out;
        }
        if let Some(block) = self.reply_of(request).blocks.iter_mut().find(|block| block.index == index) {
            let offset = block.text.len() as u64;
            block.text.push_str(&text);
            out.push(Live::Text(LiveText { session, request, index, kind, offset, text }));
        }
        out
    }

    fn reply_of(&mut self, request: RequestId) -> &mut OpenReply {
        if self.reply.as_ref().is_none_or(|reply| reply.request != request) {
            self.reply = None;
        }
        self.reply.get_or_insert_with(|| OpenReply { request, blocks: Vec::new() })
    }

    /// Takes a piece of output; returns what clients are told. A character that is cut by the piece's end waits for the
    /// next piece.
    pub(super) fn output(&mut self, session: SessionId, call: CallId, chunk: &OutputChunk) -> Option<Live> {
        if self.output.as_ref().is_none_or(|open| open.call != call) {
            self.output = Some(OpenOutput { call, start: chunk.offset, kept: Vec::new(), tail: Vec::new() });
        }
        let open = self.output.as_mut()?;
        let end = open.start + open.kept.len() as u64 + open.tail.len() as u64;
        if chunk.offset != end {
            // Pieces were dropped on the way: what follows the gap starts anew.
            open.start = chunk.offset;
            open.kept.clear();
            open.tail.clear();
        }
        let offset = open.start + open.kept.len() as u64;
        let mut bytes = std::mem::take(&mut open.tail);
        bytes.extend_from_slice(&chunk.bytes);
        open.tail = bytes.split_off(bytes.len() - cut_character(&bytes));
        if bytes.is_empty() {
            return None;
        }
        open.kept.extend_from_slice(&bytes);
        if open.kept.len() > 2 * OUTPUT_KEPT {
            let gone = open.kept.len() - OUTPUT_KEPT;
            open.kept.drain(..gone);
            open.start += gone as u64;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Some(Live::Output(LiveOutput { session, call, offset, bytes: bytes.len() as u64, text }))
    }

    /// Everything that is open, as one piece each.
    pub(super) fn snapshot(&self, session: SessionId) -> Vec<Live> {
        let mut out = Vec::new();
        if let Some(reply) = &self.reply {
            for block in &reply.blocks {
                out.push(Live::Text(LiveText {
                    session,
                    request: reply.request,
                    index: block.index,
                    kind: block.kind,
                    offset: 0,
                    text: block.text.clone(),
                }));
            }
        }
        if let Some(open) = &self.output {
            out.push(Live::Output(LiveOutput {
                session,
                call: open.call,
                offset: open.start,
                bytes: open.kept.len() as u64,
                text: String::from_utf8_lossy(&open.kept).into_owned(),
            }));
        }
        out
    }
}

/// How many bytes at the end are the beginning of a character that is not complete yet (0 to 3).
fn cut_character(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        if byte & 0xC0 == 0x80 {
            continue;
        }
        let width = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if width > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_character_cut_between_two_pieces_arrives_whole() {
        let (session, call) = (SessionId::new(), CallId::new());
        let whole = "aé😀b".as_bytes();
        for cut in 0..=whole.len() {
            let mut open = OpenPieces::default();
            let mut text = String::new();
            let mut expected = 0;
            for (offset, piece) in [(0, &whole[..cut]), (cut, &whole[cut..])] {
                let chunk = OutputChunk { offset: offset as u64, bytes: Bytes::copy_from_slice(piece) };
                if let Some(Live::Output(live)) = open.output(session, call, &chunk) {
                    assert_eq!(live.offset, expected);
                    expected += live.bytes;
                    text.push_str(&live.text);
                }
            }
            assert_eq!(text.as_bytes(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_block_that_starts_again_voids_what_was_shown() {
        let (session, request) = (SessionId::new(), RequestId::new());
        let mut open = OpenPieces::default();
        let start = || Progress::BlockStarted { index: 0, kind: BlockKind::Text(String::new()) };
        open.progress(session, request, start());
        open.progress(session, request, Progress::Delta { index: 0, text: "half".into() });
        let again = open.progress(session, request, start());
        assert!(matches!(again.as_slice(), [Live::Restarted(_)]));
        open.progress(session, request, Progress::Delta { index: 0, text: "whole".into() });
        let snapshot = open.snapshot(session);
        assert!(matches!(snapshot.as_slice(), [Live::Text(live)] if live.text == "whole"));
    }
}
