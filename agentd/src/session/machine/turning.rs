//! The steps that come from outside a turn: an interrupt, the clock, a start of the daemon.

use proto::approval::{Decider, Verdict};
use proto::event::TurnOutcome;
use proto::ids::Timestamp;

use super::call::CallState;
use super::decide::Run;
use super::effect::Effect;
use super::state::{Machine, Phase, Try};
use crate::store::entry::Entry;

impl Machine {
    /// When [`super::Input::TimerFired`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Backoff(_, _, pause) => Some(pause.until),
            Phase::Calling(..) | Phase::Paused(..) => self.asking().map(|approval| approval.expires_at),
            Phase::Idle | Phase::Ready(_) | Phase::Requesting(..) | Phase::Undoing(_) => None,
        }
    }
}

impl Run<'_> {
    pub(super) fn interrupt(&mut self, by: String) {
        let Some(turn) = self.machine.turn().map(|turn| turn.id) else { return };
        match &self.machine.phase {
            Phase::Idle | Phase::Undoing(_) => {}
            Phase::Requesting(_, this) => {
                let request = this.request;
                self.record(Entry::InterruptRequested { turn, by });
                self.effect(Effect::CancelRequest { request });
                self.end_turn(turn, TurnOutcome::Interrupted {});
            }
            Phase::Paused(_, paused) => {
                let (approval, call, kind) = (paused.approval.id, paused.approval.call, paused.kind);
                self.record(Entry::InterruptRequested { turn, by });
                let (verdict, by) = (Verdict::Deny { reason: None }, Decider::Interrupt {});
                self.record(Entry::PauseClosed { approval, call, kind, verdict, by });
                self.end_turn(turn, TurnOutcome::Interrupted {});
            }
            Phase::Ready(_) | Phase::Backoff(..) => {
                self.record(Entry::InterruptRequested { turn, by });
                self.end_turn(turn, TurnOutcome::Interrupted {});
            }
            Phase::Calling(_, calling) => {
                let running = calling.calls.iter().find(|call| matches!(call.state, CallState::Running { .. }));
                let running = running.map(|call| call.id);
                let asked = self.machine.asking().map(|asked| (asked.id, asked.call));
                self.record(Entry::InterruptRequested { turn, by });
                if let Some((approval, call)) = asked {
                    let verdict = Verdict::Deny { reason: None };
                    self.record(Entry::ApprovalClosed { approval, call, verdict, by: Decider::Interrupt {} });
                }
                match running {
                    Some(call) => self.effect(Effect::CancelCall { call }),
                    None => self.end_turn(turn, TurnOutcome::Interrupted {}),
                }
            }
        }
    }

    pub(super) fn timer(&mut self) {
        let due = self.machine.deadline().is_some_and(|deadline| deadline <= self.now);
        if !due {
            return;
        }
        match &self.machine.phase {
            Phase::Backoff(turn, failed, _) => {
                let (turn, this) = (turn.id, Try { request: failed.request, attempt: failed.attempt + 1 });
                self.send_try(turn, this);
            }
            Phase::Calling(..) | Phase::Paused(..) => {
                if let Some(id) = self.machine.asking().map(|asked| asked.id) {
                    self.answered(id, Verdict::Deny { reason: None }, Decider::Expiry {});
                }
            }
            Phase::Idle | Phase::Ready(_) | Phase::Requesting(..) | Phase::Undoing(_) => {}
        }
    }

    /// After a start of the daemon: nothing is assumed to have happened that the log does not say.
    pub(super) fn resume(&mut self) {
        self.resume_answers();
        match &self.machine.phase {
            Phase::Idle => self.next_turn(),
            Phase::Ready(_) => self.send(),
            Phase::Requesting(turn, this) => {
                let (turn, this) = (turn.id, Try { attempt: this.attempt + 1, ..*this });
                self.send_try(turn, this);
            }
            // By the same id nothing is taken back twice.
            Phase::Undoing(order) => {
                let order = order.clone();
                self.effect(Effect::RunUndo(order));
            }
            // Timers and questions live in the state.
            Phase::Backoff(..) | Phase::Paused(..) => {}
            Phase::Calling(turn, calling) => {
                let stopping = turn.stopping;
                let running = calling.calls.iter().find_map(|call| match &call.state {
                    CallState::Running { shim, expect } => Some((call.id, *shim, expect.clone())),
                    CallState::Waiting
                    | CallState::Assessing
                    | CallState::Asking(_)
                    | CallState::Approved(_)
                    | CallState::Done(_) => None,
                });
                match running {
                    Some((call, shim, expect)) => {
                        self.effect(Effect::RunCall { call, shim, expect, again: true });
                        if stopping {
                            self.effect(Effect::CancelCall { call });
                        }
                    }
                    None => self.advance(),
                }
            }
        }
    }
}
