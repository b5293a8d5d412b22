//! The transcript as one page that needs nothing else: no script, no font, no picture; what it may load is nothing, by its
//! own policy. Outputs and diffs fold.

use jiff::tz::TimeZone;
use proto::diff::FileDiff;
use proto::event::{Event, Outcome};
use proto::response::SessionInfo;

use super::{CallEntry, Entry, entries, escape, text};
use crate::render::{diff, notes, sanitize, time};

/// Outputs up to this many lines are open: shorter ones are read at a glance.
const OPEN_LINES: usize = 12;

const STYLE: &str = include_str!("page.css");

/// The whole page.
#[must_use]
pub fn page(info: &SessionInfo, events: &[Event], zone: &TimeZone) -> String {
    let name = info.name.clone().unwrap_or_else(|| info.id.short());
    let title = if info.title.is_empty() { name.clone() } else { format!("{name}: {}", info.title) };
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        escape::text(&title)
    );
    out.push_str(&format!(
        "<header><h1>{}</h1><p class=\"dim\">{} · {} · {} · session {}</p></header>\n<main>\n",
        escape::text(&title),
        escape::text(&info.cwd),
        escape::text(&info.model),
        time::date(info.created_at, zone),
        info.id,
    ));
    for entry in entries(events) {
        push(&mut out, &entry, zone);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn push(out: &mut String, entry: &Entry, zone: &TimeZone) {
    match entry {
        Entry::Prompt { text, by, at } => out.push_str(&format!(
            "<section class=\"prompt\"><h2>{} <span class=\"dim\">{}</span></h2><pre>{}</pre></section>\n",
            escape::text(by),
            time::date(*at, zone),
            escape::text(text.trim_end())
        )),
        Entry::Text(words) => out.push_str(&format!("<section class=\"reply\">{}</section>\n", text::render(words))),
        Entry::Thinking(words) => out.push_str(&format!(
            "<details class=\"thinking\"><summary>thinking</summary><pre>{}</pre></details>\n",
            escape::text(words.trim())
        )),
        Entry::Call(call) => push_call(out, call),
        Entry::Undone { by, diffs } => {
            out.push_str(&format!("<p class=\"line\">{} took edits back:</p>\n", escape::text(by)));
            diffs.iter().for_each(|diff| push_diff(out, diff));
        }
        Entry::Line(line) => out.push_str(&format!("<p class=\"line\">{}</p>\n", escape::line(line))),
        Entry::End { ms, usage } => {
            out.push_str(&format!("<p class=\"line end\">{}</p>\n", escape::line(&notes::spent(*ms, usage))));
        }
    }
}

fn push_call(out: &mut String, call: &CallEntry) {
    let good = matches!(call.result.outcome, Outcome::Exited { status: 0 } | Outcome::Done {});
    let class = if good { "good" } else { "bad" };
    let text = sanitize::without_colors(call.result.text.trim_end());
    let lines = text.lines().count();
    let open = if lines <= OPEN_LINES && call.result.diff.is_none() { " open" } else { "" };
    let title = call.title.lines().next().unwrap_or_default();
    out.push_str(&format!(
        "<details class=\"call\"{open}><summary><span class=\"{class}\">●</span> <code>{}</code> \
         <span class=\"dim\">{}</span></summary>\n",
        escape::text(title),
        escape::text(&call.ending()),
    ));
    if let Some(command) = call.command.as_ref().filter(|command| !title.ends_with(command.as_str())) {
        out.push_str(&format!("<pre class=\"command\">{}</pre>\n", escape::text(command)));
    }
    if !text.is_empty() {
        out.push_str(&format!("<pre class=\"output\">{}</pre>\n", escape::text(&text)));
    }
    out.push_str("</details>\n");
    call.result.diff.iter().for_each(|diff| push_diff(out, diff));
}

fn push_diff(out: &mut String, file: &FileDiff) {
    out.push_str(&format!(
        "<details class=\"diff\" open><summary>{}</summary>\n<pre>",
        escape::line(&diff::head(file))
    ));
    for line in diff::body(file, usize::MAX) {
        out.push_str(&escape::line(&line));
        out.push('\n');
    }
    out.push_str("</pre></details>\n");
}
