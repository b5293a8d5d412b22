//! The audit's second copy: each row goes to journald with structured fields, where the agent's commands, which run as
//! the same user, cannot take it back.
//!
//! A thread of its own sends them, because the journal may be slow and the log's writer must not wait for it. What does
//! not fit its queue is counted and said so; the database has every row.
//!
//! Fields: `AGENTD_EVENT` (as of the log's other lines), `AGENTD_AUDIT` (`started`, `ended`, `refused`), `AGENTD_AUDIT_ID`, `AGENTD_AUDIT_HASH`, `AGENTD_SESSION`,
//! `AGENTD_SEQ`, `AGENTD_CALL`, `AGENTD_TOOL`, `AGENTD_CWD`, `COMMAND`, `APPROVED_BY` or `REFUSED_BY`, `REASON`, `OUTCOME`,
//! `EXIT_STATUS`, `DURATION_MS`; what a row does not have is not there. Priority: refused is `warning`, all else `info`.

use std::sync::mpsc::{self, SyncSender, TrySendError};

use proto::approval::Decider;
use proto::audit::{AuditEvent, AuditRow, Audited};
use proto::event::Outcome;

use crate::store::AuditSink;

/// Where logging looks for audit rows: they go to the journal whatever `log.level` says, and nowhere else.
pub const TARGET: &str = "agentd::audit";

/// Rows that may wait for the journal: some minutes of a busy daemon.
const QUEUE_MAX: usize = 1024;

/// Bytes of a command in the journal; the database has it whole. The journal itself takes more, but shows less.
const COMMAND_BYTES_MAX: usize = 16 * 1024;

/// Starts the thread; the sink it returns never waits.
///
/// # Errors
/// When no thread can be started.
pub fn sink() -> std::io::Result<AuditSink> {
    let (sender, rows) = mpsc::sync_channel::<AuditRow>(QUEUE_MAX);
    std::thread::Builder::new().name("agentd-journal".into()).spawn(move || rows.iter().for_each(|row| send(&row)))?;
    let mut lost = 0_u64;
    Ok(Box::new(move |row| offer(&sender, row, &mut lost)))
}

fn offer(sender: &SyncSender<AuditRow>, row: AuditRow, lost: &mut u64) {
    match sender.try_send(row) {
        Ok(()) if *lost > 0 => {
            tracing::warn!(
                lost = *lost,
                "the journal was too slow; audit rows are missing in it, the database has them"
            );
            *lost = 0;
        }
        Ok(()) => {}
        Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => *lost += 1,
    }
}

fn send(row: &AuditRow) {
    let AuditRow { id, audited, hash } = row;
    let command = cut(&audited.command);
    let by = decider(&audited.by);
    let outcome = audited.outcome.as_ref().map(outcome);
    let sentence = sentence(audited, command, &by);
    macro_rules! row {
        ($level:ident, $by:ident) => {
            tracing::$level!(
                target: TARGET,
                agentd_event = kind(audited.event),
                agentd_audit = audited.event.word(),
                agentd_audit_id = id,
                agentd_audit_hash = hash.as_str(),
                agentd_session = %audited.session,
                agentd_seq = audited.seq.0,
                agentd_call = %audited.call,
                agentd_tool = audited.tool.as_str(),
                agentd_cwd = audited.cwd.as_str(),
                command = command,
                $by = by.as_str(),
                reason = audited.reason.as_deref(),
                outcome = outcome,
                exit_status = audited.exit_status,
                duration_ms = audited.duration_ms,
                "{sentence}"
            )
        };
    }
    match audited.event {
        AuditEvent::Started | AuditEvent::Ended => row!(info, approved_by),
        AuditEvent::Refused => row!(warn, refused_by),
    }
}

/// The row's kind, in the words of the session's log.
fn kind(event: AuditEvent) -> &'static str {
    match event {
        AuditEvent::Started => "call_started",
        AuditEvent::Ended => "call_finished",
        AuditEvent::Refused => "call_refused",
    }
}

fn sentence(audited: &Audited, command: &str, by: &str) -> String {
    let first = command.lines().next().unwrap_or("");
    match audited.event {
        AuditEvent::Started => format!("runs, allowed by {by}: {first}"),
        AuditEvent::Refused => format!("refused by {by}: {first}"),
        AuditEvent::Ended => match audited.exit_status {
            Some(status) => format!("ended with status {status}: {first}"),
            None => format!("ended ({}): {first}", audited.outcome.as_ref().map_or("", outcome)),
        },
    }
}

/// Who decided, in words that stay the same: they are searched for.
fn decider(by: &Decider) -> String {
    match by {
        Decider::Client { name } => format!("client {name}"),
        Decider::Policy { rule } => format!("policy: {rule}"),
        Decider::Flag { value } => format!("--approve {value}"),
        Decider::Grant { name } => format!("earlier answer of {name}"),
        Decider::Expiry {} => "expiry".to_owned(),
        Decider::Interrupt {} => "interrupt".to_owned(),
        Decider::Changed {} => "change".to_owned(),
        Decider::Mode { mode } => format!("mode {mode}"),
    }
}

/// The word of an outcome, as in JSON.
fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Exited { .. } => "exited",
        Outcome::Done {} => "done",
        Outcome::Failed {} => "failed",
        Outcome::TimedOut { .. } => "timed_out",
        Outcome::Interrupted {} => "interrupted",
        Outcome::Denied {} => "denied",
        Outcome::NotRun {} => "not_run",
        Outcome::Unknown {} => "unknown",
        Outcome::Background { .. } => "background",
    }
}

fn cut(command: &str) -> &str {
    let mut end = command.len().min(COMMAND_BYTES_MAX);
    while !command.is_char_boundary(end) {
        end -= 1;
    }
    &command[..end]
}
