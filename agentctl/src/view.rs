//! A session as one terminal shows it: a fold over events and live frames. Pure: no clock, no terminal.
//!
//! Invariant: of a reply's text every byte comes out exactly once, whatever mixture of live pieces (late, doubled,
//! missing) and finished rows arrives. Live pieces extend a block by offset; the finished row brings what is missing.

mod running;

use std::collections::{HashMap, HashSet};

use jiff::tz::TimeZone;
use proto::approval::{Approval, Decider};
use proto::event::{Block, Event, EventBody, ReplyReceived, RequestFailed};
use proto::ids::{ApprovalId, CallId, PromptId, RequestId, Seq, Timestamp, TurnId};
use proto::live::{Live, LiveKind, LiveText};

use crate::render::{Line, Style, call, changes, notes, time};
use running::{Running, spinner};

/// Something to show, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The model's text, as it came: not yet made harmless.
    Text(String),
    /// The block of text is over.
    EndText,
    /// A line beside the text.
    Line(Line),
}

/// How a view is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Show text as it streams; else each reply when it is whole, so that a void beginning never reaches a file.
    pub stream: bool,
    /// Show this client's own prompts too.
    pub own_prompts: bool,
    /// Our own name, as in [`Decider::Client`].
    pub me: String,
    /// For clock times.
    pub zone: TimeZone,
}

/// The state.
#[derive(Debug)]
pub struct View {
    options: Options,
    /// The last row that was folded in.
    pub last: Seq,
    /// Open approvals, oldest first.
    pub open: Vec<Approval>,
    /// The running turn.
    pub turn: Option<TurnId>,
    shown: HashMap<(RequestId, u32), Shown>,
    thinking: Option<(RequestId, u32)>,
    streaming: Option<(RequestId, u32)>,
    titles: HashMap<CallId, String>,
    running: Vec<Running>,
    drawn: HashSet<CallId>,
    answered: HashSet<ApprovalId>,
    own: HashSet<PromptId>,
    waiting: Waiting,
}

/// What came of a block so far.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    /// Bytes of it that were given out as lines, when it is thinking.
    lined: usize,
}

/// What is waited for when nothing runs.
#[derive(Clone, Debug)]
enum Waiting {
    Nothing,
    Model { since: Timestamp, call: Option<String> },
    NextTry { at: Timestamp, parked: bool },
}

impl View {
    /// An empty one.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            last: Seq(0),
            open: Vec::new(),
            turn: None,
            shown: HashMap::new(),
            thinking: None,
            streaming: None,
            titles: HashMap::new(),
            running: Vec::new(),
            drawn: HashSet::new(),
            answered: HashSet::new(),
            own: HashSet::new(),
            waiting: Waiting::Nothing,
        }
    }

    /// Takes note of a prompt this client sent.
    pub fn sent(&mut self, prompt: PromptId) {
        self.own.insert(prompt);
    }

    /// Takes note that a question was drawn here, with all it would change.
    pub fn drew(&mut self, approval: &Approval) {
        self.drawn.insert(approval.call);
    }

    /// Takes note that a question is answered from here.
    pub fn answers(&mut self, approval: ApprovalId) {
        self.answered.insert(approval);
    }

    /// Folds a row in; rows that were folded before change nothing.
    pub fn event(&mut self, event: &Event, columns: usize) -> Vec<Piece> {
        if event.seq <= self.last {
            return Vec::new();
        }
        self.last = event.seq;
        let lines = match &event.body {
            EventBody::SessionCreated(_) => Vec::new(),
            EventBody::PromptAccepted(it) => match self.own.contains(&it.prompt) {
                true if self.options.own_prompts => notes::prompt(&it.text, ""),
                true => Vec::new(),
                false => notes::prompt(&it.text, &it.by),
            },
            EventBody::PromptWithdrawn(it) => {
                self.own.remove(&it.prompt);
                vec![notes::remark(&format!("a queued prompt was withdrawn by {}", it.by))]
            }
            EventBody::TurnStarted(it) => {
                self.turn = Some(it.turn);
                self.own.remove(&it.prompt);
                Vec::new()
            }
            EventBody::RequestSent(_) => {
                self.waiting = Waiting::Model { since: event.at, call: None };
                Vec::new()
            }
            EventBody::RequestFailed(it) => self.request_failed(it),
            EventBody::ReplyReceived(it) => return self.reply(it),
            EventBody::ApprovalAsked(it) => {
                // The answer to an attach may have named it already.
                if !self.open.iter().any(|open| open.id == it.approval.id) {
                    self.open.push(it.approval.clone());
                }
                Vec::new()
            }
            EventBody::ApprovalClosed(it) => {
                self.open.retain(|open| open.id != it.approval);
                let mine = self.answered.remove(&it.approval)
                    && matches!(&it.by, Decider::Client { name } if *name == self.options.me);
                vec![crate::render::approval::closed(&it.verdict, &it.by, mine)]
            }
            EventBody::CallStarted(it) => {
                self.running.push(Running::new(it.call, event.at));
                Vec::new()
            }
            EventBody::CallFinished(it) => {
                self.running.retain(|running| running.call != it.call);
                let title = self.title(it.call);
                call::finished(&title, it, columns, self.drawn.contains(&it.call))
            }
            EventBody::TurnEnded(it) => {
                self.turn = None;
                self.running.clear();
                self.waiting = Waiting::Nothing;
                notes::outcome(&it.outcome)
            }
            EventBody::Notice(it) => vec![notes::notice(&it.text)],
            EventBody::SessionRenamed(it) => vec![notes::remark(&format!("renamed to {} by {}", it.name, it.by))],
            EventBody::SessionArchived(it) => vec![notes::remark(&format!("archived by {}", it.by))],
            EventBody::UndoStarted(_) => Vec::new(),
            EventBody::UndoEnded(it) => changes::undo_ended(it),
        };
        self.beside(lines)
    }

    /// Folds a live piece in.
    pub fn live(&mut self, live: &Live) -> Vec<Piece> {
        match live {
            Live::Text(piece) => self.live_text(piece),
            Live::Output(output) => {
                if let Some(running) = self.running.iter_mut().find(|running| running.call == output.call) {
                    running.take(output);
                }
                Vec::new()
            }
            Live::Restarted(it) => self.restarted(it.request),
        }
    }

    fn live_text(&mut self, piece: &LiveText) -> Vec<Piece> {
        let block = (piece.request, piece.index);
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

    fn reply(&mut self, reply: &ReplyReceived) -> Vec<Piece> {
        self.waiting = Waiting::Nothing;
        self.thinking = None;
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
        pieces
    }

    fn restarted(&mut self, request: RequestId) -> Vec<Piece> {
        let visible = self.shown.iter().any(|((of, _), shown)| *of == request && !shown.text.is_empty());
        self.shown.retain(|(of, _), _| *of != request);
        if visible {
            self.beside(vec![notes::notice("the reply broke off; what was shown of it is void, it is asked for again")])
        } else {
            Vec::new()
        }
    }

    fn request_failed(&mut self, failed: &RequestFailed) -> Vec<Line> {
        match failed.next_try {
            Some(at) => {
                self.waiting = Waiting::NextTry { at, parked: failed.parked };
                vec![notes::request_failed(failed, &self.options.zone)]
            }
            // The end of the turn says the same with what to do next.
            None => Vec::new(),
        }
    }

    /// Lines beside the text, after the end of a text that is open.
    fn beside(&mut self, lines: Vec<Line>) -> Vec<Piece> {
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

    fn title(&self, call: CallId) -> String {
        self.titles.get(&call).cloned().unwrap_or_else(|| format!("call {}", call.short()))
    }

    /// What is going on right now, to be repainted in place: running commands with their last words, what is waited for.
    #[must_use]
    pub fn status(&self, now: Timestamp, columns: usize) -> Vec<Line> {
        if !self.running.is_empty() {
            return self
                .running
                .iter()
                .flat_map(|running| running.lines(&self.title(running.call), now, columns))
                .collect();
        }
        if self.streaming.is_some() || !self.open.is_empty() {
            return Vec::new();
        }
        let line = match &self.waiting {
            Waiting::Nothing => return Vec::new(),
            Waiting::Model { since, call } => {
                let what = call.as_ref().map_or("thinking".to_owned(), |tool| format!("writing a call of {tool}"));
                let spent = time::span(now.0.saturating_sub(since.0));
                spinner(now).text(Style::Dim, &format!("{what} · {spent}"))
            }
            Waiting::NextTry { at, parked } => {
                let left = at.0.saturating_sub(now.0).div_ceil(1000);
                let what = if *parked { "parked · " } else { "" };
                spinner(now).text(Style::Dim, &format!("{what}next try in {}", time::wait(left)))
            }
        };
        vec![line.fit(columns)]
    }

    /// Whether no turn runs and none of this client's prompts waits for one.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.turn.is_none() && self.own.is_empty()
    }

    /// Whether [`Self::status`] would change with the time alone.
    #[must_use]
    pub fn ticks(&self) -> bool {
        !self.running.is_empty() || !matches!(self.waiting, Waiting::Nothing)
    }
}

fn thinking(text: &str) -> Vec<Line> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| Line::new().lit(Style::Dim, "┊ ").text(Style::Dim, line))
        .collect()
}

#[cfg(test)]
mod tests;
