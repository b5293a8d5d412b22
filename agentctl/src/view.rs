//! A session as one terminal shows it: a fold over events and live frames. Pure: no clock, no terminal.
//!
//! Invariant: of a reply's text every byte comes out exactly once, whatever mixture of live pieces (late, doubled,
//! missing) and finished rows arrives. Live pieces extend a block by offset; the finished row brings what is missing.

use std::collections::{HashMap, HashSet, VecDeque};

use jiff::tz::TimeZone;
use proto::approval::{Approval, Decider};
use proto::event::{Block, Event, EventBody, ReplyReceived, RequestFailed};
use proto::ids::{ApprovalId, CallId, PromptId, RequestId, Seq, Timestamp, TurnId};
use proto::live::{Live, LiveKind, LiveOutput, LiveText};

use crate::render::{Line, Style, call, notes, time};

/// Output lines of a running command that are shown while it runs.
const LIVE_TAIL_LINES: usize = 5;

/// Longest piece of an unfinished output line that is kept: a terminal shows less.
const LIVE_LINE_BYTES: usize = 4096;

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
    shown: HashMap<(RequestId, u32), String>,
    streaming: Option<(RequestId, u32)>,
    titles: HashMap<CallId, String>,
    running: Vec<Running>,
    drawn: HashSet<CallId>,
    answered: HashSet<ApprovalId>,
    own: HashSet<PromptId>,
    waiting: Waiting,
}

/// What is waited for when nothing runs.
#[derive(Clone, Debug)]
enum Waiting {
    Nothing,
    Model { since: Timestamp, call: Option<String> },
    NextTry { at: Timestamp },
}

#[derive(Debug)]
struct Running {
    call: CallId,
    since: Timestamp,
    received: u64,
    tail: VecDeque<String>,
    partial: String,
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
                self.open.push(it.approval.clone());
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
        match piece.kind {
            LiveKind::Call => {
                if let Waiting::Model { call, .. } = &mut self.waiting
                    && piece.offset == 0
                {
                    *call = Some(piece.text.clone());
                }
                Vec::new()
            }
            LiveKind::Text | LiveKind::Thinking if !self.options.stream => Vec::new(),
            LiveKind::Text => {
                let Some(rest) = self.extend(piece) else { return Vec::new() };
                let mut pieces = self.switch((piece.request, piece.index));
                pieces.push(Piece::Text(rest));
                pieces
            }
            LiveKind::Thinking => {
                let key = (piece.request, piece.index);
                let before = self.shown.get(&key).map_or(0, String::len);
                if self.extend(piece).is_none() {
                    return Vec::new();
                }
                let shown = &self.shown[&key];
                let from = shown[..before].rfind('\n').map_or(0, |at| at + 1);
                let upto = shown.rfind('\n').map_or(from, |at| at + 1);
                let lines = thinking(&shown[from..upto]);
                self.beside(lines)
            }
        }
    }

    /// Adds what is new of a piece to its block. After a gap nothing is added: the finished row brings the rest.
    fn extend(&mut self, piece: &LiveText) -> Option<String> {
        let shown = self.shown.entry((piece.request, piece.index)).or_default();
        let known = u64::try_from(shown.len()).unwrap_or(u64::MAX).checked_sub(piece.offset)?;
        let rest = piece.text.get(usize::try_from(known).ok()?..).filter(|rest| !rest.is_empty())?.to_owned();
        shown.push_str(&rest);
        Some(rest)
    }

    fn reply(&mut self, reply: &ReplyReceived) -> Vec<Piece> {
        self.waiting = Waiting::Nothing;
        let mut pieces = Vec::new();
        for (index, block) in (0..).zip(&reply.blocks) {
            let key = (reply.request, index);
            let shown = self.shown.remove(&key).unwrap_or_default();
            match block {
                Block::Text { text } => {
                    let rest = text.strip_prefix(&shown).map(str::to_owned);
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
                    let from = shown.rfind('\n').map_or(0, |at| at + 1);
                    let rest = text.get(from..).unwrap_or(text);
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
        let visible = self.shown.iter().any(|((of, _), text)| *of == request && !text.is_empty());
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
                self.waiting = Waiting::NextTry { at };
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
            Waiting::NextTry { at } => {
                let left = at.0.saturating_sub(now.0).div_ceil(1000);
                spinner(now).text(Style::Dim, &format!("next try in {left} s"))
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

impl Running {
    fn new(call: CallId, since: Timestamp) -> Self {
        Self { call, since, received: 0, tail: VecDeque::new(), partial: String::new() }
    }

    fn take(&mut self, output: &LiveOutput) {
        let end = output.offset.saturating_add(output.bytes);
        if end <= self.received {
            return;
        }
        if output.offset > self.received {
            self.push_line("…".to_owned());
        }
        self.received = end;
        for piece in output.text.split_inclusive('\n') {
            self.partial.push_str(piece.trim_end_matches(['\n', '\r']));
            // A progress bar rewrites its line: the last state is what counts.
            if let Some(at) = self.partial.rfind('\r') {
                self.partial.drain(..=at);
            }
            if self.partial.len() > LIVE_LINE_BYTES {
                let cut = (0..=LIVE_LINE_BYTES).rev().find(|&at| self.partial.is_char_boundary(at)).unwrap_or(0);
                self.partial.truncate(cut);
            }
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                self.push_line(line);
            }
        }
    }

    fn push_line(&mut self, line: String) {
        if self.tail.len() == LIVE_TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    fn lines(&self, title: &str, now: Timestamp, columns: usize) -> Vec<Line> {
        let spent = Line::new().text(Style::Dim, &format!(" · {}", time::span(now.0.saturating_sub(self.since.0))));
        let head = spinner(now).join(call::name(title)).fit(columns.saturating_sub(spent.width())).join(spent);
        let partial = Some(&self.partial).filter(|text| !text.is_empty());
        let mut lines = vec![head];
        lines.extend(self.tail.iter().chain(partial).map(|text| call::output_line(text, columns)));
        lines
    }
}

fn spinner(now: Timestamp) -> Line {
    let frame = match now.0 / 1000 % 4 {
        0 => "◐ ",
        1 => "◓ ",
        2 => "◑ ",
        _ => "◒ ",
    };
    Line::new().lit(Style::Name, frame)
}

fn thinking(text: &str) -> Vec<Line> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| Line::new().lit(Style::Dim, "┊ ").text(Style::Dim, line))
        .collect()
}

#[cfg(test)]
mod tests;
