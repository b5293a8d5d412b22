//! Everything that can happen to a session, in the past tense.

use proto::approval::{Decider, Proposal, Subject, Verdict};
use proto::event::Problem;
use proto::ids::{ApprovalId, CallId, JobId, PromptId, RequestId, Timestamp};
use proto::mode::Mode;
use uuid::Uuid;

use crate::model::Reply;
use crate::policy::ShellFacts;
use crate::store::entry::{Expect, Prompt, Settings, UndoOrder, UndoResult};
use crate::tools::ToolResult;
use crate::tools::background::{NewJob, Report};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The log was replayed after a start of the daemon: whatever was under way must go on.
    Resumed,
    /// A shell answers; calls started from now on run in this shim.
    ShellReady {
        /// The shim's instance.
        instance: Uuid,
    },
    /// A client sent a prompt.
    PromptSubmitted(Prompt),
    /// A client took a queued prompt back.
    PromptWithdrawn {
        /// The prompt.
        prompt: PromptId,
        /// Who.
        by: String,
    },
    /// The model's reply is complete.
    ReplyArrived {
        /// The request it answers.
        request: RequestId,
        /// The reply.
        reply: Box<Reply>,
    },
    /// A try failed.
    RequestFailed {
        /// The request.
        request: RequestId,
        /// What failed.
        problem: Problem,
        /// What can be done about it.
        cure: Cure,
    },
    /// A client wants the history replaced by a summary.
    CompactionAsked {
        /// Who.
        by: String,
    },
    /// A client has a note for the running turn.
    SteerAsked {
        /// The note.
        text: String,
        /// Who.
        by: String,
    },
    /// A client wants the last prompt asked again; an empty text means the same one.
    RerunAsked(Prompt),
    /// A client wants other settings.
    SettingsAsked {
        /// All of them.
        settings: Settings,
        /// Who.
        by: String,
    },
    /// A client wants the failed request sent again at once.
    RetryAsked {
        /// Who.
        by: String,
    },
    /// It is known what a call would do and whether it may.
    CallAssessed {
        /// The call.
        call: CallId,
        /// What was found.
        assessment: Box<Assessment>,
    },
    /// A client answered a question.
    ApprovalAnswered {
        /// The question.
        approval: ApprovalId,
        /// The answer.
        verdict: Verdict,
        /// Who.
        by: Decider,
    },
    /// A call is over.
    CallEnded {
        /// The call.
        call: CallId,
        /// Its result.
        result: Box<ToolResult>,
        /// How long it ran.
        duration_ms: u64,
    },
    /// A client asked for the turn to end.
    InterruptAsked {
        /// Who.
        by: String,
    },
    /// The moment of [`super::Machine::deadline`] came.
    TimerFired,
    /// Something the user should know.
    Noticed {
        /// The text.
        text: String,
    },
    /// A client renamed the session.
    RenameAsked {
        /// The new name.
        name: String,
        /// Who.
        by: String,
    },
    /// A client wants edits taken back; asked only when nothing runs.
    UndoAsked(UndoOrder),
    /// They were taken back, or could not be.
    UndoEnded(Box<UndoResult>),
    /// A call began a background command, or became one.
    JobStarted {
        /// The call.
        call: CallId,
        /// The job.
        new: Box<NewJob>,
    },
    /// A background command is over.
    JobEnded {
        /// The job.
        job: JobId,
        /// How.
        report: Box<Report>,
    },
    /// A background command prints nothing.
    JobSilent {
        /// The job.
        job: JobId,
        /// Its output so far.
        output_bytes: u64,
    },
    /// A client wants a background command ended.
    JobStopAsked {
        /// The job.
        job: JobId,
        /// Who.
        by: String,
    },
    /// A client wants the running command in the background.
    BackgroundAsked {
        /// The job that it will be.
        job: JobId,
        /// Who.
        by: String,
    },
    /// A user runs a command in the session's shell; asked only when nothing runs.
    CommandEntered {
        /// The id that its client made.
        call: CallId,
        /// The command.
        command: String,
        /// Who.
        by: String,
    },
    /// A client archived the session.
    ArchiveAsked {
        /// Who.
        by: String,
    },
    /// A client switched the mode.
    ModeAsked {
        /// The new one.
        mode: Mode,
        /// Who.
        by: String,
    },
    /// A rule was added to the user's file, or could not be.
    RuleKept {
        /// The question that was answered with "always".
        approval: ApprovalId,
        /// The file.
        file: String,
        /// Why it could not be.
        problem: Option<String>,
    },
}

/// What can be done about a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Nothing.
    None,
    /// The same again, then.
    Again {
        /// When.
        at: Timestamp,
        /// It may take long: clients need not stay.
        parked: bool,
    },
    /// The same without thinking, at once.
    WithoutThinking,
    /// The same after the history became shorter.
    Shorter,
}

/// What is known of a call before it runs.
#[derive(Clone, Debug)]
pub enum Assessment {
    /// It cannot run as it is (malformed input, no such file): this is its result.
    Settled(ToolResult),
    /// It can run.
    Runnable(Box<Runnable>),
}

/// A call that can run.
#[derive(Clone, Debug)]
pub struct Runnable {
    /// Whether it may.
    pub ruling: Ruling,
    /// The mode in which that was found.
    pub mode: Mode,
    /// What it would do, for people.
    pub subject: Subject,
    /// SHA-256 over exactly what would run.
    pub digest: String,
    /// What must still hold when it runs.
    pub expect: Expect,
    /// Whether "for this session" is a meaningful answer.
    pub repeatable: bool,
    /// What is known of the shell.
    pub facts: ShellFacts,
    /// Whether the shell itself told it just now.
    pub told: bool,
    /// The rule that "always" would write.
    pub proposal: Option<Proposal>,
    /// What is wrong with the rule files.
    pub problems: Vec<String>,
}

/// What the policy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Runs without a question.
    Allow {
        /// The rule or reason.
        rule: String,
    },
    /// The user decides.
    Ask {
        /// Why.
        reason: String,
    },
    /// Does not run.
    Deny {
        /// Why.
        reason: String,
    },
}
