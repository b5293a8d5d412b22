//! What it costs: tokens and money per turn, session and day; limits that ask; a cache that is read, or explained.

use harness::ctl::code;
use harness::model_server::Reply;
use harness::scene::Scene;
use proto::approval::{Subject, Verdict};
use proto::event::{EventBody, TurnOutcome};
use proto::request::ApproveMode;
use serde_json::{Value, json};

/// A call that costs one dollar with the default model: 250,000 tokens of input at 4 USD a million.
fn dollar(number: usize) -> Reply {
    Reply::bash(&format!("echo {number}")).usage(json!({ "input_tokens": 250_000, "output_tokens": 0 }))
}

#[test]
fn tokens_and_money_are_counted_per_turn_session_and_day() {
    let mut scene = Scene::new();
    let usage = json!({
        "input_tokens": 1_000, "cache_creation_input_tokens": 2_000, "cache_read_input_tokens": 0, "output_tokens": 100,
    });
    scene.server.script(Reply::bash("echo hi").usage(usage.clone()));
    let mut second = usage;
    second["cache_read_input_tokens"] = json!(3_000);
    scene.server.script(Reply::text("hi").usage(second));
    let ended = scene.turn("greet");
    // 2 × (1,000 × 4 + 2,000 × 5 + 100 × 20) + 3,000 × 0.2, in millionths of a dollar.
    let cost = 2 * (4_000 + 10_000 + 2_000) + 600;
    assert_eq!((ended.requests, ended.usage.cost_nanousd), (2, Some(cost * 1_000)));
    assert_eq!(scene.client.show(scene.session).usage, ended.usage);
    let id = scene.session.to_string();
    let json = scene.machine.ctl(&["usage", &id, "--json"]).run().expect(code::DONE).json_lines();
    let (day, turn) = (&json[0]["days"][0], &json[0]["turns"][0]);
    assert_eq!((&day["model"], &day["requests"], &turn["requests"]), (&json!("claude-opus-5-5"), &json!(2), &json!(2)));
    assert_eq!(day["usage"], turn["usage"]);
    assert_eq!(day["usage"]["cache_read_tokens"], 3_000);
    // What was spent was spent, also when the session is gone.
    let _ = scene.machine.ctl(&["rm", &id]).run().expect(code::DONE);
    let table = scene.machine.ctl(&["usage"]).run().expect(code::DONE).stdout;
    assert!(table.contains("claude-opus-5-5") && table.contains("0.0326 USD"), "{table}");
}

#[test]
fn a_limit_of_money_pauses_the_turn_and_the_answer_goes_on_or_ends_it() {
    let mut scene = Scene::with(&[("budget.turn_usd", "2")]);
    scene.server.answer_with(|request| match request.number {
        1..=4 => dollar(request.number),
        _ => Reply::text("done"),
    });
    scene.prompt("spend", ApproveMode::All);
    let asked = scene.client.until_asked();
    assert!(asked.reason.contains("2.00 USD") && asked.reason.contains("budget.turn_usd"), "{}", asked.reason);
    assert!(matches!(&asked.subject, Subject::Other(other) if other.title.contains("go on")));
    assert_eq!(scene.server.requests().len(), 2, "nothing is sent while the user is asked");
    // The question outlives the daemon.
    scene.kill_daemon();
    scene.start_daemon();
    let again = scene.client.until_asked();
    assert_eq!(again.id, asked.id);
    scene.client.answer(&again, Verdict::Once {}).unwrap();
    let more = scene.client.until_event("the next question", |body| match body {
        EventBody::ApprovalAsked(it) if it.approval.id != asked.id => Some(it.approval.clone()),
        _ => None,
    });
    assert!(more.reason.contains("4.00 USD"), "each yes is worth as much again: {}", more.reason);
    scene.client.answer(&more, Verdict::Deny { reason: None }).unwrap();
    let outcome = scene.client.until_turn_ended().outcome;
    assert!(matches!(&outcome, TurnOutcome::Failed { problem } if problem.code == "money_limit"), "{outcome:?}");
}

#[test]
fn a_script_that_meets_a_limit_is_told_and_does_not_hang() {
    let scene = Scene::with(&[("budget.turn_usd", "1")]);
    scene.server.answer_with(|request| dollar(request.number));
    let output =
        scene.machine.ctl(&["ask", "--new", "--name", "s", "spend", "--approve", "all"]).run().expect(code::MODEL);
    assert!(
        output.stderr.contains("budget.turn_usd") && output.stderr.contains("agentctl attach"),
        "{}",
        output.stderr
    );
    let _ = scene.machine.ctl(&["interrupt", "s"]).run().expect(code::DONE);
    let output = scene.machine.ctl(&["ask", "--new", "spend", "--approve", "none"]).run();
    assert!(output.stderr.contains("budget.turn_usd"), "nobody can answer: the turn ends: {}", output.stderr);
    assert_eq!(output.code(), code::MODEL);
}

#[test]
fn the_days_limit_counts_all_sessions_and_outlives_the_daemon() {
    let mut scene = Scene::with(&[("budget.day_usd", "2")]);
    scene.server.script(Reply::text("one").usage(json!({ "input_tokens": 250_000, "output_tokens": 0 })));
    scene.good_turn("first");
    scene.server.script(Reply::text("two").usage(json!({ "input_tokens": 250_000, "output_tokens": 0 })));
    let output = scene.machine.ctl(&["ask", "--new", "second"]).run().expect(code::DONE);
    assert_eq!(output.stdout, "two\n");
    scene.kill_daemon();
    scene.start_daemon();
    let output = scene.machine.ctl(&["ask", "--new", "third"]).run().expect(code::MODEL);
    assert!(output.stderr.contains("2.00 USD today"), "{}", output.stderr);
}

#[test]
fn a_model_that_goes_in_circles_is_stopped_by_a_question() {
    let mut scene = Scene::new();
    scene.server.answer_with(|request| if request.number <= 5 { Reply::bash("echo same") } else { Reply::text("out") });
    scene.prompt("go round", ApproveMode::All);
    let asked = scene.client.until_asked();
    assert!(asked.reason.contains("circles"), "{}", asked.reason);
    assert_eq!(scene.server.requests().len(), 5);
    scene.client.answer(&asked, Verdict::Once {}).unwrap();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
}

#[test]
fn a_cache_that_should_have_been_read_and_was_not_is_explained() {
    let mut scene = Scene::new();
    let usage = |written: u64, read: u64| json!({ "input_tokens": 5, "cache_creation_input_tokens": written, "cache_read_input_tokens": read });
    scene.server.script(Reply::text("one").usage(usage(900, 0)));
    scene.good_turn("first");
    scene.server.script(Reply::text("two").usage(usage(20, 900)));
    scene.good_turn("second");
    // As the API writes it: a message with diagnostics.
    let stream = [
        r#"{"type":"message_start","message":{"id":"msg_x","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":950,"cache_read_input_tokens":0,"output_tokens":1},"diagnostics":{"cache_miss_reason":"tools_changed"}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"three"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let stream: String = stream.iter().map(|data| format!("data: {data}\n\n")).collect();
    scene.server.script(Reply::raw(stream));
    scene.good_turn("third");
    let misses = scene.logged(|body| match body {
        EventBody::ReplyReceived(reply) => Some(reply.cache_miss.clone()),
        _ => None,
    });
    assert_eq!(misses, [None, None, Some("the server says tools_changed".to_owned())]);
    let previous: Vec<Value> =
        scene.server.requests().iter().map(|it| it.json["diagnostics"]["previous_message_id"].clone()).collect();
    assert_eq!(previous, [json!(null), json!("msg_000001"), json!("msg_000002")]);
}
