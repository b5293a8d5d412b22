//! The text of replies: live pieces extend a block by offset, the finished row brings what is missing. Pure.

use proto::event::{Block, ReplyReceived};
use proto::ids::RequestId;
use proto::live::{LiveKind, LiveText};

use super::{Piece, View, Waiting};
use crate::render::{Line, Style, notes};

impl View {
    pub(super) fn live_text(&mut self, piece: &LiveText) -> Vec<Piece> {
        let block = (piece.request, piece.index);
        self.spent.writing = self.spent.writing.saturating_add(piece.text.len());
        if !self.options.stream && piece.kind != LiveKind::Call {
            return Vec::new();
        }
        // The next block has begun: what was thought before it is complete.
        let mut pieces = match self.thinking {
            Some(thinking) if thinking != block => self.end_thinking(thinking),
            Some(_) | None => Vec::new(),
        };
        match piece.kind {
            LiveKind::Call => {
                if let Waiting::Model { call, .. } = &mut self.waiting
                    && piece.offset == 0
                {
                    *call = Some(piece.text.clone());
                }
            }
            LiveKind::Text => {
                if let Some(rest) = self.extend(piece) {
                    pieces.extend(self.switch(block));
                    pieces.push(Piece::Text(rest));
                }
            }
            LiveKind::Thinking => {
                self.thinking = Some(block);
                if self.extend(piece).is_some() {
                    let shown = self.shown.entry(block).or_default();
                    let upto = shown.text.rfind('\n').map_or(shown.lined, |at| at + 1);
                    pieces.extend(self.think(block, upto));
                }
            }
        }
        pieces
    }

    /// Gives out a block of thinking up to a byte, as lines.
    fn think(&mut self, block: (RequestId, u32), upto: usize) -> Vec<Piece> {
        let Some(shown) = self.shown.get_mut(&block) else { return Vec::new() };
        let lines = thinking(shown.text.get(shown.lined..upto).unwrap_or_default());
        shown.lined = shown.lined.max(upto);
        self.beside(lines)
    }

    fn end_thinking(&mut self, block: (RequestId, u32)) -> Vec<Piece> {
        self.thinking = None;
        let upto = self.shown.get(&block).map_or(0, |shown| shown.text.len());
        self.think(block, upto)
    }

    /// Adds what is new of a piece to its block. After a gap nothing is added: the finished row brings the rest.
    fn extend(&mut self, piece: &LiveText) -> Option<String> {
        let shown = &mut self.shown.entry((piece.request, piece.index)).or_default().text;
        let known = u64::try_from(shown.len()).unwrap_or(u64::MAX).checked_sub(piece.offset)?;
        let rest = piece.text.get(usize::try_from(known).ok()?..).filter(|rest| !rest.is_empty())?.to_owned();
        shown.push_str(&rest);
        Some(rest)
    }

    pub(super) fn reply(&mut self, reply: &ReplyReceived) -> Vec<Piece> {
        self.waiting = Waiting::Nothing;
        self.thinking = None;
        self.spent.writing = 0;
        self.spent.usage = self.spent.usage.plus(reply.usage);
        self.context_tokens = reply.usage.input_tokens
            + reply.usage.cache_write_tokens
            + reply.usage.cache_read_tokens
            + reply.usage.output_tokens;
        let mut pieces = Vec::new();
        for (index, block) in (0..).zip(&reply.blocks) {
            let key = (reply.request, index);
            let shown = self.shown.remove(&key).unwrap_or_default();
            match block {
                Block::Text { text } => {
                    let rest = text.strip_prefix(&shown.text).map(str::to_owned);
                    if rest.is_none() {
                        pieces.extend(self.beside(vec![notes::remark("that text is void; the reply is:")]));
                    }
                    pieces.extend(self.switch(key));
                    let rest = rest.unwrap_or_else(|| text.clone());
                    if !rest.is_empty() {
                        pieces.push(Piece::Text(rest));
                    }
                    pieces.extend(self.end_text());
                }
                Block::Thinking { text } => {
                    let rest = text.get(shown.lined..).unwrap_or(text);
                    pieces.extend(self.beside(thinking(rest)));
                }
                Block::Call(call) => {
                    self.titles.insert(call.call, call.title.clone());
                }
                Block::Other { kind } => {
                    pieces.extend(self.beside(vec![notes::remark(&format!("a block of kind {kind}, not shown"))]));
                }
            }
        }
        self.shown.retain(|(request, _), _| *request != reply.request);
        if let Some(why) = &reply.cache_miss {
            pieces.extend(self.beside(vec![notes::remark(&format!("the prompt cache was not read: {why}"))]));
        }
        pieces
    }

    pub(super) fn restarted(&mut self, request: RequestId) -> Vec<Piece> {
        let visible = self.shown.iter().any(|((of, _), shown)| *of == request && !shown.text.is_empty());
        self.shown.retain(|(of, _), _| *of != request);
        if visible {
            self.beside(vec![notes::notice("the reply broke off; what was shown of it is void, it is asked for again")])
        } else {
            Vec::new()
        }
    }

    /// Lines beside the text, after the end of a text that is open.
    pub(super) fn beside(&mut self, lines: Vec<Line>) -> Vec<Piece> {
        if lines.is_empty() {
            return Vec::new();
        }
        let mut pieces = self.end_text();
        pieces.extend(lines.into_iter().map(Piece::Line));
        pieces
    }

    fn switch(&mut self, block: (RequestId, u32)) -> Vec<Piece> {
        let pieces = if self.streaming == Some(block) { Vec::new() } else { self.end_text() };
        self.streaming = Some(block);
        pieces
    }

    fn end_text(&mut self) -> Vec<Piece> {
        self.streaming.take().map(|_| Piece::EndText).into_iter().collect()
    }
}

fn thinking(text: &str) -> Vec<Line> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| Line::new().lit(Style::Dim, "┊ ").text(Style::Dim, line).prose("┊ "))
        .collect()
}
