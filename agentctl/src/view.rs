//! A session as one terminal shows it: a fold over events and live frames. Pure: no clock, no terminal.
//!
//! Invariant: of a reply's text every byte comes out exactly once, whatever mixture of live pieces (late, doubled,
//! missing) and finished rows arrives. Live pieces extend a block by offset; the finished row brings what is missing.

mod reply;
mod running;
mod status;

use std::collections::{HashMap, HashSet};

use jiff::tz::TimeZone;
use proto::approval::{Approval, Decider, Verdict};
use proto::event::{Event, EventBody, RequestFailed, Usage};
use proto::ids::{ApprovalId, CallId, PromptId, RequestId, Seq, Timestamp, TurnId};
use proto::live::Live;
use proto::mode::Mode;

use crate::render::{Line, call, changes, jobs, model, notes};
use running::Running;
pub(crate) use running::SPINNER_MS;

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
    /// Give out text as it streams; else each reply when it is whole, so that a void beginning never reaches a file.
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
    /// How much the session may do without asking.
    pub mode: Mode,
    shown: HashMap<(RequestId, u32), Shown>,
    thinking: Option<(RequestId, u32)>,
    streaming: Option<(RequestId, u32)>,
    titles: HashMap<CallId, String>,
    running: Vec<Running>,
    drawn: HashSet<CallId>,
    answered: HashSet<ApprovalId>,
    /// The last command that a user ran.
    entered: Option<CallId>,
    own: HashSet<PromptId>,
    announced: HashSet<PromptId>,
    /// Prompts that wait for their turn, oldest first.
    pub queued: Vec<Queued>,
    waiting: Waiting,
    /// When the running turn began, and what it took so far.
    since: Timestamp,
    /// What the last ended or running turn took.
    pub spent: Spent,
    /// What the session's last request read: how full the model's context is.
    pub context_tokens: u64,
    /// What the session cost up to `counted`, in billionths of a dollar, and since then by its rows.
    pub cost_nanousd: u64,
    /// The row up to which the cost was told.
    pub counted: Seq,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The prompt.
    pub prompt: PromptId,
    /// Its text.
    pub text: String,
    /// Who sent it; empty when it was this client.
    by: String,
}

/// What a turn took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Tokens of its finished replies.
    pub usage: Usage,
    /// Bytes of the reply that is being written.
    writing: usize,
    /// How long it took; known at its end.
    pub ms: u64,
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
            mode: Mode::Ask,
            shown: HashMap::new(),
            thinking: None,
            streaming: None,
            titles: HashMap::new(),
            running: Vec::new(),
            drawn: HashSet::new(),
            answered: HashSet::new(),
            entered: None,
            own: HashSet::new(),
            announced: HashSet::new(),
            queued: Vec::new(),
            waiting: Waiting::Nothing,
            since: Timestamp(0),
            spent: Spent::default(),
            context_tokens: 0,
            cost_nanousd: 0,
            counted: Seq(0),
        }
    }

    /// Takes note of a prompt this client sent.
    pub fn sent(&mut self, prompt: PromptId) {
        self.own.insert(prompt);
    }

    /// Takes note that it did not get there.
    pub fn not_sent(&mut self, prompt: PromptId) {
        self.own.remove(&prompt);
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
            EventBody::SessionCreated(it) => {
                self.mode = it.mode;
                Vec::new()
            }
            EventBody::PromptAccepted(it) => {
                let by = if self.own.contains(&it.prompt) { "" } else { &it.by };
                let shown = self.options.own_prompts || !by.is_empty();
                self.queued.push(Queued { prompt: it.prompt, text: it.text.clone(), by: by.to_owned() });
                // One that must wait is shown as queued, and here when its turn begins.
                if shown && self.turn.is_none() && self.queued.len() == 1 {
                    self.announced.insert(it.prompt);
                    notes::prompt(&it.text, by)
                } else {
                    Vec::new()
                }
            }
            EventBody::PromptWithdrawn(it) => {
                self.own.remove(&it.prompt);
                self.queued.retain(|queued| queued.prompt != it.prompt);
                vec![notes::remark(&format!("a queued prompt was withdrawn by {}", it.by))]
            }
            EventBody::TurnStarted(it) => {
                self.turn = Some(it.turn);
                self.since = event.at;
                self.spent = Spent::default();
                let own = self.own.remove(&it.prompt);
                let at = self.queued.iter().position(|queued| queued.prompt == it.prompt);
                let queued = at.map(|at| self.queued.remove(at));
                let shown = !self.announced.remove(&it.prompt) && (self.options.own_prompts || !own);
                queued.filter(|_| shown).map(|queued| notes::prompt(&queued.text, &queued.by)).unwrap_or_default()
            }
            EventBody::RequestSent(_) => {
                self.waiting = Waiting::Model { since: event.at, call: None };
                Vec::new()
            }
            EventBody::RequestFailed(it) => self.request_failed(it),
            EventBody::ReplyReceived(it) => {
                self.count(event.seq, it.usage);
                return self.reply(it);
            }
            EventBody::ApprovalAsked(it) => {
                // The answer to an attach may have named it already.
                if !self.open.iter().any(|open| open.id == it.approval.id) {
                    self.open.push(it.approval.clone());
                }
                Vec::new()
            }
            EventBody::ApprovalClosed(it) => {
                self.open.retain(|open| open.id != it.approval);
                if let Verdict::Edit { command } = &it.verdict {
                    self.titles.insert(it.call, format!("$ {command}"));
                }
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
                if self.entered == Some(it.call) {
                    call::entered(&title, it, columns)
                } else {
                    call::finished(&title, it, columns, self.drawn.contains(&it.call))
                }
            }
            EventBody::TurnEnded(it) => {
                self.turn = None;
                self.spent.ms = event.at.0.saturating_sub(self.since.0);
                self.running.clear();
                self.waiting = Waiting::Nothing;
                notes::outcome(&it.outcome)
            }
            EventBody::Notice(it) => vec![notes::notice(&it.text)],
            EventBody::SessionRenamed(it) => vec![notes::remark(&format!("renamed to {} by {}", it.name, it.by))],
            EventBody::SessionArchived(it) => vec![notes::remark(&format!("archived by {}", it.by))],
            EventBody::ModeChanged(it) => {
                self.mode = it.mode;
                vec![notes::mode(it.mode, &it.by)]
            }
            EventBody::SettingsChanged(it) => vec![model::settings(it)],
            EventBody::CompactionStarted(it) => {
                self.turn = Some(it.turn);
                self.waiting = Waiting::Nothing;
                vec![model::compaction_started(it)]
            }
            EventBody::Compacted(it) => {
                self.count(event.seq, it.usage);
                self.waiting = Waiting::Nothing;
                vec![model::compacted(it)]
            }
            EventBody::Steered(it) => vec![model::steered(it)],
            EventBody::Rewound(it) => vec![model::rewound(it)],
            EventBody::UndoStarted(_) | EventBody::JobsTold(_) => Vec::new(),
            EventBody::CommandEntered(it) => {
                self.turn = Some(it.turn);
                self.since = event.at;
                self.spent = Spent::default();
                self.titles.insert(it.call, format!("$ {}", it.command.trim()));
                self.entered = Some(it.call);
                if it.by == self.options.me {
                    Vec::new()
                } else {
                    notes::prompt(&format!("!{}", it.command.trim()), &it.by)
                }
            }
            EventBody::TurnWoken(it) => {
                self.turn = Some(it.turn);
                Vec::new()
            }
            EventBody::JobStarted(it) => vec![jobs::started(it, columns)],
            EventBody::JobEnded(it) => jobs::ended(it, columns),
            EventBody::JobSilent(it) => vec![jobs::silent(it)],
            EventBody::JobStopAsked(it) => vec![jobs::stop_asked(it)],
            EventBody::BackgroundAsked(it) => vec![jobs::background_asked(it)],
            EventBody::UndoEnded(it) => changes::undo_ended(it),
            EventBody::SessionForked(it) => vec![notes::forked(it)],
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

    fn count(&mut self, seq: Seq, usage: Usage) {
        if seq > self.counted {
            self.cost_nanousd += usage.cost_nanousd.unwrap_or(0);
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

    fn title(&self, call: CallId) -> String {
        self.titles.get(&call).cloned().unwrap_or_else(|| format!("call {}", call.short()))
    }

    /// Whether no turn runs and none of this client's prompts waits for one.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.turn.is_none() && self.own.is_empty()
    }
}

#[cfg(test)]
mod tests;
