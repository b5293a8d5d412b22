//! The rows of a session's log, as the daemon thinks of them. The machine is a fold over these; the store keeps them as
//! JSON (self-describing, so that a later release reads an earlier one's rows); clients see them through
//! [`crate::server::convert`].
//!
//! Invariant: a variant or field once stored keeps its name and meaning; new fields have a default.

use proto::approval::{Approval, Decider, Verdict};
use proto::event::{Problem, TurnOutcome, Usage};
use proto::ids::{ApprovalId, CallId, JobId, PromptId, RequestId, Timestamp, TurnId};
use proto::mode::Mode;
use proto::request::ApproveMode;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

mod entered;
mod origin;
mod reply;
mod undo;
mod work;

pub use entered::EnteredCommand;
pub use origin::{Created, Forked};
pub use reply::{CallResult, StoredBlock, StoredCall, StoredInput, StoredKind, StoredReply};
pub use undo::{UndoOrder, UndoResult};
pub use work::{PauseKind, Settings, StoredSummary};

use super::job::{JobEnd, JobSilence, JobStart};

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The session began.
    Created(Created),
    /// A prompt is on disk.
    PromptAccepted(Prompt),
    /// A queued prompt was taken back.
    PromptWithdrawn {
        /// The prompt.
        prompt: PromptId,
        /// Who took it back.
        by: String,
    },
    /// A prompt's turn began.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// Its prompt.
        prompt: PromptId,
        /// When.
        #[serde(default = "long_ago")]
        at: Timestamp,
    },
    /// A request is about to be sent.
    RequestSent {
        /// The turn.
        turn: TurnId,
        /// The request.
        request: RequestId,
        /// From 1.
        attempt: u32,
    },
    /// A try failed.
    RequestFailed {
        /// The turn.
        turn: TurnId,
        /// The request.
        request: RequestId,
        /// The try, from 1.
        attempt: u32,
        /// What failed.
        problem: Problem,
        /// When it is tried again; `None`: it is not.
        next_try: Option<Timestamp>,
        /// Whether the turn is parked until then.
        #[serde(default)]
        parked: bool,
    },
    /// The model's reply.
    ReplyReceived(StoredReply),
    /// Something the harness tells the model in a user message, for example "continue".
    Nudged {
        /// The turn.
        turn: TurnId,
        /// The text.
        text: String,
    },
    /// The user is asked.
    ApprovalAsked {
        /// The question.
        approval: Approval,
        /// What must still hold when it runs.
        #[serde(default)]
        expect: Expect,
        /// What was known of the shell, as text.
        #[serde(default)]
        facts: String,
        /// The shim that would have run it.
        #[serde(default)]
        shim: Option<Uuid>,
    },
    /// The question is closed.
    ApprovalClosed {
        /// Its id.
        approval: ApprovalId,
        /// Its call.
        call: CallId,
        /// The answer that won.
        verdict: Verdict,
        /// Who gave it.
        by: Decider,
    },
    /// A call is about to run.
    CallStarted {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// Who or what allowed it.
        allowed_by: Decider,
        /// The shim that will run it: should another shim be found later, the outcome is unknown.
        shim: Option<Uuid>,
        /// What must still hold when it runs.
        #[serde(default)]
        expect: Expect,
    },
    /// A call has its one result.
    CallFinished(CallResult),
    /// The user asked for the turn to end; what runs is being stopped.
    InterruptRequested {
        /// The turn.
        turn: TurnId,
        /// Who asked.
        by: String,
    },
    /// The turn is over.
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// How.
        outcome: TurnOutcome,
        /// Requests to the model that it took.
        #[serde(default)]
        requests: u32,
        /// What they cost.
        #[serde(default)]
        usage: Usage,
    },
    /// Something the user should know.
    Notice {
        /// One or two sentences.
        text: String,
    },
    /// The session's name changed.
    Renamed {
        /// The new name.
        name: String,
        /// Who changed it.
        by: String,
    },
    /// The session left the list.
    Archived {
        /// Who archived it.
        by: String,
    },
    /// A limit is reached, or the model goes in circles: the user is asked whether it goes on.
    PauseAsked {
        /// The turn.
        turn: TurnId,
        /// Why.
        kind: PauseKind,
        /// The question.
        approval: Approval,
    },
    /// That question is closed.
    PauseClosed {
        /// Its id.
        approval: ApprovalId,
        /// The id that stands for its call.
        call: CallId,
        /// Why it was asked.
        kind: PauseKind,
        /// The answer that won.
        verdict: Verdict,
        /// Who gave it.
        by: Decider,
    },
    /// The next requests are made with these.
    SettingsChanged {
        /// All of them.
        settings: Settings,
        /// Who changed them.
        by: String,
    },
    /// The history is about to be replaced by a summary.
    CompactionStarted {
        /// The turn; one of its own when none runs.
        turn: TurnId,
        /// Why, in a sentence.
        why: String,
        /// `None`: the model is asked to summarise the history as it stands; else as a transcript of so many characters.
        transcript: Option<usize>,
    },
    /// The model's summary.
    Compacted(StoredSummary),
    /// A note for the model.
    Steered {
        /// The turn.
        turn: TurnId,
        /// The note.
        text: String,
        /// Who wrote it.
        by: String,
    },
    /// The notes so far are part of the history.
    NotesGiven {
        /// The turn.
        turn: TurnId,
    },
    /// The last prompt and what followed left the history.
    Rewound {
        /// The prompt.
        prompt: PromptId,
        /// Who asked.
        by: String,
    },
    /// The history lost its thinking: the server did not accept a block of it. The rows keep it.
    ThinkingStripped {
        /// The turn.
        turn: TurnId,
    },
    /// Edits are about to be taken back.
    UndoStarted(UndoOrder),
    /// They were, or could not be.
    UndoEnded(UndoResult),
    /// The mode changed.
    ModeChanged {
        /// The new one.
        mode: Mode,
        /// Who changed it.
        by: String,
    },
    /// A rule that "always" promised was added to the user's file, or could not be.
    RuleKept {
        /// The question that was answered.
        approval: ApprovalId,
        /// The file.
        file: String,
        /// Why it could not be.
        problem: Option<String>,
    },
    /// A command runs in the background.
    JobStarted(JobStart),
    /// It is over.
    JobEnded(JobEnd),
    /// It prints nothing.
    JobSilent(JobSilence),
    /// The user wants it ended.
    JobStopAsked {
        /// The job.
        job: JobId,
        /// Who asked.
        by: String,
    },
    /// The user wants the running command in the background.
    BackgroundAsked {
        /// The call.
        call: CallId,
        /// The job that it will be.
        job: JobId,
        /// Who asked.
        by: String,
    },
    /// A turn began without a prompt, because of what happened to jobs; the model is told of all that it does not know.
    TurnWoken {
        /// The turn.
        turn: TurnId,
        /// What holds for approvals.
        approve: ApproveMode,
        /// When.
        at: Timestamp,
    },
    /// The model is told of what happened to jobs.
    JobsTold {
        /// The turn.
        turn: TurnId,
    },
    /// No more turns are begun without a prompt, until there is one.
    WakesSpent {
        /// How many there were.
        wakes: u32,
    },
    /// The rows before this one are another session's; this session goes on from there.
    Forked(Forked),
    /// A user runs a command in the session's shell: a turn of its own.
    CommandEntered(EnteredCommand),
}

/// What was so when a call was allowed, and must be so when it runs: what was shown is what runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It depends on nothing.
    #[default]
    Nothing,
    /// The shell is in this directory.
    Directory(String),
    /// The file meant, links resolved, has this content.
    File {
        /// The file.
        path: String,
        /// SHA-256 of its bytes in hex; `None`: there is no file.
        content: Option<String>,
    },
}

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Its id.
    pub prompt: PromptId,
    /// Its text.
    pub text: String,
    /// What it says about approvals.
    pub approve: ApproveMode,
    /// Who sent it.
    pub by: String,
}

/// For rows of a time when they did not say when.
fn long_ago() -> Timestamp {
    Timestamp(0)
}

impl Entry {
    /// What the row's request cost, for the rows of one.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        if let Self::ReplyReceived(StoredReply { usage, .. }) | Self::Compacted(StoredSummary { usage, .. }) = self {
            return Some(usage);
        }
        None
    }

    /// A short stable word for the row's kind, for the store's index and for logs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::PromptAccepted(_) => "prompt_accepted",
            Self::PromptWithdrawn { .. } => "prompt_withdrawn",
            Self::TurnStarted { .. } => "turn_started",
            Self::RequestSent { .. } => "request_sent",
            Self::RequestFailed { .. } => "request_failed",
            Self::ReplyReceived(_) => "reply_received",
            Self::Nudged { .. } => "nudged",
            Self::ApprovalAsked { .. } => "approval_asked",
            Self::ApprovalClosed { .. } => "approval_closed",
            Self::CallStarted { .. } => "call_started",
            Self::CallFinished(_) => "call_finished",
            Self::InterruptRequested { .. } => "interrupt_requested",
            Self::TurnEnded { .. } => "turn_ended",
            Self::Notice { .. } => "notice",
            Self::Renamed { .. } => "renamed",
            Self::Archived { .. } => "archived",
            Self::PauseAsked { .. } => "pause_asked",
            Self::PauseClosed { .. } => "pause_closed",
            Self::SettingsChanged { .. } => "settings_changed",
            Self::CompactionStarted { .. } => "compaction_started",
            Self::Compacted(_) => "compacted",
            Self::Steered { .. } => "steered",
            Self::NotesGiven { .. } => "notes_given",
            Self::Rewound { .. } => "rewound",
            Self::ThinkingStripped { .. } => "thinking_stripped",
            Self::UndoStarted(_) => "undo_started",
            Self::UndoEnded(_) => "undo_ended",
            Self::ModeChanged { .. } => "mode_changed",
            Self::RuleKept { .. } => "rule_kept",
            Self::JobStarted(_) => "job_started",
            Self::JobEnded(_) => "job_ended",
            Self::JobSilent(_) => "job_silent",
            Self::JobStopAsked { .. } => "job_stop_asked",
            Self::BackgroundAsked { .. } => "background_asked",
            Self::TurnWoken { .. } => "turn_woken",
            Self::JobsTold { .. } => "jobs_told",
            Self::WakesSpent { .. } => "wakes_spent",
            Self::Forked(_) => "forked",
            Self::CommandEntered(_) => "command_entered",
        }
    }
}
