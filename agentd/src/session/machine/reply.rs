//! What a reply means for the turn: every stop reason by name (anthropic-api section 7).

use proto::event::{Problem, TurnOutcome};
use proto::ids::{CallId, RequestId, TurnId};
use uuid::Uuid;

use super::state::{NUDGES_MAX, PAUSES_MAX, Turn};
use crate::model::{BlockKind, Reply, ReplyBlock, StopReason, ToolInput};
use crate::store::entry::{StoredBlock, StoredCall, StoredInput, StoredKind, StoredReply};

/// How the turn goes on after a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Work off the calls, then send their results.
    Calls,
    /// Tell the model something, then send.
    Nudge(&'static str),
    /// Send again as it is.
    Again,
    /// The summary that was asked for stands in the history's place.
    Compacted,
    /// The window is full: compact, then go on.
    Full,
    /// The turn is over.
    End(TurnOutcome),
}

/// Asks the model to go on where the output limit cut it.
const CONTINUE_CUT: &str = "Your reply reached the output limit. Continue exactly where it stopped.";

/// Asks for an answer after a reply without content.
const CONTINUE_EMPTY: &str = "Continue.";

/// What a reply means.
pub(super) fn after(reply: &Reply, turn: &Turn, max_tokens: u32) -> After {
    let has_calls = reply.blocks.iter().any(|block| matches!(block.kind, BlockKind::ToolUse(_)));
    match &reply.stop {
        StopReason::Refusal { category, explanation } => {
            After::End(TurnOutcome::Refused { category: category.clone(), explanation: explanation.clone() })
        }
        StopReason::ContextWindowExceeded if has_calls => After::Calls,
        StopReason::ContextWindowExceeded => After::Full,
        StopReason::Compaction if turn.compacting.is_some() => After::Compacted,
        StopReason::PauseTurn | StopReason::Compaction if turn.pauses >= PAUSES_MAX => After::End(failed(
            "paused_too_often",
            format!("the server paused this turn {PAUSES_MAX} times in a row"),
            "send another prompt to go on",
        )),
        StopReason::PauseTurn | StopReason::Compaction if has_calls => After::Calls,
        StopReason::PauseTurn | StopReason::Compaction => After::Again,
        // Compatible servers say `end_turn` beside calls; an unknown reason with calls is best served by answering them.
        StopReason::ToolUse
        | StopReason::EndTurn
        | StopReason::StopSequence(_)
        | StopReason::MaxTokens
        | StopReason::Unknown(_)
            if has_calls =>
        {
            After::Calls
        }
        StopReason::MaxTokens if turn.nudges >= NUDGES_MAX => After::End(failed(
            "output_limit",
            format!("the model's reply reached the output limit of {max_tokens} tokens {NUDGES_MAX} times in a row"),
            "raise model.max_tokens in the configuration, or ask for smaller steps",
        )),
        StopReason::MaxTokens => After::Nudge(CONTINUE_CUT),
        StopReason::ToolUse | StopReason::EndTurn | StopReason::StopSequence(_) | StopReason::Unknown(_) => {
            let empty = reply.blocks.is_empty();
            if empty && turn.nudges == 0 && turn.requests > 1 {
                After::Nudge(CONTINUE_EMPTY)
            } else {
                After::End(TurnOutcome::Done {})
            }
        }
    }
}

/// The reply as it is kept.
pub(super) fn stored(reply: &Reply, turn: TurnId, request: RequestId, ids: &mut dyn FnMut() -> Uuid) -> StoredReply {
    let cut = matches!(reply.stop, StopReason::MaxTokens | StopReason::ContextWindowExceeded);
    let last = reply.blocks.len().saturating_sub(1);
    let blocks: Vec<StoredBlock> =
        reply.blocks.iter().enumerate().map(|(index, block)| stored_block(block, cut && index == last, ids)).collect();
    let refused = matches!(reply.stop, StopReason::Refusal { .. });
    StoredReply {
        turn,
        request,
        kept: !refused && !blocks.is_empty(),
        replaces_history: matches!(reply.stop, StopReason::Compaction),
        blocks,
        stop_reason: reply.stop.as_str().to_owned(),
        usage: reply.usage,
        model: reply.model.clone(),
        message: reply.id.clone(),
        context_tokens: reply.context_tokens,
        cache_miss: None,
        at: proto::ids::Timestamp(0),
    }
}

fn stored_block(block: &ReplyBlock, cut: bool, ids: &mut dyn FnMut() -> Uuid) -> StoredBlock {
    let kind = match &block.kind {
        BlockKind::Text(text) => StoredKind::Text { text: text.clone() },
        BlockKind::Thinking(text) => StoredKind::Thinking { text: text.clone() },
        BlockKind::Other(kind) => StoredKind::Other { kind: kind.clone() },
        BlockKind::ToolUse(call) => StoredKind::Call(StoredCall {
            call: CallId(ids()),
            tool_use_id: call.id.clone(),
            tool: call.name.clone(),
            input: match &call.input {
                // A cut input may parse by chance and still lack its second half.
                ToolInput::Valid(json) if cut => StoredInput::Broken(json.as_str().to_owned()),
                ToolInput::Valid(json) => StoredInput::Valid(json.clone()),
                ToolInput::Broken(text) => StoredInput::Broken(text.clone()),
            },
        }),
    };
    StoredBlock { raw: block.raw.as_str().to_owned(), kind }
}

/// The window is full, and compaction did not help.
pub(super) fn context_full() -> TurnOutcome {
    failed(
        "context_full",
        "the conversation fills the model's context window, and compacting it did not help".to_owned(),
        "start a new session, with a summary of this one as its first prompt",
    )
}

/// A turn that could not go on.
pub(super) fn failed(code: &str, message: String, hint: &str) -> TurnOutcome {
    TurnOutcome::Failed { problem: Problem { code: code.into(), message, hint: hint.into(), request_id: None } }
}
