//! Lines about the model's work: settings, compaction, notes for it, what was used.

use jiff::tz::TimeZone;
use proto::event::{Compacted, CompactionStarted, Rewound, SettingsChanged, Steered, Usage};
use proto::usage::UsageReport;

use super::notes::{money, remark, thousands};
use super::table::{Cell, table};
use super::{Line, Style, time};

/// Other settings.
#[must_use]
pub fn settings(it: &SettingsChanged) -> Line {
    let effort = it.effort.as_deref().unwrap_or("default");
    remark(&format!("model {}, effort {effort}, at most {} tokens a reply, set by {}", it.model, it.max_tokens, it.by))
}

/// A summary is being written.
#[must_use]
pub fn compaction_started(it: &CompactionStarted) -> Line {
    remark(&format!("compacting the conversation: {}", it.why))
}

/// It is written, or not.
#[must_use]
pub fn compacted(it: &Compacted) -> Line {
    match &it.summary {
        Some(summary) => remark(&format!(
            "compacted to a summary of {} characters; agentctl log shows it and all before it",
            summary.chars().count()
        )),
        None => super::notes::notice("the model wrote no summary; it is asked again"),
    }
}

/// A note in mid-turn.
#[must_use]
pub fn steered(it: &Steered) -> Line {
    Line::new().lit(Style::Name, "» ").text(Style::Bold, &it.text).text(Style::Dim, &format!("  {}", it.by))
}

/// The last prompt left the history.
#[must_use]
pub fn rewound(it: &Rewound) -> Line {
    remark(&format!("the last prompt and its answer were taken back by {}; files stay as they are", it.by))
}

/// Tables of what was used.
#[must_use]
pub fn usage(report: &UsageReport, zone: &TimeZone, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if !report.turns.is_empty() {
        let rows: Vec<Vec<Cell>> = report
            .turns
            .iter()
            .map(|turn| {
                let mut row = vec![(Style::Dim, time::date(turn.at, zone)), (Style::Name, turn.turn.short())];
                row.extend(cells(u64::from(turn.requests), &turn.usage));
                row
            })
            .collect();
        lines.extend(table(&["ENDED", "TURN", "REQUESTS", "READ", "CACHED", "WRITTEN", "COST"], &rows, columns));
        lines.push(Line::new());
    }
    let mut sum = (0, Usage::default());
    let mut rows: Vec<Vec<Cell>> = report
        .days
        .iter()
        .map(|day| {
            sum = (sum.0 + day.requests, sum.1.plus(day.usage));
            let model = if day.model.is_empty() { "?" } else { &day.model };
            let mut row = vec![
                (Style::Dim, day.day.clone()),
                (Style::Name, day.session.short()),
                (Style::Plain, model.to_owned()),
            ];
            row.extend(cells(day.requests, &day.usage));
            row
        })
        .collect();
    let mut total = vec![(Style::Bold, "sum".to_owned()), (Style::Plain, String::new()), (Style::Plain, String::new())];
    total.extend(cells(sum.0, &sum.1));
    rows.push(total);
    let head = ["DAY (UTC)", "SESSION", "MODEL", "REQUESTS", "READ", "CACHED", "WRITTEN", "COST"];
    lines.extend(table(&head, &rows, columns));
    lines
}

fn cells(requests: u64, usage: &Usage) -> Vec<Cell> {
    let cost = usage.cost_nanousd.map_or_else(|| "not known".to_owned(), money);
    vec![
        (Style::Plain, requests.to_string()),
        (Style::Plain, thousands(usage.prompt_tokens())),
        (Style::Plain, thousands(usage.cache_read_tokens)),
        (Style::Plain, thousands(usage.output_tokens)),
        (Style::Bold, cost),
    ]
}
