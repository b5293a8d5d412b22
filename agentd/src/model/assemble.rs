//! Stream events to a [`Reply`]. Pure.
//!
//! Invariant: a reply exists only after `message_stop`; what came before a cut or an error is never handed out as one.
//! Invariant: usage values are totals that replace, and never add; absent and `null` keep what was known.
//! Invariant: blocks stand in the order they began, and none is lost, whatever the server counts.

use proto::event::Usage;
use serde_json::value::RawValue;

use super::block::OpenBlock;
use super::object::Object;
use super::price::Bill;
use super::stream::{Delta, StreamEvent};
use super::{BlockKind, Progress, Reply, ReplyBlock, StopReason};

/// Values of `message_delta.delta` that become the message's.
const DELTA_KEYS: [&str; 4] = ["stop_reason", "stop_sequence", "stop_details", "container"];

/// Values beside `delta` in `message_delta` that become the message's.
const EVENT_KEYS: [&str; 3] = ["context_management", "input_transformations", "diagnostics"];

/// Values of `message_delta.usage` that replace the message's.
const USAGE_KEYS: [&str; 7] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
    "server_tool_use",
    "iterations",
];

/// A reply while it arrives.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    message: Object,
    usage: Option<Object>,
    blocks: Vec<Slot>,
    stopped: bool,
}

#[derive(Debug)]
struct Slot {
    index: u32,
    state: BlockState,
}

#[derive(Debug)]
enum BlockState {
    Open(OpenBlock),
    Done(ReplyBlock),
}

/// A step that cannot follow what came before.
#[derive(Debug, thiserror::Error)]
pub(super) enum AssembleError {
    /// A block grew that never began: its text would be lost.
    #[error("block {0} grows before it began")]
    NoSuchBlock(u32),
}

impl Assembler {
    /// Takes one step; the answer is what it shows. Errors of the stream (`error` events) are the caller's.
    pub(super) fn apply(&mut self, event: StreamEvent) -> Result<Option<Progress>, AssembleError> {
        match event {
            StreamEvent::MessageStart(message) => {
                self.usage = message.read("usage");
                self.message = message;
                Ok(None)
            }
            StreamEvent::BlockStart { index, block, text } => Ok(Some(self.start_block(index, block, text))),
            StreamEvent::BlockDelta { index, delta } => self.grow_block(index, delta),
            StreamEvent::BlockStop { index } => {
                self.stop_block(index);
                Ok(None)
            }
            StreamEvent::MessageDelta(event) => {
                self.merge(&event);
                Ok(None)
            }
            StreamEvent::MessageStop => {
                self.stopped = true;
                Ok(None)
            }
            StreamEvent::Done => {
                self.stopped |= self.message.get("stop_reason").is_some();
                Ok(None)
            }
            StreamEvent::Ping | StreamEvent::Error(_) | StreamEvent::Ignored => Ok(None),
        }
    }

    /// `message_stop` was seen: nothing more is to be read.
    pub(super) fn is_complete(&self) -> bool {
        self.stopped
    }

    /// The reply, once it is complete.
    pub(super) fn finish(self, request_id: Option<String>) -> Option<Reply> {
        if !self.stopped {
            return None;
        }
        let id = self.message.text("id");
        let model = self.message.text("model");
        let usage = self.usage.unwrap_or_default();
        let main = last_message(&usage);
        let bill = bill(&usage);
        let blocks: Vec<ReplyBlock> = self
            .blocks
            .into_iter()
            .map(|slot| match slot.state {
                BlockState::Open(block) => block.finish(),
                BlockState::Done(block) => block,
            })
            .collect();
        let blocks = usable_after_fallback(blocks);
        Some(Reply {
            id,
            stop: stop_reason(&self.message, &blocks),
            blocks,
            usage: Usage {
                input_tokens: bill.input,
                cache_write_tokens: bill.write_5m + bill.write_1h,
                cache_read_tokens: bill.read,
                output_tokens: bill.output,
                cost_nanousd: bill.nanousd(&model),
            },
            context_tokens: main.prompt() + main.output,
            cache_miss: cache_miss(&self.message),
            model,
            request_id,
        })
    }

    fn start_block(&mut self, index: u32, block: Object, text: String) -> Progress {
        let block = OpenBlock::new(block, text);
        if let Some(model) = block.fallback_model() {
            self.message.set_text("model", &model);
        }
        let kind = block.kind();
        self.blocks.push(Slot { index, state: BlockState::Open(block) });
        Progress::BlockStarted { index, kind }
    }

    fn grow_block(&mut self, index: u32, delta: Delta) -> Result<Option<Progress>, AssembleError> {
        // From the end: the newest block is the one that grows, and a server that counts wrongly loses nothing.
        let slot = self.blocks.iter_mut().rev().find(|slot| slot.index == index);
        let slot = slot.ok_or(AssembleError::NoSuchBlock(index))?;
        let BlockState::Open(block) = &mut slot.state else {
            return Ok(None);
        };
        let shown = block.grow(delta).filter(|text| !text.is_empty());
        Ok(shown.map(|text| Progress::Delta { index, text }))
    }

    fn stop_block(&mut self, index: u32) {
        let Some(at) = self.blocks.iter().rposition(|slot| slot.index == index) else {
            return;
        };
        let slot = self.blocks.remove(at);
        let state = match slot.state {
            BlockState::Open(block) => BlockState::Done(block.finish()),
            done @ BlockState::Done(_) => done,
        };
        self.blocks.insert(at, Slot { index, state });
    }

    fn merge(&mut self, event: &Object) {
        let delta: Object = event.read("delta").unwrap_or_default();
        copy(&delta, &DELTA_KEYS, &mut self.message);
        copy(event, &EVENT_KEYS, &mut self.message);
        if let Some(usage) = event.read("usage") {
            copy(&usage, &USAGE_KEYS, self.usage.get_or_insert_default());
        }
    }
}

fn copy(from: &Object, keys: &[&str], to: &mut Object) {
    for key in keys {
        if let Some(value) = from.get(key) {
            to.set(key, value.to_owned());
        }
    }
}

/// After a fallback to another model in mid-output, the thinking and the calls before it belong to the model that was
/// stopped: they are neither run nor sent back.
fn usable_after_fallback(blocks: Vec<ReplyBlock>) -> Vec<ReplyBlock> {
    let fallback = blocks.iter().rposition(|block| block.kind == BlockKind::Other("fallback".to_owned()));
    let keep = |(at, block): &(usize, ReplyBlock)| match block.kind {
        BlockKind::Thinking(_) | BlockKind::ToolUse(_) => fallback.is_none_or(|fallback| *at > fallback),
        BlockKind::Text(_) | BlockKind::Other(_) => true,
    };
    blocks.into_iter().enumerate().filter(keep).map(|(_, block)| block).collect()
}

fn stop_reason(message: &Object, blocks: &[ReplyBlock]) -> StopReason {
    let Some(reason) = message.read::<String>("stop_reason") else {
        // `message_stop` came, so the reply is whole; some servers just do not say why.
        let calls = blocks.iter().any(|block| matches!(block.kind, BlockKind::ToolUse(_)));
        return if calls { StopReason::ToolUse } else { StopReason::EndTurn };
    };
    match reason.as_str() {
        "end_turn" => StopReason::EndTurn,
        "stop_sequence" => StopReason::StopSequence(message.read("stop_sequence")),
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => {
            let details: Object = message.read("stop_details").unwrap_or_default();
            StopReason::Refusal { category: details.read("category"), explanation: details.read("explanation") }
        }
        "model_context_window_exceeded" => StopReason::ContextWindowExceeded,
        "compaction" => StopReason::Compaction,
        _ => StopReason::Unknown(reason),
    }
}

/// What a reply is billed for. With iterations on the server each has its own numbers, and the totals leave some out.
fn bill(usage: &Object) -> Bill {
    let parts = iterations(usage);
    let us = usage.text("inference_geo") == "us";
    let fast = usage.text("speed") == "fast";
    let sum = if parts.is_empty() { tokens(usage) } else { parts.iter().map(tokens).fold(Bill::default(), Bill::plus) };
    Bill { us, fast, ..sum }
}

/// The tokens of the last message proper: what the conversation holds now.
fn last_message(usage: &Object) -> Bill {
    let parts = iterations(usage);
    parts.iter().rfind(|part| part.text("type") == "message").map_or_else(|| tokens(usage), tokens)
}

fn iterations(usage: &Object) -> Vec<Object> {
    usage.read("iterations").unwrap_or_default()
}

fn tokens(usage: &Object) -> Bill {
    let count = |usage: &Object, key: &str| usage.get(key).map(RawValue::get).and_then(whole_number);
    let split: Object = usage.read("cache_creation").unwrap_or_default();
    let written = count(usage, "cache_creation_input_tokens").unwrap_or_default();
    // The split comes at the start only; the total counts.
    let write_1h = count(&split, "ephemeral_1h_input_tokens").unwrap_or_default().min(written);
    Bill {
        input: count(usage, "input_tokens").unwrap_or_default(),
        write_5m: written - write_1h,
        write_1h,
        read: count(usage, "cache_read_input_tokens").unwrap_or_default(),
        output: count(usage, "output_tokens").unwrap_or_default(),
        ..Bill::default()
    }
}

/// The server's word why its cache was not read: a text, or an object with a type.
fn cache_miss(message: &Object) -> Option<String> {
    let diagnostics: Object = message.read("diagnostics")?;
    diagnostics.read::<String>("cache_miss_reason").or_else(|| {
        let reason: Object = diagnostics.read("cache_miss_reason")?;
        reason.read("type")
    })
}

/// A count of tokens; some servers write `12.0`.
fn whole_number(text: &str) -> Option<u64> {
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}

#[cfg(test)]
mod tests;
