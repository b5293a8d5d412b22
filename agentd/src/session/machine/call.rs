//! One tool call: how far it is, what the user was asked and answered.

use std::sync::Arc;

use proto::approval::{Approval, Decider, Verdict};
use proto::ids::{ApprovalId, CallId};
use proto::json::JsonText;
use proto::mode::Mode;
use uuid::Uuid;

use crate::content::Part;
use crate::policy::ShellFacts;
use crate::store::entry::{CallResult, Expect, StoredInput};
use crate::tools::ToolResult;

/// The calls of one reply.
#[derive(Clone, Debug)]
pub struct Calling {
    /// In the reply's order.
    pub calls: Vec<Call>,
}

/// One tool call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Our id.
    pub id: CallId,
    /// The API's id.
    pub tool_use_id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: StoredInput,
    /// The input that runs instead, when the user changed the command.
    pub edited: Option<JsonText>,
    /// How far it is.
    pub state: CallState,
}

impl Call {
    /// The input that runs, if one can.
    #[must_use]
    pub fn runs(&self) -> Option<&JsonText> {
        match (&self.edited, &self.input) {
            (Some(edited), _) => Some(edited),
            (None, StoredInput::Valid(input)) => Some(input),
            (None, StoredInput::Broken(_)) => None,
        }
    }

    /// The same call with another command.
    pub(super) fn edit(&mut self, command: &str) {
        let StoredInput::Valid(input) = &self.input else { return };
        let mut value = input.to_value();
        value["command"] = serde_json::Value::from(command);
        self.edited = Some(JsonText::from_value(&value));
    }

    /// The result of a command that the user changed, with what the model must know of that.
    pub(super) fn told_of_edit(&self, mut result: ToolResult) -> ToolResult {
        let command = self.edited.as_ref().map(JsonText::to_value);
        let command = command.as_ref().and_then(|value| value["command"].as_str()).unwrap_or_default();
        let note = format!("[the user changed the command before it ran; what ran is:]\n{command}\n[its result:]");
        match result.content.first_mut() {
            Some(Part::Text(text)) => *text = format!("{note}\n{text}"),
            Some(Part::Image { .. }) | None => result.content.insert(0, Part::Text(note)),
        }
        result
    }
}

/// How far a call is.
#[derive(Clone, Debug)]
pub enum CallState {
    /// Its predecessors are not done.
    Waiting,
    /// It is being found out what it would do. Not in the log: after a crash it is found out again.
    Assessing,
    /// The user is asked.
    Asking(Box<Asked>),
    /// The user allowed it; one last look, and it runs.
    Approved(Box<Approved>),
    /// It runs, in this shim.
    Running {
        /// The shim's instance.
        shim: Option<Uuid>,
        /// What had to hold at its start.
        expect: Expect,
    },
    /// It has its result.
    Done(Arc<CallResult>),
}

/// An open question.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What the user sees.
    pub approval: Approval,
    /// What must still hold when it runs.
    pub expect: Expect,
    /// What was known of the shell.
    pub facts: ShellFacts,
    /// The shim that would have run it.
    pub shim: Option<Uuid>,
    /// The mode in which it was asked.
    pub mode: Mode,
}

/// A call that the user allowed.
#[derive(Clone, Debug)]
pub struct Approved {
    /// Who.
    pub by: Decider,
    /// What they saw.
    pub asked: Asked,
}

/// "For this session".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What may run again.
    pub what: Granted,
    /// Who said so.
    pub name: String,
}

/// What may run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// This very call.
    Call {
        /// What it is bound to.
        digest: String,
    },
    /// What these rules allow.
    Rules {
        /// Their text.
        toml: String,
        /// Each in one line.
        rules: Vec<String>,
    },
}

/// A rule that is still to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The question that was answered with "always".
    pub approval: ApprovalId,
    /// The rule.
    pub toml: String,
}

/// An answered question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The question.
    pub approval: ApprovalId,
    /// The answer.
    pub verdict: Verdict,
    /// Who gave it.
    pub by: Decider,
}
