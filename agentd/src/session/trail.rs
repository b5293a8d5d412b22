//! The log of the daemon about a session: one line for each row, after it is on disk. What was run, who allowed it and
//! how it ended is the audit's to say; here the rows about calls are for `log.level = "debug"`.
//!
//! Fields (upper case in the journal): `agentd_session`, `agentd_event` (the row's kind), `agentd_seq`, `agentd_call`,
//! `agentd_tool`, `command` or `path`, `approved_by` or `refused_by`, `exit_status`, `outcome`, `duration_ms`, `by`, `problem`;
//! `prompt` only where `log.prompts` is set. Never the text of replies, results, files or keys.

use std::collections::HashMap;

use proto::approval::{Decider, Verdict};
use proto::event::{Outcome, TurnOutcome};
use proto::ids::{CallId, Seq, SessionId};
use tracing::Level;

use super::machine::name_of;
use crate::store::entry::{Entry, StoredCall, StoredInput, StoredKind};
use crate::tools::call::BASH;

/// The level of what calls do: the audit ([`crate::journal`]) says it already, and only to the journal.
const CALLS: Level = Level::DEBUG;

/// Characters of a command or path in the line itself; the field has all of it.
const SHOWN_CHARS_MAX: usize = 80;

/// The open calls, so that a call's end can be told with what it was.
#[derive(Debug, Default)]
pub(super) struct Trail {
    calls: HashMap<CallId, OpenCall>,
}

/// A call without a result yet.
#[derive(Clone, Debug, Default)]
struct OpenCall {
    tool: String,
    command: Option<String>,
    path: Option<String>,
    approved_by: Option<String>,
}

impl OpenCall {
    fn of(call: &StoredCall) -> Self {
        let input = match &call.input {
            StoredInput::Valid(input) => serde_json::from_str(input.as_str()).unwrap_or_default(),
            StoredInput::Broken(_) => serde_json::Value::Null,
        };
        let text = |name: &str| input.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
        // The editor's `command` is the name of what it does.
        let path = text("path");
        let command = if path.is_none() { text("command") } else { None };
        Self { tool: call.tool.clone(), command, path, approved_by: None }
    }

    fn shown(&self) -> String {
        let whole = self.command.as_ref().or(self.path.as_ref()).unwrap_or(&self.tool);
        let mut shown: String =
            whole.chars().take(SHOWN_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if whole.chars().count() > SHOWN_CHARS_MAX {
            shown.push('…');
        }
        shown
    }
}

/// What is said of a row.
#[derive(Debug)]
struct Line<'a> {
    level: Level,
    text: String,
    call: Option<CallId>,
    approved_by: Option<String>,
    refused_by: Option<String>,
    outcome: Option<&'static str>,
    exit_status: Option<i32>,
    duration_ms: Option<u64>,
    by: Option<&'a str>,
    problem: Option<&'a str>,
    prompt: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn new(level: Level, text: impl Into<String>) -> Self {
        Self {
            level,
            text: text.into(),
            call: None,
            approved_by: None,
            refused_by: None,
            outcome: None,
            exit_status: None,
            duration_ms: None,
            by: None,
            problem: None,
            prompt: None,
        }
    }

    fn by(self, by: &'a str) -> Self {
        Self { by: Some(by), ..self }
    }
}

impl Trail {
    /// Keeps what later rows are told with.
    pub(super) fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::ReplyReceived(reply) => {
                for block in &reply.blocks {
                    if let StoredKind::Call(call) = &block.kind {
                        self.calls.insert(call.call, OpenCall::of(call));
                    }
                }
            }
            Entry::CommandEntered(entered) => {
                let open = OpenCall {
                    tool: BASH.to_owned(),
                    command: Some(entered.command.clone()),
                    approved_by: Some(entered.by.clone()),
                    path: None,
                };
                self.calls.insert(entered.call, open);
            }
            Entry::CallStarted { call, allowed_by, .. } => {
                if let Some(open) = self.calls.get_mut(call) {
                    open.approved_by = Some(name_of(allowed_by));
                }
            }
            // What ran is what the user made of it.
            Entry::ApprovalClosed { call, verdict: Verdict::Edit { command }, .. } => {
                if let Some(open) = self.calls.get_mut(call) {
                    open.command = Some(command.clone());
                }
            }
            Entry::CallFinished(result) => {
                self.calls.remove(&result.call);
            }
            Entry::TurnEnded { .. } => self.calls.clear(),
            Entry::Created(_)
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
            | Entry::ApprovalAsked { .. }
            | Entry::ApprovalClosed { .. }
            | Entry::InterruptRequested { .. }
            | Entry::Notice { .. }
            | Entry::Renamed { .. }
            | Entry::Archived { .. }
            | Entry::Forked(_)
            | Entry::UndoStarted(_)
            | Entry::UndoEnded(_)
            | Entry::ModeChanged { .. }
            | Entry::RuleKept { .. }
            | Entry::JobStarted(_)
            | Entry::JobEnded(_)
            | Entry::JobSilent(_)
            | Entry::JobStopAsked { .. }
            | Entry::BackgroundAsked { .. }
            | Entry::TurnWoken { .. }
            | Entry::JobsTold { .. }
            | Entry::WakesSpent { .. } => {}
        }
    }

    /// Says it. Before [`Self::note`] of the same row, which forgets a call that ended.
    pub(super) fn log(&self, session: SessionId, seq: Seq, entry: &Entry, prompts: bool) {
        let line = self.line(entry, prompts);
        let open = line.call.and_then(|call| self.calls.get(&call));
        let text = format!("session {}: {}", session.short(), line.text);
        let call = line.call.map(tracing::field::display);
        // The level of a call site is a constant: one site for each level.
        macro_rules! say {
            ($level:expr) => {
                tracing::event!(
                    $level,
                    agentd_session = %session,
                    agentd_event = entry.kind(),
                    agentd_seq = seq.0,
                    agentd_call = call,
                    agentd_tool = open.map(|open| open.tool.as_str()),
                    command = open.and_then(|open| open.command.as_deref()),
                    path = open.and_then(|open| open.path.as_deref()),
                    approved_by = line.approved_by.as_deref(),
                    refused_by = line.refused_by.as_deref(),
                    exit_status = line.exit_status,
                    outcome = line.outcome,
                    duration_ms = line.duration_ms,
                    by = line.by,
                    problem = line.problem,
                    prompt = line.prompt,
                    "{text}"
                )
            };
        }
        match line.level {
            Level::ERROR => say!(Level::ERROR),
            Level::WARN => say!(Level::WARN),
            Level::INFO => say!(Level::INFO),
            Level::DEBUG => say!(Level::DEBUG),
            Level::TRACE => say!(Level::TRACE),
        }
    }

    fn line<'a>(&self, entry: &'a Entry, prompts: bool) -> Line<'a> {
        let info = |text: &str| Line::new(Level::INFO, text);
        match entry {
            Entry::Created(created) => info(&format!("created in {}", created.cwd)),
            Entry::PromptAccepted(prompt) => {
                Line { prompt: prompts.then_some(prompt.text.as_str()), ..info("prompt accepted").by(&prompt.by) }
            }
            Entry::PromptWithdrawn { by, .. } => info("prompt withdrawn").by(by),
            Entry::TurnStarted { .. } => Line::new(Level::DEBUG, "turn started"),
            Entry::RequestSent { attempt, .. } => Line::new(Level::DEBUG, format!("request sent, try {attempt}")),
            Entry::RequestFailed { problem, .. } => {
                Line { problem: Some(&problem.code), ..Line::new(Level::WARN, "request failed") }
            }
            Entry::ReplyReceived(_) => Line::new(Level::DEBUG, "reply received"),
            Entry::Nudged { .. } => Line::new(Level::DEBUG, "model nudged"),
            Entry::ThinkingStripped { .. } => Line::new(Level::WARN, "thinking stripped from the history"),
            Entry::PauseAsked { approval, .. } => info(&format!("paused: {}", approval.reason)),
            Entry::PauseClosed { verdict, by, .. } => {
                if verdict.allows() {
                    Line { approved_by: Some(name_of(by)), ..info("goes on") }
                } else {
                    Line { refused_by: Some(name_of(by)), ..info("does not go on") }
                }
            }
            Entry::SettingsChanged { settings, by } => info(&format!("model set to {}", settings.model)).by(by),
            Entry::CompactionStarted { why, .. } => info(&format!("compacting: {why}")),
            Entry::Compacted(_) => info("compacted"),
            Entry::Steered { by, .. } => info("note for the model").by(by),
            Entry::NotesGiven { .. } => Line::new(Level::DEBUG, "notes given"),
            Entry::Rewound { by, .. } => info("last prompt taken back").by(by),
            Entry::ApprovalAsked { approval, .. } => self.of_call(CALLS, "asks", approval.call),
            Entry::ApprovalClosed { call, verdict, by, .. } => {
                if verdict.allows() {
                    Line { approved_by: Some(name_of(by)), ..self.of_call(CALLS, "approved", *call) }
                } else {
                    Line { refused_by: Some(name_of(by)), ..self.of_call(CALLS, "not approved", *call) }
                }
            }
            Entry::CallStarted { call, allowed_by, .. } => self.started(*call, allowed_by),
            Entry::CallFinished(result) => {
                let (level, outcome, exit_status) = ending(&result.outcome);
                let said = exit_status.map_or_else(|| outcome.to_owned(), |status| format!("exit status {status}"));
                let open = self.calls.get(&result.call);
                Line {
                    approved_by: open.and_then(|open| open.approved_by.clone()),
                    outcome: Some(outcome),
                    exit_status,
                    duration_ms: Some(result.duration_ms),
                    ..self.of_call(level, &format!("{said}:"), result.call)
                }
            }
            Entry::InterruptRequested { by, .. } => info("interrupt").by(by),
            Entry::TurnEnded { outcome, .. } => turn_ended(outcome),
            Entry::Notice { .. } => Line::new(Level::DEBUG, "notice"),
            Entry::Renamed { by, .. } => info("renamed").by(by),
            Entry::Archived { by } => info("archived").by(by),
            Entry::ModeChanged { mode, by } => info(&format!("mode {mode}")).by(by),
            Entry::RuleKept { file, problem, .. } => Line {
                problem: problem.as_deref(),
                ..info(&format!("{} {file}", if problem.is_none() { "rule added to" } else { "rule not added to" }))
            },
            Entry::JobStarted(start) => self.of_call(Level::INFO, &format!("job {}:", start.job.short()), start.call),
            Entry::JobEnded(end) => {
                let (level, outcome, exit_status) = ending(&end.outcome);
                Line {
                    outcome: Some(outcome),
                    exit_status,
                    duration_ms: Some(end.duration_ms),
                    ..Line::new(level, format!("job {} {outcome}", end.job.short()))
                }
            }
            Entry::JobSilent(silence) => info(&format!("job {} is silent", silence.job.short())),
            Entry::JobStopAsked { job, by } => info(&format!("stop of job {}", job.short())).by(by),
            Entry::BackgroundAsked { call, by, .. } => {
                self.of_call(Level::INFO, "moves to the background:", *call).by(by)
            }
            Entry::TurnWoken { .. } => info("turn started for a job"),
            Entry::JobsTold { .. } => Line::new(Level::DEBUG, "model told of jobs"),
            Entry::WakesSpent { wakes } => {
                Line::new(Level::WARN, format!("jobs began {wakes} turns in a row; no more without a prompt"))
            }
            Entry::CommandEntered(entered) => {
                Line { call: Some(entered.call), ..info("a user runs a command").by(&entered.by) }
            }
            Entry::Forked(forked) => info(&format!("forked from {} at {}", forked.from, forked.at)).by(&forked.by),
            Entry::UndoStarted(order) => info("undo started").by(&order.by),
            Entry::UndoEnded(result) => Line {
                problem: result.problem.as_ref().map(|problem| problem.code.as_str()),
                ..info(&format!("undo took back {} edits", result.diffs.len())).by(&result.by)
            },
        }
    }

    fn started(&self, call: CallId, allowed_by: &Decider) -> Line<'static> {
        Line { approved_by: Some(name_of(allowed_by)), ..self.of_call(CALLS, "runs", call) }
    }

    fn of_call(&self, level: Level, what: &str, call: CallId) -> Line<'static> {
        let shown = self.calls.get(&call).map(OpenCall::shown).unwrap_or_default();
        Line { call: Some(call), ..Line::new(level, format!("{what} {shown}")) }
    }
}

fn ending(outcome: &Outcome) -> (Level, &'static str, Option<i32>) {
    match outcome {
        Outcome::Exited { status } => (CALLS, "exited", Some(*status)),
        Outcome::Done {} => (CALLS, "done", None),
        Outcome::Failed {} => (CALLS, "failed", None),
        Outcome::TimedOut { .. } => (Level::WARN, "timed_out", None),
        Outcome::Interrupted {} => (CALLS, "interrupted", None),
        Outcome::Denied {} => (CALLS, "denied", None),
        Outcome::NotRun {} => (CALLS, "not_run", None),
        Outcome::Unknown {} => (Level::WARN, "unknown", None),
        Outcome::Background { .. } => (Level::INFO, "background", None),
    }
}

fn turn_ended(outcome: &TurnOutcome) -> Line<'_> {
    match outcome {
        TurnOutcome::Done {} => Line { outcome: Some("done"), ..Line::new(Level::INFO, "turn done") },
        TurnOutcome::Refused { .. } => Line { outcome: Some("refused"), ..Line::new(Level::WARN, "the model refused") },
        TurnOutcome::Interrupted {} => {
            Line { outcome: Some("interrupted"), ..Line::new(Level::INFO, "turn interrupted") }
        }
        TurnOutcome::Failed { problem } => {
            Line { outcome: Some("failed"), problem: Some(&problem.code), ..Line::new(Level::WARN, "turn failed") }
        }
    }
}
