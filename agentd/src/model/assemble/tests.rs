//! Every stream of `tests/data/sse` reaches the message that its JSON file states, however its bytes are cut.
//!
//! | rule of the stream | claim |
//! |---|---|
//! | order of events, blocks by index | `text_only`, `thinking_and_text`, `parallel_tools`, `growth_of_a_block_that_never_began_is_an_error` |
//! | pings and errors anywhere | `pings_between`, `error_in_mid_stream` |
//! | unknown events, deltas, fields | `unknown_types` |
//! | empty input is `{}` | `empty_input`, `a_start_without_input_gets_one` |
//! | input only as strict JSON | `broken_tool_input`, `max_tokens_inside_an_input`, `inputs_that_are_no_single_readable_object_are_broken` |
//! | the model's own text of an input | `a_tool_input_keeps_the_models_own_text` |
//! | line ends, several data lines, split characters | `odd_line_ends`, `characters_cut_apart` |
//! | `message_stop` is required | `without_message_stop_there_is_no_reply` |
//! | usage replaces, all of it optional | `usage_is_replaced_and_never_added`, `a_proxy_without_usage` |
//! | compatible servers | `llama_cpp`, `ollama`, `a_missing_stop_reason_is_told_from_the_blocks` |
//! | compaction, fallback | `compaction_and_fallback`, `what_the_stopped_model_thought_and_called_before_a_fallback_is_dropped` |

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::model::ToolInput;
use crate::model::sse::{Decoder, Event};

/// What a stream came to, in the words of the expected files. It is read off the assembler's own state.
fn outcome(assembler: Assembler, error: Value) -> Value {
    let mut message: Map<String, Value> = serde_json::from_str(assembler.message.to_json().as_str()).unwrap();
    let usage = assembler.usage.as_ref().map_or(Value::Null, |usage| usage.to_json().to_value());
    let (mut finished, mut unfinished, mut invalid, mut content) = (vec![], vec![], vec![], vec![]);
    for slot in assembler.blocks {
        let block = match slot.state {
            BlockState::Open(block) => {
                unfinished.push(slot.index);
                block.finish()
            }
            BlockState::Done(block) => {
                finished.push(slot.index);
                block
            }
        };
        let mut value = block.raw.to_value();
        if let BlockKind::ToolUse(call) = &block.kind {
            match &call.input {
                ToolInput::Valid(input) => assert_eq!(value["input"], input.to_value()),
                ToolInput::Broken(raw) => {
                    assert_eq!(value["input"], json!({}), "a broken input goes back as an empty one");
                    value["input"] = Value::Null;
                    invalid.push(json!({ "index": slot.index, "raw": raw }));
                }
            }
        }
        content.push(value);
    }
    message.insert("content".to_owned(), Value::Array(content));
    message.insert("usage".to_owned(), usage);
    json!({
        "complete": assembler.stopped, "error": error, "message": message, "invalid_inputs": invalid,
        "finished_blocks": finished, "unfinished_blocks": unfinished,
    })
}

fn play<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Value {
    let mut decoder = Decoder::default();
    let mut assembler = Assembler::default();
    let mut error = Value::Null;
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.feed(chunk, &mut events).unwrap();
    }
    decoder.finish(&mut events).unwrap();
    for event in &events {
        match StreamEvent::read(event).unwrap() {
            StreamEvent::Error(text) => {
                let event: Value = serde_json::from_str(&text).unwrap();
                error = event["error"].clone();
                if let Some(id) = event.get("request_id") {
                    error["request_id"] = id.clone();
                }
            }
            step => drop(assembler.apply(step).unwrap()),
        }
    }
    outcome(assembler, error)
}

/// Absent equals null where the expected files say so.
fn normal(mut value: Value) -> Value {
    for key in ["stop_reason", "stop_sequence", "usage"] {
        if value["message"].get(key).is_none() {
            value["message"][key] = Value::Null;
        }
    }
    value
}

fn check(name: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/sse");
    let body = std::fs::read(folder.join(format!("{name}.sse"))).unwrap();
    let expected: Value = serde_json::from_slice(&std::fs::read(folder.join(format!("{name}.json"))).unwrap()).unwrap();
    let compare = |actual: Value, how: &str| {
        let (actual, expected) = (normal(actual), normal(expected.clone()));
        for key in ["complete", "error", "message"] {
            assert_eq!(actual[key], expected[key], "{name}, {how}: {key}");
        }
        let none = json!([]);
        assert_eq!(actual["invalid_inputs"], *expected.get("invalid_inputs").unwrap_or(&none), "{name}, {how}");
        for key in ["finished_blocks", "unfinished_blocks"] {
            if let Some(blocks) = expected.get(key) {
                assert_eq!(actual[key], *blocks, "{name}, {how}: {key}");
            }
        }
    };
    compare(play(std::iter::once(&body[..])), "whole");
    compare(play(body.chunks(1)), "byte by byte");
    compare(play(body.chunks(7)), "7 bytes at a time");
    if let Some(sizes) = expected.get("chunk_sizes") {
        let mut rest = &body[..];
        let chunks: Vec<&[u8]> = sizes
            .as_array()
            .unwrap()
            .iter()
            .map(|size| rest.split_off(..usize::try_from(size.as_u64().unwrap()).unwrap()).unwrap())
            .collect();
        assert!(rest.is_empty());
        compare(play(chunks.into_iter()), "in the stated chunks");
    }
}

macro_rules! vectors {
    ($($test:ident = $name:literal,)*) => {
        $(#[test] fn $test() { check($name); })*

        #[test]
        fn every_vector_has_a_test() {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/sse");
            let mut files: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .filter_map(|entry| entry.unwrap().file_name().to_str().unwrap().strip_suffix(".sse").map(str::to_owned))
                .collect();
            files.sort();
            assert_eq!(files, [$($name),*]);
        }
    };
}

vectors! {
    text_only = "01-text-only",
    thinking_and_text = "02-thinking-text",
    parallel_tools = "03-parallel-tools",
    empty_input = "04-empty-input",
    pings_between = "05-ping-interleaved",
    error_in_mid_stream = "06-error-midstream",
    odd_line_ends = "07-crlf-multiline",
    unknown_types = "08-unknown-types",
    refusal = "09a-refusal",
    max_tokens_inside_an_input = "09b-max-tokens",
    pause_turn = "09c-pause-turn",
    characters_cut_apart = "10-utf8-split",
    llama_cpp = "11a-compat-minimal",
    ollama = "11b-compat-sparse",
    a_proxy_without_usage = "11c-compat-no-usage",
    broken_tool_input = "12a-eager-invalid-json",
    compaction_and_fallback = "12b-beta-compaction-fallback",
}

/// Plays data-only events.
fn reply(data: &[&str]) -> Option<Reply> {
    let mut assembler = Assembler::default();
    for data in data {
        let event = Event { name: String::new(), data: (*data).to_owned() };
        assembler.apply(StreamEvent::read(&event).unwrap()).unwrap();
    }
    assembler.finish(None)
}

const START: &str = r#"{"type":"message_start","message":{"id":"m","model":"x","content":[]}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn tool_call(start: &str, fragments: &[&str]) -> ReplyBlock {
    let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{start}}}"#);
    let deltas: Vec<String> = fragments
        .iter()
        .map(|json| {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json}})
                .to_string()
        })
        .collect();
    let mut data = vec![START, &start];
    data.extend(deltas.iter().map(String::as_str));
    data.push(STOP);
    reply(&data).unwrap().blocks.remove(0)
}

#[test]
fn a_tool_input_keeps_the_models_own_text() {
    let block = tool_call(
        r#"{"type":"tool_use","id":"t","name":"bash","input":{},"caller":{"type":"direct"}}"#,
        &["{\"z\": 1.0e2,", " \"a\": 12345678901234567890123}"],
    );
    assert_eq!(
        block.raw.as_str(),
        r#"{"type":"tool_use","id":"t","name":"bash","input":{"z": 1.0e2, "a": 12345678901234567890123},"caller":{"type":"direct"}}"#
    );
}

#[test]
fn a_start_without_input_gets_one() {
    let block = tool_call(r#"{"type":"tool_use","id":"t","name":"bash"}"#, &["{\"a\":\n1}"]);
    assert_eq!(block.raw.as_str(), r#"{"type":"tool_use","id":"t","name":"bash","input":{"a": 1}}"#);
}

#[test]
fn an_input_sent_whole_with_the_start_counts() {
    let start = r#"{"type":"tool_use","id":"t","name":"bash","input":{"command":"ls"}}"#;
    assert_eq!(tool_call(start, &[]).raw.as_str(), start);
    assert_eq!(tool_call(start, &[""]).raw.as_str(), start);
}

#[test]
fn inputs_that_are_no_single_readable_object_are_broken() {
    for json in ["[1]", "null", "{} {}", "{\"a\":1}x", "{\"a\":\"\u{1}\"}", "{\"a\":\"\\ud800\"}", "{'a':1}", "{"] {
        let block = tool_call(r#"{"type":"tool_use","id":"t","name":"bash","input":{}}"#, &[json]);
        let BlockKind::ToolUse(call) = block.kind else { panic!("{:?}", block.kind) };
        assert_eq!(call.input, ToolInput::Broken(json.to_owned()));
        assert_eq!(block.raw.as_str(), r#"{"type":"tool_use","id":"t","name":"bash","input":{}}"#);
    }
}

#[test]
fn without_message_stop_there_is_no_reply() {
    let stopped = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    assert!(reply(&[START, stopped]).is_none());
    assert!(reply(&[START, "[DONE]"]).is_none());
    assert!(reply(&[START, stopped, "[DONE]"]).is_some(), "an explicit end after the reason is an end");
}

#[test]
fn a_missing_stop_reason_is_told_from_the_blocks() {
    let call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash"}}"#;
    assert_eq!(reply(&[START, call, STOP]).unwrap().stop, StopReason::ToolUse);
    assert_eq!(reply(&[START, STOP]).unwrap().stop, StopReason::EndTurn);
}

#[test]
fn every_stop_reason_has_its_name() {
    let stop = |delta: Value| reply(&[START, &json!({"type": "message_delta", "delta": delta}).to_string(), STOP]);
    let cases = [
        (json!({"stop_reason": "end_turn"}), StopReason::EndTurn),
        (json!({"stop_reason": "stop_sequence", "stop_sequence": "END"}), StopReason::StopSequence(Some("END".into()))),
        (json!({"stop_reason": "tool_use"}), StopReason::ToolUse),
        (json!({"stop_reason": "max_tokens"}), StopReason::MaxTokens),
        (json!({"stop_reason": "pause_turn"}), StopReason::PauseTurn),
        (
            json!({"stop_reason": "refusal", "stop_details": {"category": "cyber", "explanation": null}}),
            StopReason::Refusal { category: Some("cyber".into()), explanation: None },
        ),
        (json!({"stop_reason": "model_context_window_exceeded"}), StopReason::ContextWindowExceeded),
        (json!({"stop_reason": "compaction"}), StopReason::Compaction),
        (json!({"stop_reason": "tired"}), StopReason::Unknown("tired".into())),
    ];
    for (delta, expected) in cases {
        assert_eq!(stop(delta).unwrap().stop, expected);
    }
}

#[test]
fn usage_is_replaced_and_never_added() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}"#;
    let delta = |usage: &str| format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#);
    let usage = reply(&[
        start,
        &delta(r#"{"output_tokens":10,"cache_read_input_tokens":null}"#),
        &delta(r#"{"output_tokens":12,"cache_creation_input_tokens":3}"#),
        STOP,
    ])
    .unwrap()
    .usage;
    let expected =
        Usage { input_tokens: 5, cache_write_tokens: 3, cache_read_tokens: 7, output_tokens: 12, cost_nanousd: None };
    assert_eq!(usage, expected);
}

#[test]
fn what_the_stopped_model_thought_and_called_before_a_fallback_is_dropped() {
    let block = |index: u32, block: Value| {
        json!({"type": "content_block_start", "index": index, "content_block": block}).to_string()
    };
    let reply = reply(&[
        START,
        &block(0, json!({"type": "thinking", "thinking": "a", "signature": "s"})),
        &block(1, json!({"type": "text", "text": "kept"})),
        &block(2, json!({"type": "tool_use", "id": "t", "name": "bash", "input": {}})),
        &block(3, json!({"type": "fallback", "to": {"model": "other"}})),
        &block(4, json!({"type": "tool_use", "id": "u", "name": "bash", "input": {}})),
        STOP,
    ])
    .unwrap();
    assert_eq!(reply.model, "other");
    let kinds: Vec<&str> = reply
        .blocks
        .iter()
        .map(|block| match &block.kind {
            BlockKind::Text(_) => "text",
            BlockKind::Thinking(_) => "thinking",
            BlockKind::ToolUse(call) => &call.id,
            BlockKind::Other(kind) => kind,
        })
        .collect();
    assert_eq!(kinds, ["text", "fallback", "u"]);
}

#[test]
fn growth_of_a_block_that_never_began_is_an_error() {
    let data = r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"lost"}}"#;
    let event = Event { name: String::new(), data: data.to_owned() };
    assert!(Assembler::default().apply(StreamEvent::read(&event).unwrap()).is_err());
}

proptest! {
    /// Nothing that a server sends makes the reader panic.
    #[test]
    fn any_bytes_are_read_or_refused(
        lines in proptest::collection::vec(
            "(data: |event: )?(\\{\"type\":\"(message_start|content_block_start|content_block_delta|content_block_stop|message_delta|error)\",\"index\":[0-9-]{1,3},\"(delta|content_block|message|usage)\":(\\{\\}|\\{\"type\":\"(text|tool_use|text_delta)\"\\}|[0-9])\\}|[a-z\\[\\]\"{}]{0,9})\n{1,2}",
            0..20,
        )
    ) {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        let mut assembler = Assembler::default();
        prop_assert!(decoder.feed(lines.concat().as_bytes(), &mut events).is_ok());
        for event in &events {
            if let Ok(step) = StreamEvent::read(event) {
                let _ = assembler.apply(step);
            }
        }
        let _ = assembler.finish(None);
    }
}
