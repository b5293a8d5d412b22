//! What `ask` waits for: the end of its own prompt's turn, and what became of it. Pure.

use proto::event::{Block, Event, EventBody, Outcome, Problem, TurnOutcome};
use proto::ids::{PromptId, TurnId};

use crate::exit::Exit;

/// The tool of the question whether a turn goes on.
const PAUSE_TOOL: &str = "agentd";

/// A prompt on its way to its end.
#[derive(Debug)]
pub struct Goal {
    prompt: PromptId,
    turn: Option<TurnId>,
    accepted: bool,
    denied: bool,
    stays: bool,
    answer: String,
    end: Option<End>,
}

/// How a prompt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its turn ended.
    Turn(TurnOutcome),
    /// It was taken back before its turn.
    Withdrawn,
    /// Its session was archived under it.
    Archived,
    /// Its turn is parked: it goes on by itself, and nobody is here to wait for it.
    Parked(Problem),
}

impl Goal {
    /// Waits for this prompt. `stays`: also while its turn is parked, which a person at a terminal can end and a script
    /// cannot.
    #[must_use]
    pub fn new(prompt: PromptId, stays: bool) -> Self {
        Self { prompt, turn: None, accepted: false, denied: false, stays, answer: String::new(), end: None }
    }

    /// Folds a row in.
    pub fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::PromptAccepted(it) if it.prompt == self.prompt => self.accepted = true,
            EventBody::TurnStarted(it) if it.prompt == self.prompt => self.turn = Some(it.turn),
            EventBody::PromptWithdrawn(it) if it.prompt == self.prompt => self.end = Some(End::Withdrawn),
            EventBody::ReplyReceived(it) if self.turn == Some(it.turn) => {
                let texts = it.blocks.iter().filter_map(|block| match block {
                    Block::Text { text } => Some(text.as_str()),
                    Block::Thinking { .. } | Block::Call(_) | Block::Other { .. } => None,
                });
                self.answer = texts.collect::<Vec<_>>().join("\n");
            }
            EventBody::CallFinished(it) if self.turn == Some(it.turn) => {
                self.denied |= matches!(it.outcome, Outcome::Denied {});
            }
            EventBody::TurnEnded(it) if self.turn == Some(it.turn) => self.end = Some(End::Turn(it.outcome.clone())),
            EventBody::RequestFailed(it) if it.parked && !self.stays && self.turn == Some(it.turn) => {
                self.end = Some(End::Parked(it.problem.clone()));
            }
            // With nobody to ask and everything allowed, the only question left is whether the turn goes on.
            EventBody::ApprovalAsked(it)
                if it.approval.tool == PAUSE_TOOL && !self.stays && self.turn == Some(it.approval.turn) =>
            {
                self.end = Some(End::Parked(Problem {
                    code: "paused".into(),
                    message: it.approval.reason.clone(),
                    hint: String::new(),
                    request_id: None,
                }));
            }
            EventBody::SessionArchived(_) if self.end.is_none() => self.end = Some(End::Archived),
            EventBody::PromptAccepted(_)
            | EventBody::TurnStarted(_)
            | EventBody::PromptWithdrawn(_)
            | EventBody::ReplyReceived(_)
            | EventBody::CallFinished(_)
            | EventBody::TurnEnded(_)
            | EventBody::SessionArchived(_)
            | EventBody::SessionCreated(_)
            | EventBody::RequestSent(_)
            | EventBody::RequestFailed(_)
            | EventBody::ApprovalAsked(_)
            | EventBody::ApprovalClosed(_)
            | EventBody::CallStarted(_)
            | EventBody::Notice(_)
            | EventBody::SessionRenamed(_)
            | EventBody::UndoStarted(_)
            | EventBody::ModeChanged(_)
            | EventBody::UndoEnded(_)
            | EventBody::SettingsChanged(_)
            | EventBody::CompactionStarted(_)
            | EventBody::Compacted(_)
            | EventBody::Steered(_)
            | EventBody::Rewound(_)
            | EventBody::JobStarted(_)
            | EventBody::JobEnded(_)
            | EventBody::JobSilent(_)
            | EventBody::JobStopAsked(_)
            | EventBody::BackgroundAsked(_)
            | EventBody::TurnWoken(_)
            | EventBody::JobsTold(_)
            | EventBody::SessionForked(_)
            | EventBody::CommandEntered(_) => {}
        }
    }

    /// Whether the prompt is known to be on disk.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.accepted
    }

    /// The turn, once it began.
    #[must_use]
    pub fn turn(&self) -> Option<TurnId> {
        self.turn
    }

    /// The text of the last reply.
    #[must_use]
    pub fn answer(&self) -> &str {
        &self.answer
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The problem that ended it, if one did.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match &self.end {
            Some(End::Turn(TurnOutcome::Failed { problem }) | End::Parked(problem)) => Some(problem),
            Some(_) | None => None,
        }
    }

    /// The exit code of the end.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match &self.end {
            Some(End::Turn(TurnOutcome::Done {})) if self.denied => Exit::Denied,
            Some(End::Turn(TurnOutcome::Done {})) => Exit::Done,
            Some(End::Turn(TurnOutcome::Refused { .. })) => Exit::Refused,
            Some(End::Turn(TurnOutcome::Failed { .. }) | End::Parked(_)) => Exit::Model,
            Some(End::Turn(TurnOutcome::Interrupted {}) | End::Withdrawn | End::Archived) | None => Exit::Interrupted,
        }
    }

    /// The end in one word, for `--json`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match &self.end {
            Some(End::Turn(TurnOutcome::Done {})) => "done",
            Some(End::Turn(TurnOutcome::Refused { .. })) => "refused",
            Some(End::Turn(TurnOutcome::Failed { .. })) => "failed",
            Some(End::Turn(TurnOutcome::Interrupted {})) => "interrupted",
            Some(End::Withdrawn) => "withdrawn",
            Some(End::Archived) => "archived",
            Some(End::Parked(_)) => "parked",
            None => "left",
        }
    }
}
