//! The conversation itself: how full the window is, compaction by hand and by need, notes in mid-turn, the last prompt in
//! other words, another model.

use harness::ctl::code;
use harness::model_server::{Block, Received, Reply};
use harness::scene::Scene;
use proto::event::{EventBody, TurnOutcome};
use proto::request::ApproveMode;
use proto::response::SessionState;
use serde_json::{Value, json};

fn ctl(scene: &Scene, arguments: &[&str]) -> String {
    let id = scene.session.to_string();
    let mut all = vec![arguments[0], id.as_str()];
    all.extend(&arguments[1..]);
    scene.machine.ctl(&all).run().expect(code::DONE).stderr
}

fn says(request: &Received) -> String {
    request.json["messages"].to_string()
}

/// A call whose prompt had so many tokens.
fn call_at(tokens: u64, command: &str) -> Reply {
    Reply::bash(command).usage(json!({ "input_tokens": tokens }))
}

fn is_summary_request(request: &Received) -> bool {
    says(request).contains("replaced by a summary")
}

#[test]
fn a_window_that_is_nearly_full_is_compacted_in_mid_turn_and_the_work_goes_on() {
    let mut scene = Scene::with(&[("context.window", "10000")]);
    scene.server.script(call_at(4_000, "echo one"));
    scene.server.script(call_at(8_100, "echo two"));
    scene.server.script(Reply::text("Did one and two; three is left.").usage(json!({ "input_tokens": 8_300 })));
    scene.server.script(call_at(900, "echo three"));
    scene.server.script(Reply::text("all done"));
    scene.prompt("count to three", ApproveMode::All);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let requests = scene.server.requests();
    let (before, asked, after) = (&requests[1], &requests[2], &requests[3]);
    assert!(is_summary_request(asked) && says(asked).contains("two") && asked.json["tools"] == before.json["tools"]);
    let messages = after.json["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(says(after).contains("three is left") && says(after).contains("count to three"), "{}", says(after));
    assert!(!says(after).contains("tool_result"));
    assert_eq!(after.json["system"], before.json["system"], "instructions stay");
    // What was compacted stays readable, and the summary is no answer.
    let log = ctl(&scene, &["log"]) + &scene.machine.ctl(&["log", &scene.session.to_string()]).run().stdout;
    for word in ["echo one", "echo two", "three is left", "compacting"] {
        assert!(log.contains(word), "{word} in {log}");
    }
    let info = scene.client.show(scene.session);
    assert!(info.context_tokens > 0 && info.context_tokens < 4_000 && info.context_window == 10_000, "{info:?}");
    // The daemon's next life has the same history.
    scene.kill_daemon();
    scene.start_daemon();
    scene.server.script(Reply::text("hello"));
    scene.prompt("and?", ApproveMode::Ask);
    scene.client.until_event("the second turn's end", |body| match body {
        EventBody::TurnEnded(_) => Some(()),
        _ => None,
    });
    let last = scene.server.wait_for(6);
    assert!(says(&last).contains("three is left"), "{}", says(&last));
}

#[test]
fn compaction_on_demand_is_a_turn_of_its_own() {
    let mut scene = Scene::new();
    scene.server.script(Reply::text("a long story"));
    scene.good_turn("tell me a story");
    scene.server.script(Reply::text("The user was told a story."));
    ctl(&scene, &["compact"]);
    let summary = scene.client.until_event("a summary", |body| match body {
        EventBody::Compacted(compacted) => compacted.summary.clone(),
        _ => None,
    });
    assert_eq!(summary, "The user was told a story.");
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    scene.server.script(Reply::text("yes"));
    scene.good_turn("remember?");
    let last = scene.server.wait_for(3);
    assert!(says(&last).contains("was told a story") && !says(&last).contains("a long story"), "{}", says(&last));
}

#[test]
fn a_conversation_that_is_too_long_already_finds_its_way_out() {
    let mut scene = Scene::new();
    let too_long =
        || Reply::error(400, "invalid_request_error", "prompt is too long: 1200000 tokens > 1000000 maximum");
    scene.server.script(Reply::bash("seq 2000"));
    scene.server.script(too_long());
    scene.server.script(too_long());
    scene.server.script(Reply::text("seq was run"));
    scene.server.script(Reply::text("done"));
    scene.good_turn("count far");
    let requests = scene.server.requests();
    let sizes: Vec<usize> = requests.iter().map(|request| request.body.len()).collect();
    assert!(is_summary_request(&requests[2]) && is_summary_request(&requests[3]));
    assert!(says(&requests[2]).contains("<conversation>") && sizes[3] <= sizes[2], "{sizes:?}");
    assert!(says(&requests[4]).contains("seq was run") && says(&requests[4]).contains("count far"));
}

#[test]
fn output_that_ran_into_the_window_is_compacted_and_gone_on_with() {
    let mut scene = Scene::new();
    scene.server.script(Reply::text("half of it").stop("model_context_window_exceeded"));
    scene.server.script(Reply::text("Half is said."));
    scene.server.script(Reply::text("the other half"));
    scene.good_turn("say much");
    assert!(says(&scene.server.wait_for(3)).contains("Half is said."));
}

#[test]
fn where_the_server_makes_summaries_it_is_asked_to() {
    let mut scene = Scene::with(&[("context.window", "10000"), ("model.betas", "compact-2026-09-04")]);
    scene.server.script(call_at(9_000, "echo one"));
    let block = json!({ "type": "compaction", "content": "sum", "encrypted_content": "e", "signature": "s" });
    scene.server.script(Reply::blocks(vec![Block::Other(block.clone())]).stop("compaction"));
    scene.server.script(Reply::text("done"));
    scene.good_turn("one");
    let asked = scene.server.wait_for(2);
    assert_eq!(asked.json["compaction"], json!({ "type": "summarize" }));
    assert!(!is_summary_request(&asked));
    let after = scene.server.wait_for(3);
    assert_eq!(after.json["messages"][0], json!({ "role": "assistant", "content": [block] }));
    assert_eq!(after.json["messages"][1]["role"], "user");
    assert_eq!(after.json["compaction"], Value::Null);
}

#[test]
fn a_note_reaches_the_model_at_the_next_boundary() {
    let mut scene = Scene::new();
    let session = scene.session.to_string();
    // The command waits for the note to be taken.
    scene.server.script(Reply::bash("while ! test -e go; do sleep 0.01; done; echo went"));
    scene.server.script(Reply::text("with tabs, then"));
    scene.prompt("write code", ApproveMode::All);
    scene.client.until_event("a running command", |body| matches!(body, EventBody::CallStarted(_)).then_some(()));
    let _ = scene.machine.ctl(&["steer", &session, "use tabs"]).run().expect(code::DONE);
    let by = scene.client.until_event("the note", |body| match body {
        EventBody::Steered(steered) => Some(steered.by.clone()),
        _ => None,
    });
    assert!(by.contains("agentctl"), "{by}");
    std::fs::write(scene.machine.work().join("go"), "").unwrap();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let messages = scene.server.wait_for(2).json["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "system"]);
    assert!(messages[3].to_string().contains("use tabs"));
    let late = scene.machine.ctl(&["steer", &session, "too late"]).run().expect(code::OTHER);
    assert!(late.stderr.contains("nothing runs"), "{}", late.stderr);
}

#[test]
fn the_last_prompt_is_asked_again_in_other_words() {
    let mut scene = Scene::new();
    scene.server.script(Reply::text("Hello."));
    scene.good_turn("greet");
    scene.server.script(Reply::text("Nonsense."));
    scene.good_turn("say something wise");
    scene.server.forget_histories();
    scene.server.script(Reply::text("Wise words."));
    ctl(&scene, &["rerun", "say something wise and short", "--approve", "all"]);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let sent = says(&scene.server.wait_for(3));
    assert!(sent.contains("wise and short") && sent.contains("Hello.") && !sent.contains("Nonsense"), "{sent}");
}

#[test]
fn model_effort_and_limit_change_between_turns_and_the_history_stays() {
    let mut scene = Scene::new();
    let session = scene.session.to_string();
    scene.server.script(Reply::blocks(vec![Block::Thinking("hm".into()), Block::Text("one".into())]));
    scene.good_turn("first");
    ctl(&scene, &["set", "model=claude-opus-4-5", "effort=max", "max_tokens=100000"]);
    scene.kill_daemon();
    scene.start_daemon();
    scene.server.script(Reply::text("two"));
    scene.prompt("second", ApproveMode::All);
    let request = scene.server.wait_for(2).json;
    assert_eq!(request["model"], "claude-opus-4-5");
    assert_eq!(request["max_tokens"], 64_000, "no more than the model writes");
    assert_eq!(request["output_config"]["effort"], "high", "the most that it takes");
    assert_eq!(request["thinking"]["type"], "enabled");
    assert!(
        request["messages"].to_string().contains("hm"),
        "thinking stays; the server drops what the model cannot read"
    );
    let info = scene.client.show(scene.session);
    assert_eq!((info.model.as_str(), info.max_tokens), ("claude-opus-4-5", 100_000));
    for wrong in
        [&["set", &session, "colour=red"][..], &["set", &session, "effort=much"], &["set", &session, "max_tokens=0"]]
    {
        let output = scene.machine.ctl(wrong).run();
        assert!(output.code() != code::DONE && output.stderr.contains(['`', '0']), "{output:?}");
    }
}

#[test]
fn the_models_api_says_what_a_model_takes() {
    let mut scene = Scene::with(&[("model.name", "claude-next"), ("model.effort", "max")]);
    let yes = || json!({ "supported": true });
    scene.server.describe_model(
        "claude-next",
        json!({ "id": "claude-next", "type": "model", "max_input_tokens": 300_000, "max_tokens": 9_000, "capabilities": {
            "effort": { "supported": true, "low": yes(), "medium": yes(), "high": { "supported": false } },
            "thinking": { "supported": true, "types": { "adaptive": { "supported": false }, "enabled": yes() } },
        }}),
    );
    scene.server.script(Reply::text("hello"));
    scene.good_turn("hello");
    let request = scene.server.wait_for(1).json;
    assert_eq!(request["thinking"]["type"], "enabled");
    assert_eq!(request["output_config"]["effort"], "medium");
    assert_eq!(request["max_tokens"], 9_000);
    let info = scene.client.show(scene.session);
    assert_eq!((info.context_window, info.state), (300_000, SessionState::Idle));
}
