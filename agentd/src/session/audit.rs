//! What the audit says of a session's rows: a pure fold that turns "call started" and "call finished" into sentences
//! that stand alone, with the command and who allowed it in each.
//!
//! A call that never began for want of time (the turn ended, the input was broken) is no row: nothing was decided.

use std::collections::HashMap;

use proto::approval::{Decider, Verdict};
use proto::audit::{AuditEvent, Audited};
use proto::event::Outcome;
use proto::ids::{CallId, JobId, Seq, SessionId, Timestamp};

use crate::store::entry::{CallResult, Entry, Expect, StoredCall, StoredInput, StoredKind};
use crate::store::job::JobEnd;
use crate::tools::call::{self, Parsed};

/// The calls of the present reply, as far as the audit knows them.
#[derive(Debug, Default)]
pub(super) struct Auditor {
    workspace: String,
    calls: HashMap<CallId, Seen>,
    /// Background commands that run, each with the call that was decided about.
    jobs: HashMap<JobId, (CallId, Seen)>,
}

#[derive(Clone, Debug)]
struct Seen {
    tool: String,
    command: String,
    cwd: Option<String>,
    asked: bool,
    started: bool,
    by: Option<Decider>,
    reason: Option<String>,
    /// By the user, not by the model.
    entered: bool,
}

impl Auditor {
    /// Takes a row and says what the audit has of it.
    pub(super) fn see(&mut self, session: SessionId, seq: Seq, at: Timestamp, entry: &Entry) -> Option<Audited> {
        match entry {
            Entry::Created(created) => self.workspace.clone_from(&created.cwd),
            Entry::ReplyReceived(reply) => {
                self.calls.clear();
                for block in &reply.blocks {
                    if let StoredKind::Call(call) = &block.kind {
                        self.calls.insert(call.call, seen(call));
                    }
                }
            }
            Entry::CommandEntered(entered) => {
                self.calls.clear();
                self.calls.insert(entered.call, Seen::entered(&entered.command));
            }
            Entry::ApprovalAsked { approval, expect, .. } => {
                if let Some(seen) = self.calls.get_mut(&approval.call) {
                    seen.asked = true;
                    seen.place(expect);
                }
            }
            Entry::ApprovalClosed { call, by, verdict, .. } => {
                if let Some(seen) = self.calls.get_mut(call) {
                    seen.by = Some(by.clone());
                    if let Verdict::Edit { command } = verdict {
                        seen.command.clone_from(command);
                    }
                }
            }
            Entry::CallStarted { call, allowed_by, expect, .. } => {
                let seen = self.calls.get_mut(call)?;
                seen.started = true;
                seen.place(expect);
                seen.allowed(allowed_by);
                return Some(self.row(session, seq, at, *call, AuditEvent::Started)?.0);
            }
            Entry::CallFinished(result) => return self.finished(session, seq, at, result),
            Entry::JobStarted(start) => {
                if let Some(seen) = self.calls.get(&start.call) {
                    self.jobs.insert(start.job, (start.call, seen.clone()));
                }
            }
            Entry::JobEnded(end) => return self.job_ended(session, seq, at, end),
            Entry::JobSilent(_)
            | Entry::JobStopAsked { .. }
            | Entry::BackgroundAsked { .. }
            | Entry::TurnWoken { .. }
            | Entry::JobsTold { .. }
            | Entry::WakesSpent { .. }
            | Entry::PromptAccepted(_)
            | Entry::PromptWithdrawn { .. }
            | Entry::TurnStarted { .. }
            | Entry::RequestSent { .. }
            | Entry::RequestFailed { .. }
            | Entry::Nudged { .. }
            | Entry::ThinkingStripped { .. }
            | Entry::PauseAsked { .. }
            | Entry::PauseClosed { .. }
            | Entry::SettingsChanged { .. }
            | Entry::CompactionStarted { .. }
            | Entry::Compacted(_)
            | Entry::Steered { .. }
            | Entry::NotesGiven { .. }
            | Entry::Rewound { .. }
            | Entry::InterruptRequested { .. }
            | Entry::TurnEnded { .. }
            | Entry::Notice { .. }
            | Entry::Renamed { .. }
            | Entry::Archived { .. }
            | Entry::Forked(_)
            | Entry::UndoStarted(_)
            | Entry::UndoEnded(_)
            | Entry::ModeChanged { .. }
            | Entry::RuleKept { .. } => {}
        }
        None
    }

    fn finished(&mut self, session: SessionId, seq: Seq, at: Timestamp, result: &CallResult) -> Option<Audited> {
        let (mut row, started) = self.row(session, seq, at, result.call, AuditEvent::Ended)?;
        self.calls.remove(&result.call);
        if !started {
            if !matches!(result.outcome, Outcome::Denied {}) {
                return None;
            }
            row.event = AuditEvent::Refused;
            row.reason = why(result);
            if let Some(by) = &result.refused_by {
                row.asked |= stands_in(by);
                row.by = by.clone();
            }
            return Some(row);
        }
        row.exit_status = match result.outcome {
            Outcome::Exited { status } => Some(status),
            Outcome::Done {}
            | Outcome::Failed {}
            | Outcome::TimedOut { .. }
            | Outcome::Interrupted {}
            | Outcome::Denied {}
            | Outcome::NotRun {}
            | Outcome::Unknown {}
            | Outcome::Background { .. } => None,
        };
        row.outcome = Some(result.outcome.clone());
        row.duration_ms = Some(result.duration_ms);
        Some(row)
    }

    /// A background command is over: the result of what was allowed when its call ran.
    fn job_ended(&mut self, session: SessionId, seq: Seq, at: Timestamp, end: &JobEnd) -> Option<Audited> {
        let (call, seen) = self.jobs.remove(&end.job)?;
        let mut row = self.row_of(&seen, session, seq, at, call, AuditEvent::Ended);
        row.exit_status = match end.outcome {
            Outcome::Exited { status } => Some(status),
            Outcome::Done {}
            | Outcome::Failed {}
            | Outcome::TimedOut { .. }
            | Outcome::Interrupted {}
            | Outcome::Denied {}
            | Outcome::NotRun {}
            | Outcome::Unknown {}
            | Outcome::Background { .. } => None,
        };
        row.outcome = Some(end.outcome.clone());
        row.duration_ms = Some(end.duration_ms);
        Some(row)
    }

    /// The row, and whether its call had begun.
    fn row(
        &self,
        session: SessionId,
        seq: Seq,
        at: Timestamp,
        call: CallId,
        event: AuditEvent,
    ) -> Option<(Audited, bool)> {
        let seen = self.calls.get(&call)?;
        Some((self.row_of(seen, session, seq, at, call, event), seen.started))
    }

    fn row_of(
        &self,
        seen: &Seen,
        session: SessionId,
        seq: Seq,
        at: Timestamp,
        call: CallId,
        event: AuditEvent,
    ) -> Audited {
        Audited {
            at,
            session,
            seq,
            call,
            event,
            tool: seen.tool.clone(),
            command: seen.command.clone(),
            cwd: seen.cwd.clone().unwrap_or_else(|| self.workspace.clone()),
            workspace: self.workspace.clone(),
            asked: seen.asked,
            by: seen.by.clone().unwrap_or(Decider::Interrupt {}),
            reason: seen.reason.clone(),
            outcome: None,
            exit_status: None,
            duration_ms: None,
        }
    }
}

impl Seen {
    fn place(&mut self, expect: &Expect) {
        match expect {
            Expect::Directory(cwd) => self.cwd = Some(cwd.clone()),
            Expect::Nothing | Expect::File { .. } => {}
        }
    }

    /// A command of the user's: nobody had to be asked.
    fn entered(command: &str) -> Self {
        Self {
            tool: call::BASH.to_owned(),
            command: command.to_owned(),
            cwd: None,
            asked: false,
            started: false,
            by: None,
            reason: None,
            entered: true,
        }
    }

    fn allowed(&mut self, by: &Decider) {
        self.asked |= stands_in(by) && !self.entered;
        self.by = Some(by.clone());
    }
}

/// Whether the policy alone would have asked.
fn stands_in(by: &Decider) -> bool {
    match by {
        Decider::Client { .. }
        | Decider::Flag { .. }
        | Decider::Grant { .. }
        | Decider::Expiry {}
        | Decider::Interrupt {}
        | Decider::Mode { .. }
        | Decider::Changed {} => true,
        Decider::Policy { .. } => false,
    }
}

fn seen(call: &StoredCall) -> Seen {
    let command = match &call.input {
        StoredInput::Valid(input) => match call::parse(&call.tool, input) {
            Ok(Parsed::Command(command)) => command,
            Ok(Parsed::Background(input)) => input.command,
            Ok(Parsed::Restart | Parsed::Editor(_) | Parsed::Search(_) | Parsed::Job(_)) | Err(_) => {
                call::title(&call.tool, input)
            }
        },
        StoredInput::Broken(_) => call.tool.clone(),
    };
    Seen {
        tool: call.tool.clone(),
        command,
        cwd: None,
        asked: false,
        started: false,
        by: None,
        reason: None,
        entered: false,
    }
}

/// The words the model was given, which hold the reason.
fn why(result: &CallResult) -> Option<String> {
    /// A reason is a sentence or two; what a person wrote may be longer.
    const CHARS_MAX: usize = 500;
    let text = result.content.iter().find_map(|part| match part {
        crate::content::Part::Text(text) => Some(text),
        crate::content::Part::Image { .. } => None,
    })?;
    Some(text.chars().take(CHARS_MAX).collect())
}
