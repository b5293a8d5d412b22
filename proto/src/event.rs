//! Numbered events: a session's truth, as clients see it.
//!
//! Rows never change and have no gaps. What is still being written (text, output) travels as [`crate::live`] frames,
//! which the finished row replaces.

mod jobs;
mod model;
mod session;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::{Approval, Decider, Verdict};
use crate::command::CommandEntered;
use crate::diff::FileDiff;
use crate::ids::{ApprovalId, CallId, JobId, PromptId, RequestId, Seq, Timestamp, TurnId, UndoId};
use crate::json::JsonText;
use crate::request::ApproveMode;
pub use crate::usage::Usage;

pub use jobs::{BackgroundAsked, JobEnded, JobSilent, JobStarted, JobStopAsked, JobsTold, TurnWoken};
pub use model::{Compacted, CompactionStarted, Rewound, SettingsChanged, Steered};
pub use session::{ModeChanged, SessionArchived, SessionCreated, SessionForked, SessionRenamed};

/// One row of a session's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its position.
    pub seq: Seq,
    /// When it was committed.
    pub at: Timestamp,
    /// What happened.
    pub body: EventBody,
}

/// Everything that can have happened. New variants go last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventBody {
    /// Always the first row.
    SessionCreated(SessionCreated),
    /// A prompt is on disk; its turn starts now or when its predecessors are done.
    PromptAccepted(PromptAccepted),
    /// A queued prompt was taken back.
    PromptWithdrawn(PromptWithdrawn),
    /// A prompt's turn began.
    TurnStarted(TurnStarted),
    /// A request to the model is about to be sent.
    RequestSent(RequestSent),
    /// A try failed; the same request is tried again at `next_try`, or the turn ends.
    RequestFailed(RequestFailed),
    /// The model's reply, whole.
    ReplyReceived(ReplyReceived),
    /// The user is asked.
    ApprovalAsked(ApprovalAsked),
    /// The question is closed.
    ApprovalClosed(ApprovalClosed),
    /// A call is about to run.
    CallStarted(CallStarted),
    /// A call has its one result.
    CallFinished(CallFinished),
    /// The turn is over.
    TurnEnded(TurnEnded),
    /// Something the user should know that belongs to no call.
    Notice(Notice),
    /// The session's name changed.
    SessionRenamed(SessionRenamed),
    /// The session left the list.
    SessionArchived(SessionArchived),
    /// Edits are about to be taken back.
    UndoStarted(UndoStarted),
    /// They were, or could not be.
    UndoEnded(UndoEnded),
    /// The session's next requests go to another model, or with other limits.
    SettingsChanged(SettingsChanged),
    /// The history is being replaced by a summary.
    CompactionStarted(CompactionStarted),
    /// It was; the rows before stay readable.
    Compacted(Compacted),
    /// A note for the model, handed over before its next request.
    Steered(Steered),
    /// The last prompt and what followed left the history, so that it can be asked in other words.
    Rewound(Rewound),
    /// A command runs in the background.
    JobStarted(JobStarted),
    /// It is over.
    JobEnded(JobEnded),
    /// It has printed nothing for as long as was to be told.
    JobSilent(JobSilent),
    /// A user wants it ended.
    JobStopAsked(JobStopAsked),
    /// A user wants the running command in the background.
    BackgroundAsked(BackgroundAsked),
    /// A turn began without a prompt, because of what happened to background commands.
    TurnWoken(TurnWoken),
    /// The model is told of what happened to background commands, in the running turn.
    JobsTold(JobsTold),
    /// The rows before this one were taken over from another session.
    SessionForked(SessionForked),
    /// The session's mode changed.
    ModeChanged(ModeChanged),
    /// A user runs a command in the session's shell.
    CommandEntered(CommandEntered),
}

/// A prompt is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptAccepted {
    /// Its id.
    pub prompt: PromptId,
    /// Its text.
    pub text: String,
    /// What it says about approvals.
    pub approve: ApproveMode,
    /// Who sent it.
    pub by: String,
}

/// A queued prompt was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptWithdrawn {
    /// Its id.
    pub prompt: PromptId,
    /// Who took it back.
    pub by: String,
}

/// A prompt's turn began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    /// The turn.
    pub turn: TurnId,
    /// Its prompt.
    pub prompt: PromptId,
}

/// A request is about to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSent {
    /// The turn.
    pub turn: TurnId,
    /// The request; live frames of its reply name it.
    pub request: RequestId,
    /// 1 for the first try.
    pub attempt: u32,
}

/// A try failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestFailed {
    /// The turn.
    pub turn: TurnId,
    /// The request.
    pub request: RequestId,
    /// The try that failed, from 1.
    pub attempt: u32,
    /// What failed.
    pub problem: Problem,
    /// When it is tried again; absent when it is not.
    pub next_try: Option<Timestamp>,
    /// The turn is parked until then: it goes on by itself, and nobody need wait for it.
    pub parked: bool,
}

/// Something that failed outside a tool, in words for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// A stable word, for example `authentication` or `overloaded`.
    pub code: String,
    /// What failed, on what.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// The server's id of the request, to quote to its operator.
    pub request_id: Option<String>,
}

/// The model's reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyReceived {
    /// The turn.
    pub turn: TurnId,
    /// The request it answers.
    pub request: RequestId,
    /// Its blocks in order.
    pub blocks: Vec<Block>,
    /// The API's stop reason.
    pub stop_reason: String,
    /// What it cost.
    pub usage: Usage,
    /// The model that answered; may be empty.
    pub model: String,
    /// Why the prompt cache was not read though it should have been; absent when it was.
    pub cache_miss: Option<String>,
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Text for the user.
    Text {
        /// Markdown.
        text: String,
    },
    /// The model's thinking, as far as it is shown.
    Thinking {
        /// May be empty.
        text: String,
    },
    /// A tool call.
    Call(CallBlock),
    /// A block of a kind this release does not show.
    Other {
        /// The API's type.
        kind: String,
    },
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallBlock {
    /// Our id; later rows name it.
    pub call: CallId,
    /// The API's id.
    pub tool_use_id: String,
    /// The tool's name.
    pub tool: String,
    /// One line for people, for example `$ cargo test` or `edit src/lib.rs`.
    pub title: String,
    /// The input; `null` when the model's JSON was broken.
    pub input: JsonText,
}

/// The user is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAsked {
    /// The question.
    pub approval: Approval,
}

/// The question is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalClosed {
    /// Its id.
    pub approval: ApprovalId,
    /// The call.
    pub call: CallId,
    /// The answer that won.
    pub verdict: Verdict,
    /// Who gave it.
    pub by: Decider,
}

/// A call is about to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallStarted {
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// Who or what allowed it.
    pub allowed_by: Decider,
}

/// A call has its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallFinished {
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub outcome: Outcome,
    /// Exactly the text the model receives.
    pub text: String,
    /// Whether the model is told that it failed.
    pub is_error: bool,
    /// How long it ran, in milliseconds; 0 when it did not.
    pub duration_ms: u64,
    /// The change it made, for edits.
    pub diff: Option<crate::diff::FileDiff>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A command ended by itself.
    Exited {
        /// Its exit status; 128 + n after signal n, as bash counts.
        status: i32,
    },
    /// An edit or view was done.
    Done {},
    /// The tool could not do what was asked; the text says why.
    Failed {},
    /// The deadline ended it.
    TimedOut {
        /// The limit.
        limit_ms: u64,
    },
    /// The user ended it.
    Interrupted {},
    /// The user or a rule did not allow it.
    Denied {},
    /// It did not run, because the turn ended first.
    NotRun {},
    /// It was running when the process that knew died.
    Unknown {},
    /// It runs in the background.
    Background {
        /// As this job.
        job: JobId,
    },
}

/// The turn is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// The turn.
    pub turn: TurnId,
    /// How.
    pub outcome: TurnOutcome,
    /// Requests to the model that it took.
    pub requests: u32,
    /// What they cost.
    pub usage: Usage,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The model finished.
    Done {},
    /// The model refused.
    Refused {
        /// The API's category, if it gave one.
        category: Option<String>,
        /// The API's explanation, if it gave one.
        explanation: Option<String>,
    },
    /// The user ended it.
    Interrupted {},
    /// It could not go on.
    Failed {
        /// Why.
        problem: Problem,
    },
}

/// Something the user should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// One or two sentences.
    pub text: String,
}

/// Edits are about to be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoStarted {
    /// Its id.
    pub undo: UndoId,
    /// How many edits.
    pub steps: u32,
    /// Who asked.
    pub by: String,
}

/// Edits were taken back, or could not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoEnded {
    /// Its id.
    pub undo: UndoId,
    /// Who asked.
    pub by: String,
    /// One for each edit taken back, the last edit first.
    pub diffs: Vec<FileDiff>,
    /// Why not all were.
    pub problem: Option<Problem>,
}
