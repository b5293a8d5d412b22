//! The log's words → the wire's words. Nothing else in the daemon knows both.

use proto::command::CommandEntered;
use proto::event::{
    ApprovalAsked, ApprovalClosed, BackgroundAsked, Block, CallBlock, CallFinished, CallStarted, Compacted,
    CompactionStarted, Event, EventBody, JobEnded, JobSilent, JobStarted, JobStopAsked, JobsTold, ModeChanged, Notice,
    PromptAccepted, PromptWithdrawn, ReplyReceived, RequestFailed, RequestSent, Rewound, SessionArchived,
    SessionCreated, SessionForked, SessionRenamed, SettingsChanged, Steered, TurnEnded, TurnStarted, TurnWoken,
    UndoEnded, UndoStarted,
};
use proto::json::JsonText;

use crate::content::Part;
use crate::store::LogRow;
use crate::store::entry::{CallResult, Created, Entry, Prompt, StoredBlock, StoredInput, StoredKind, StoredReply};
use crate::tools::call::title;

/// A row as clients see it.
#[must_use]
pub fn event(row: &LogRow) -> Event {
    Event { seq: row.seq, at: row.at, body: body(&row.entry) }
}

fn body(entry: &Entry) -> EventBody {
    match entry {
        Entry::Created(Created { cwd, name, model, provider, mode }) => EventBody::SessionCreated(SessionCreated {
            cwd: cwd.clone(),
            name: name.clone(),
            model: model.clone(),
            provider: provider.clone(),
            mode: *mode,
        }),
        Entry::PromptAccepted(Prompt { prompt, text, approve, by }) => EventBody::PromptAccepted(PromptAccepted {
            prompt: *prompt,
            text: text.clone(),
            approve: *approve,
            by: by.clone(),
        }),
        Entry::PromptWithdrawn { prompt, by } => {
            EventBody::PromptWithdrawn(PromptWithdrawn { prompt: *prompt, by: by.clone() })
        }
        Entry::TurnStarted { turn, prompt, .. } => EventBody::TurnStarted(TurnStarted { turn: *turn, prompt: *prompt }),
        Entry::RequestSent { turn, request, attempt } => {
            EventBody::RequestSent(RequestSent { turn: *turn, request: *request, attempt: *attempt })
        }
        Entry::RequestFailed { turn, request, attempt, problem, next_try, parked } => {
            EventBody::RequestFailed(RequestFailed {
                turn: *turn,
                request: *request,
                attempt: *attempt,
                problem: problem.clone(),
                next_try: *next_try,
                parked: *parked,
            })
        }
        Entry::ReplyReceived(reply) => EventBody::ReplyReceived(self::reply(reply)),
        Entry::Nudged { text, .. } => notice(&format!("told the model: {text}")),
        Entry::ApprovalAsked { approval, .. } => EventBody::ApprovalAsked(ApprovalAsked { approval: approval.clone() }),
        Entry::ApprovalClosed { approval, call, verdict, by } => EventBody::ApprovalClosed(ApprovalClosed {
            approval: *approval,
            call: *call,
            verdict: verdict.clone(),
            by: by.clone(),
        }),
        Entry::CallStarted { turn, call, allowed_by, .. } => {
            EventBody::CallStarted(CallStarted { turn: *turn, call: *call, allowed_by: allowed_by.clone() })
        }
        Entry::CallFinished(result) => EventBody::CallFinished(finished(result)),
        Entry::InterruptRequested { by, .. } => notice(&format!("interrupted by {by}")),
        Entry::TurnEnded { turn, outcome, requests, usage } => EventBody::TurnEnded(TurnEnded {
            turn: *turn,
            outcome: outcome.clone(),
            requests: *requests,
            usage: *usage,
        }),
        Entry::Notice { text } => notice(text),
        Entry::Renamed { name, by } => EventBody::SessionRenamed(SessionRenamed { name: name.clone(), by: by.clone() }),
        Entry::Archived { by } => EventBody::SessionArchived(SessionArchived { by: by.clone() }),
        Entry::PauseAsked { approval, .. } => EventBody::ApprovalAsked(ApprovalAsked { approval: approval.clone() }),
        Entry::PauseClosed { approval, call, verdict, by, .. } => EventBody::ApprovalClosed(ApprovalClosed {
            approval: *approval,
            call: *call,
            verdict: verdict.clone(),
            by: by.clone(),
        }),
        Entry::SettingsChanged { settings, by } => EventBody::SettingsChanged(SettingsChanged {
            model: settings.model.clone(),
            effort: settings.effort.map(|effort| effort.as_str().to_owned()),
            max_tokens: settings.max_tokens,
            by: by.clone(),
        }),
        Entry::CompactionStarted { turn, why, .. } => {
            EventBody::CompactionStarted(CompactionStarted { turn: *turn, why: why.clone() })
        }
        Entry::Compacted(it) => {
            EventBody::Compacted(Compacted { turn: it.turn, summary: it.summary.clone(), usage: it.usage })
        }
        Entry::Steered { turn, text, by } => {
            EventBody::Steered(Steered { turn: *turn, text: text.clone(), by: by.clone() })
        }
        Entry::NotesGiven { .. } => notice("the model has the note"),
        Entry::Rewound { prompt, by } => EventBody::Rewound(Rewound { prompt: *prompt, by: by.clone() }),
        Entry::ThinkingStripped { .. } => {
            notice("the server did not accept an earlier thinking block; the request is sent again without thinking")
        }
        Entry::ModeChanged { mode, by } => EventBody::ModeChanged(ModeChanged { mode: *mode, by: by.clone() }),
        Entry::RuleKept { file, problem: None, .. } => notice(&format!("the rule was added to {file}")),
        Entry::RuleKept { file, problem: Some(problem), .. } => {
            notice(&format!("the rule could not be added to {file} ({problem}); the call was allowed this once"))
        }
        Entry::UndoStarted(order) => {
            EventBody::UndoStarted(UndoStarted { undo: order.undo, steps: order.steps, by: order.by.clone() })
        }
        Entry::CommandEntered(entered) => EventBody::CommandEntered(CommandEntered {
            turn: entered.turn,
            call: entered.call,
            command: entered.command.clone(),
            by: entered.by.clone(),
        }),
        Entry::Forked(forked) => {
            EventBody::SessionForked(SessionForked { from: forked.from, at: forked.at, by: forked.by.clone() })
        }
        Entry::UndoEnded(result) => EventBody::UndoEnded(UndoEnded {
            undo: result.undo,
            by: result.by.clone(),
            diffs: result.diffs.clone(),
            problem: result.problem.clone(),
        }),
        Entry::JobStarted(start) => EventBody::JobStarted(JobStarted {
            job: start.job,
            call: start.call,
            command: start.command.clone(),
            description: start.description.clone(),
            cwd: start.cwd.clone(),
            deadline_ms: start.deadline_ms,
            moved: start.moved,
        }),
        Entry::JobEnded(end) => EventBody::JobEnded(JobEnded {
            job: end.job,
            outcome: end.outcome.clone(),
            duration_ms: end.duration_ms,
            output_bytes: end.output_bytes,
            text: end.text.clone(),
        }),
        Entry::JobSilent(silence) => {
            EventBody::JobSilent(JobSilent { job: silence.job, silence_ms: silence.silence_ms })
        }
        Entry::JobStopAsked { job, by } => EventBody::JobStopAsked(JobStopAsked { job: *job, by: by.clone() }),
        Entry::BackgroundAsked { call, job, by } => {
            EventBody::BackgroundAsked(BackgroundAsked { call: *call, job: *job, by: by.clone() })
        }
        Entry::TurnWoken { turn, .. } => EventBody::TurnWoken(TurnWoken { turn: *turn }),
        Entry::JobsTold { turn } => EventBody::JobsTold(JobsTold { turn: *turn }),
        Entry::WakesSpent { wakes } => notice(&format!(
            "Background commands began {wakes} turns in a row. They begin no more until you send a prompt, with which the \
             model is told of what happened meanwhile."
        )),
    }
}

fn notice(text: &str) -> EventBody {
    EventBody::Notice(Notice { text: text.to_owned() })
}

fn reply(reply: &StoredReply) -> ReplyReceived {
    ReplyReceived {
        turn: reply.turn,
        request: reply.request,
        blocks: reply.blocks.iter().map(block).collect(),
        stop_reason: reply.stop_reason.clone(),
        usage: reply.usage,
        model: reply.model.clone(),
        cache_miss: reply.cache_miss.clone(),
    }
}

fn block(block: &StoredBlock) -> Block {
    match &block.kind {
        StoredKind::Text { text } => Block::Text { text: text.clone() },
        StoredKind::Thinking { text } => Block::Thinking { text: text.clone() },
        StoredKind::Other { kind } => Block::Other { kind: kind.clone() },
        StoredKind::Call(call) => {
            let input = match &call.input {
                StoredInput::Valid(input) => input.clone(),
                StoredInput::Broken(_) => JsonText::from_value(&serde_json::Value::Null),
            };
            Block::Call(CallBlock {
                call: call.call,
                tool_use_id: call.tool_use_id.clone(),
                tool: call.tool.clone(),
                title: title(&call.tool, &input),
                input,
            })
        }
    }
}

fn finished(result: &CallResult) -> CallFinished {
    CallFinished {
        turn: result.turn,
        call: result.call,
        outcome: result.outcome.clone(),
        text: text_of(&result.content),
        is_error: result.is_error,
        duration_ms: result.duration_ms,
        diff: result.diff.clone(),
    }
}

/// The parts as one text; an image is named, not sent.
fn text_of(parts: &[Part]) -> String {
    let texts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Image { media_type, data } => format!("[{media_type}, {} bytes of base64]", data.len()),
        })
        .collect();
    texts.join("\n")
}
