//! Commands that users run in the session's shell: each is a turn with one call and no request, so that it runs, streams,
//! is interrupted, moved to the background, audited and found again after a crash like a call of the model's.
//!
//! The model is told of it when its next turn begins, in front of the prompt; asking a prompt again leaves that in place.

use proto::approval::Decider;
use proto::ids::{CallId, TurnId};
use proto::json::JsonText;
use proto::request::ApproveMode;
use serde_json::json;

use super::call::{Call, CallState, Calling};
use super::decide::Run;
use super::effect::Effect;
use super::state::{Machine, Phase, Turn};
use crate::content::Part;
use crate::store::entry::{CallResult, EnteredCommand, Entry, Expect, StoredInput};
use crate::tools::call::BASH;

impl Run<'_> {
    pub(super) fn command_entered(&mut self, call: CallId, command: String, by: String) {
        if !matches!(self.machine.phase, Phase::Idle) {
            return;
        }
        let turn = TurnId(self.fresh_id());
        let entered = EnteredCommand { turn, call, command, by: by.clone(), at: self.now };
        self.record(Entry::CommandEntered(entered));
        let (shim, expect) = (self.machine.shim, Expect::Nothing);
        let allowed_by = Decider::Client { name: by };
        self.record(Entry::CallStarted { turn, call, allowed_by, shim, expect: expect.clone() });
        self.effect(Effect::RunCall { call, shim, expect, again: false });
    }
}

impl Machine {
    /// Whether the call is a command that a user runs.
    #[must_use]
    pub fn is_entered(&self, call: CallId) -> bool {
        self.call(call).is_some() && self.turn().is_some_and(|turn| turn.entered.is_some())
    }

    pub(super) fn enter(&mut self, entered: &EnteredCommand) {
        let turn = Turn {
            entered: Some(entered.command.clone()),
            standalone: true,
            started_at: entered.at,
            // What it leaves in the background may begin a turn, and its user is there to be asked.
            ..Turn::new(entered.turn, None, ApproveMode::Ask, String::new())
        };
        let call = Call {
            id: entered.call,
            tool_use_id: String::new(),
            tool: BASH.to_owned(),
            input: StoredInput::Valid(JsonText::from_value(&json!({ "command": entered.command }))),
            edited: None,
            state: CallState::Waiting,
        };
        self.phase = Phase::Calling(turn, Calling { calls: vec![call] });
    }

    /// What users ran becomes part of the history.
    pub(super) fn tell_ran(&mut self) {
        for text in std::mem::take(&mut self.ran) {
            self.push_note(&text);
            self.ran_told.push(text);
        }
    }

    /// What was told since the last prompt left the history with it.
    pub(super) fn ran_rewound(&mut self) {
        let later = std::mem::replace(&mut self.ran, std::mem::take(&mut self.ran_told));
        self.ran.extend(later);
    }
}

/// What the model reads of a command that it did not run.
pub(super) fn ran_text(command: &str, result: &CallResult) -> String {
    let output: String = result
        .content
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Image { .. } => "",
        })
        .collect();
    format!("[agentd: the user ran a command in your shell, by themselves; its output follows]\n$ {command}\n{output}")
}
