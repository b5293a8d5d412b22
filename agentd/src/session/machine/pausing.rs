//! Limits that ask: money, tokens, requests and time of a turn, and a model that goes in circles. The turn stands still, an
//! approval says why, and its answer goes on or ends the turn.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use proto::approval::{Approval, Choice, Decider, OtherSubject, Subject, Verdict};
use proto::ids::{ApprovalId, CallId};
use proto::json::JsonText;
use proto::request::ApproveMode;

use super::call::{CallState, Calling};
use super::decide::{Run, name_of};
use super::reply::failed;
use super::state::{Machine, Paused, Phase, Turn};
use crate::store::entry::{Entry, PauseKind};

/// What such a question names as its tool.
pub const PAUSE_TOOL: &str = "agentd";

/// Calls that are remembered to see a circle.
const RECENT_MAX: usize = 12;

/// Equal calls with equal results among them that are a circle: four may be a model that waits for something.
const REPEATS_MAX: usize = 5;

/// Limits of what is spent; 0 = none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Billionths of a dollar in a turn.
    pub turn_nanousd: u64,
    /// In the session.
    pub session_nanousd: u64,
    /// On a day (UTC), all sessions together.
    pub day_nanousd: u64,
    /// Tokens of a turn, read and written.
    pub turn_tokens: u64,
    /// Milliseconds of a turn.
    pub turn_ms: u64,
}

impl Run<'_> {
    /// The limit that stands in the way of the next request, with a sentence.
    pub(super) fn limit_reached(&self, turn: &Turn) -> Option<(PauseKind, String)> {
        let caps = &self.machine.limits.caps;
        let spent = |usage: &proto::event::Usage| usage.cost_nanousd.unwrap_or(0);
        let all = [
            (PauseKind::TurnRequests, u64::from(turn.requests), u64::from(self.machine.limits.requests_max)),
            (PauseKind::TurnMoney, spent(&turn.usage), caps.turn_nanousd),
            (PauseKind::SessionMoney, spent(&self.machine.account.usage), caps.session_nanousd),
            (PauseKind::DayMoney, self.machine.surroundings.day_nanousd, caps.day_nanousd),
            (PauseKind::TurnTokens, turn.usage.prompt_tokens() + turn.usage.output_tokens, caps.turn_tokens),
            (PauseKind::TurnTime, self.now.0.saturating_sub(turn.started_at.0), caps.turn_ms),
            (PauseKind::Loop, u64::from(turn.circles()), 1),
        ];
        let over = all.into_iter().find(|(kind, used, cap)| {
            // Each "go on" is worth as much again.
            let times = self.machine.raised.get(kind).map_or(1, |raised| raised.saturating_add(1));
            *cap > 0 && *used >= cap.saturating_mul(u64::from(times))
        });
        over.map(|(kind, used, cap)| (kind, sentence(kind, used, cap)))
    }

    /// Asks whether the turn goes on; where nobody can be asked it ends.
    pub(super) fn pause(&mut self, turn: &Turn, kind: PauseKind, why: String) {
        if turn.approve == ApproveMode::Deny {
            let outcome =
                failed(code(kind), why, "send another prompt to go on, or raise the limit in the configuration");
            return self.end_turn(turn.id, outcome);
        }
        let subject = Subject::Other(OtherSubject {
            title: "go on with the turn".into(),
            input: JsonText::from_value(&serde_json::Value::String(why.clone())),
        });
        let approval = Approval {
            id: ApprovalId(self.fresh_id()),
            session: self.machine.session,
            turn: turn.id,
            call: CallId(self.fresh_id()),
            tool: PAUSE_TOOL.into(),
            subject,
            reason: why,
            asked_at: self.now,
            expires_at: self.now.plus_ms(self.machine.limits.approval_expiry_ms),
            choices: vec![Choice::Once, Choice::Session, Choice::Deny],
            digest: format!("{kind:?}"),
            proposal: None,
        };
        self.record(Entry::PauseAsked { turn: turn.id, kind, approval });
    }

    /// The answer to such a question, if that is what is open.
    pub(super) fn pause_answered(&mut self, id: ApprovalId, verdict: &Verdict, by: &Decider) -> bool {
        let Phase::Paused(turn, paused) = &self.machine.phase else { return false };
        if paused.approval.id != id {
            return false;
        }
        let (turn, kind, call) = (turn.id, paused.kind, paused.approval.call);
        let why = paused.approval.reason.clone();
        self.record(Entry::PauseClosed { approval: id, call, kind, verdict: verdict.clone(), by: by.clone() });
        match verdict {
            Verdict::Once {} | Verdict::Session {} | Verdict::Always {} => self.send(),
            // There is no command to change; such an answer is not offered.
            Verdict::Deny { .. } | Verdict::Edit { .. } => {
                let message = format!("{why}; {} did not let it go on", name_of(by));
                self.end_turn(turn, failed(code(kind), message, "send another prompt to go on"));
            }
        }
        true
    }
}

impl Machine {
    pub(super) fn apply_pause_closed(&mut self, kind: PauseKind, verdict: &Verdict) {
        let raised = self.raised.entry(kind).or_insert(0);
        match verdict {
            Verdict::Once {} => *raised = raised.saturating_add(1),
            Verdict::Session {} | Verdict::Always {} => *raised = u32::MAX,
            Verdict::Deny { .. } | Verdict::Edit { .. } => {}
        }
        if let Phase::Paused(turn, _) = &self.phase {
            let mut turn = turn.clone();
            if kind == PauseKind::Loop {
                turn.recent.clear();
                // Asked again only after another circle.
                self.raised.retain(|of, raised| *of != PauseKind::Loop || *raised == u32::MAX);
            }
            self.phase = Phase::Ready(turn);
        }
    }

    /// What was allowed for one turn does not hold in the next.
    pub(super) fn forget_raised(&mut self) {
        self.raised.retain(|kind, raised| match kind {
            PauseKind::SessionMoney | PauseKind::DayMoney => true,
            PauseKind::TurnMoney
            | PauseKind::TurnTokens
            | PauseKind::TurnRequests
            | PauseKind::TurnTime
            | PauseKind::Loop => *raised == u32::MAX,
        });
    }
}

impl Turn {
    /// Whether the model goes in circles, as a number to compare.
    fn circles(&self) -> u8 {
        let most = self.recent.iter().map(|it| self.recent.iter().filter(|other| *other == it).count()).max();
        u8::from(most.is_some_and(|most| most >= REPEATS_MAX))
    }

    /// Takes note of calls that are over.
    pub(super) fn remember(&mut self, calling: &Calling) {
        for call in &calling.calls {
            if let CallState::Done(result) = &call.state {
                let mut hasher = DefaultHasher::new();
                (&call.tool, format!("{:?}", call.input), format!("{:?}", result.content)).hash(&mut hasher);
                self.recent.push(hasher.finish());
            }
        }
        let over = self.recent.len().saturating_sub(RECENT_MAX);
        self.recent.drain(..over);
    }
}

impl Paused {
    /// The question.
    #[must_use]
    pub fn approval(&self) -> &Approval {
        &self.approval
    }
}

fn code(kind: PauseKind) -> &'static str {
    match kind {
        PauseKind::TurnMoney | PauseKind::SessionMoney | PauseKind::DayMoney => "money_limit",
        PauseKind::TurnTokens => "token_limit",
        PauseKind::TurnRequests => "request_limit",
        PauseKind::TurnTime => "time_limit",
        PauseKind::Loop => "loop",
    }
}

fn sentence(kind: PauseKind, used: u64, cap: u64) -> String {
    let dollars = |nano: u64| format!("{}.{:02} USD", nano / 1_000_000_000, nano % 1_000_000_000 / 10_000_000);
    match kind {
        PauseKind::TurnMoney => {
            format!("the turn has cost {}, the limit of budget.turn_usd is {}", dollars(used), dollars(cap))
        }
        PauseKind::SessionMoney => {
            format!("the session has cost {}, the limit of budget.session_usd is {}", dollars(used), dollars(cap))
        }
        PauseKind::DayMoney => {
            format!("all sessions have cost {} today, the limit of budget.day_usd is {}", dollars(used), dollars(cap))
        }
        PauseKind::TurnTokens => format!("the turn has used {used} tokens, the limit of budget.turn_tokens is {cap}"),
        PauseKind::TurnRequests => {
            format!("the turn made {used} requests to the model, the limit of turn.requests_max is {cap}")
        }
        PauseKind::TurnTime => {
            format!("the turn has taken {} s, the limit of budget.turn_time is {} s", used / 1000, cap / 1000)
        }
        PauseKind::Loop => {
            format!(
                "the model has made the same call with the same result {REPEATS_MAX} times, it seems to go in circles"
            )
        }
    }
}
