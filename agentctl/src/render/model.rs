//! Lines about the model's work: settings, compaction, notes for it, what was used.

use jiff::tz::TimeZone;
use proto::event::{Compacted, CompactionStarted, Rewound, SettingsChanged, Steered, Usage};
use proto::usage::UsageReport;

use super::notes::{money, remark, thousands};
use super::table::{Cell, Side, sided};
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
        let mut head = vec![(Side::Left, "ENDED"), (Side::Left, "TURN")];
        head.extend(COUNTED);
        lines.extend(sided(&head, &rows, columns));
        lines.push(Line::new());
    }
    let mut sum = (0, Usage::default());
    let mut rows: Vec<Vec<Cell>> = report
        .days
        .iter()
        .map(|day| {
            sum = (sum.0 + day.requests, sum.1.plus(day.usage));
            let model = if day.model.is_empty() { "?" } else { &day.model };
            let mut row = vec![(Style::Dim, day.day.clone()), (Style::Name, day.session.short())];
            row.extend(cells(day.requests, &day.usage));
            row.push((Style::Plain, model.to_owned()));
            row
        })
        .collect();
    let mut total = vec![(Style::Bold, "sum".to_owned()), (Style::Plain, String::new())];
    total.extend(cells(sum.0, &sum.1));
    rows.push(total);
    // What a narrow terminal cuts comes last.
    let mut head = vec![(Side::Left, "DAY (UTC)"), (Side::Left, "SESSION")];
    head.extend(COUNTED);
    head.push((Side::Left, "MODEL"));
    lines.extend(sided(&head, &rows, columns));
    lines
}

/// The columns of [`cells`]: the most wanted first.
const COUNTED: [(Side, &str); 5] = [
    (Side::Right, "COST"),
    (Side::Right, "REQUESTS"),
    (Side::Right, "READ"),
    (Side::Right, "CACHED"),
    (Side::Right, "WRITTEN"),
];

fn cells(requests: u64, usage: &Usage) -> Vec<Cell> {
    let cost = usage.cost_nanousd.map_or_else(|| "not known".to_owned(), money);
    vec![
        (Style::Bold, cost),
        (Style::Plain, requests.to_string()),
        (Style::Plain, thousands(usage.prompt_tokens())),
        (Style::Plain, thousands(usage.cache_read_tokens)),
        (Style::Plain, thousands(usage.output_tokens)),
    ]
}
