//! The audit's rows, as lines.

use jiff::tz::TimeZone;
use proto::approval::Decider;
use proto::audit::{AuditEvent, AuditRow, Verified};
use proto::event::Outcome;

use super::{Line, Style, time};

/// `   12  2026-12-01 00:41  4a5b6c7d  ran  ls -l  · policy: every part of it only reads`.
#[must_use]
pub fn row(row: &AuditRow, zone: &TimeZone) -> Line {
    let AuditRow { id, audited, .. } = row;
    let when = time::date(audited.at, zone);
    let line = Line::new().text(Style::Dim, &format!("{id:>5}  {when}  {}  ", audited.session.short()));
    let line = match audited.event {
        AuditEvent::Started => line.lit(Style::Plain, "runs     "),
        AuditEvent::Refused => line.lit(Style::Bad, "refused  "),
        AuditEvent::Ended => match &audited.outcome {
            Some(Outcome::Exited { status: 0 } | Outcome::Done {}) => line.lit(Style::Good, "ended    "),
            Some(_) | None => line.lit(Style::Warn, "ended    "),
        },
    };
    let line = line.text(Style::Name, &audited.command);
    match audited.event {
        AuditEvent::Started | AuditEvent::Refused => line.lit(Style::Dim, "  · ").text(Style::Dim, &by(&audited.by)),
        AuditEvent::Ended => line.lit(Style::Dim, "  · ").text(Style::Dim, &how(row)),
    }
}

fn how(row: &AuditRow) -> String {
    let audited = &row.audited;
    let word = match &audited.outcome {
        Some(Outcome::Exited { status }) => format!("exit {status}"),
        Some(Outcome::Done {}) => "done".to_owned(),
        Some(Outcome::Failed {}) => "failed".to_owned(),
        Some(Outcome::TimedOut { .. }) => "deadline".to_owned(),
        Some(Outcome::Interrupted {}) => "interrupted".to_owned(),
        Some(Outcome::Denied {}) => "denied".to_owned(),
        Some(Outcome::NotRun {}) => "did not run".to_owned(),
        Some(Outcome::Background { job }) => format!("goes on as job {}", job.short()),
        Some(Outcome::Unknown {}) | None => "outcome unknown".to_owned(),
    };
    match audited.duration_ms {
        Some(ms) => format!("{word}, {}", time::span(ms)),
        None => word,
    }
}

fn by(by: &Decider) -> String {
    match by {
        Decider::Client { name } => name.clone(),
        Decider::Policy { rule } => format!("policy: {rule}"),
        Decider::Flag { value } => format!("--approve {value}"),
        Decider::Grant { name } => format!("earlier answer of {name}"),
        Decider::Expiry {} => "nobody answered in time".to_owned(),
        Decider::Interrupt {} => "interrupted".to_owned(),
        Decider::Changed {} => "what was approved had changed".to_owned(),
        Decider::Mode { mode } => format!("the mode {mode}"),
    }
}

/// No row fits.
#[must_use]
pub fn nothing() -> Line {
    Line::new().lit(Style::Dim, "the audit has no such row")
}

/// Whether the chain holds.
#[must_use]
pub fn verified(verified: &Verified) -> Vec<Line> {
    match &verified.broken {
        Some(broken) => vec![
            Line::new()
                .lit(Style::Bad, "broken at row ")
                .text(Style::Bold, &broken.id.to_string())
                .lit(Style::Plain, ": ")
                .text(Style::Plain, &broken.problem),
            Line::new().text(Style::Dim, &format!("the {} rows before it are as they were written", verified.rows)),
        ],
        None => {
            let sound = Line::new()
                .lit(Style::Good, "sound: ")
                .text(Style::Plain, &format!("{} rows, none changed or missing", verified.rows));
            let head = verified.head.as_deref().map(|head| {
                Line::new()
                    .lit(Style::Dim, "last hash ")
                    .text(Style::Dim, head)
                    .lit(Style::Dim, " (the journal has it as AGENTD_AUDIT_HASH)")
            });
            std::iter::once(sound).chain(head).collect()
        }
    }
}
