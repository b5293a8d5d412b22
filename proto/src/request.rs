//! What a client may ask. One struct per request; new variants go last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod keeping;
mod model;

pub use keeping::{ForkSession, Prune, Search};
pub use model::{Compact, Configure, Rerun, Steer, UsageQuery};

use crate::approval::Verdict;
use crate::command::RunCommand;
use crate::ids::{ApprovalId, PromptId, Seq, UndoId};
use crate::job::{Background, ListJobs, ReadJob, ShowEnv, StopJob};
use crate::mode::Mode;
use crate::secret::{EnvVars, Secret};

/// A frame from the client: a request with the number its response will carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientFrame {
    /// Chosen by the client; echoed in the response.
    pub id: u64,
    /// The request.
    pub request: Request,
}

/// All requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Says who the client is; first, if at all.
    Hello(Hello),
    /// The daemon's state.
    Status(Status),
    /// Starts a session.
    CreateSession(CreateSession),
    /// Lists sessions.
    ListSessions(ListSessions),
    /// One session's present state.
    ShowSession(ShowSession),
    /// A page of a session's events.
    ReadLog(ReadLog),
    /// Subscribes to a session: events after a cursor, then live.
    Attach(Attach),
    /// Ends a subscription.
    Detach(Detach),
    /// Submits a prompt; the response means it is on disk.
    SendPrompt(SendPrompt),
    /// Takes back a prompt that waits in the queue.
    WithdrawPrompt(WithdrawPrompt),
    /// Ends the running turn.
    Interrupt(Interrupt),
    /// Lists open approvals.
    ListApprovals(ListApprovals),
    /// Answers an approval.
    AnswerApproval(AnswerApproval),
    /// Renames, archives or removes a session.
    ChangeSession(ChangeSession),
    /// Stops the daemon.
    Shutdown(Shutdown),
    /// Takes the session's last edits back, or shows what that would change.
    Undo(Undo),
    /// The session's changes of files that stand.
    SessionDiff(SessionDiff),
    /// Sends a failed request again at once.
    Retry(Retry),
    /// What was used, in tokens and money.
    Usage(UsageQuery),
    /// Changes model, effort or output limit of a session's next requests.
    Configure(Configure),
    /// Replaces the history by a summary.
    Compact(Compact),
    /// Hands the model a note in the running turn.
    Steer(Steer),
    /// Asks the last prompt again, in the same or other words, as if it had not been asked.
    Rerun(Rerun),
    /// Background commands.
    ListJobs(ListJobs),
    /// Part of a background command's output.
    ReadJob(ReadJob),
    /// Ends a background command.
    StopJob(StopJob),
    /// Moves the running command to the background.
    Background(Background),
    /// The environment of the session's shell.
    ShowEnv(ShowEnv),
    /// Finds words in all sessions' prompts, answers, commands and results.
    Search(Search),
    /// Starts a session that goes on from a row of another.
    ForkSession(ForkSession),
    /// Removes sessions that have not been used for a while.
    Prune(Prune),
    /// Starts the daemon's program anew in its place.
    Restart(Restart),
    /// Switches a session's mode.
    SetMode(SetMode),
    /// Runs a command in the session's shell as the user.
    RunCommand(RunCommand),
}

/// Who the client is, for the other terminals and the audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The client.
    pub client: ClientInfo,
}

/// A client as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientInfo {
    /// Program name, for example `agentctl`.
    pub program: String,
    /// Its terminal, for example `pts/3`; empty without one.
    pub terminal: String,
}

/// The daemon's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {}

/// Starts a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// The workspace: an absolute path of a directory.
    pub cwd: String,
    /// The client's environment; secrets are removed before the shell sees it.
    #[serde(default)]
    pub env: EnvVars,
    /// A name, unique among sessions that are not archived.
    #[serde(default)]
    pub name: Option<String>,
    /// The model; the configuration's when absent.
    #[serde(default)]
    pub model: Option<String>,
    /// A scenario for the `scripted` provider: the name of a built-in one, or an absolute path. Absent = the real API.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Where the model lives and the key for it, when the client's environment says so.
    #[serde(default)]
    pub endpoint: Endpoint,
    /// Its first mode. `bypass` is asked for by naming it here.
    #[serde(default)]
    pub mode: Mode,
}

/// Where the model lives, as the client's environment says (`ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY`,
/// `ANTHROPIC_AUTH_TOKEN`). The key stays in the daemon's memory: it is not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Base URL without `/v1`.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Sent as `x-api-key`.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// Sent as `Authorization: Bearer`.
    #[serde(default)]
    pub auth_token: Option<Secret>,
}

/// Lists sessions, newest activity first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    /// Also the archived ones.
    #[serde(default)]
    pub archived: bool,
    /// Only those of this workspace.
    #[serde(default)]
    pub cwd: Option<String>,
}

/// One session's present state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowSession {
    /// Id, its last digits, or name.
    pub session: String,
}

/// A page of a session's events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadLog {
    /// Id, its last digits, or name.
    pub session: String,
    /// Events after this one.
    #[serde(default)]
    pub since: Seq,
    /// At most so many; the daemon may give fewer (see `LogPage::more`).
    pub limit: u32,
}

/// Subscribes to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// Id, its last digits, or name.
    pub session: String,
    /// Events after this one come first, then a `caught_up` frame, then live.
    #[serde(default)]
    pub since: Seq,
    /// The client's endpoint, so that a session whose daemon restarted has its key again.
    #[serde(default)]
    pub endpoint: Endpoint,
}

/// Ends a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detach {
    /// Id, its last digits, or name.
    pub session: String,
}

/// Submits a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendPrompt {
    /// Id, its last digits, or name.
    pub session: String,
    /// Made by the client; sending the same id again changes nothing.
    pub prompt: PromptId,
    /// The text, at most [`PROMPT_BYTES_MAX`].
    pub text: String,
    /// What to do when a call needs an approval.
    #[serde(default)]
    pub approve: ApproveMode,
    /// The client's endpoint, as in [`CreateSession`].
    #[serde(default)]
    pub endpoint: Endpoint,
}

/// Longest prompt: 1 MiB is far over any model's useful prompt and well under a frame.
pub const PROMPT_BYTES_MAX: usize = 1024 * 1024;

/// What a prompt says about approvals of its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApproveMode {
    /// Ask, and wait for an attached client to answer.
    #[default]
    Ask,
    /// Nobody can answer: what would ask is denied.
    Deny,
    /// Everything that is not denied by a rule runs (`--approve all`).
    All,
}

/// Takes back a queued prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithdrawPrompt {
    /// Id, its last digits, or name.
    pub session: String,
    /// The prompt.
    pub prompt: PromptId,
}

/// Ends the running turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// Id, its last digits, or name.
    pub session: String,
}

/// Lists open approvals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListApprovals {
    /// Only this session's.
    #[serde(default)]
    pub session: Option<String>,
}

/// Answers an approval; the first answer wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerApproval {
    /// The approval: its id, or the id's last digits.
    pub approval: String,
    /// The digest the client showed; when given, an answer to something else is refused.
    #[serde(default)]
    pub digest: Option<String>,
    /// The answer.
    pub verdict: Verdict,
}

/// Changes a session's place in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSession {
    /// Id, its last digits, or name.
    pub session: String,
    /// The change.
    pub change: SessionChange,
}

/// A change of a session's place in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SessionChange {
    /// A new name.
    Rename {
        /// Unique among sessions that are not archived.
        name: String,
    },
    /// Its shell is ended and it leaves the list; its log stays.
    Archive {},
    /// Its shell is ended and its log deleted.
    Remove {},
}

/// Stops the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {
    /// End the sessions' shells too; else they go on and the next daemon finds them.
    #[serde(default)]
    pub stop_shells: bool,
}

/// Takes the session's last edits back, the last first. Refused while a turn runs, and when a file is not as its edit left
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// Id, its last digits, or name.
    pub session: String,
    /// Made by the client; sending the same id again changes nothing.
    pub undo: UndoId,
    /// How many edits, 1 to [`UNDO_STEPS_MAX`].
    pub steps: u32,
    /// Only show what it would change.
    #[serde(default)]
    pub preview: bool,
    /// `newest` of the preview that was shown: when there are other edits now, nothing is taken back.
    #[serde(default)]
    pub newest: Option<u64>,
}

/// Most edits that one request takes back: its answer, and its row in the log, stay small enough to be read.
pub const UNDO_STEPS_MAX: u32 = 100;

/// The session's changes of files that stand, from before its first edit of each file to now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionDiff {
    /// Id, its last digits, or name.
    pub session: String,
}

/// Sends the failed request of a waiting or parked turn again at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Id, its last digits, or name.
    pub session: String,
    /// The client's endpoint, as in [`Attach`].
    #[serde(default)]
    pub endpoint: Endpoint,
}

/// Starts the daemon's program anew in its place, after an upgrade of its file for example. What runs goes on, and who
/// connects meanwhile is served a moment later. Refused when the program could not serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {}

/// Switches a session's mode. It decides for calls that are not decided yet; an open question that it decides is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetMode {
    /// Id, its last digits, or name.
    pub session: String,
    /// The mode.
    pub mode: Mode,
    /// Must be true for `bypass`: a person said in so many words that nothing shall be asked.
    #[serde(default)]
    pub confirmed: bool,
}

/// An approval id as a full id, for clients that have one.
impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> Self {
        id.to_string()
    }
}
