//! What a user runs in the session's shell: it is the same shell, nothing of it is lost, and the model reads it once.

use harness::ctl::code;
use harness::model_server::{Gate, Reply};
use harness::scene::Scene;
use proto::command::RunCommand;
use proto::event::{CallFinished, EventBody, Outcome, TurnOutcome};
use proto::ids::CallId;
use proto::live::Live;
use proto::request::{ApproveMode, Interrupt, Request};
use proto::response::{ErrorCode, Response, ServerFrame, WireError};

fn run(scene: &mut Scene, command: &str) -> Result<CallId, WireError> {
    let call = CallId::new();
    let session = scene.session.to_string();
    let request = RunCommand { session, call, command: command.to_owned() };
    match scene.client.call(Request::RunCommand(request))? {
        Response::Done(_) => Ok(call),
        other => panic!("an answer of another kind: {other:?}"),
    }
}

fn until_finished(scene: &mut Scene, wanted: CallId) -> CallFinished {
    scene.client.until_event("the result", |body| match body {
        EventBody::CallFinished(it) if it.call == wanted => Some(it.clone()),
        _ => None,
    })
}

/// What the model has read so far, in the last request.
fn read_by_the_model(scene: &Scene) -> String {
    scene.server.requests().last().map(|request| request.json.to_string()).unwrap_or_default()
}

#[test]
fn a_command_of_the_users_runs_in_the_same_shell_and_the_model_reads_it_once() {
    let mut scene = Scene::new();
    let call = run(&mut scene, "export GREETING=walrus; echo one two").unwrap();
    let finished = until_finished(&mut scene, call);
    assert_eq!((finished.outcome, finished.text.as_str()), (Outcome::Exited { status: 0 }, "one two\n"));
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert!(scene.server.requests().is_empty(), "no model is asked");
    scene.server.script(Reply::bash("echo $GREETING"));
    scene.server.script(Reply::text("seen"));
    scene.good_turn("go on");
    let read = read_by_the_model(&scene);
    assert_eq!(read.matches("$ export GREETING=walrus; echo one two").count(), 1, "{read}");
    assert!(read.contains("walrus\\n"), "the agent's command finds what the user's left: {read}");
    scene.server.script(Reply::text("again"));
    scene.good_turn("and on");
    assert_eq!(read_by_the_model(&scene).matches("$ export GREETING").count(), 1);
}

#[test]
fn it_is_refused_while_a_turn_runs_and_the_same_id_runs_once() {
    let mut scene = Scene::new();
    let gate = Gate::new();
    scene.server.script(Reply::text("slow").hold_after_events(2, &gate));
    scene.prompt("think", ApproveMode::Ask);
    scene.server.wait_for(1);
    let refused = run(&mut scene, "touch never").unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(refused.message.contains("at work") && !refused.hint.is_empty(), "{refused:?}");
    gate.open();
    scene.client.until_turn_ended();
    let again =
        RunCommand { session: scene.session.to_string(), call: CallId::new(), command: "echo x >> twice".into() };
    for _ in 0..2 {
        scene.client.call(Request::RunCommand(again.clone())).unwrap();
    }
    until_finished(&mut scene, again.call);
    scene.client.until_turn_ended();
    scene.client.call(Request::RunCommand(again)).unwrap();
    let call = run(&mut scene, "wc -l < twice").unwrap();
    assert_eq!(until_finished(&mut scene, call).text, "1\n");
    assert!(!scene.machine.work().join("never").exists());
}

#[test]
fn its_output_comes_as_it_is_printed_and_an_interrupt_ends_it() {
    let mut scene = Scene::new();
    let call = run(&mut scene, "echo begun; sleep 600").unwrap();
    scene.client.until("live output", |frame| match frame {
        ServerFrame::Live(Live::Output(piece)) if piece.call == call => piece.text.contains("begun").then_some(()),
        _ => None,
    });
    scene.client.call(Request::Interrupt(Interrupt { session: scene.session.to_string() })).unwrap();
    assert_eq!(until_finished(&mut scene, call).outcome, Outcome::Interrupted {});
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Interrupted {});
}

#[test]
fn a_daemon_that_is_killed_meanwhile_loses_nothing_of_it() {
    let mut scene = Scene::new();
    let gate = scene.machine.work().join("go");
    let call = run(&mut scene, "echo before; until [ -e go ]; do read -t 0.05 <> <(:); done; echo after").unwrap();
    scene.client.until("live output", |frame| match frame {
        ServerFrame::Live(Live::Output(piece)) if piece.call == call => Some(()),
        _ => None,
    });
    scene.kill_daemon();
    std::fs::write(gate, "").unwrap();
    scene.start_daemon();
    let finished = until_finished(&mut scene, call);
    assert_eq!((finished.outcome, finished.text.as_str()), (Outcome::Exited { status: 0 }, "before\nafter\n"));
}

#[test]
fn the_audit_names_the_user_and_that_nobody_was_asked() {
    let mut scene = Scene::new();
    let call = run(&mut scene, "echo audited").unwrap();
    until_finished(&mut scene, call);
    scene.client.until_turn_ended();
    let rows = scene.machine.ctl(&["audit", "--json"]).run().expect(code::DONE).json_lines();
    let ours: Vec<_> = rows.iter().filter(|row| row["command"] == "echo audited").collect();
    let events: Vec<_> = ours.iter().map(|row| row["event"].as_str().unwrap()).collect();
    assert!(events.contains(&"started") && events.contains(&"ended"), "{rows:?}");
    assert!(ours.iter().all(|row| row["asked"] == false && row["by"]["client"]["name"] == "harness"), "{ours:?}");
}

#[test]
fn run_prints_the_output_as_it_is_and_ends_with_a_code() {
    let scene = Scene::new();
    let session = scene.session.to_string();
    let run = |command: &str| scene.machine.ctl(&["run", &session, "--", command]).run();
    let good = run("printf 'a\\tb'; cd /").expect(code::DONE);
    assert_eq!((good.stdout.as_str(), good.stderr.as_str()), ("a\tb\n", ""));
    let bad = run("pwd; exit 3").expect(code::OTHER);
    assert_eq!((bad.stdout.as_str(), bad.stderr.as_str()), ("/\n", "· exit 3\n"));
}
