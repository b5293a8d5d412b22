//! Between a call and its run: what the policy says, what the user is asked and answers, and the last look before the run.
//!
//! Invariant: a call that a person allowed runs only after it was assessed once more and nothing it was bound to has
//! changed since it was shown; else it is asked again.

use proto::approval::{Approval, Choice, Decider, Subject, Verdict};
use proto::event::Outcome;
use proto::ids::{ApprovalId, CallId};
use proto::mode::Mode;
use proto::request::ApproveMode;

use super::call::{Approved, Asked, CallState, Granted};
use super::decide::{Run, name_of, text_result};
use super::effect::Effect;
use super::input::{Assessment, Ruling, Runnable};
use super::state::Phase;
use crate::store::entry::{Entry, Expect};

impl Run<'_> {
    /// What is known of a call now. Looking is harmless and may happen at any time; what it leads to depends on how far
    /// the call is.
    pub(super) fn assessed(&mut self, id: CallId, assessment: Assessment) {
        let Some(state) = self.machine.call(id).map(|call| call.state.clone()) else { return };
        match (state, assessment) {
            (CallState::Waiting | CallState::Running { .. } | CallState::Done(_), _) => {}
            // The answer to the question comes to it by itself.
            (CallState::Asking(_), Assessment::Settled(_)) => {}
            (CallState::Assessing | CallState::Approved(_), Assessment::Settled(result)) => {
                self.finish(id, result, 0);
                self.advance();
            }
            // The mode was switched meanwhile, and that is decided by the new one.
            (CallState::Assessing | CallState::Approved(_) | CallState::Asking(_), Assessment::Runnable(runnable))
                if runnable.mode != self.machine.mode =>
            {
                self.effect(Effect::AssessCall { call: id })
            }
            (CallState::Assessing, Assessment::Runnable(runnable)) => {
                self.learn(&runnable);
                self.rule(id, *runnable);
            }
            (CallState::Asking(asked), Assessment::Runnable(runnable)) => {
                self.learn(&runnable);
                self.settle(id, &asked, *runnable);
            }
            (CallState::Approved(approved), Assessment::Runnable(runnable)) => {
                self.learn(&runnable);
                self.recheck(id, *approved, *runnable);
            }
        }
    }

    /// Takes what an assessment tells besides: the shell's own facts, and what is wrong with the rule files. Neither is
    /// in the log: after a crash what the log says of the shell counts, which is stricter, until the shell tells again.
    fn learn(&mut self, runnable: &Runnable) {
        if runnable.told {
            self.machine.facts = runnable.facts.clone();
            self.machine.facts_of = self.machine.shim;
        }
        if self.machine.problems != runnable.problems {
            self.machine.problems.clone_from(&runnable.problems);
            let text = match runnable.problems.join("; ") {
                problems if problems.is_empty() => "The rules are in force again.".to_owned(),
                problems => format!("Until it is mended nothing runs by itself but views and searches: {problems}"),
            };
            self.record(Entry::Notice { text });
        }
    }

    /// Policy, then the prompt's flag, then earlier grants, then the user.
    fn rule(&mut self, id: CallId, runnable: Runnable) {
        let Some(approve) = self.machine.turn().map(|turn| turn.approve) else { return };
        let reason = match &runnable.ruling {
            Ruling::Allow { rule } => {
                let by = self.machine.granted_rule(rule).unwrap_or(Decider::Policy { rule: rule.clone() });
                return self.start(id, by, runnable.expect);
            }
            Ruling::Deny { reason } => {
                let by = Decider::Policy { rule: reason.clone() };
                return self.deny(id, &format!("Not run: {reason}."), Some(by));
            }
            Ruling::Ask { reason } => reason.clone(),
        };
        let grant = self.machine.grants.iter().find(
            |grant| matches!(&grant.what, Granted::Call { digest } if runnable.repeatable && *digest == runnable.digest),
        );
        match (approve, grant) {
            (ApproveMode::All, _) => {
                self.start(id, Decider::Flag { value: "all".into() }, runnable.expect);
            }
            (ApproveMode::Ask | ApproveMode::Deny, Some(grant)) => {
                let by = Decider::Grant { name: grant.name.clone() };
                self.start(id, by, runnable.expect);
            }
            (ApproveMode::Deny, None) => self.deny(
                id,
                &format!(
                    "Not run: this call needs the user's approval ({reason}) and nobody is attached who could give it. \
                     Do what can be done without it, or say what you would need."
                ),
                Some(Decider::Flag { value: "none".into() }),
            ),
            (ApproveMode::Ask, None) => self.ask(id, runnable, reason),
        }
    }

    fn ask(&mut self, id: CallId, runnable: Runnable, reason: String) {
        let (Some(turn), Some(call)) = (self.machine.turn(), self.machine.call(id)) else { return };
        let mut choices = vec![Choice::Once];
        if runnable.repeatable {
            choices.push(Choice::Session);
        }
        if runnable.proposal.is_some() {
            choices.push(Choice::Always);
        }
        if matches!(runnable.subject, Subject::Command(_)) {
            choices.push(Choice::Edit);
        }
        choices.push(Choice::Deny);
        let approval = Approval {
            id: ApprovalId((self.ids)()),
            session: self.machine.session,
            turn: turn.id,
            call: id,
            tool: call.tool.clone(),
            subject: runnable.subject,
            reason,
            asked_at: self.now,
            expires_at: self.now.plus_ms(self.machine.limits.approval_expiry_ms),
            choices,
            digest: runnable.digest,
            proposal: runnable.proposal,
        };
        let (expect, facts, shim) = (runnable.expect, runnable.facts.fingerprint(), self.machine.shim);
        self.record(Entry::ApprovalAsked { approval, expect, facts, shim });
    }

    pub(super) fn answered(&mut self, approval: ApprovalId, verdict: Verdict, by: Decider) {
        if self.pause_answered(approval, &verdict, &by) {
            return;
        }
        let Some(asked) = self.machine.asked().filter(|asked| asked.approval.id == approval) else { return };
        let (call, toml) = (asked.approval.call, asked.approval.proposal.as_ref().map(|it| it.toml.clone()));
        self.record(Entry::ApprovalClosed { approval, call, verdict: verdict.clone(), by: by.clone() });
        match verdict {
            Verdict::Once {} | Verdict::Session {} | Verdict::Edit { .. } => {}
            Verdict::Always {} => {
                if let Some(toml) = toml {
                    self.effect(Effect::KeepRule { approval, toml });
                }
            }
            Verdict::Deny { reason } => return self.deny(call, &denied_text(reason.as_deref(), &by), None),
        }
        self.effect(Effect::AssessCall { call });
    }

    /// An open question is looked at again because the mode changed: it is closed where no question is left.
    fn settle(&mut self, id: CallId, asked: &Asked, runnable: Runnable) {
        let mode = self.machine.mode;
        let by = |rule: &str| match asked.mode == mode {
            true => Decider::Policy { rule: rule.to_owned() },
            false => Decider::Mode { mode },
        };
        let (approval, call) = (asked.approval.id, id);
        match runnable.ruling {
            Ruling::Ask { .. } => {}
            Ruling::Allow { rule } => {
                self.record(Entry::ApprovalClosed { approval, call, verdict: Verdict::Once {}, by: by(&rule) });
                self.start(id, Decider::Policy { rule }, runnable.expect);
            }
            Ruling::Deny { reason } => {
                let verdict = Verdict::Deny { reason: Some(reason.clone()) };
                self.record(Entry::ApprovalClosed { approval, call, verdict, by: by(&reason) });
                self.deny(id, &format!("Not run: {reason}."), None);
            }
        }
    }

    /// The last look before a call runs that a person allowed.
    fn recheck(&mut self, id: CallId, approved: Approved, runnable: Runnable) {
        let edited = self.machine.call(id).is_some_and(|call| call.edited.is_some());
        match (&runnable.ruling, self.changed(&approved.asked, &runnable)) {
            (Ruling::Deny { reason }, _) => {
                let by = Decider::Policy { rule: reason.clone() };
                let whose = if edited { "the user changed the command, and the changed one is denied: " } else { "" };
                self.deny(id, &format!("Not run: {whose}{reason}."), Some(by));
            }
            (Ruling::Allow { .. }, _) | (Ruling::Ask { .. }, None) => self.start(id, approved.by, runnable.expect),
            (Ruling::Ask { reason }, Some(what)) => {
                let reason = format!("after you were asked {what}; {reason}");
                self.ask(id, runnable, reason);
            }
        }
    }

    /// What has changed between showing a call and now, as the second half of a sentence.
    fn changed(&self, asked: &Asked, runnable: &Runnable) -> Option<String> {
        match (&asked.expect, &runnable.expect) {
            (Expect::Directory(before), Expect::Directory(now)) if before != now => {
                return Some(format!("the shell moved from {before} to {now}"));
            }
            (Expect::File { .. }, Expect::File { .. }) if asked.expect != runnable.expect => {
                return Some("the file was changed".to_owned());
            }
            (before, now) if before != now => return Some("what it works on changed".to_owned()),
            (Expect::Directory(_), _) => {}
            (Expect::Nothing | Expect::File { .. }, _) => return None,
        }
        if asked.shim.is_some() && self.machine.shim.is_some() && asked.shim != self.machine.shim {
            return Some("the shell died, and this would run in a new one".to_owned());
        }
        let what = runnable.facts.changed_since(&asked.facts, runnable.told)?;
        Some(format!("the shell changed ({what})"))
    }

    /// The user switched the mode: it decides for what is not decided yet.
    pub(super) fn set_mode(&mut self, mode: Mode, by: String) {
        if self.machine.mode == mode {
            return;
        }
        self.record(Entry::ModeChanged { mode, by });
        if let Some(call) = self.machine.asked().map(|asked| asked.approval.call) {
            self.effect(Effect::AssessCall { call });
        }
    }

    /// After a start of the daemon: answers whose consequences are not in the log.
    pub(super) fn resume_answers(&mut self) {
        for kept in self.machine.unwritten.clone() {
            self.effect(Effect::KeepRule { approval: kept.approval, toml: kept.toml });
        }
        let undecided = self.machine.asked().filter(|asked| asked.mode != self.machine.mode);
        if let Some(call) = undecided.map(|asked| asked.approval.call) {
            self.effect(Effect::AssessCall { call });
        }
    }

    pub(super) fn start(&mut self, id: CallId, allowed_by: Decider, expect: Expect) {
        let Some(turn) = self.machine.turn().map(|turn| turn.id) else { return };
        let shim = self.machine.shim;
        self.record(Entry::CallStarted { turn, call: id, allowed_by, shim, expect: expect.clone() });
        self.effect(Effect::RunCall { call: id, shim, expect, again: false });
    }

    /// `by`: who refused it, when that was not an answer to a question.
    fn deny(&mut self, id: CallId, text: &str, by: Option<Decider>) {
        match by {
            Some(by) => self.refuse(id, text, by),
            None => self.finish(id, text_result(text, Outcome::Denied {}), 0),
        }
        if matches!(self.machine.phase, Phase::Calling(..) | Phase::Ready(_)) {
            self.advance();
        }
    }
}

/// What the model is told of a denial.
fn denied_text(reason: Option<&str>, by: &Decider) -> String {
    let who = match by {
        Decider::Expiry {} => "Not run: nobody answered the question for approval in time.".to_owned(),
        Decider::Client { .. }
        | Decider::Policy { .. }
        | Decider::Flag { .. }
        | Decider::Grant { .. }
        | Decider::Interrupt {}
        | Decider::Mode { .. }
        | Decider::Changed {} => "Not run: the user did not allow it.".to_owned(),
    };
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{who} They say: {reason}"),
        None => who,
    }
}

impl super::Machine {
    /// Who granted the session's rule of this name.
    fn granted_rule(&self, rule: &str) -> Option<Decider> {
        let of_session = rule.strip_suffix(" (session)")?;
        let grants = self.grants.iter().rev();
        let mut holders = grants.filter(|grant| match &grant.what {
            Granted::Rules { rules, .. } => rules.iter().any(|rule| rule.strip_suffix(" (user)") == Some(of_session)),
            Granted::Call { .. } => false,
        });
        holders.next().map(|grant| Decider::Grant { name: grant.name.clone() })
    }

    /// The rules that hold for this session alone, each as the text of a rule file.
    pub fn session_rules(&self) -> impl Iterator<Item = &str> + '_ {
        self.grants.iter().filter_map(|grant| match &grant.what {
            Granted::Rules { toml, .. } => Some(toml.as_str()),
            Granted::Call { .. } => None,
        })
    }

    /// The grant that an answer "for this session" to this question gives.
    pub(super) fn grant_of(asked: &Asked, by: &Decider) -> super::Grant {
        let what = match &asked.approval.proposal {
            Some(it) => Granted::Rules { toml: it.toml.clone(), rules: it.rules.clone() },
            None => Granted::Call { digest: asked.approval.digest.clone() },
        };
        super::Grant { what, name: name_of(by) }
    }
}
