//! A session as Markdown: what was asked, said, run and changed. Pure.

use std::collections::HashMap;
use std::fmt::Write;

use jiff::tz::TimeZone;
use proto::diff::{DiffKind, FileDiff};
use proto::event::{Block, CallFinished, Event, EventBody, Outcome, TurnOutcome};
use proto::ids::CallId;
use proto::response::SessionInfo;

use super::time;

/// Writes one session.
#[derive(Debug)]
pub struct Markdown {
    zone: TimeZone,
    /// What each open call is.
    titles: HashMap<CallId, String>,
}

impl Markdown {
    /// Times are shown in this zone.
    #[must_use]
    pub fn new(zone: TimeZone) -> Self {
        Self { zone, titles: HashMap::new() }
    }

    /// What comes first.
    #[must_use]
    pub fn head(&self, info: &SessionInfo) -> String {
        let title = info.name.as_deref().unwrap_or(&info.title);
        format!(
            "# {}\n\nSession {} in `{}`, {} ({}), begun {}.\n",
            if title.is_empty() { "A session" } else { title },
            info.id,
            info.cwd,
            info.model,
            info.provider,
            time::date(info.created_at, &self.zone)
        )
    }

    /// What one row adds; empty when it says nothing to a reader.
    #[must_use]
    pub fn event(&mut self, event: &Event) -> String {
        match &event.body {
            EventBody::PromptAccepted(it) => {
                let quoted: String = it.text.trim_end().lines().map(|line| format!("> {line}\n")).collect();
                format!("\n## {} · {}\n\n{quoted}", time::date(event.at, &self.zone), it.by)
            }
            EventBody::ReplyReceived(it) => it.blocks.iter().map(|block| self.block(block)).collect(),
            EventBody::CallFinished(it) => self.finished(it),
            EventBody::TurnEnded(it) => match &it.outcome {
                TurnOutcome::Done {} => String::new(),
                TurnOutcome::Interrupted {} => "\n*Interrupted.*\n".to_owned(),
                TurnOutcome::Refused { .. } => "\n*The model refused to answer.*\n".to_owned(),
                TurnOutcome::Failed { problem } => format!("\n*Failed: {}.*\n", problem.message),
            },
            EventBody::Notice(it) => format!("\n*{}*\n", it.text),
            EventBody::SessionForked(it) => format!("\n*Forked from session {} after its row {}.*\n", it.from, it.at),
            EventBody::UndoEnded(it) => {
                let diffs: String = it.diffs.iter().map(diff).collect();
                format!("\n*Taken back by {}:*\n{diffs}", it.by)
            }
            EventBody::SessionCreated(_)
            | EventBody::PromptWithdrawn(_)
            | EventBody::TurnStarted(_)
            | EventBody::RequestSent(_)
            | EventBody::RequestFailed(_)
            | EventBody::ApprovalAsked(_)
            | EventBody::ApprovalClosed(_)
            | EventBody::CallStarted(_)
            | EventBody::SessionRenamed(_)
            | EventBody::SessionArchived(_)
            | EventBody::UndoStarted(_) => String::new(),
        }
    }

    fn block(&mut self, block: &Block) -> String {
        match block {
            Block::Text { text } => format!("\n{}\n", text.trim_end()),
            Block::Call(call) => {
                self.titles.insert(call.call, call.title.clone());
                String::new()
            }
            Block::Thinking { .. } | Block::Other { .. } => String::new(),
        }
    }

    fn finished(&mut self, call: &CallFinished) -> String {
        let title = self.titles.remove(&call.call).unwrap_or_default();
        let mut out = fenced("", &title);
        match (&call.diff, call.is_error) {
            (Some(change), false) => out.push_str(&diff(change)),
            (Some(_) | None, _) if !call.text.trim().is_empty() => out.push_str(&fenced("text", call.text.trim_end())),
            (Some(_) | None, _) => {}
        }
        if let Outcome::Exited { status } = call.outcome
            && status != 0
        {
            let _ = write!(out, "\n*Status {status}.*\n");
        }
        out
    }
}

/// A block that nothing inside it can end.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{fence}{language}\n{text}\n{fence}\n")
}

fn diff(diff: &FileDiff) -> String {
    let mut text = format!("--- {0}\n+++ {0}\n", diff.path);
    for hunk in &diff.hunks {
        let _ = writeln!(text, "@@ -{} +{} @@", hunk.old_start, hunk.new_start);
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
    if diff.lines_left_out > 0 {
        let _ = writeln!(text, "({} lines left out)", diff.lines_left_out);
    }
    fenced("diff", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_its_text() {
        assert_eq!(fenced("", "a ```` b"), "\n`````\na ```` b\n`````\n");
        assert_eq!(fenced("text", "plain"), "\n```text\nplain\n```\n");
    }
}
