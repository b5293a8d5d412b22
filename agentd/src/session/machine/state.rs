//! What a session is, at one moment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::approval::Approval;
use proto::event::Usage;
use proto::ids::{ApprovalId, CallId, PromptId, RequestId, SessionId, Timestamp, TurnId};
use proto::mode::Mode;
use proto::request::ApproveMode;
use uuid::Uuid;

use super::account::Account;
use super::call::{Asked, Call, CallState, Calling, Closed, Grant, Unwritten};
use super::jobs::Jobs;
use super::pausing::Caps;
use super::steering::Mark;
use crate::model::Message;
use crate::policy::ShellFacts;
use crate::store::entry::{PauseKind, Prompt, Settings, UndoOrder};
use crate::tools;
use crate::tools::call::Parsed;
use crate::tools::hint::Hint;

/// Limits of a session's turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests to the model in one turn.
    pub requests_max: u32,
    /// How long a question stays open.
    pub approval_expiry_ms: u64,
    /// The output limit, for the texts that name it.
    pub max_tokens: u32,
    /// What may be spent without a question.
    pub caps: Caps,
    /// Percent of the model's window at which the history is compacted; 0 = never by itself.
    pub compact_at: u32,
    /// The server makes the summaries.
    pub server_compaction: bool,
}

/// Times in a row that a turn is carried on after an empty or cut reply: more means the model does not get further.
pub(super) const NUDGES_MAX: u32 = 5;

/// Times in a row that a paused server-tool loop is carried on; each is ten iterations on the server.
pub(super) const PAUSES_MAX: u32 = 10;

/// Answers remembered for clients that answer late.
pub(super) const CLOSED_KEPT: usize = 256;

/// The session's state: a fold over its log.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) session: SessionId,
    pub(super) limits: Limits,
    pub(super) history: Vec<Arc<Message>>,
    pub(super) queue: VecDeque<Prompt>,
    pub(super) grants: Vec<Grant>,
    pub(super) closed: VecDeque<Closed>,
    pub(super) shim: Option<Uuid>,
    pub(super) facts: ShellFacts,
    /// The shim that `facts` are about.
    pub(super) facts_of: Option<Uuid>,
    /// Hints that the model has had.
    pub(super) hinted: Vec<Hint>,
    pub(super) mode: Mode,
    /// The model was told that plan mode is on.
    pub(super) planning: bool,
    /// Rules that "always" promised and that are not known to be in the file.
    pub(super) unwritten: Vec<Unwritten>,
    /// What is wrong with the rule files, as the user was told. Not in the log: after a start it is told again.
    pub(super) problems: Vec<String>,
    pub(super) jobs: Jobs,
    pub(super) phase: Phase,
    pub(super) account: Account,
    pub(super) settings: Option<Settings>,
    /// Limits that the user let pass, and how often.
    pub(super) raised: BTreeMap<PauseKind, u32>,
    /// Notes that the model has not had yet.
    pub(super) notes: Vec<String>,
    /// What users ran since the model was last asked something.
    pub(super) ran: Vec<String>,
    /// Of what they ran, what the model was told since the last prompt: told again when that is taken back.
    pub(super) ran_told: Vec<String>,
    pub(super) rewind: Option<Mark>,
    /// Not from the log: decisions that depend on it are in the log.
    pub(super) surroundings: Surroundings,
}

/// What a session must know of the world around it, brought up to date before each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// What all sessions spent today, in billionths of a dollar.
    pub day_nanousd: u64,
    /// Tokens that the model's window holds; 0 = not known.
    pub window_tokens: u64,
}

/// What a session is doing.
#[derive(Clone, Debug)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// The turn's next request is to be sent. Only between two entries of one step, or after a crash between two steps.
    Ready(Turn),
    /// A request is under way.
    Requesting(Turn, Try),
    /// A request failed and will be tried again.
    Backoff(Turn, Try, Pause),
    /// Tool calls are being worked off in order.
    Calling(Turn, Calling),
    /// The user is asked whether the turn goes on.
    Paused(Turn, Box<Paused>),
    /// Edits are being taken back; no turn begins until that is over.
    Undoing(UndoOrder),
}

/// A turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its prompt; none when a background command began it.
    pub prompt: Option<PromptId>,
    /// What the prompt says about approvals.
    pub approve: ApproveMode,
    /// Requests so far.
    pub requests: u32,
    /// Nudges in a row.
    pub nudges: u32,
    /// Pauses in a row.
    pub pauses: u32,
    /// The user asked for the turn to end: nothing new is started.
    pub stopping: bool,
    /// The prompt's text, to be repeated after a compaction.
    pub text: String,
    /// When it began.
    pub started_at: Timestamp,
    /// What its requests cost so far.
    pub usage: Usage,
    /// The next request asks for a summary.
    pub compacting: Option<Compacting>,
    /// Compactions so far.
    pub compactions: u32,
    /// A compaction that a client asked for, and nothing else.
    pub standalone: bool,
    /// The command that a user runs, and nothing else.
    pub(super) entered: Option<String>,
    /// Its last calls with their results, as hashes.
    pub(super) recent: Vec<u64>,
}

impl Turn {
    pub(super) fn new(id: TurnId, prompt: Option<PromptId>, approve: ApproveMode, text: String) -> Self {
        Self {
            id,
            prompt,
            approve,
            requests: 0,
            nudges: 0,
            pauses: 0,
            stopping: false,
            text,
            started_at: Timestamp(0),
            usage: Usage::default(),
            compacting: None,
            compactions: 0,
            standalone: false,
            entered: None,
            recent: Vec::new(),
        }
    }
}

/// How a summary is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacting {
    /// `None`: of the history as it stands; else of a transcript of so many characters.
    pub transcript: Option<usize>,
    /// Replies that were none.
    pub tries: u32,
}

/// A turn that waits for the user's word.
#[derive(Clone, Debug)]
pub struct Paused {
    pub(super) approval: Approval,
    pub(super) kind: PauseKind,
}

/// One try of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Try {
    /// The request.
    pub request: RequestId,
    /// From 1.
    pub attempt: u32,
}

/// Until when a failed request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Until then.
    pub until: Timestamp,
    /// Whether the turn counts as parked.
    pub parked: bool,
}

impl Machine {
    /// A session without history.
    #[must_use]
    pub fn new(session: SessionId, limits: Limits) -> Self {
        Self {
            session,
            limits,
            history: Vec::new(),
            queue: VecDeque::new(),
            grants: Vec::new(),
            closed: VecDeque::new(),
            shim: None,
            facts: ShellFacts::restarted(),
            facts_of: None,
            hinted: Vec::new(),
            mode: Mode::Ask,
            planning: false,
            unwritten: Vec::new(),
            problems: Vec::new(),
            jobs: Jobs::default(),
            phase: Phase::Idle,
            account: Account::default(),
            settings: None,
            raised: BTreeMap::new(),
            notes: Vec::new(),
            ran: Vec::new(),
            ran_told: Vec::new(),
            rewind: None,
            surroundings: Surroundings::default(),
        }
    }

    /// Brings what the session knows of the world up to date.
    pub fn surround(&mut self, surroundings: Surroundings) {
        self.surroundings = surroundings;
    }

    /// What earlier commands may have done to the shell.
    #[must_use]
    pub fn facts(&self) -> ShellFacts {
        match (self.facts_of, self.shim) {
            (Some(known), Some(present)) if known != present => ShellFacts::restarted(),
            (Some(_) | None, _) => self.facts.clone(),
        }
    }

    /// How much may run without a question.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The history the model is sent.
    #[must_use]
    pub fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// What the session is doing.
    #[must_use]
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Prompts that wait.
    pub fn queued(&self) -> impl Iterator<Item = PromptId> + '_ {
        self.queue.iter().map(|prompt| prompt.prompt)
    }

    /// The open question, if there is one.
    #[must_use]
    pub fn asking(&self) -> Option<&Approval> {
        if let Phase::Paused(_, paused) = &self.phase {
            return Some(&paused.approval);
        }
        self.asked().map(|asked| &asked.approval)
    }

    pub(super) fn asked(&self) -> Option<&Asked> {
        match &self.phase {
            Phase::Calling(_, calling) => calling.calls.iter().find_map(|call| match &call.state {
                CallState::Asking(asked) => Some(asked.as_ref()),
                CallState::Waiting
                | CallState::Assessing
                | CallState::Approved(_)
                | CallState::Running { .. }
                | CallState::Done(_) => None,
            }),
            Phase::Idle
            | Phase::Ready(_)
            | Phase::Requesting(..)
            | Phase::Backoff(..)
            | Phase::Paused(..)
            | Phase::Undoing(_) => None,
        }
    }

    /// How an answered question was answered.
    #[must_use]
    pub fn answer_of(&self, approval: ApprovalId) -> Option<&Closed> {
        self.closed.iter().rev().find(|closed| closed.approval == approval)
    }

    /// A call of the present reply.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<&Call> {
        match &self.phase {
            Phase::Calling(_, calling) => calling.calls.iter().find(|call| call.id == id),
            Phase::Idle
            | Phase::Ready(_)
            | Phase::Requesting(..)
            | Phase::Backoff(..)
            | Phase::Paused(..)
            | Phase::Undoing(_) => None,
        }
    }

    /// Whether a later call of the same reply starts the shell anew: then the model does not want this one's whole time.
    #[must_use]
    pub fn restart_follows(&self, id: CallId) -> bool {
        let Phase::Calling(_, calling) = &self.phase else { return false };
        let later = calling.calls.iter().skip_while(|call| call.id != id).skip(1);
        later
            .filter_map(|call| tools::call::parse(&call.tool, call.runs()?).ok())
            .any(|parsed| matches!(parsed, Parsed::Restart))
    }

    /// The running turn.
    #[must_use]
    pub fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Idle | Phase::Undoing(_) => None,
            Phase::Ready(turn)
            | Phase::Requesting(turn, _)
            | Phase::Backoff(turn, ..)
            | Phase::Paused(turn, _)
            | Phase::Calling(turn, _) => Some(turn),
        }
    }
}
