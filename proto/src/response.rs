//! What the daemon sends: responses to requests, and frames of subscriptions.

mod keeping;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::{Approval, Decider, Verdict};
use crate::diff::FileDiff;
use crate::event::Event;
use crate::handshake::Role;
use crate::ids::{ApprovalId, PromptId, Seq, SessionId, Timestamp, UndoId};
use crate::job::{Environment, Job, JobOutput, Jobs, Moving};
use crate::live::Live;
use crate::mode::Mode;
use crate::usage::{Usage, UsageReport};

pub use keeping::{Hit, Hits, Pruned, Speaker};

/// A frame from the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerFrame {
    /// The answer to a request.
    Response(ResponseFrame),
    /// A row of a session this connection is attached to.
    Event(EventFrame),
    /// A piece of something unfinished.
    Live(Live),
    /// Every row up to this one has been sent; what follows is new.
    CaughtUp(CaughtUp),
    /// This connection read too slowly and was detached: attach again with `since = after`.
    Lagged(Lagged),
    /// The daemon is going away; connect again.
    Goodbye(Goodbye),
    /// Who is attached to a session this connection is attached to, whenever that changes.
    Presence(Presence),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseFrame {
    /// The request's number.
    pub id: u64,
    /// The answer.
    pub result: ResponseResult,
}

/// Success or failure. (A type of its own, so that JSON reads `{"ok": …}` or `{"error": …}`.)
#[expect(clippy::large_enum_variant, reason = "lives from the codec to its reader, one at a time")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseResult {
    /// It was done.
    Ok(Response),
    /// It was not.
    Error(WireError),
}

/// A row of an attached session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventFrame {
    /// The session.
    pub session: SessionId,
    /// The row.
    pub event: Event,
}

/// Every row up to this one has been sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaughtUp {
    /// The session.
    pub session: SessionId,
    /// The last row sent.
    pub seq: Seq,
}

/// This connection was detached because it read too slowly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lagged {
    /// The session.
    pub session: SessionId,
    /// The last row sent.
    pub after: Seq,
}

/// The daemon is going away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Goodbye {
    /// Why.
    pub reason: String,
}

/// Who is attached to a session. Not a row: it is of the moment, and the log is for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Presence {
    /// The session.
    pub session: SessionId,
    /// All attached clients, this one included, in the order in which they came.
    pub clients: Vec<Attendee>,
}

/// An attached client, as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attendee {
    /// Program name, for example `agentctl`.
    pub program: String,
    /// Its terminal, for example `pts/3`; empty without one.
    pub terminal: String,
    /// What it may do.
    pub role: Role,
}

/// Answers. New variants go last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Done, nothing to tell.
    Done(Done),
    /// To `status`.
    Status(DaemonStatus),
    /// To `create_session`, `show_session`, `change_session` and `set_mode`.
    Session(SessionInfo),
    /// To `list_sessions`.
    Sessions(Sessions),
    /// To `read_log`.
    Log(LogPage),
    /// To `attach`; the rows follow as frames.
    Attached(Attached),
    /// To `send_prompt`: it is on disk.
    Accepted(Accepted),
    /// To `list_approvals`.
    Approvals(Approvals),
    /// To `answer_approval`: the answer that won, perhaps another client's.
    Answered(Answered),
    /// To `undo`.
    Undone(Undone),
    /// To `session_diff`.
    Changes(SessionChanges),
    /// To `usage`.
    Usage(UsageReport),
    /// To `list_jobs`.
    Jobs(Jobs),
    /// To `read_job`.
    JobOutput(JobOutput),
    /// To `stop_job`: it is on disk that the job is to end; its end follows as a row.
    Job(Job),
    /// To `background`: it is on disk that the command is to be moved; its rows follow.
    Moving(Moving),
    /// To `show_env`.
    Environment(Environment),
    /// To `search`.
    Hits(Hits),
    /// To `prune`.
    Pruned(Pruned),
}

/// Done, nothing to tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// The daemon's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    /// Its release.
    pub release: String,
    /// Its process id.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// Sessions not archived.
    pub sessions: u32,
    /// Sessions with a running turn.
    pub working: u32,
    /// Open approvals.
    pub approvals: u32,
    /// Connected clients, this one included.
    pub clients: u32,
    /// The socket it listens on.
    pub socket: String,
    /// The database file.
    pub database: String,
    /// The configuration files that were read, in order of precedence, lowest first.
    pub config_files: Vec<String>,
    /// Things that do not work as configured, each one sentence.
    pub warnings: Vec<String>,
    /// The default model.
    pub model: String,
    /// The default endpoint.
    pub base_url: String,
    /// Where a key would come from: `credentials directory`, `helper`, `file`, `environment`, `client`,
    /// `none`, or `not needed` by a compatible server.
    pub key_source: String,
    /// `cgroup` or `subreaper`: how a command's processes are accounted for.
    pub accounting: String,
    /// Sessions not archived that are in the mode `bypass`.
    pub bypass: u32,
}

/// A session's present state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The workspace.
    pub cwd: String,
    /// The model.
    pub model: String,
    /// `anthropic`, `compat` or `scripted`.
    pub provider: String,
    /// What it is doing.
    pub state: SessionState,
    /// When it began.
    pub created_at: Timestamp,
    /// When its last event was committed.
    pub active_at: Timestamp,
    /// Its last event.
    pub head: Seq,
    /// Prompts that wait for their turn.
    pub queued: Vec<PromptId>,
    /// Open approvals.
    pub approvals: Vec<Approval>,
    /// The first line of its first prompt.
    pub title: String,
    /// Attached clients.
    pub clients: Vec<Attendee>,
    /// Whether it left the list.
    pub archived: bool,
    /// Process id of its shim, when one runs.
    pub shim_pid: Option<u32>,
    /// When the failed request of a waiting or parked turn is sent again.
    pub next_try: Option<Timestamp>,
    /// Output limit of a reply in tokens.
    pub max_tokens: u32,
    /// How much work the model puts into an answer; absent: its default.
    pub effort: Option<String>,
    /// What its requests cost so far; zero for a session that rests.
    pub usage: Usage,
    /// Tokens of the conversation at the last reply; 0 = not known.
    pub context_tokens: u64,
    /// Tokens that the model's window holds; 0 = not known.
    pub context_window: u64,
    /// Background commands that run.
    pub jobs: u32,
    /// How much it may do without asking.
    pub mode: Mode,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nothing; it waits for a prompt.
    Idle,
    /// The model is writing.
    Thinking,
    /// A call is running.
    Running,
    /// It waits for an approval.
    Asking,
    /// It waits for the next try of a failed request.
    Waiting,
    /// An interrupt is being carried out.
    Stopping,
    /// Its turn is parked: the model cannot be reached or is overloaded; it goes on by itself.
    Parked,
}

/// Sessions, newest activity first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
}

/// A page of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPage {
    /// The session.
    pub session: SessionId,
    /// The rows, in order.
    pub events: Vec<Event>,
    /// Whether rows follow.
    pub more: bool,
}

/// The subscription stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attached {
    /// The session as it is now.
    pub session: SessionInfo,
}

/// A prompt is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// The session.
    pub session: SessionId,
    /// The prompt.
    pub prompt: PromptId,
    /// Its row.
    pub seq: Seq,
}

/// Open approvals, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// The approvals.
    pub approvals: Vec<Approval>,
}

/// How an approval was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// The approval.
    pub approval: ApprovalId,
    /// The answer that won.
    pub verdict: Verdict,
    /// Who gave it.
    pub by: Decider,
    /// Whether it is this request's answer that won.
    pub yours: bool,
}

/// What an undo changed, or would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// The request's id.
    pub undo: UndoId,
    /// Whether it was done; else it is a preview.
    pub applied: bool,
    /// One for each edit taken back, the last edit first.
    pub diffs: Vec<FileDiff>,
    /// Edits that can be taken back after these.
    pub left: u64,
    /// Names the edits that were there; hand it back with the request that takes them back.
    pub newest: u64,
}

/// The session's changes of files that stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionChanges {
    /// One for each file, in the order of their first edits.
    pub diffs: Vec<FileDiff>,
    /// Files left out to keep the frame small; 0 = all are there.
    pub left_out: u64,
    /// Files whose change cannot be told, one sentence each.
    pub problems: Vec<String>,
}

/// Why a request failed, for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireError {
    /// For programs.
    pub code: ErrorCode,
    /// What failed, on what.
    pub message: String,
    /// What to do next; may be empty.
    pub hint: String,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

/// Kinds of failure. New variants go last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The frame or a field is not what it should be.
    BadRequest,
    /// No such session, approval or prompt.
    NotFound,
    /// The selector fits several.
    Ambiguous,
    /// It cannot be done in the present state.
    Conflict,
    /// This connection's role may not do it.
    Forbidden,
    /// A limit was reached.
    Limit,
    /// The disk is full or the database fails; nothing was accepted.
    Storage,
    /// The session's shell cannot be started or reached.
    Shell,
    /// The configuration does not allow it to work, for example no key.
    Config,
    /// A fault of the daemon.
    Internal,
}
