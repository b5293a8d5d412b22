//! The steps: what each input leads to in each phase.

use proto::approval::Decider;
use proto::event::{Outcome, TurnOutcome, Usage};
use proto::ids::{CallId, RequestId, Timestamp, TurnId};
use uuid::Uuid;

use super::call::CallState;
use super::effect::{Effect, Step};
use super::input::Input;
use super::state::{Machine, Phase, Try, Turn};
use crate::content::Part;
use crate::store::entry::{CallResult, Entry, Prompt, StoredInput};
use crate::tools::{ToolResult, hint};

impl Machine {
    /// Takes one input. The entries of the result are already part of the state; they must be stored in order, and the
    /// effects that wait for the disk may only be done after that.
    pub fn step(&mut self, now: Timestamp, ids: &mut dyn FnMut() -> Uuid, input: Input) -> Step {
        let mut run = Run { machine: self, now, ids, step: Step::default() };
        run.take(input);
        run.step
    }
}

/// One step under way.
pub(super) struct Run<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) now: Timestamp,
    pub(super) ids: &'a mut dyn FnMut() -> Uuid,
    step: Step,
}

impl Run<'_> {
    pub(super) fn record(&mut self, entry: Entry) {
        self.machine.apply(&entry);
        self.step.entries.push(entry);
    }

    pub(super) fn fresh_id(&mut self) -> Uuid {
        (self.ids)()
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.step.effects.push(effect);
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Resumed => self.resume(),
            Input::ShellReady { instance } => self.machine.shim = Some(instance),
            Input::PromptSubmitted(prompt) => self.submit(prompt),
            Input::PromptWithdrawn { prompt, by } => {
                if self.machine.queue.iter().any(|queued| queued.prompt == prompt) {
                    self.record(Entry::PromptWithdrawn { prompt, by });
                }
            }
            Input::ReplyArrived { request, reply } => self.reply_arrived(request, &reply),
            Input::RequestFailed { request, problem, cure } => self.request_failed(request, problem, cure),
            Input::RetryAsked { by } => self.retry(&by),
            Input::CompactionAsked { by } => self.compact(&by),
            Input::SteerAsked { text, by } => self.steer(text, by),
            Input::RerunAsked(prompt) => self.rerun(prompt),
            Input::SettingsAsked { settings, by } => self.settings_changed(settings, by),
            Input::CallAssessed { call, assessment } => self.assessed(call, *assessment),
            Input::ApprovalAnswered { approval, verdict, by } => self.answered(approval, verdict, by),
            Input::CallEnded { call, result, duration_ms } => self.call_ended(call, *result, duration_ms),
            Input::InterruptAsked { by } => self.interrupt(by),
            Input::TimerFired => self.timer(),
            Input::Noticed { text } => self.record(Entry::Notice { text }),
            Input::RenameAsked { name, by } => self.record(Entry::Renamed { name, by }),
            Input::UndoAsked(order) => {
                if matches!(self.machine.phase, Phase::Idle) {
                    self.record(Entry::UndoStarted(order.clone()));
                    self.effect(Effect::RunUndo(order));
                }
            }
            Input::UndoEnded(result) => {
                if matches!(&self.machine.phase, Phase::Undoing(order) if order.undo == result.undo) {
                    self.record(Entry::UndoEnded(*result));
                    self.next_turn();
                }
            }
            Input::CommandEntered { call, command, by } => self.command_entered(call, command, by),
            Input::JobStarted { call, new } => self.job_started(call, *new),
            Input::JobEnded { job, report } => self.job_ended(job, *report),
            Input::JobSilent { job, output_bytes } => self.job_silent(job, output_bytes),
            Input::JobStopAsked { job, by } => self.job_stop_asked(job, by),
            Input::BackgroundAsked { job, by } => self.background_asked(job, by),
            Input::ArchiveAsked { by } => self.record(Entry::Archived { by }),
            Input::ModeAsked { mode, by } => self.set_mode(mode, by),
            Input::RuleKept { approval, file, problem } => self.record(Entry::RuleKept { approval, file, problem }),
        }
    }

    fn submit(&mut self, prompt: Prompt) {
        self.record(Entry::PromptAccepted(prompt));
        self.next_turn();
    }

    /// Starts the turn of the oldest queued prompt when nothing else runs; without one, a turn that jobs ask for.
    pub(super) fn next_turn(&mut self) {
        if !matches!(self.machine.phase, Phase::Idle) {
            return;
        }
        let Some(prompt) = self.machine.queue.front().map(|queued| queued.prompt) else { return self.wake() };
        let turn = TurnId((self.ids)());
        let at = self.now;
        self.record(Entry::TurnStarted { turn, prompt, at });
        self.send();
    }

    /// Sends the turn's next request.
    pub(super) fn send(&mut self) {
        let Phase::Ready(turn) = &self.machine.phase else { return };
        let id = turn.id;
        if turn.stopping {
            self.end_turn(id, TurnOutcome::Interrupted {});
            return;
        }
        if turn.entered.is_some() {
            return self.end_turn(id, TurnOutcome::Done {});
        }
        let turn = turn.clone();
        if let Some((kind, why)) = self.limit_reached(&turn) {
            return self.pause(&turn, kind, why);
        }
        self.compact_when_due(&turn);
        // What is said while a summary is asked for would be in no later request.
        if !self.machine.is_compacting() {
            self.tell_before_request(id);
            if !self.machine.notes.is_empty() {
                self.record(Entry::NotesGiven { turn: id });
            }
        }
        let request = RequestId((self.ids)());
        self.send_try(id, Try { request, attempt: 1 });
    }

    pub(super) fn send_try(&mut self, turn: TurnId, this: Try) {
        self.record(Entry::RequestSent { turn, request: this.request, attempt: this.attempt });
        self.effect(Effect::SendRequest { request: this.request, attempt: this.attempt });
    }

    /// Ends the turn; calls without a result get one first.
    pub(super) fn end_turn(&mut self, turn: TurnId, outcome: TurnOutcome) {
        let why = match &outcome {
            TurnOutcome::Interrupted {} => "Not run: the user interrupted the turn.",
            TurnOutcome::Done {} | TurnOutcome::Refused { .. } | TurnOutcome::Failed { .. } => {
                "Not run: the turn ended first."
            }
        };
        for call in self.open_calls() {
            self.finish(call, text_result(why, Outcome::NotRun {}), 0);
        }
        let (requests, usage) = self.machine.turn().map_or((0, Usage::default()), |turn| (turn.requests, turn.usage));
        self.record(Entry::TurnEnded { turn, outcome, requests, usage });
        self.next_turn();
    }

    fn open_calls(&self) -> Vec<CallId> {
        match &self.machine.phase {
            Phase::Calling(_, calling) => calling
                .calls
                .iter()
                .filter(|call| !matches!(call.state, CallState::Done(_)))
                .map(|call| call.id)
                .collect(),
            Phase::Idle
            | Phase::Ready(_)
            | Phase::Requesting(..)
            | Phase::Backoff(..)
            | Phase::Paused(..)
            | Phase::Undoing(_) => Vec::new(),
        }
    }

    /// The turn, if exactly this request is under way. A late answer to an earlier one changes nothing.
    pub(super) fn requesting(&self, request: RequestId) -> Option<(Turn, Try)> {
        match &self.machine.phase {
            Phase::Requesting(turn, this) if this.request == request => Some((turn.clone(), *this)),
            Phase::Requesting(..)
            | Phase::Idle
            | Phase::Ready(_)
            | Phase::Backoff(..)
            | Phase::Paused(..)
            | Phase::Calling(..)
            | Phase::Undoing(_) => None,
        }
    }

    /// Brings the first unfinished call a step further, or sends the results when all are done.
    pub(super) fn advance(&mut self) {
        while let Phase::Calling(turn, calling) = &self.machine.phase {
            let (turn, stopping) = (turn.id, turn.stopping);
            let Some(call) = calling.calls.iter().find(|call| !matches!(call.state, CallState::Done(_))) else { break };
            let id = call.id;
            if stopping && !matches!(call.state, CallState::Running { .. }) {
                self.end_turn(turn, TurnOutcome::Interrupted {});
                return;
            }
            match (&call.state, &call.input) {
                (CallState::Waiting, StoredInput::Broken(raw)) => {
                    let text = broken_text(raw);
                    self.finish(id, text_result(&text, Outcome::Failed {}), 0);
                }
                (CallState::Waiting, StoredInput::Valid(_)) => {
                    self.machine.set_call(id, CallState::Assessing);
                    self.effect(Effect::AssessCall { call: id });
                    return;
                }
                // Only after a start of the daemon: else the look is under way.
                (CallState::Approved(_), _) => {
                    self.effect(Effect::AssessCall { call: id });
                    return;
                }
                (CallState::Assessing | CallState::Asking(_) | CallState::Running { .. } | CallState::Done(_), _) => {
                    return;
                }
            }
        }
        self.send();
    }

    fn call_ended(&mut self, id: CallId, result: ToolResult, duration_ms: u64) {
        let Some(call) = self.machine.call(id) else { return };
        if !matches!(call.state, CallState::Running { .. }) {
            return;
        }
        let entered = self.machine.turn().is_some_and(|turn| turn.entered.is_some());
        let result = match call.runs() {
            // Hints are for the model's calls.
            Some(input) if !entered => hint::with_hint(result, &call.tool, input, &self.machine.hinted),
            Some(_) | None => result,
        };
        let result = if call.edited.is_some() { call.told_of_edit(result) } else { result };
        self.finish(id, result, duration_ms);
        self.effect(Effect::ForgetCall { call: id });
        self.advance();
    }

    pub(super) fn finish(&mut self, call: CallId, result: ToolResult, duration_ms: u64) {
        self.close(call, result, duration_ms, None);
    }

    /// Without a question.
    pub(super) fn refuse(&mut self, call: CallId, text: &str, by: Decider) {
        self.close(call, text_result(text, Outcome::Denied {}), 0, Some(by));
    }

    fn close(&mut self, call: CallId, result: ToolResult, duration_ms: u64, refused_by: Option<Decider>) {
        let Some(turn) = self.machine.turn().map(|turn| turn.id) else { return };
        self.record(Entry::CallFinished(CallResult {
            turn,
            call,
            outcome: result.outcome,
            content: result.content,
            is_error: result.is_error,
            duration_ms,
            diff: result.diff,
            refused_by,
        }));
    }
}

/// A failed result that is one text.
pub(super) fn text_result(text: &str, outcome: Outcome) -> ToolResult {
    ToolResult { content: vec![Part::Text(text.to_owned())], is_error: true, outcome, diff: None }
}

/// A decider's name for people.
pub(in crate::session) fn name_of(by: &Decider) -> String {
    match by {
        Decider::Client { name } | Decider::Grant { name } => name.clone(),
        Decider::Policy { rule } => format!("the policy ({rule})"),
        Decider::Flag { value } => format!("--approve {value}"),
        Decider::Expiry {} => "nobody in time".to_owned(),
        Decider::Interrupt {} => "the interrupt".to_owned(),
        Decider::Changed {} => "a change".to_owned(),
        Decider::Mode { mode } => format!("the mode {mode}"),
    }
}

/// The form the API's documentation gives for input that is not JSON.
fn broken_text(raw: &str) -> String {
    const RAW_CHARS_MAX: usize = 2_000;
    let shown: String = raw.chars().take(RAW_CHARS_MAX).collect();
    format!(
        "Not run: the call's input is not complete JSON (it was cut by the output limit, or malformed). Send the call \
         again, in smaller pieces if it was long. {}",
        serde_json::json!({ "INVALID_JSON": shown })
    )
}
