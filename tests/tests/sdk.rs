//! The fake model server against the official Python SDK: whoever speaks to the fake as the SDK does speaks to the real
//! server, too.
//!
//! Needs a Python with the `anthropic` package: `AGENTD_TEST_SDK_PYTHON` names it, else `python3` is tried. Without one
//! the claim is skipped with its reason.

use std::process::Command;

use harness::binaries::repository;
use harness::model_server::{Block, ModelServer, Received, Reply};
use serde_json::{Value, json};

fn python() -> Option<String> {
    let python = std::env::var("AGENTD_TEST_SDK_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = Command::new(&python).args(["-c", "import anthropic"]).output();
    probe.is_ok_and(|output| output.status.success()).then_some(python)
}

fn answer(request: &Received) -> Reply {
    match (request.first_prompt().as_str(), request.rounds()) {
        ("streamed text", _) => {
            Reply::blocks(vec![Block::Thinking("hm".into()), Block::Text("héllo wörld, this is text".into())]).pieces(5)
        }
        ("overloaded", _) => Reply::error(529, "overloaded_error", "Overloaded"),
        ("error in the stream", _) => Reply::text("half an ans").then_error("overloaded_error", "Overloaded"),
        (_, 0) => Reply::blocks(vec![Block::Text("two calls".into()), Block::bash("ls -l"), Block::bash("pwd")]),
        (_, 1) => {
            let texts: Vec<String> = request.results().into_iter().map(|result| result.text).collect();
            assert_eq!(texts, ["ok ls -l", "ok pwd"]);
            Reply::bash("date")
        }
        _ => Reply::text("finished"),
    }
}

#[test]
fn the_official_sdk_reads_the_fake_server_as_it_reads_the_real_one() {
    let Some(python) = python() else {
        println!("skipped: no Python with the anthropic package (pip install anthropic; AGENTD_TEST_SDK_PYTHON)");
        return;
    };
    let server = ModelServer::start();
    server.answer_with(answer);
    let script = repository().join("tests/sdk_check.py");
    let output = Command::new(python).arg(script).arg(server.url()).output().expect("python runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{:?}", server.take_violations());
    let seen: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let looped = json!({ "ran": ["ls -l", "pwd", "date"], "text": "finished", "stop_reason": "end_turn" });
    assert_eq!(seen["streamed"]["text"], "héllo wörld, this is text");
    assert_eq!(seen["streamed"]["blocks"], json!(["thinking", "text"]));
    assert_eq!(seen["streamed"]["stop_reason"], "end_turn");
    assert_eq!(seen["streamed"]["output_tokens"], 15);
    assert!(seen["streamed"]["pieces"].as_u64() > Some(1));
    assert_eq!(seen["loop"], looped);
    assert_eq!(seen["streamed_loop"], looped);
    assert_eq!(seen["overloaded"]["status"], 529);
    assert_eq!(seen["overloaded"]["class"], "OverloadedError");
    assert!(seen["overloaded"]["request_id"].as_str().is_some_and(|id| id.starts_with("req_fake_")));
    assert_eq!(seen["mid_stream"]["status"], 200);
}
