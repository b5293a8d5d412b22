//! Compaction: a summary in the history's place. By the model's own hand, in a request like the others, so that the cache
//! is read; by a transcript of it when the history as it stands does not fit any more; by the server where it offers that.
//!
//! Invariant: it happens only between a message of results and the next request, never between a call and its result.

use std::borrow::Cow;
use std::sync::Arc;

use proto::event::TurnOutcome;
use proto::ids::{RequestId, TurnId};
use proto::json::JsonText;
use proto::request::ApproveMode;
use serde_json::{Value, json};

use super::decide::Run;
use super::reply::failed;
use super::state::{Compacting, Machine, Phase, Turn};
use crate::model::{BlockKind, Message, Reply, Role, StopReason};
use crate::store::entry::{Entry, StoredSummary};

/// Compactions in one turn: more means that they do not help.
const COMPACTIONS_MAX: u32 = 3;

/// Requests for one summary that may come to nothing.
const TRIES_MAX: u32 = 3;

/// Characters of a first transcript when the window is not known: fits one of 64,000 tokens.
const TRANSCRIPT_CHARS: usize = 200_000;

/// Below this a transcript says nothing, and what does not fit is something else.
const TRANSCRIPT_CHARS_MIN: usize = 4_000;

/// Characters of one call or result in a transcript.
const BLOCK_CHARS_MAX: usize = 2_000;

/// Asks for a summary.
const ASK: &str = "This conversation is about to be replaced by a summary that you write now; nothing else of it will be \
    seen again. Call no tools. Write, for yourself to go on from: what the user asked for and wishes, word by word where it \
    matters; what was decided and why; the files read and changed with what matters of them; commands that work; what was \
    tried and failed; what is done, what is open, and the next step.";

impl Run<'_> {
    /// A client asks for it, between turns: a turn of its own.
    pub(super) fn compact(&mut self, by: &str) {
        if matches!(self.machine.phase, Phase::Idle) && !self.machine.history.is_empty() {
            let turn = TurnId(self.fresh_id());
            self.start_compaction(turn, format!("{by} asked for it"), None);
            self.send();
        }
    }

    /// Starts it before the next request when the window is nearly full.
    pub(super) fn compact_when_due(&mut self, turn: &Turn) {
        let (window, percent) = (self.machine.surroundings.window_tokens, u64::from(self.machine.limits.compact_at));
        let tokens = self.machine.next_tokens();
        let due = window > 0 && percent > 0 && tokens.saturating_mul(100) >= window.saturating_mul(percent);
        if due && turn.compacting.is_none() && turn.compactions < COMPACTIONS_MAX && self.machine.history.len() > 1 {
            let why = format!("the conversation has {tokens} tokens, the model's window holds {window}");
            // Beyond the window the history cannot be read as it stands.
            let transcript = (tokens >= window).then(|| self.first_transcript());
            self.start_compaction(turn.id, why, transcript);
        }
    }

    /// The way out of a window that is full. Returns whether there is one.
    pub(super) fn compact_when_full(&mut self, turn: &Turn) -> bool {
        if !self.can_shrink(turn) {
            return false;
        }
        let chars = match turn.compacting.and_then(|compacting| compacting.transcript) {
            Some(chars) => chars / 2,
            None => self.first_transcript(),
        };
        self.start_compaction(turn.id, "the conversation fills the model's window".into(), Some(chars));
        true
    }

    /// Whether [`Self::compact_when_full`] has a way left.
    pub(super) fn can_shrink(&self, turn: &Turn) -> bool {
        match turn.compacting {
            // Nothing was said yet but the prompt: a summary would be as long.
            None if self.machine.history.iter().all(|message| message.role != Role::Assistant) => false,
            None => turn.compactions < COMPACTIONS_MAX,
            Some(Compacting { transcript: None, .. }) => true,
            Some(Compacting { transcript: Some(chars), .. }) => chars / 2 >= TRANSCRIPT_CHARS_MIN,
        }
    }

    fn first_transcript(&self) -> usize {
        match usize::try_from(self.machine.surroundings.window_tokens) {
            // Two characters a token: half of what fits.
            Ok(window) if window > 0 => window.saturating_mul(2),
            Ok(_) | Err(_) => TRANSCRIPT_CHARS,
        }
    }

    fn start_compaction(&mut self, turn: TurnId, why: String, transcript: Option<usize>) {
        self.record(Entry::CompactionStarted { turn, why, transcript });
    }

    /// A reply to a request for a summary.
    pub(super) fn summary_arrived(&mut self, turn: &Turn, request: RequestId, reply: &Reply) {
        let refused = matches!(reply.stop, StopReason::Refusal { .. });
        let calls = reply.blocks.iter().any(|block| matches!(block.kind, BlockKind::ToolUse(_)));
        let texts = reply.blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Text(text) => Some(text.trim()),
            BlockKind::Thinking(_) | BlockKind::ToolUse(_) | BlockKind::Other(_) => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n\n");
        let summary = (!calls && !refused && !text.is_empty()).then_some(text);
        let written = summary.is_some();
        self.record(Entry::Compacted(StoredSummary {
            turn: turn.id,
            request,
            summary,
            usage: reply.usage,
            model: reply.model.clone(),
        }));
        let tries = turn.compacting.map_or(0, |compacting| compacting.tries) + 1;
        if written && turn.standalone {
            self.end_turn(turn.id, TurnOutcome::Done {});
        } else if written || tries < TRIES_MAX {
            self.send();
        } else {
            let outcome = failed(
                "compaction",
                format!("the model wrote no summary of the conversation in {TRIES_MAX} tries"),
                "try `agentctl compact` again, with another model if need be (`agentctl set`)",
            );
            self.end_turn(turn.id, outcome);
        }
    }
}

impl Machine {
    pub(super) fn apply_compaction_started(&mut self, id: TurnId, transcript: Option<usize>) {
        let standalone = || Turn { standalone: true, ..Turn::new(id, None, ApproveMode::Deny, String::new()) };
        let mut turn = self.turn().cloned().unwrap_or_else(standalone);
        let tries = turn.compacting.map_or(0, |compacting| compacting.tries);
        turn.compacting = Some(Compacting { transcript, tries });
        self.phase = Phase::Ready(turn);
    }

    pub(super) fn apply_summary(&mut self, summary: &StoredSummary) {
        self.account.take_summary(summary);
        let Some(mut turn) = self.turn().cloned() else { return };
        turn.usage = turn.usage.plus(summary.usage);
        match &summary.summary {
            Some(text) => {
                turn.compacting = None;
                turn.compactions += 1;
                let text = replacement(text, &turn);
                self.history = vec![Arc::new(Message { role: Role::User, content: vec![text_block(&text)] })];
                self.account.forget();
                self.rewind = None;
                // What the summary may have left out.
                self.planning = false;
                self.tell_mode();
            }
            None => {
                if let Some(compacting) = &mut turn.compacting {
                    compacting.tries += 1;
                }
            }
        }
        self.phase = Phase::Ready(turn);
    }

    /// The server's own summary came: the history before it is gone, and a user's word must follow.
    pub(super) fn finish_server_compaction(&mut self) {
        self.account.forget();
        self.rewind = None;
        if let Some(turn) = self.turn_mut() {
            turn.compacting = None;
            turn.compactions += 1;
        }
    }

    /// What the next request says: the history, or the request for its summary.
    #[must_use]
    pub fn messages(&self) -> Cow<'_, [Arc<Message>]> {
        let ask = |before: String| {
            let text = if before.is_empty() { ASK.to_owned() } else { format!("{before}\n\n{ASK}") };
            Arc::new(Message { role: Role::User, content: vec![text_block(&text)] })
        };
        match self.turn().and_then(|turn| turn.compacting) {
            None => Cow::Borrowed(&self.history),
            Some(Compacting { transcript: None, .. }) if self.limits.server_compaction => Cow::Borrowed(&self.history),
            Some(Compacting { transcript: None, .. }) => {
                let mut messages = self.history.clone();
                messages.push(ask(String::new()));
                Cow::Owned(messages)
            }
            Some(Compacting { transcript: Some(chars), .. }) => {
                let text = format!("<conversation>\n{}\n</conversation>", transcript(&self.history, chars));
                Cow::Owned(vec![ask(text)])
            }
        }
    }

    /// Whether the next request asks the server for a summary of its own making.
    #[must_use]
    pub fn compacts_on_server(&self) -> bool {
        self.limits.server_compaction
            && self.turn().and_then(|turn| turn.compacting).is_some_and(|it| it.transcript.is_none())
    }

    /// Whether the reply that is awaited is a summary, which is no text for the user.
    #[must_use]
    pub fn is_compacting(&self) -> bool {
        self.turn().is_some_and(|turn| turn.compacting.is_some())
    }
}

/// What stands in the history's place.
fn replacement(summary: &str, turn: &Turn) -> String {
    let head = format!("What came before was replaced by your summary of it:\n\n{summary}");
    match turn.text.trim() {
        "" => head,
        prompt => format!("{head}\n\nThe request that you are working on:\n\n{prompt}\n\nGo on with it."),
    }
}

fn text_block(text: &str) -> JsonText {
    JsonText::from_value(&json!({ "type": "text", "text": text }))
}

/// The history as text: its first words and as much of its end as fits.
fn transcript(history: &[Arc<Message>], chars: usize) -> String {
    let lines: Vec<String> = history
        .iter()
        .flat_map(|message| message.content.iter().filter_map(|block| line(message.role, &block.to_value())))
        .collect();
    let whole = lines.join("\n");
    let count = whole.chars().count();
    if count <= chars {
        return whole;
    }
    let head: String = whole.chars().take(chars / 4).collect();
    let tail: String = whole.chars().skip(count - (chars - chars / 4)).collect();
    format!("{head}\n[… {} characters left out …]\n{tail}", count - chars)
}

fn line(role: Role, block: &Value) -> Option<String> {
    let short = |text: &str| -> String {
        let mut out: String = text.chars().take(BLOCK_CHARS_MAX).collect();
        if text.chars().nth(BLOCK_CHARS_MAX).is_some() {
            out.push('…');
        }
        out
    };
    let who = match role {
        Role::User | Role::System => "user",
        Role::Assistant => "assistant",
    };
    match block["type"].as_str()? {
        "text" => Some(format!("[{who}] {}", block["text"].as_str()?)),
        "tool_use" => Some(format!("[call of {}] {}", block["name"].as_str()?, short(&block["input"].to_string()))),
        "tool_result" => {
            let text = block["content"].as_str().map_or_else(|| block["content"].to_string(), str::to_owned);
            Some(format!("[result] {}", short(&text)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, blocks: &[Value]) -> Arc<Message> {
        Arc::new(Message { role, content: blocks.iter().map(JsonText::from_value).collect() })
    }

    #[test]
    fn a_transcript_keeps_the_beginning_and_the_end_and_cuts_long_results() {
        let history = vec![
            message(Role::User, &[json!({"type": "text", "text": "Fix it."})]),
            message(
                Role::Assistant,
                &[
                    json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
                    json!({"type": "tool_use", "id": "1", "name": "bash", "input": {"command": "ls"}}),
                ],
            ),
            message(Role::User, &[json!({"type": "tool_result", "tool_use_id": "1", "content": "x".repeat(9_000)})]),
            message(Role::Assistant, &[json!({"type": "text", "text": "Done."})]),
        ];
        let whole = transcript(&history, 10_000);
        assert!(whole.starts_with("[user] Fix it.\n[call of bash] {\"command\":\"ls\"}\n[result] xxx"), "{whole}");
        assert!(whole.ends_with("…\n[assistant] Done.") && whole.len() < 2_200, "{whole}");
        let short = transcript(&history, 200);
        assert!(
            short.starts_with("[user] Fix it.") && short.ends_with("Done.") && short.contains("left out"),
            "{short}"
        );
    }
}
