//! Limits are configuration, hold, and say so when they are reached.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;

use harness::client::{Client, ConnectError};
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{ModelServer, Reply};
use harness::scene::Scene;
use harness::wait;
use nix::sys::signal::Signal;
use proto::approval::{Decider, Verdict};
use proto::event::{EventBody, Outcome, TurnOutcome};
use proto::handshake::Refusal;
use proto::request::ApproveMode;

#[test]
fn a_command_past_its_deadline_is_ended_with_everything_it_started() {
    let mut scene = Scene::with(&[("shell.deadline", "1s")]);
    scene.server.script(Reply::bash("x=kept; (setsid nohup sleep 8660001 &) ; echo before; sleep 8660002"));
    scene.server.script(Reply::bash("echo \"$x\""));
    scene.server.script(Reply::text("too slow"));
    scene.good_turn("take too long");
    let outcomes = scene.logged(|body| match body {
        EventBody::CallFinished(finished) => Some(finished.outcome.clone()),
        _ => None,
    });
    assert_eq!(outcomes, [Outcome::TimedOut { limit_ms: 1000 }, Outcome::Exited { status: 0 }]);
    let text = &scene.server.wait_for(2).results()[0].text;
    assert!(text.starts_with("before\n") && text.contains("timed out after 1 s"), "{text}");
    assert_eq!(scene.server.wait_for(3).results()[0].text.trim_end(), "kept", "the shell lives on");
    for token in ["8660001", "8660002"] {
        assert!(harness::processes::with_argument(token).is_empty(), "{token} lives");
    }
}

#[test]
fn a_question_that_nobody_answers_becomes_a_denial() {
    let mut scene = Scene::with(&[("approval.expiry", "300ms")]);
    scene.server.script(Reply::bash("touch never.txt"));
    scene.server.script(Reply::text("nobody is there"));
    scene.prompt("anybody?", ApproveMode::Ask);
    let by = scene.client.until_event("the question to close", |body| match body {
        EventBody::ApprovalClosed(closed) => Some(closed.by.clone()),
        _ => None,
    });
    assert_eq!(by, Decider::Expiry {});
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert!(!scene.machine.work().join("never.txt").exists());
}

#[test]
fn a_model_that_asks_and_asks_is_stopped_by_a_question_and_without_anybody_to_ask_by_the_turns_end() {
    let mut scene = Scene::with(&[("turn.requests_max", "4")]);
    scene.server.answer_with(|request| Reply::bash(&format!("echo {}", request.number)));
    scene.prompt("loop", ApproveMode::All);
    let asked = scene.client.until_asked();
    assert!(asked.reason.contains("turn.requests_max"), "{}", asked.reason);
    assert_eq!(scene.server.requests().len(), 4, "nothing is sent while the user is asked");
    scene.client.answer(&asked, Verdict::Deny { reason: None }).unwrap();
    let over = |outcome| matches!(outcome, TurnOutcome::Failed { problem } if problem.code == "request_limit");
    assert!(over(scene.client.until_turn_ended().outcome));
    scene.prompt("loop unseen", ApproveMode::Deny);
    assert!(over(scene.client.until_turn_ended().outcome));
    assert_eq!(scene.server.requests().len(), 8);
    scene.server.answer_with(|_| Reply::text("stopped"));
    scene.good_turn("and now");
}

#[test]
fn one_connection_too_many_is_told_so_and_a_place_comes_free() {
    let mut machine = Machine::new();
    machine.configure("server.connections_max", "3");
    let _daemon = Daemon::start(&machine);
    let mut places: Vec<Client> = (0..3).map(|_| Client::connect(&machine.socket()).unwrap()).collect();
    match Client::connect(&machine.socket()) {
        Err(ConnectError::Refused(Refusal::Busy, sentence)) => assert!(!sentence.is_empty()),
        other => panic!("{other:?}"),
    }
    places.pop();
    wait::until("a place to come free", || Client::connect(&machine.socket()).ok());
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let mut machine = Machine::new();
    machine.configure("server.handshake", "100ms");
    let _daemon = Daemon::start(&machine);
    let mut silent = UnixStream::connect(machine.socket()).unwrap();
    silent.set_read_timeout(Some(wait::PATIENCE)).unwrap();
    let mut said = Vec::new();
    silent.read_to_end(&mut said).unwrap();
}

#[test]
fn a_hang_up_reads_the_configuration_again_and_a_wrong_one_changes_nothing() {
    let server = ModelServer::start();
    server.answer_with(|request| match request.results().len() {
        0 => Reply::bash("sleep 8660003"),
        _ => Reply::text("done"),
    });
    let machine = Machine::with_model(&server.url());
    machine.write_config("[shell]\ndeadline = \"700ms\"\n");
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    let mut limit_of = |prompt: &str| {
        let session = client.create(&machine);
        client.attach(&machine, session, proto::ids::Seq(0));
        client.prompt(&machine, session, prompt, ApproveMode::All);
        let outcome = client.until_event("the call's end", |body| match body {
            EventBody::CallFinished(finished) => Some(finished.outcome.clone()),
            _ => None,
        });
        client.until_turn_ended();
        outcome
    };
    assert_eq!(limit_of("with the first limit"), Outcome::TimedOut { limit_ms: 700 });
    let log = machine.logs().join("agentd-00.log");
    let reloads = || fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains("configuration")).count();
    for (text, limit) in [("[shell]\ndeadline = \"300ms\"\n", 300), ("[shell]\ndeadlin = \"9s\"\n", 300)] {
        machine.write_config(text);
        let before = reloads();
        daemon.signal(Signal::SIGHUP);
        wait::until("the reload to be logged", || (reloads() > before).then_some(()));
        assert_eq!(limit_of(&format!("after {text:?}")), Outcome::TimedOut { limit_ms: limit });
    }
}

#[test]
fn a_compatible_server_gets_schemas_and_nothing_it_does_not_know() {
    let mut scene = Scene::with(&[("model.provider", "compat")]);
    scene.server.script(Reply::bash("echo hi"));
    scene.server.script(Reply::text("done"));
    scene.good_turn("say hi");
    let request = scene.server.wait_for(1);
    for field in ["thinking", "output_config", "cache_control"] {
        assert!(!request.json.to_string().contains(&format!("\"{field}\"")), "{field}");
    }
    assert_eq!(request.header("anthropic-beta"), None);
    for tool in request.json["tools"].as_array().unwrap() {
        assert_eq!(tool["input_schema"]["type"], "object", "{tool}");
    }
}
