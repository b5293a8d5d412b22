//! The rows of a session's log, as the daemon thinks of them. The machine is a fold over these; the store keeps them as
//! JSON (self-describing, so that a later release reads an earlier one's rows); clients see them through
//! [`crate::server::convert`].
//!
//! Invariant: a variant or field once stored keeps its name and meaning; new fields have a default.

use proto::approval::{Approval, Decider, Verdict};
use proto::diff::FileDiff;
use proto::event::{Outcome, Problem, TurnOutcome, Usage};
use proto::ids::{ApprovalId, CallId, PromptId, RequestId, Timestamp, TurnId, UndoId};
use proto::json::JsonText;
use proto::mode::Mode;
use proto::request::ApproveMode;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::content::Part;

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
}

/// A wish to take edits back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoOrder {
    /// Its id; the shim takes back at most once for it, ever.
    pub undo: UndoId,
    /// How many edits.
    pub steps: u32,
    /// The newest edit that the user saw.
    pub newest: Option<u64>,
    /// Who asked.
    pub by: String,
}

/// What became of an [`UndoOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoResult {
    /// Its id.
    pub undo: UndoId,
    /// Who asked.
    pub by: String,
    /// One for each edit taken back, the last edit first.
    pub diffs: Vec<FileDiff>,
    /// Edits that can still be taken back.
    pub left: u64,
    /// The newest edit that was taken back.
    pub newest: u64,
    /// Why not all were.
    pub problem: Option<Problem>,
    /// What the model is told, when anything was taken back.
    pub note: Option<String>,
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

/// The session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    /// The workspace.
    pub cwd: String,
    /// The name, if any.
    pub name: Option<String>,
    /// The model.
    pub model: String,
    /// `anthropic`, `compat` or `scripted`.
    pub provider: String,
    /// The first mode.
    #[serde(default)]
    pub mode: Mode,
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

/// The model's reply as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReply {
    /// The turn.
    pub turn: TurnId,
    /// The request it answers.
    pub request: RequestId,
    /// Its blocks.
    pub blocks: Vec<StoredBlock>,
    /// The API's stop reason.
    pub stop_reason: String,
    /// Tokens.
    pub usage: Usage,
    /// Whether it is part of the history the model sees. A refusal and an empty reply are not.
    pub kept: bool,
    /// Whether it replaces the history before it (server compaction).
    #[serde(default)]
    pub replaces_history: bool,
}

/// One block of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBlock {
    /// Exactly what is sent back to the model, as text.
    pub raw: String,
    /// What it is.
    pub kind: StoredKind,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredKind {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Thinking.
    Thinking {
        /// May be empty.
        text: String,
    },
    /// A tool call.
    Call(StoredCall),
    /// Anything else.
    Other {
        /// The API's type.
        kind: String,
    },
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCall {
    /// Our id.
    pub call: CallId,
    /// The API's id.
    pub tool_use_id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: StoredInput,
}

/// A tool call's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredInput {
    /// One JSON document.
    Valid(JsonText),
    /// Not JSON, or cut by the output limit: the exact text. Never run.
    Broken(String),
}

/// A call's one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub outcome: Outcome,
    /// What the model receives.
    pub content: Vec<Part>,
    /// Whether the model is told that it failed.
    pub is_error: bool,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The change it made.
    pub diff: Option<FileDiff>,
    /// Who or what refused it, where no approval says so.
    #[serde(default)]
    pub refused_by: Option<Decider>,
}

impl Entry {
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
            Self::ThinkingStripped { .. } => "thinking_stripped",
            Self::UndoStarted(_) => "undo_started",
            Self::UndoEnded(_) => "undo_ended",
            Self::ModeChanged { .. } => "mode_changed",
            Self::RuleKept { .. } => "rule_kept",
        }
    }
}
