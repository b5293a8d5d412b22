//! Turns that cannot go on: waiting, parked, gone on with by themselves, after a restart, or when asked; and thinking that
//! the server does not accept.
//!
//! | answer of the server | claim |
//! |---|---|
//! | each status and type, in a stream too, web pages, `x-should-retry` | `every_row_of_the_error_table_is_tried_again_or_told_as_the_api_says`, `every_row_of_the_error_table_has_its_kind` |
//! | 401, then another key | `a_key_that_was_renewed_is_used_after_a_401` |
//! | 413, or 400 "prompt is too long" | `a_conversation_that_is_too_long_already_finds_its_way_out` |
//! | 400 about thinking | `thinking_that_the_server_does_not_accept_is_left_out_and_the_turn_goes_on` |
//! | other texts of a 400 | `the_text_of_a_400_tells_what_can_be_healed` |
//! | 429 with a long `retry-after` | `a_long_wish_of_the_server_parks_at_the_first_failure`, `every_form_of_retry_after_is_read` |
//! | 429 that is a spend limit | `a_spend_limit_parks_at_once_and_the_user_goes_on_when_it_is_raised` |
//! | a storm of 529 | `a_storm_of_529_parks_the_turn_and_it_goes_on_by_itself` |
//! | nobody listens | `a_server_that_is_not_there_parks_the_turn_until_it_is` |

use std::net::TcpListener;

use harness::ctl::code;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{Block, ModelServer, Reply};
use harness::scene::Scene;
use proto::event::{EventBody, RequestFailed, TurnOutcome};
use proto::ids::{Seq, Timestamp};
use proto::request::{ApproveMode, Endpoint, Request, Retry};
use proto::response::SessionState;

/// Parked at the first failure, and for longer than any claim takes.
const SLOW: [(&str, &str); 3] = [("retry.longest_wait", "1h"), ("retry.tries", "0"), ("retry.parked_wait", "1h")];

/// Two quick tries, then parked, tried again after 2, 4, 8, 16 ms.
const QUICK: [(&str, &str); 4] =
    [("retry.first_wait", "1ms"), ("retry.longest_wait", "1ms"), ("retry.tries", "2"), ("retry.parked_wait", "16ms")];

fn overloaded() -> Reply {
    Reply::error(529, "overloaded_error", "Overloaded")
}

fn until_parked(scene: &mut Scene) -> RequestFailed {
    scene.client.until_event("a parked turn", |body| match body {
        EventBody::RequestFailed(failed) if failed.parked => Some(failed.clone()),
        _ => None,
    })
}

fn retry(scene: &mut Scene) {
    let request = Retry { session: scene.session.to_string(), endpoint: Endpoint::default() };
    scene.client.call(Request::Retry(request)).expect("a request waits");
}

#[test]
fn a_storm_of_529_parks_the_turn_and_it_goes_on_by_itself() {
    let mut scene = Scene::with(&QUICK);
    scene.server.answer_with(|request| if request.number <= 12 { overloaded() } else { Reply::text("at last") });
    scene.prompt("hold on", ApproveMode::Ask);
    assert_eq!(until_parked(&mut scene).attempt, 3);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let bodies: Vec<_> = scene.server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies.len(), 13);
    assert!(bodies.windows(2).all(|two| two[0] == two[1]), "the very same request every time");
}

#[test]
fn a_parked_turn_is_shown_everywhere_and_goes_on_at_once_when_asked() {
    let mut scene = Scene::with(&SLOW);
    scene.server.answer_with(|request| if request.number <= 2 { overloaded() } else { Reply::text("at last") });
    scene.prompt("hold on", ApproveMode::Ask);
    let parked = until_parked(&mut scene);
    let info = scene.client.show(scene.session);
    assert_eq!((info.state, info.next_try), (SessionState::Parked, parked.next_try));
    let id = scene.session.to_string();
    let listed = scene.machine.ctl(&["ls"]).run().expect(code::DONE).stdout;
    assert!(listed.contains("parked"), "{listed}");
    let shown = scene.machine.ctl(&["show", &id]).run().expect(code::DONE).stdout;
    assert!(shown.contains("parked, next try"), "{shown}");
    // One more refusal parks it again at once; the second wish is granted.
    let _ = scene.machine.ctl(&["retry", &id]).run().expect(code::DONE);
    assert_eq!(until_parked(&mut scene).attempt, 2);
    let _ = scene.machine.ctl(&["retry", &id]).run().expect(code::DONE);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let too_late = scene.machine.ctl(&["retry", &id]).run().expect(code::OTHER);
    assert!(too_late.stderr.contains("no failed request waits"), "{}", too_late.stderr);
}

#[test]
fn a_long_wish_of_the_server_parks_at_the_first_failure() {
    let mut scene = Scene::new();
    scene.server.script(Reply::error(429, "rate_limit_error", "Slow down").header("retry-after", "1800"));
    scene.prompt("hold on", ApproveMode::Ask);
    let before = Timestamp::now();
    let parked = until_parked(&mut scene);
    let wait = parked.next_try.expect("a time").0.saturating_sub(before.0);
    assert!((1_790_000..=1_810_000).contains(&wait), "{wait} ms");
    scene.server.script(Reply::text("at last"));
    retry(&mut scene);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
}

#[test]
fn a_spend_limit_parks_at_once_and_the_user_goes_on_when_it_is_raised() {
    let mut scene = Scene::with(&SLOW);
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"limit","details":{"error_code":"enforced_spend_limit_reached"}},"request_id":"req_1"}"#;
    scene.server.script(Reply::http(429, "application/json", body).header("x-should-retry", "false"));
    scene.prompt("spend", ApproveMode::Ask);
    let parked = until_parked(&mut scene);
    assert_eq!((parked.attempt, parked.problem.code.as_str()), (1, "spend_limit"));
    assert!(parked.problem.hint.contains("agentctl retry"), "{:?}", parked.problem);
    scene.server.script(Reply::text("thanks"));
    retry(&mut scene);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
}

#[test]
fn a_parked_turn_survives_the_daemon_with_its_time_and_goes_on_when_asked() {
    let mut scene = Scene::with(&SLOW);
    scene.server.answer_with(|request| if request.number <= 1 { overloaded() } else { Reply::text("at last") });
    scene.prompt("hold on", ApproveMode::Ask);
    let parked = until_parked(&mut scene);
    scene.kill_daemon();
    scene.start_daemon();
    let info = scene.client.show(scene.session);
    assert_eq!((info.state, info.next_try), (SessionState::Parked, parked.next_try));
    assert_eq!(scene.server.requests().len(), 1, "a restart is no reason to try sooner");
    retry(&mut scene);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
}

#[test]
fn a_turn_whose_time_came_while_no_daemon_ran_goes_on_when_one_does() {
    let mut scene =
        Scene::with(&[("retry.tries", "0"), ("retry.longest_wait", "150ms"), ("retry.parked_wait", "300ms")]);
    scene.server.answer_with(|request| if request.number == 1 { overloaded() } else { Reply::text("at last") });
    scene.prompt("hold on", ApproveMode::Ask);
    until_parked(&mut scene);
    scene.kill_daemon();
    // Nobody attaches: the session goes on by itself.
    let daemon = Daemon::start(&scene.machine);
    scene.server.wait_for(2);
    drop(daemon);
    scene.start_daemon();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
}

#[test]
fn a_server_that_is_not_there_parks_the_turn_until_it_is() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut machine = Machine::with_model(&format!("http://127.0.0.1:{port}"));
    for (key, value) in SLOW {
        machine.configure(key, value);
    }
    let daemon = Daemon::start(&machine);
    // A script does not wait for it; the turn goes on all the same.
    let output = machine.ctl(&["ask", "--name", "net", "hello"]).run().expect(code::MODEL);
    assert!(output.stderr.contains("parked") && output.stderr.contains("agentctl attach"), "{}", output.stderr);
    let mut client = daemon.client(&machine);
    let Ok(proto::response::Response::Sessions(list)) =
        client.call(Request::ListSessions(proto::request::ListSessions { archived: false, cwd: None }))
    else {
        panic!("no list")
    };
    client.attach(&machine, list.sessions[0].id, Seq(0));
    let server = ModelServer::start_at(port);
    server.script(Reply::text("here"));
    let _ = machine.ctl(&["retry", "net"]).run().expect(code::DONE);
    assert_eq!(client.until_turn_ended().outcome, TurnOutcome::Done {});
    drop(daemon);
}

#[test]
fn every_row_of_the_error_table_is_tried_again_or_told_as_the_api_says() {
    let mut scene = Scene::with(&QUICK);
    // Status, type, whether the same request is worth another try.
    let table = [
        // First, while there is nothing that a summary could make shorter.
        (413, "request_too_large", false),
        (400, "invalid_request_error", false),
        (401, "authentication_error", false),
        (402, "billing_error", false),
        (403, "permission_error", false),
        (404, "not_found_error", false),
        (408, "timeout_error", true),
        (409, "conflict_error", true),
        (429, "rate_limit_error", true),
        (500, "api_error", true),
        (503, "api_error", true),
        (504, "timeout_error", true),
        (529, "overloaded_error", true),
    ];
    for (status, kind, again) in table {
        let before = scene.server.requests().len();
        scene.server.script(Reply::error(status, kind, "no"));
        if again {
            scene.server.script(Reply::text("yes"));
        }
        let outcome = scene.turn(&format!("try {status}")).outcome;
        assert_eq!(outcome == TurnOutcome::Done {}, again, "{status} {kind}: {outcome:?}");
        assert_eq!(scene.server.requests().len() - before, 1 + usize::from(again), "{status} {kind}");
    }
    // The same types inside a stream, under a 200.
    for kind in ["overloaded_error", "api_error", "rate_limit_error", "timeout_error"] {
        scene.server.script(Reply::text("half an ans").then_error(kind, "no"));
        scene.server.script(Reply::text("yes"));
        assert_eq!(scene.turn(&format!("stream {kind}")).outcome, TurnOutcome::Done {}, "{kind}");
    }
    scene.server.script(Reply::text("half an ans").then_error("authentication_error", "no"));
    assert!(
        matches!(scene.turn("stream").outcome, TurnOutcome::Failed { problem } if problem.code == "authentication")
    );
    // A page of a proxy, and the opinion of the server.
    scene.server.script(Reply::http(502, "text/html", "<html><title>Bad gateway</title></html>"));
    scene.server.script(Reply::error(400, "invalid_request_error", "again").header("x-should-retry", "true"));
    scene.server.script(Reply::text("yes"));
    assert_eq!(scene.turn("proxy").outcome, TurnOutcome::Done {});
    scene.server.script(Reply::error(409, "conflict_error", "no").header("x-should-retry", "false"));
    assert!(matches!(scene.turn("conflict").outcome, TurnOutcome::Failed { .. }));
}

#[test]
fn a_parked_turn_can_be_interrupted() {
    let mut scene = Scene::with(&SLOW);
    scene.server.answer_with(|_| overloaded());
    scene.prompt("hold on", ApproveMode::Ask);
    until_parked(&mut scene);
    let _ = scene.machine.ctl(&["interrupt", &scene.session.to_string()]).run().expect(code::DONE);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Interrupted {});
}

#[test]
fn a_key_that_was_renewed_is_used_after_a_401() {
    let server = ModelServer::start_with_key("new");
    server.script(Reply::text("hello"));
    let mut machine = Machine::with_model(&server.url());
    machine.unset_env("ANTHROPIC_API_KEY");
    // The helper's first answer is old; asked again it has the new one.
    let seen = machine.root().join("state/asked");
    let helper = format!("test -e {0} && echo new || {{ : > {0}; echo old; }}", seen.display());
    machine.write_config(&format!("[model]\nkey_helper = '{helper}'\n"));
    let output = machine.ctl(&["ask", "hello"]).run().expect(code::DONE);
    assert_eq!(output.stdout, "hello\n");
    assert_eq!(server.refused().len(), 1);
}

#[test]
fn thinking_that_the_server_does_not_accept_is_left_out_and_the_turn_goes_on() {
    let mut scene = Scene::new();
    let thought = || Reply::blocks(vec![Block::Thinking("let me think".into()), Block::Text("so".into())]);
    scene.server.script(thought());
    scene.good_turn("think");
    let refusal =
        "messages.1.content.0: Invalid `signature` in `thinking` block: it is bound to a different conversation";
    scene.server.forget_histories();
    scene.server.script(Reply::error(400, "invalid_request_error", refusal));
    scene.server.script(thought());
    scene.good_turn("on");
    let kinds = |scene: &Scene, number: usize| -> Vec<String> {
        let messages = scene.server.wait_for(number).json["messages"].clone();
        let blocks = messages.as_array().unwrap().iter().flat_map(|m| m["content"].as_array().unwrap().clone());
        blocks.map(|block| block["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&scene, 2), ["text", "thinking", "text", "text"]);
    assert_eq!(kinds(&scene, 3), ["text", "text", "text"], "once, without thinking");
    // What was thought after that belongs to what is sent, and stays.
    scene.server.script(Reply::text("fine"));
    scene.good_turn("and on");
    assert_eq!(kinds(&scene, 4), ["text", "text", "text", "thinking", "text", "text"]);
    // When even that is refused, the turn ends with a sentence instead of going round.
    scene.server.forget_histories();
    scene.server.script(Reply::error(400, "invalid_request_error", refusal));
    scene.server.script(Reply::error(400, "invalid_request_error", refusal));
    assert!(
        matches!(scene.turn("more").outcome, TurnOutcome::Failed { problem } if problem.code == "signature_invalid")
    );
}
