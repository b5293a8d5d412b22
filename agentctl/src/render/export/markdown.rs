//! The transcript as Markdown.

use jiff::tz::TimeZone;
use proto::diff::{DiffKind, FileDiff};
use proto::event::Event;
use proto::response::SessionInfo;

use super::{CallEntry, Entry, entries};
use crate::render::{notes, sanitize, time};

/// The whole document.
#[must_use]
pub fn document(info: &SessionInfo, events: &[Event], zone: &TimeZone) -> String {
    let name = info.name.clone().unwrap_or_else(|| info.id.short());
    let mut out = format!(
        "# {}\n\n{} · {} · {} · session {}\n",
        sanitize::line(&if info.title.is_empty() { name.clone() } else { format!("{name}: {}", info.title) }),
        sanitize::line(&info.cwd),
        sanitize::line(&info.model),
        time::date(info.created_at, zone),
        info.id
    );
    for entry in entries(events) {
        out.push('\n');
        match entry {
            Entry::Prompt { text, by, at } => {
                out.push_str(&format!("## {}, {}\n\n", sanitize::line(&by), time::date(at, zone)));
                for line in sanitize::lines(text.trim_end()).lines() {
                    out.push_str(&format!("> {line}\n"));
                }
            }
            Entry::Text(text) => out.push_str(&format!("{}\n", sanitize::lines(text.trim_end()))),
            Entry::Thinking(text) => {
                for line in sanitize::lines(text.trim()).lines() {
                    out.push_str(&format!("> *{}*\n", line.replace('*', "\\*")));
                }
            }
            Entry::Call(call) => push_call(&mut out, &call),
            Entry::Undone { by, diffs } => {
                out.push_str(&format!("{} took edits back:\n\n", sanitize::line(&by)));
                diffs.iter().for_each(|diff| push_diff(&mut out, diff));
            }
            Entry::Line(line) => out.push_str(&format!("{}\n", line.paint(false).trim())),
            Entry::End { ms, usage } => out.push_str(&format!("{}\n", notes::spent(ms, &usage).paint(false))),
        }
    }
    out
}

fn push_call(out: &mut String, call: &CallEntry) {
    let title = sanitize::line(call.title.lines().next().unwrap_or_default());
    out.push_str(&format!("**{}** · {}\n", title.replace('*', "\\*"), call.ending()));
    if let Some(command) = call.command.as_ref().filter(|command| !call.title.ends_with(command.as_str())) {
        out.push('\n');
        fenced(out, "sh", command);
    }
    let text = sanitize::without_colors(call.result.text.trim_end());
    if !text.is_empty() {
        out.push('\n');
        fenced(out, "", &text);
    }
    if let Some(diff) = &call.result.diff {
        out.push('\n');
        push_diff(out, diff);
    }
}

fn push_diff(out: &mut String, file: &FileDiff) {
    let mut text = format!("--- {}\n+++ {}\n", file.path, file.path);
    for hunk in &file.hunks {
        text.push_str(&format!("@@ -{} +{} @@\n", hunk.old_start, hunk.new_start));
        for line in &hunk.lines {
            text.push(match line.kind {
                DiffKind::Context => ' ',
                DiffKind::Removed => '-',
                DiffKind::Added => '+',
            });
            line.spans.iter().for_each(|span| text.push_str(&span.text));
            text.push('\n');
        }
    }
    fenced(out, "diff", text.trim_end());
}

/// A block that nothing inside can end.
fn fenced(out: &mut String, language: &str, text: &str) {
    let text = sanitize::lines(text);
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    out.push_str(&format!("{fence}{language}\n{text}\n{fence}\n"));
}
