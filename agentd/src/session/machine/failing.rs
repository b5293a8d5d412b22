//! The steps after a failed request: wait and try again, leave thinking out, or end the turn.

use std::sync::Arc;

use proto::event::{Problem, TurnOutcome};
use proto::ids::RequestId;

use super::decide::Run;
use super::input::Cure;
use super::state::{Machine, Phase, Try};
use crate::model;
use crate::store::entry::Entry;

impl Run<'_> {
    pub(super) fn request_failed(&mut self, request: RequestId, problem: Problem, cure: Cure) {
        let Some((turn, this)) = self.requesting(request) else { return };
        let (next_try, parked) = match cure {
            Cure::Again { at, parked } => (Some(at), parked),
            // At once; a crash in between finds the request due.
            Cure::WithoutThinking if self.machine.has_thinking() => (Some(self.now), false),
            Cure::Shorter if self.can_shrink(&turn) => (Some(self.now), false),
            Cure::None | Cure::WithoutThinking | Cure::Shorter => (None, false),
        };
        self.record(Entry::RequestFailed {
            turn: turn.id,
            request,
            attempt: this.attempt,
            problem: problem.clone(),
            next_try,
            parked,
        });
        match (cure, next_try) {
            (_, None) => self.end_turn(turn.id, TurnOutcome::Failed { problem }),
            (Cure::WithoutThinking, Some(_)) => {
                self.record(Entry::ThinkingStripped { turn: turn.id });
                self.send_try(turn.id, Try { request, attempt: this.attempt + 1 });
            }
            (Cure::Shorter, Some(_)) => {
                if self.compact_when_full(&turn) {
                    self.send();
                }
            }
            (Cure::Again { .. } | Cure::None, Some(_)) => {}
        }
    }

    /// Sends the failed request again without waiting any longer.
    pub(super) fn retry(&mut self, by: &str) {
        let Phase::Backoff(turn, failed, _) = &self.machine.phase else { return };
        let (turn, this) = (turn.id, Try { request: failed.request, attempt: failed.attempt + 1 });
        self.record(Entry::Notice { text: format!("tried again at once, as {by} asked") });
        self.send_try(turn, this);
    }
}

impl Machine {
    /// Whether anything is left to strip: without it the recovery would go round and round.
    fn has_thinking(&self) -> bool {
        self.history.iter().any(|message| message.content.iter().any(model::is_thinking))
    }

    pub(super) fn strip_thinking(&mut self) {
        for message in &mut self.history {
            if message.content.iter().any(model::is_thinking) {
                Arc::make_mut(message).content.retain(|block| !model::is_thinking(block));
            }
        }
    }
}
