//! What the model's API may answer, and what becomes of it: every stop reason, every failure.
//!
//! | stop reason | claim, in the machine (`agentd/src/session/machine/tests.rs`) or here |
//! |---|---|
//! | `end_turn` | `other_stop_reasons_end_or_go_on_by_name`; empty: `an_empty_reply_after_results_is_not_stored_and_asked_once_more`, `an_empty_reply_is_not_stored` |
//! | `stop_sequence` | `other_stop_reasons_end_or_go_on_by_name` |
//! | `tool_use` | `a_turn_with_two_calls_runs_them_in_order_and_answers_them_in_one_message` |
//! | `max_tokens` | `a_call_whose_input_was_cut_by_max_tokens_is_not_run`, `a_text_cut_by_max_tokens_is_kept_and_the_session_goes_on` |
//! | `pause_turn` | `pause_turn_sends_the_reply_back_as_it_came`, `a_paused_turn_is_sent_again_unchanged_with_a_limit` |
//! | `refusal` | `a_refusal_is_told_and_nothing_of_the_reply_is_kept_or_run` |
//! | `model_context_window_exceeded` | `output_that_ran_into_the_window_is_compacted_and_gone_on_with` |
//! | `compaction` | `where_the_server_makes_summaries_it_is_asked_to` |
//! | null at the end of the stream | `a_stream_cut_in_the_middle_is_asked_for_again_without_doubled_text` |
//! | one that nobody knows | `an_unknown_stop_reason_and_unknown_blocks_break_nothing` |

use std::time::Duration;

use harness::ctl::code;
use harness::model_server::{Block, Reply};
use harness::scene::Scene;
use proto::event::{Block as Shown, EventBody, Problem, TurnOutcome};
use proto::live::{Live, LiveKind};
use proto::request::ApproveMode;
use proto::response::ServerFrame;
use serde_json::json;

fn failed(scene: &mut Scene, prompt: &str) -> Problem {
    match scene.turn(prompt).outcome {
        TurnOutcome::Failed { problem } => problem,
        other => panic!("the turn ended with {other:?}"),
    }
}

fn failures(scene: &mut Scene) -> Vec<String> {
    scene.logged(|body| match body {
        EventBody::RequestFailed(failed) => Some(failed.problem.code.clone()),
        _ => None,
    })
}

fn texts(scene: &mut Scene) -> Vec<String> {
    let replies = scene.logged(|body| match body {
        EventBody::ReplyReceived(reply) => Some(reply.blocks.clone()),
        _ => None,
    });
    let text = |block: Shown| match block {
        Shown::Text { text } => Some(text),
        Shown::Thinking { .. } | Shown::Call(_) | Shown::Other { .. } => None,
    };
    replies.into_iter().flatten().filter_map(text).collect()
}

#[test]
fn text_arrives_while_it_is_written_and_the_finished_row_says_the_same() {
    let mut scene = Scene::new();
    let text = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.";
    scene.server.script(
        Reply::blocks(vec![Block::Thinking("hm, let me think".into()), Block::Text(text.into())])
            .pieces(3)
            .pause(Duration::from_millis(1)),
    );
    scene.prompt("a pangram", ApproveMode::Ask);
    let mut live = String::new();
    scene.client.until("the reply's row", |frame| match frame {
        ServerFrame::Live(Live::Text(piece)) if piece.kind == LiveKind::Text => {
            assert_eq!(piece.offset, live.len() as u64, "no piece is missing or doubled");
            live.push_str(&piece.text);
            None
        }
        ServerFrame::Event(event) => matches!(event.event.body, EventBody::ReplyReceived(_)).then_some(()),
        _ => None,
    });
    assert_eq!(live, text);
    assert_eq!(texts(&mut scene), [text]);
}

#[test]
fn a_refusal_is_told_and_nothing_of_the_reply_is_kept_or_run() {
    let mut scene = Scene::new();
    let details = json!({ "type": "refusal", "category": "cyber", "explanation": "No." });
    scene.server.script(
        Reply::blocks(vec![Block::Text("Well, ".into()), Block::bash("touch refused.txt")])
            .stop("refusal")
            .stop_details(details),
    );
    let outcome = scene.turn("do harm").outcome;
    assert_eq!(outcome, TurnOutcome::Refused { category: Some("cyber".into()), explanation: Some("No.".into()) });
    assert!(!scene.machine.work().join("refused.txt").exists());
    scene.server.script(Reply::text("gladly"));
    scene.good_turn("do good");
    let request = scene.server.wait_for(2);
    assert!(!request.json["messages"].to_string().contains("Well, "), "{}", request.json["messages"]);
    scene.server.script(Reply::text("no").stop("refusal"));
    let _ = scene.machine.ctl(&["ask", "--new", "again", "--approve", "all"]).run().expect(code::REFUSED);
}

#[test]
fn a_call_whose_input_was_cut_by_max_tokens_is_not_run() {
    let mut scene = Scene::new();
    scene.server.answer_with(|request| match request.number {
        1 => Reply::blocks(vec![
            Block::Text("I will".into()),
            Block::tool("bash", r#"{"command":"touch cut.txt; rm -r"#),
        ])
        .stop("max_tokens"),
        _ => Reply::text("in fewer words"),
    });
    let outcome = scene.turn("write a lot").outcome;
    assert!(!scene.machine.work().join("cut.txt").exists());
    assert!(!matches!(outcome, TurnOutcome::Refused { .. } | TurnOutcome::Interrupted {}), "{outcome:?}");
    // Whatever became of it, the session goes on with a history that the API accepts.
    scene.good_turn("go on");
}

#[test]
fn a_text_cut_by_max_tokens_is_kept_and_the_session_goes_on() {
    let mut scene = Scene::new();
    scene.server.answer_with(|request| match request.number {
        1 => Reply::text("The first half of").stop("max_tokens"),
        _ => Reply::text(" a sentence."),
    });
    let outcome = scene.turn("a sentence").outcome;
    assert!(!matches!(outcome, TurnOutcome::Refused { .. } | TurnOutcome::Interrupted {}), "{outcome:?}");
    assert_eq!(texts(&mut scene)[0], "The first half of");
    scene.good_turn("and on");
    let last = scene.server.requests().pop().unwrap();
    assert!(last.json["messages"].to_string().contains("The first half of"));
}

#[test]
fn pause_turn_sends_the_reply_back_as_it_came() {
    let mut scene = Scene::new();
    let block = Block::Other(json!({ "type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {} }));
    scene.server.script(Reply::blocks(vec![Block::Text("Searching".into()), block]).stop("pause_turn"));
    scene.server.script(Reply::text("found"));
    scene.good_turn("search");
    let messages = scene.server.wait_for(2).json["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 2);
    assert_eq!(messages[1]["content"][1]["type"], "server_tool_use");
}

#[test]
fn an_unknown_stop_reason_and_unknown_blocks_break_nothing() {
    let mut scene = Scene::new();
    let strange = Block::Other(json!({ "type": "hologram", "depth": 3 }));
    scene.server.script(Reply::blocks(vec![strange, Block::Text("see".into())]));
    scene.good_turn("show");
    scene.server.script(Reply::text("hm").stop("tired"));
    let outcome = scene.turn("more").outcome;
    assert!(matches!(outcome, TurnOutcome::Done {} | TurnOutcome::Failed { .. }), "{outcome:?}");
    scene.server.script(Reply::text("on"));
    scene.good_turn("go on");
}

#[test]
fn an_empty_reply_is_not_stored() {
    let mut scene = Scene::new();
    scene.server.script(Reply::blocks(vec![]));
    let outcome = scene.turn("say nothing").outcome;
    assert!(matches!(outcome, TurnOutcome::Done {} | TurnOutcome::Failed { .. }), "{outcome:?}");
    scene.server.script(Reply::text("something"));
    scene.good_turn("say something");
}

#[test]
fn an_overloaded_server_is_tried_again() {
    let mut scene = Scene::with(&[("retry.first_wait", "5ms")]);
    scene.server.script(Reply::error(529, "overloaded_error", "Overloaded"));
    scene.server.script(Reply::error(429, "rate_limit_error", "Slow down").header("retry-after-ms", "20"));
    scene.server.script(Reply::http(502, "text/html", "<html>bad gateway</html>"));
    scene.server.script(Reply::hang_up());
    scene.server.script(Reply::text("at last"));
    scene.good_turn("patience");
    assert_eq!(failures(&mut scene).len(), 4);
    let bodies: Vec<_> = scene.server.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies.windows(2).all(|two| two[0] == two[1]), "the very same request is sent again");
}

#[test]
fn a_stream_cut_in_the_middle_is_asked_for_again_without_doubled_text() {
    let mut scene = Scene::new();
    let text = "a sentence that takes several pieces to arrive";
    scene.server.script(Reply::text(text).cut_after_events(5));
    scene.server.script(Reply::text(text).cut_after_bytes(700));
    scene.server.script(Reply::text(text).then_error("overloaded_error", "Overloaded"));
    scene.server.script(Reply::text(text));
    scene.prompt("once", ApproveMode::Ask);
    let mut live = String::new();
    scene.client.until("the reply's row", |frame| match frame {
        ServerFrame::Live(Live::Text(piece)) => {
            assert_eq!(piece.offset, live.len() as u64);
            live.push_str(&piece.text);
            None
        }
        ServerFrame::Live(Live::Restarted(_)) => {
            live.clear();
            None
        }
        ServerFrame::Event(event) => matches!(event.event.body, EventBody::ReplyReceived(_)).then_some(()),
        _ => None,
    });
    assert_eq!(live, text, "what was shown of a broken reply is void");
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert_eq!(texts(&mut scene), [text]);
}

#[test]
fn a_call_in_a_stream_that_breaks_is_not_run_until_the_reply_is_whole() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo ran >> count").then_error("api_error", "Internal server error"));
    scene.server.script(Reply::bash("echo ran >> count"));
    scene.server.script(Reply::text("once"));
    scene.good_turn("run it once");
    assert_eq!(std::fs::read_to_string(scene.machine.work().join("count")).unwrap(), "ran\n");
}

#[test]
fn a_request_that_the_server_will_never_accept_fails_at_once() {
    let mut scene = Scene::new();
    for (status, kind) in [
        (400, "invalid_request_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
    ] {
        let before = scene.server.requests().len();
        scene.server.script(Reply::error(status, kind, "that will not do"));
        let problem = failed(&mut scene, &format!("try {status}"));
        assert!(problem.message.contains("that will not do") || status == 413, "{problem:?}");
        assert!(!problem.hint.is_empty(), "{problem:?}");
        assert!(problem.request_id.is_some(), "{problem:?}");
        assert_eq!(scene.server.requests().len(), before + 1, "{status} is not tried again");
    }
    scene.server.script(Reply::text("fine"));
    scene.good_turn("go on");
}

#[test]
fn broken_or_unknown_calls_are_answered_and_not_run() {
    let mut scene = Scene::new();
    scene.server.script(Reply::blocks(vec![
        Block::tool("bash", r#"{"command":7}"#),
        Block::tool("no_such_tool", "{}"),
        Block::tool("str_replace_based_edit_tool", r#"{"command":"fly","path":"a"}"#),
        Block::bash("echo fine"),
    ]));
    scene.server.script(Reply::text("sorry"));
    scene.good_turn("call strange things");
    let results = scene.server.wait_for(2).results();
    let errors: Vec<bool> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(errors, [true, true, true, false], "{results:#?}");
    assert!(results[1].text.contains("no_such_tool"), "{results:?}");
}

#[test]
fn a_history_survives_thinking_and_odd_json_byte_by_byte() {
    let mut scene = Scene::new();
    let odd =
        r#"{"command": "echo 1.0",  "unicode":"\u00e9\ud83d\ude00", "number": 1.50, "big": 12345678901234567890}"#;
    scene.server.script(Reply::blocks(vec![Block::Thinking(String::new()), Block::tool("bash", odd)]).pieces(11));
    scene.server.script(Reply::text("done"));
    let _ = scene.turn("odd");
    let first = scene.server.requests().pop().unwrap();
    scene.server.script(Reply::text("more"));
    let _ = scene.turn("again");
    let last = scene.server.requests().pop().unwrap();
    // The server itself compares each block's bytes with the request before; here: there was something to compare.
    assert!(last.body.len() > first.body.len());
}
