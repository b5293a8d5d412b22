//! A session's transcript as a document: [`html`] for a browser, [`markdown`] for everything else. Pure.
//!
//! Both are made from the same [`Entry`]s, which say what a reader sees of the log.

mod escape;
pub mod html;
pub mod markdown;
mod text;

use std::collections::HashMap;

use proto::diff::FileDiff;
use proto::event::{Block, CallFinished, Event, EventBody, Usage};
use proto::ids::Timestamp;

use super::{Line, approval, call, jobs, model, notes, time};

/// One part of a transcript.
#[derive(Debug)]
pub(crate) enum Entry {
    /// Somebody asked for something.
    Prompt { text: String, by: String, at: Timestamp },
    /// The model's text.
    Text(String),
    /// The model's thinking.
    Thinking(String),
    /// A call with its result.
    Call(Box<CallEntry>),
    /// Changes that were taken back.
    Undone { by: String, diffs: Vec<FileDiff> },
    /// A line of ours.
    Line(Line),
    /// A turn is over.
    End { ms: u64, usage: Usage },
}

/// A call with its result.
#[derive(Debug)]
pub(crate) struct CallEntry {
    /// One line for people.
    pub(crate) title: String,
    /// The whole command, when it is one and longer than its title.
    pub(crate) command: Option<String>,
    /// What came of it.
    pub(crate) result: CallFinished,
}

impl CallEntry {
    /// `exit 0 · 1.2 s`.
    pub(crate) fn ending(&self) -> String {
        let ending = call::ending_words(&self.result);
        if ending.is_empty() {
            time::span(self.result.duration_ms)
        } else {
            format!("{ending} · {}", time::span(self.result.duration_ms))
        }
    }
}

/// Columns of lines that a terminal would fit to its own width.
const EXPORT_COLUMNS: usize = 120;

/// What a reader sees of a log.
pub(crate) fn entries(events: &[Event]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut calls: HashMap<proto::ids::CallId, (String, Option<String>)> = HashMap::new();
    let mut usage = Usage::default();
    let mut since = Timestamp(0);
    for event in events {
        match &event.body {
            EventBody::PromptAccepted(it) => {
                entries.push(Entry::Prompt { text: it.text.clone(), by: it.by.clone(), at: event.at });
            }
            EventBody::TurnStarted(_) => {
                since = event.at;
                usage = Usage::default();
            }
            EventBody::ReplyReceived(it) => {
                usage = usage.plus(it.usage);
                for block in &it.blocks {
                    match block {
                        Block::Text { text } => entries.push(Entry::Text(text.clone())),
                        Block::Thinking { text } if !text.trim().is_empty() => {
                            entries.push(Entry::Thinking(text.clone()));
                        }
                        Block::Thinking { .. } => {}
                        Block::Call(block) => {
                            calls.insert(block.call, (block.title.clone(), command(block.input.as_str())));
                        }
                        Block::Other { kind } => {
                            entries.push(Entry::Line(notes::remark(&format!("a block of kind {kind}, not shown"))));
                        }
                    }
                }
            }
            EventBody::ApprovalClosed(it) => {
                entries.push(Entry::Line(approval::closed(&it.verdict, &it.by, false)));
            }
            EventBody::CallFinished(it) => {
                let (title, command) =
                    calls.remove(&it.call).unwrap_or_else(|| (format!("call {}", it.call.short()), None));
                entries.push(Entry::Call(Box::new(CallEntry { title, command, result: it.clone() })));
            }
            EventBody::TurnEnded(it) => {
                entries.extend(notes::outcome(&it.outcome).into_iter().map(Entry::Line));
                entries.push(Entry::End { ms: event.at.0.saturating_sub(since.0), usage });
            }
            EventBody::Notice(it) => entries.push(Entry::Line(notes::notice(&it.text))),
            EventBody::PromptWithdrawn(it) => {
                entries.push(Entry::Line(notes::remark(&format!("a queued prompt was withdrawn by {}", it.by))));
            }
            EventBody::UndoEnded(it) => {
                if !it.diffs.is_empty() {
                    entries.push(Entry::Undone { by: it.by.clone(), diffs: it.diffs.clone() });
                }
                entries.extend(it.problem.as_ref().map(|problem| Entry::Line(notes::problem(problem))));
            }
            EventBody::SettingsChanged(it) => entries.push(Entry::Line(model::settings(it))),
            EventBody::Compacted(it) => entries.push(Entry::Line(model::compacted(it))),
            EventBody::Steered(it) => entries.push(Entry::Line(model::steered(it))),
            EventBody::Rewound(it) => entries.push(Entry::Line(model::rewound(it))),
            EventBody::ModeChanged(it) => entries.push(Entry::Line(notes::mode(it.mode, &it.by))),
            EventBody::SessionForked(it) => entries.push(Entry::Line(notes::forked(it))),
            EventBody::JobStarted(it) => entries.push(Entry::Line(jobs::started(it, EXPORT_COLUMNS))),
            EventBody::JobEnded(it) => entries.extend(jobs::ended(it, EXPORT_COLUMNS).into_iter().map(Entry::Line)),
            EventBody::JobSilent(it) => entries.push(Entry::Line(jobs::silent(it))),
            EventBody::JobStopAsked(it) => entries.push(Entry::Line(jobs::stop_asked(it))),
            EventBody::BackgroundAsked(it) => entries.push(Entry::Line(jobs::background_asked(it))),
            EventBody::CommandEntered(it) => {
                since = event.at;
                usage = Usage::default();
                let title = format!("$ {}", it.command.trim());
                entries.push(Entry::Line(notes::remark(&format!("run by {}", it.by))));
                calls.insert(it.call, (title, Some(it.command.clone())));
            }
            EventBody::TurnWoken(_) => {
                since = event.at;
                usage = Usage::default();
            }
            EventBody::SessionCreated(_)
            | EventBody::JobsTold(_)
            | EventBody::CompactionStarted(_)
            | EventBody::RequestSent(_)
            | EventBody::RequestFailed(_)
            | EventBody::ApprovalAsked(_)
            | EventBody::CallStarted(_)
            | EventBody::SessionRenamed(_)
            | EventBody::SessionArchived(_)
            | EventBody::UndoStarted(_) => {}
        }
    }
    entries
}

/// The command of a call of a shell, whole: its title is cut to a line.
fn command(input: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(input).ok()?;
    let command = value.get("command")?.as_str()?;
    // The editor has commands too; those are words.
    command.contains([' ', '\n']).then(|| command.to_owned())
}

#[cfg(test)]
mod tests;
