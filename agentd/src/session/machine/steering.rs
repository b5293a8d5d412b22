//! What a user does to a session beside prompts: notes in mid-turn, the last prompt in other words, other settings.

use std::sync::Arc;

use proto::ids::PromptId;
use proto::json::JsonText;
use serde_json::json;

use super::decide::Run;
use super::state::{Machine, Phase};
use crate::model::{Message, Role};
use crate::store::entry::{Entry, Prompt, Settings};

/// Where the last prompt stands in the history.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The prompt.
    pub prompt: PromptId,
    /// Its text.
    pub text: String,
    messages: usize,
    /// Blocks of the last message before it.
    blocks: usize,
}

impl Run<'_> {
    /// A note for the running turn.
    pub(super) fn steer(&mut self, text: String, by: String) {
        if let Some(turn) = self.machine.turn().filter(|turn| !turn.standalone && !turn.stopping).map(|turn| turn.id) {
            self.record(Entry::Steered { turn, text, by });
        }
    }

    /// The last prompt again, as if it had not been asked.
    pub(super) fn rerun(&mut self, mut prompt: Prompt) {
        let (Phase::Idle, Some(mark)) = (&self.machine.phase, &self.machine.rewind) else { return };
        let old = mark.prompt;
        if prompt.text.is_empty() {
            prompt.text.clone_from(&mark.text);
        }
        self.record(Entry::Rewound { prompt: old, by: prompt.by.clone() });
        self.record(Entry::PromptAccepted(prompt));
        self.next_turn();
    }

    pub(super) fn settings_changed(&mut self, settings: Settings, by: String) {
        if self.machine.turn().is_none() {
            self.record(Entry::SettingsChanged { settings, by });
        }
    }
}

impl Machine {
    /// What the requests are made with, when that was changed.
    #[must_use]
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    /// The prompt that can be asked again.
    #[must_use]
    pub fn last_prompt(&self) -> Option<&Mark> {
        self.rewind.as_ref()
    }

    /// Takes note of where a prompt is about to stand.
    pub(super) fn mark(&mut self, prompt: PromptId, text: &str) {
        let blocks = self.history.last().map_or(0, |last| last.content.len());
        self.rewind = Some(Mark { prompt, text: text.to_owned(), messages: self.history.len(), blocks });
    }

    pub(super) fn apply_rewound(&mut self) {
        let Some(mark) = self.rewind.take() else { return };
        self.history.truncate(mark.messages);
        if let Some(last) = self.history.last_mut() {
            Arc::make_mut(last).content.truncate(mark.blocks);
        }
        self.notes.clear();
        self.jobs.rewound();
        self.ran_rewound();
        self.account.forget();
    }

    /// The notes become part of the history: as a message of the harness behind the user's side, else as the user's.
    pub(super) fn give_notes(&mut self) {
        let blocks = std::mem::take(&mut self.notes).into_iter().map(|note| {
            let text = format!("The user adds, while you work: {note}");
            JsonText::from_value(&json!({ "type": "text", "text": text }))
        });
        let blocks: Vec<JsonText> = blocks.collect();
        if self.history.last().is_some_and(|last| last.role == Role::User) {
            self.history.push(Arc::new(Message { role: Role::System, content: blocks }));
        } else {
            blocks.into_iter().for_each(|block| self.push_user(block));
        }
    }
}
