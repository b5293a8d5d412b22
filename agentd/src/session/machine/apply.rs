//! The fold: how each row changes the state. The only place that changes it, so that a replayed log and a lived one
//! lead to the same state.

use std::sync::Arc;

use proto::approval::{Decider, Verdict};
use proto::ids::Timestamp;
use proto::json::JsonText;
use proto::mode::Mode;
use serde_json::json;

use super::account::Account;
use super::call::{Approved, Asked, Call, CallState, Calling, Closed, Unwritten};
use super::entering::ran_text;
use super::jobs::Jobs;
use super::state::{CLOSED_KEPT, Machine, Pause, Paused, Phase, Try, Turn};
use crate::content::Part;
use crate::model::{Message, Role};
use crate::policy::ShellFacts;
use crate::store::entry::{CallResult, Entry, StoredKind, StoredReply};
use crate::tools::call::Parsed;
use crate::tools::{self, hint};

/// What the model reads in front of the first prompt in plan mode.
const PLAN_ON: &str = "[The user switched plan mode on: nothing that changes anything can run. Look around with commands \
    that only read, views and searches, and answer with a plan.]";

/// What it reads in front of the first prompt after that.
const PLAN_OFF: &str = "[The user switched plan mode off: changes can be made again.]";

impl Machine {
    /// Takes one row into the state. Rows that do not fit the state change nothing: the log is written by this machine,
    /// so that happens only to logs of a damaged store, and losing sight of a stale row is the mild outcome.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::PromptAccepted(prompt) => self.queue.push_back(prompt.clone()),
            Entry::PromptWithdrawn { prompt, .. } => self.queue.retain(|queued| queued.prompt != *prompt),
            Entry::TurnStarted { turn, prompt, at } => self.begin(*turn, *prompt, *at),
            Entry::RequestSent { request, attempt, .. } => {
                self.with_turn(|mut turn| {
                    if *attempt == 1 {
                        turn.requests += 1;
                    }
                    Phase::Requesting(turn, Try { request: *request, attempt: *attempt })
                });
            }
            Entry::RequestFailed { request, attempt, next_try, parked, .. } => {
                let failed = Try { request: *request, attempt: *attempt };
                self.with_turn(|turn| match next_try {
                    Some(until) => Phase::Backoff(turn, failed, Pause { until: *until, parked: *parked }),
                    None => Phase::Ready(turn),
                });
            }
            Entry::ThinkingStripped { .. } => {
                self.strip_thinking();
                self.account.forget();
                self.rewind = None;
            }
            Entry::PauseAsked { kind, approval, .. } => {
                let paused = Box::new(Paused { approval: approval.clone(), kind: *kind });
                self.with_turn(|turn| Phase::Paused(turn, paused));
            }
            Entry::PauseClosed { approval, kind, verdict, by, .. } => {
                self.apply_pause_closed(*kind, verdict);
                self.close(Closed { approval: *approval, verdict: verdict.clone(), by: by.clone() });
            }
            Entry::SettingsChanged { settings, .. } => {
                self.limits.max_tokens = settings.max_tokens;
                self.settings = Some(settings.clone());
            }
            Entry::CompactionStarted { turn, transcript, .. } => self.apply_compaction_started(*turn, *transcript),
            Entry::Compacted(summary) => self.apply_summary(summary),
            Entry::Steered { text, .. } => self.notes.push(text.clone()),
            Entry::NotesGiven { .. } => self.give_notes(),
            Entry::Rewound { .. } => self.apply_rewound(),
            Entry::ReplyReceived(reply) => self.take_reply(reply),
            Entry::Nudged { text, .. } => {
                self.push_user(text_block(text));
                self.with_turn(|mut turn| {
                    turn.nudges += 1;
                    Phase::Ready(turn)
                });
            }
            Entry::ApprovalAsked { approval, expect, facts, shim } => {
                let (approval, expect) = (approval.clone(), expect.clone());
                let facts = ShellFacts::from_fingerprint(facts);
                let call = approval.call;
                let asked = Asked { approval, expect, facts, shim: *shim, mode: self.mode };
                self.set_call(call, CallState::Asking(Box::new(asked)));
            }
            Entry::ApprovalClosed { approval, call, verdict, by } => {
                self.close_question(*call, verdict, by);
                self.close(Closed { approval: *approval, verdict: verdict.clone(), by: by.clone() });
            }
            Entry::CallStarted { call, shim, expect, .. } => {
                self.follow_shell(*call, *shim);
                self.set_call(*call, CallState::Running { shim: *shim, expect: expect.clone() });
            }
            Entry::CallFinished(result) => self.finish_call(result),
            Entry::InterruptRequested { .. } => {
                if let Some(turn) = self.turn_mut() {
                    turn.stopping = true;
                }
            }
            Entry::TurnEnded { .. } => self.phase = Phase::Idle,
            Entry::CommandEntered(entered) => self.enter(entered),
            Entry::UndoStarted(order) => self.phase = Phase::Undoing(order.clone()),
            Entry::UndoEnded(result) => {
                // It stands before the next prompt, in the same message.
                if let Some(note) = &result.note {
                    self.push_user(text_block(note));
                }
                self.phase = Phase::Idle;
            }
            Entry::Created(created) => self.mode = created.mode,
            Entry::ModeChanged { mode, .. } => self.mode = *mode,
            Entry::RuleKept { approval, .. } => self.unwritten.retain(|kept| kept.approval != *approval),
            Entry::JobStarted(start) => self.jobs.started(start),
            Entry::JobEnded(end) => self.jobs.ended_now(end),
            Entry::JobSilent(silence) => self.jobs.silent(silence),
            Entry::JobStopAsked { job, .. } => self.jobs.stop_asked(*job),
            Entry::TurnWoken { turn, approve, at } => self.begin_woken(*turn, *approve, *at),
            Entry::JobsTold { .. } => self.tell_jobs(),
            Entry::WakesSpent { .. } => self.jobs.wakes_spent(),
            Entry::Archived { .. } => self.jobs.archive(),
            Entry::Forked(forked) => {
                self.push_user(text_block(&forked.note));
                // What was allowed in the other session was allowed there.
                self.grants.clear();
                self.raised.clear();
                self.notes.clear();
                self.account = Account::default();
                self.jobs = Jobs::default();
                self.unwritten.clear();
                self.mode = Mode::Ask;
                // Asking its last prompt again would take the note back, too.
                self.rewind = None;
                self.closed.clear();
                self.facts = ShellFacts::restarted();
                self.facts_of = None;
            }
            Entry::Notice { .. } | Entry::Renamed { .. } | Entry::BackgroundAsked { .. } => {}
        }
    }

    fn close(&mut self, closed: Closed) {
        self.closed.push_back(closed);
        if self.closed.len() > CLOSED_KEPT {
            self.closed.pop_front();
        }
    }

    fn close_question(&mut self, id: proto::ids::CallId, verdict: &Verdict, by: &Decider) {
        let Some(asked) = self.asked().cloned() else { return };
        match verdict {
            Verdict::Once {} => {}
            Verdict::Session {} => self.grants.push(Self::grant_of(&asked, by)),
            Verdict::Always {} => {
                let proposal = asked.approval.proposal.as_ref();
                let kept = proposal.map(|it| Unwritten { approval: asked.approval.id, toml: it.toml.clone() });
                self.unwritten.extend(kept);
            }
            Verdict::Edit { command } => {
                if let Some(call) = self.call_mut(id) {
                    call.edit(command);
                }
            }
            Verdict::Deny { .. } => return self.set_call(id, CallState::Waiting),
        }
        self.set_call(id, CallState::Approved(Box::new(Approved { by: by.clone(), asked })));
    }

    /// Keeps the facts about the shell in step with what it is told to do.
    fn follow_shell(&mut self, call: proto::ids::CallId, shim: Option<uuid::Uuid>) {
        if self.facts_of != shim {
            self.facts = ShellFacts::restarted();
            self.facts_of = shim;
        }
        let Some(call) = self.call(call) else { return };
        let Some(input) = call.runs() else { return };
        match tools::call::parse(&call.tool, input) {
            // The directory is asked of the shell itself before each call.
            Ok(Parsed::Command(command)) => self.facts = self.facts.after(&command).with_known_directory(),
            Ok(Parsed::Restart) => self.facts = ShellFacts::restarted(),
            // A background command has a shell of its own.
            Ok(Parsed::Editor(_) | Parsed::Search(_) | Parsed::Background(_) | Parsed::Job(_)) | Err(_) => {}
        }
    }

    fn begin(&mut self, id: proto::ids::TurnId, prompt: proto::ids::PromptId, began: Timestamp) {
        let Some(at) = self.queue.iter().position(|queued| queued.prompt == prompt) else { return };
        let Some(queued) = self.queue.remove(at) else { return };
        self.tell_mode();
        self.tell_ran();
        self.ran_told.clear();
        self.mark(prompt, &queued.text);
        self.forget_raised();
        self.push_user(text_block(&queued.text));
        self.jobs.prompted();
        self.phase =
            Phase::Ready(Turn { started_at: began, ..Turn::new(id, Some(prompt), queued.approve, queued.text) });
    }

    /// The model hears of plan mode, and of its end, before it is asked for more.
    pub(super) fn tell_mode(&mut self) {
        let plan = self.mode == Mode::Plan;
        if plan != self.planning {
            self.planning = plan;
            self.push_user(text_block(if plan { PLAN_ON } else { PLAN_OFF }));
        }
    }

    fn take_reply(&mut self, reply: &StoredReply) {
        let calls: Vec<Call> = reply
            .blocks
            .iter()
            .filter_map(|block| match &block.kind {
                StoredKind::Call(call) => Some(Call {
                    id: call.call,
                    tool_use_id: call.tool_use_id.clone(),
                    tool: call.tool.clone(),
                    input: call.input.clone(),
                    edited: None,
                    state: CallState::Waiting,
                }),
                StoredKind::Text { .. } | StoredKind::Thinking { .. } | StoredKind::Other { .. } => None,
            })
            .collect();
        let kept = reply.kept;
        if kept {
            if reply.replaces_history {
                self.history.clear();
            }
            let content = reply.blocks.iter().filter_map(|block| JsonText::parse(&block.raw).ok()).collect();
            self.history.push(Arc::new(Message { role: Role::Assistant, content }));
        }
        self.account.take_reply(reply, self.history.len());
        if kept && reply.replaces_history {
            self.finish_server_compaction();
        }
        let usage = reply.usage;
        let paused = reply.stop_reason == "pause_turn";
        self.with_turn(|mut turn| {
            turn.usage = turn.usage.plus(usage);
            turn.pauses = if paused { turn.pauses + 1 } else { 0 };
            if kept && !calls.is_empty() {
                turn.nudges = 0;
                Phase::Calling(turn, Calling { calls })
            } else {
                Phase::Ready(turn)
            }
        });
    }

    fn finish_call(&mut self, result: &CallResult) {
        self.hinted.extend(hint::given(&result.content).filter(|hint| !self.hinted.contains(hint)));
        self.set_call(result.call, CallState::Done(Arc::new(result.clone())));
        let Phase::Calling(turn, calling) = &self.phase else { return };
        let mut results = Vec::with_capacity(calling.calls.len());
        for call in &calling.calls {
            match &call.state {
                CallState::Done(result) => results.push(result_block(&call.tool_use_id, result)),
                CallState::Waiting
                | CallState::Assessing
                | CallState::Asking(_)
                | CallState::Approved(_)
                | CallState::Running { .. } => return,
            }
        }
        if let Some(command) = &turn.entered {
            let turn = turn.clone();
            self.ran.push(ran_text(command, result));
            self.phase = Phase::Ready(turn);
            return;
        }
        // All results in one user message, in the order of the calls, nothing else beside them.
        let mut turn = turn.clone();
        turn.remember(calling);
        self.history.push(Arc::new(Message { role: Role::User, content: results }));
        self.phase = Phase::Ready(turn);
    }

    pub(super) fn set_call(&mut self, id: proto::ids::CallId, state: CallState) {
        if let Some(call) = self.call_mut(id) {
            call.state = state;
        }
    }

    fn call_mut(&mut self, id: proto::ids::CallId) -> Option<&mut Call> {
        match &mut self.phase {
            Phase::Calling(_, calling) => calling.calls.iter_mut().find(|call| call.id == id),
            Phase::Idle
            | Phase::Ready(_)
            | Phase::Requesting(..)
            | Phase::Backoff(..)
            | Phase::Paused(..)
            | Phase::Undoing(_) => None,
        }
    }

    fn with_turn(&mut self, next: impl FnOnce(Turn) -> Phase) {
        if let Some(turn) = self.turn().cloned() {
            self.phase = next(turn);
        }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match &mut self.phase {
            Phase::Idle | Phase::Undoing(_) => None,
            Phase::Ready(turn)
            | Phase::Requesting(turn, _)
            | Phase::Backoff(turn, ..)
            | Phase::Paused(turn, _)
            | Phase::Calling(turn, _) => Some(turn),
        }
    }

    /// Adds a text that the daemon speaks on the user's side.
    pub(super) fn push_note(&mut self, text: &str) {
        self.push_user(text_block(text));
    }

    /// Adds a block the user side speaks. Neighbours of one role are one message: a prompt after an interrupted turn
    /// stands behind that turn's results.
    pub(super) fn push_user(&mut self, block: JsonText) {
        match self.history.last_mut() {
            Some(last) if last.role == Role::User => Arc::make_mut(last).content.push(block),
            Some(_) | None => self.history.push(Arc::new(Message { role: Role::User, content: vec![block] })),
        }
    }
}

fn text_block(text: &str) -> JsonText {
    JsonText::from_value(&json!({ "type": "text", "text": text }))
}

/// A result as the API wants it: one text as a string, anything else as a list of blocks.
fn result_block(tool_use_id: &str, result: &CallResult) -> JsonText {
    let content = match result.content.as_slice() {
        [Part::Text(text)] => json!(text),
        parts => parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => json!({ "type": "text", "text": text }),
                Part::Image { media_type, data } => {
                    json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data } })
                }
            })
            .collect(),
    };
    let mut block = json!({ "type": "tool_result", "tool_use_id": tool_use_id, "content": content });
    if result.is_error {
        block["is_error"] = json!(true);
    }
    JsonText::from_value(&block)
}
