//! What a row means for a user who looks elsewhere.

use proto::approval::{Approval, Subject};
use proto::event::TurnOutcome;
use proto::handshake::Role;

use super::Actor;
use crate::config::Desktop;
use crate::desktop::Word;
use crate::store::entry::Entry;

impl Actor {
    /// Tells the desktop of a row that waits for the user, or is what the user waits for.
    pub(super) fn tell_desktop(&self, entry: &Entry) {
        let wanted = match self.context.config().notify.desktop {
            Desktop::Off => false,
            Desktop::Away => !self.fanout.clients().iter().any(|client| client.role != Role::Observer),
            Desktop::Always => true,
        };
        match entry {
            Entry::ApprovalAsked { approval, .. } | Entry::PauseAsked { approval, .. } => {
                if wanted {
                    self.tell("waits for your answer", &asked(approval));
                }
            }
            Entry::TurnEnded { .. } if !wanted => {}
            Entry::TurnEnded { outcome, .. } => match outcome {
                TurnOutcome::Done {} => self.tell("is done", &self.row.title),
                TurnOutcome::Refused { .. } => self.tell("got a refusal", &self.row.title),
                TurnOutcome::Failed { problem } => self.tell("could not go on", &problem.message),
                TurnOutcome::Interrupted {} => {}
            },
            // Whoever answered, wherever.
            Entry::ApprovalClosed { .. } | Entry::PauseClosed { .. } => {
                self.context.desktop.say(Word::Withdraw { session: self.id });
            }
            Entry::Created(_)
            | Entry::PromptWithdrawn { .. }
            | Entry::TurnStarted { .. }
            | Entry::Nudged { .. }
            | Entry::CallStarted { .. }
            | Entry::InterruptRequested { .. }
            | Entry::SettingsChanged { .. }
            | Entry::CompactionStarted { .. }
            | Entry::Compacted(_)
            | Entry::Steered { .. }
            | Entry::NotesGiven { .. }
            | Entry::Rewound { .. }
            | Entry::ThinkingStripped { .. }
            | Entry::UndoStarted(_)
            | Entry::JobStarted(_)
            | Entry::JobEnded(_)
            | Entry::JobSilent(_)
            | Entry::JobStopAsked { .. }
            | Entry::BackgroundAsked { .. }
            | Entry::TurnWoken { .. }
            | Entry::JobsTold { .. }
            | Entry::WakesSpent { .. }
            | Entry::Forked(_)
            | Entry::RuleKept { .. }
            | Entry::Notice { .. }
            | Entry::PromptAccepted(_)
            | Entry::Renamed { .. }
            | Entry::Archived { .. }
            | Entry::ModeChanged { .. }
            | Entry::ReplyReceived(_)
            | Entry::RequestSent { .. }
            | Entry::RequestFailed { .. }
            | Entry::CallFinished(_)
            | Entry::UndoEnded(_)
            | Entry::CommandEntered(_) => {}
        }
    }

    fn tell(&self, what: &str, text: &str) {
        let name = self.row.name.clone().unwrap_or_else(|| self.id.short());
        let title = format!("Session {name} {what}");
        self.context.desktop.say(Word::Tell { session: self.id, title, text: text.to_owned() });
    }
}

/// What would be done, in a line.
fn asked(approval: &Approval) -> String {
    match &approval.subject {
        Subject::Command(command) => format!("$ {}", command.command),
        Subject::Edit(edit) => format!("edit {}", edit.diff.path),
        Subject::Other(other) => other.title.clone(),
    }
}
