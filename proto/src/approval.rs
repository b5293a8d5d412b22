//! What is asked of the user, which answers exist, and who gave them.
//!
//! An approval is durable: it survives its client and the daemon. It is bound by [`Approval::digest`] to exactly what
//! was shown; the first answer wins and everybody learns who gave it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diff::FileDiff;
use crate::ids::{ApprovalId, CallId, SessionId, Timestamp, TurnId};
use crate::json::JsonText;
use crate::mode::Mode;

/// One question to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Its id; answers name it.
    pub id: ApprovalId,
    /// The session that waits.
    pub session: SessionId,
    /// The turn that waits.
    pub turn: TurnId,
    /// The call that will run.
    pub call: CallId,
    /// The tool's name as the model knows it.
    pub tool: String,
    /// What will be done.
    pub subject: Subject,
    /// Why the user is asked, in one sentence.
    pub reason: String,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When silence becomes a denial.
    pub expires_at: Timestamp,
    /// The answers that are possible here.
    pub choices: Vec<Choice>,
    /// SHA-256 over call, working directory and what is known of the shell's state or, for an edit, the file's present
    /// content. The same is looked at again before the run.
    pub digest: String,
    /// What "always" would write; there exactly when that answer is possible.
    pub proposal: Option<Proposal>,
}

/// The narrowest rules that allow this call, proved to do so before they are offered. "For this session" means the same
/// rules for as long as the session lasts, where there are any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// The file that "always" adds them to.
    pub file: String,
    /// Exactly the text that is added.
    pub toml: String,
    /// The rules, each in one line for people.
    pub rules: Vec<String>,
}

/// What will be done if the user agrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A shell command.
    Command(CommandSubject),
    /// A change of a file.
    Edit(EditSubject),
    /// Anything else: the tool's input as it came.
    Other(OtherSubject),
}

/// A shell command, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandSubject {
    /// The command text.
    pub command: String,
    /// The directory it will run in.
    pub cwd: String,
    /// The simple commands in it, as the policy understood them; empty when it did not.
    pub parts: Vec<String>,
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditSubject {
    /// The change.
    pub diff: FileDiff,
}

/// A call without a form of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherSubject {
    /// One line for people.
    pub title: String,
    /// The input as the model gave it.
    pub input: JsonText,
}

/// A kind of answer, for menus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// This call only.
    Once,
    /// Such calls again in this session, too: those that the proposal allows, else this very call.
    Session,
    /// A rule is written that covers this call.
    Always,
    /// Not.
    Deny,
    /// Another command instead.
    Edit,
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// Run it this once.
    Once {},
    /// Run it, and what [`Approval::proposal`] allows, else the very same call, again in this session without asking.
    Session {},
    /// Run it, and write a rule that allows such calls from now on.
    Always {},
    /// Do not run it.
    Deny {
        /// Told to the model.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Run this command instead. Rules that deny hold for it, and the model is told.
    Edit {
        /// The command.
        command: String,
    },
}

impl Verdict {
    /// Whether the call runs.
    #[must_use]
    pub fn allows(&self) -> bool {
        match self {
            Self::Once {} | Self::Session {} | Self::Always {} | Self::Edit { .. } => true,
            Self::Deny { .. } => false,
        }
    }
}

/// Who or what decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// A person at a client, named as in [`crate::request::ClientInfo`].
    Client {
        /// For example `agentctl on pts/3`.
        name: String,
    },
    /// The policy, with the rule or reason.
    Policy {
        /// The rule, or why no question was needed.
        rule: String,
    },
    /// `--approve` of the prompt.
    Flag {
        /// `all`, `rules` or `none`.
        value: String,
    },
    /// An earlier answer "for this session".
    Grant {
        /// Who gave it.
        name: String,
    },
    /// Nobody answered in time.
    Expiry {},
    /// The turn was interrupted.
    Interrupt {},
    /// What was approved is no longer what would run.
    Changed {},
    /// The session was switched to another mode, which decides it.
    Mode {
        /// The mode.
        mode: Mode,
    },
}
