//! A session's log, row by row, with everything in it.

use jiff::tz::TimeZone;
use proto::approval::Decider;
use proto::event::{Block, Event, EventBody, Outcome, TurnOutcome};
use proto::mode::Mode;
use proto::request::ApproveMode;

use super::{Line, Style, approval, diff, model, notes, session, time};

/// One row: a head line with number, time and what happened; below it the texts that belong to it, whole.
#[must_use]
pub fn row(event: &Event, zone: &TimeZone) -> Vec<Line> {
    let head = |what: &'static str, detail: &str| {
        Line::new()
            .text(Style::Dim, &format!("{:>5} {} ", event.seq.0, time::clock(event.at, zone)))
            .lit(Style::Bold, what)
            .text(Style::Plain, &format!("  {detail}"))
    };
    match &event.body {
        EventBody::SessionCreated(it) => {
            let mode = if it.mode == Mode::Ask { String::new() } else { format!(" · mode {}", it.mode) };
            vec![head("created", &format!("{} · {} ({}){mode}", it.cwd, it.model, it.provider))]
        }
        EventBody::PromptAccepted(it) => {
            let approve = match it.approve {
                ApproveMode::Ask => "",
                ApproveMode::Deny => " · approve none",
                ApproveMode::All => " · approve all",
            };
            with(head("prompt", &format!("by {}{approve}", it.by)), &it.text)
        }
        EventBody::PromptWithdrawn(it) => vec![head("prompt withdrawn", &format!("by {}", it.by))],
        EventBody::TurnStarted(it) => vec![head("turn", &it.turn.short())],
        EventBody::RequestSent(it) if it.attempt > 1 => vec![head("request", &format!("try {}", it.attempt))],
        EventBody::RequestSent(_) => vec![head("request", "")],
        EventBody::RequestFailed(it) => vec![head("request failed", ""), notes::request_failed(it, zone)],
        EventBody::ReplyReceived(it) => {
            let mut lines = vec![head("reply", &format!("{} · {}", it.stop_reason, notes::usage(&it.usage)))];
            for block in &it.blocks {
                lines.extend(block_lines(block));
            }
            lines
        }
        EventBody::ApprovalAsked(it) => {
            let mut lines = vec![head("asked", &session::approval_title(&it.approval))];
            lines.extend(approval::question(&it.approval));
            lines
        }
        EventBody::ApprovalClosed(it) => vec![head("answered", ""), approval::closed(&it.verdict, &it.by, false)],
        EventBody::CallStarted(it) => {
            vec![head("call started", &format!("{} · {}", it.call.short(), decider(&it.allowed_by)))]
        }
        EventBody::CallFinished(it) => {
            let detail = format!("{} · {} · {}", it.call.short(), outcome(&it.outcome), time::span(it.duration_ms));
            let mut lines = with(head("call finished", &detail), &it.text);
            if let Some(diff) = &it.diff {
                lines.push(Line::new().lit(Style::Plain, "  ").join(diff::head(diff)));
                lines.extend(diff::body(diff, usize::MAX));
            }
            lines
        }
        EventBody::TurnEnded(it) => {
            let detail =
                format!("{} · {} requests · {}", turn_outcome(&it.outcome), it.requests, notes::usage(&it.usage));
            let mut lines = vec![head("turn ended", &detail)];
            lines.extend(notes::outcome(&it.outcome));
            lines
        }
        EventBody::Notice(it) => vec![head("notice", &it.text)],
        EventBody::SessionRenamed(it) => vec![head("renamed", &format!("{} by {}", it.name, it.by))],
        EventBody::SessionArchived(it) => vec![head("archived", &format!("by {}", it.by))],
        EventBody::ModeChanged(it) => vec![head("mode", &format!("{} by {}", it.mode, it.by))],
        EventBody::SettingsChanged(it) => vec![head("settings", ""), model::settings(it)],
        EventBody::CompactionStarted(it) => vec![head("compacting", &it.why)],
        EventBody::Compacted(it) => {
            with(head("compacted", &notes::usage(&it.usage)), it.summary.as_deref().unwrap_or("(no summary)"))
        }
        EventBody::Steered(it) => with(head("note", &format!("by {}", it.by)), &it.text),
        EventBody::Rewound(it) => vec![head("taken back", &format!("prompt {} by {}", it.prompt.short(), it.by))],
        EventBody::JobStarted(it) => {
            let how = if it.moved { "moved to the background" } else { "started" };
            let detail = format!("{} · {how} · deadline {}", it.job.short(), time::span(it.deadline_ms));
            with(head("job", &detail), &it.command)
        }
        EventBody::JobEnded(it) => {
            let detail = format!("{} · {} · {}", it.job.short(), outcome(&it.outcome), time::span(it.duration_ms));
            with(head("job ended", &detail), &it.text)
        }
        EventBody::JobSilent(it) => {
            vec![head("job silent", &format!("{} · {}", it.job.short(), time::span(it.silence_ms)))]
        }
        EventBody::JobStopAsked(it) => vec![head("job stop", &format!("{} by {}", it.job.short(), it.by))],
        EventBody::BackgroundAsked(it) => {
            vec![head("to background", &format!("{} as job {} by {}", it.call.short(), it.job.short(), it.by))]
        }
        EventBody::TurnWoken(it) => vec![head("turn woken", &it.turn.short())],
        EventBody::JobsTold(_) => vec![head("jobs told", "the model hears of them with its next request")],
        EventBody::CommandEntered(it) => {
            with(head("command", &format!("{} by {}", it.call.short(), it.by)), &it.command)
        }
        EventBody::UndoStarted(it) => vec![head("undo", &format!("{} steps by {}", it.steps, it.by))],
        EventBody::SessionForked(it) => {
            vec![head("forked", &format!("from session {} after its row {} by {}", it.from.short(), it.at, it.by))]
        }
        EventBody::UndoEnded(it) => {
            let mut lines = vec![head("undo ended", &format!("{} edits taken back", it.diffs.len()))];
            for diff in &it.diffs {
                lines.push(Line::new().lit(Style::Plain, "  ").join(diff::head(diff)));
                lines.extend(diff::body(diff, usize::MAX));
            }
            lines.extend(it.problem.as_ref().map(notes::problem));
            lines
        }
    }
}

fn with(head: Line, text: &str) -> Vec<Line> {
    let mut lines = vec![head];
    lines.extend(indented(Style::Plain, text));
    lines
}

fn indented(style: Style, text: &str) -> impl Iterator<Item = Line> {
    text.trim_end().lines().map(move |line| Line::new().lit(Style::Plain, "      ").text(style, line))
}

fn block_lines(block: &Block) -> Vec<Line> {
    match block {
        Block::Text { text } => indented(Style::Plain, text).collect(),
        Block::Thinking { text } => indented(Style::Dim, text).collect(),
        Block::Call(call) => {
            let title = Line::new().text(Style::Dim, &format!("      {} ", call.call.short()));
            vec![title.text(Style::Name, &call.title)]
        }
        Block::Other { kind } => vec![Line::new().text(Style::Dim, &format!("      [{kind}]"))],
    }
}

fn decider(by: &Decider) -> String {
    match by {
        Decider::Client { name } => format!("allowed by {name}"),
        Decider::Policy { rule } => format!("allowed by policy: {rule}"),
        Decider::Flag { value } => format!("allowed by --approve {value}"),
        Decider::Grant { name } => format!("allowed before by {name}"),
        Decider::Expiry {} => "expired".to_owned(),
        Decider::Interrupt {} => "interrupted".to_owned(),
        Decider::Changed {} => "changed".to_owned(),
        Decider::Mode { mode } => format!("decided by the mode {mode}"),
    }
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited { status } => format!("exit {status}"),
        Outcome::Done {} => "done".to_owned(),
        Outcome::Failed {} => "failed".to_owned(),
        Outcome::TimedOut { limit_ms } => format!("deadline of {}", time::span(*limit_ms)),
        Outcome::Interrupted {} => "interrupted".to_owned(),
        Outcome::Denied {} => "not allowed".to_owned(),
        Outcome::NotRun {} => "not run".to_owned(),
        Outcome::Unknown {} => "outcome unknown".to_owned(),
        Outcome::Background { job } => format!("job {}", job.short()),
    }
}

fn turn_outcome(outcome: &TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Done {} => "done",
        TurnOutcome::Refused { .. } => "refused",
        TurnOutcome::Interrupted {} => "interrupted",
        TurnOutcome::Failed { .. } => "failed",
    }
}
