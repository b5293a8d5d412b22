//! A session's mode: how much runs unasked, switched by the user alone, shown everywhere, decided at once.

use std::fs;

use harness::ctl::code;
use harness::model_server::{Block, Reply};
use harness::scene::Scene;
use proto::approval::{Decider, Verdict};
use proto::event::{EventBody, Outcome};
use proto::ids::Seq;
use proto::mode::Mode;
use proto::request::{ApproveMode, ListSessions, Request, SetMode, Status};
use proto::response::{ErrorCode, Response};
use serde_json::json;

fn create(path: &str) -> Reply {
    Reply::blocks(vec![Block::edit(&json!({ "command": "create", "path": path, "file_text": "x\n" }))])
}

/// Plays one reply and the answer after it, with nobody to ask.
fn turn(scene: &mut Scene, reply: Reply) -> (Outcome, String) {
    scene.server.script(reply);
    scene.server.script(Reply::text("so be it"));
    scene.prompt("go on", ApproveMode::Deny);
    let finished = scene.client.until_event("a result", |body| match body {
        EventBody::CallFinished(finished) => Some((finished.outcome.clone(), finished.text.clone())),
        _ => None,
    });
    scene.client.until_turn_ended();
    finished
}

fn closed(scene: &mut Scene) -> (Verdict, Decider) {
    scene.client.until_event("the question to close", |body| match body {
        EventBody::ApprovalClosed(closed) => Some((closed.verdict.clone(), closed.by.clone())),
        _ => None,
    })
}

fn ran(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done {} | Outcome::Exited { status: 0 })
}

#[test]
fn each_mode_lets_exactly_its_calls_run() {
    let mut scene = Scene::with(&[("policy.read_only", "run")]);
    let table = [
        (Mode::Ask, [true, false, false, false]),
        (Mode::AcceptEdits, [true, true, false, false]),
        (Mode::Plan, [true, false, false, false]),
        (Mode::Bypass, [true, true, true, true]),
    ];
    for (mode, expected) in table {
        scene.client.set_mode(scene.session, mode);
        let replies = [
            Reply::bash("ls"),
            create(&format!("{mode}.txt")),
            create(&format!("{mode}/.env")),
            Reply::bash(&format!("touch {mode}.made")),
        ];
        let got = replies.map(|reply| {
            let (outcome, text) = turn(&mut scene, reply);
            assert!(ran(&outcome) || mode != Mode::Plan || text.contains("plan mode is on"), "{text}");
            ran(&outcome)
        });
        assert_eq!(got, expected, "{mode}");
        assert_eq!(scene.machine.work().join(format!("{mode}.made")).exists(), mode == Mode::Bypass);
    }
}

#[test]
fn a_rule_that_denies_holds_in_bypass() {
    let mut scene = Scene::new();
    let file = scene.machine.config_file().with_file_name("policy.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[[rule]]\ndecision = \"deny\"\ncommand = \"touch\"\n").unwrap();
    scene.client.set_mode(scene.session, Mode::Bypass);
    assert_eq!(turn(&mut scene, Reply::bash("true && touch x")).0, Outcome::Denied {});
    assert!(ran(&turn(&mut scene, Reply::bash("mkdir y")).0));
    // A file that cannot be read may have denied it.
    fs::write(&file, "[[rule]\n").unwrap();
    assert_eq!(turn(&mut scene, Reply::bash("mkdir z")).0, Outcome::Denied {});
}

#[test]
fn a_switch_settles_the_open_question_and_everybody_sees_by_what() {
    let mut scene = Scene::new();
    for (mode, made) in [(Mode::Bypass, true), (Mode::Plan, false)] {
        scene.client.set_mode(scene.session, Mode::Ask);
        scene.server.script(Reply::bash(&format!("touch {mode}.made")));
        scene.server.script(Reply::text("so be it"));
        scene.prompt("make it", ApproveMode::Ask);
        scene.client.until_asked();
        // What the mode does not decide stays open.
        scene.client.set_mode(scene.session, Mode::AcceptEdits);
        assert_eq!(scene.client.show(scene.session).approvals.len(), 1);
        scene.client.set_mode(scene.session, mode);
        let (verdict, by) = closed(&mut scene);
        assert_eq!((verdict.allows(), by), (made, Decider::Mode { mode }));
        scene.client.until_turn_ended();
        assert_eq!(scene.machine.work().join(format!("{mode}.made")).exists(), made);
    }
}

#[test]
fn bypass_needs_an_explicit_word_and_the_mode_is_shown_everywhere() {
    let mut scene = Scene::new();
    let id = scene.session.to_string();
    let request = SetMode { session: id.clone(), mode: Mode::Bypass, confirmed: false };
    assert_eq!(scene.client.call(Request::SetMode(request)).unwrap_err().code, ErrorCode::BadRequest);
    let refused = scene.machine.ctl(&["mode", &id, "bypass"]).run();
    assert_ne!(refused.code(), code::DONE);
    assert!(refused.stderr.contains("--yes-really"), "{}", refused.stderr);
    assert_eq!(scene.client.show(scene.session).mode, Mode::Ask);
    let _ = scene.machine.ctl(&["mode", &id, "bypass", "--yes-really"]).run().expect(code::DONE);
    for words in [&["ls"][..], &["show", &id], &["mode", &id], &["log", &id], &["status"]] {
        let shown = scene.machine.ctl(words).run().expect(code::DONE).stdout;
        assert!(shown.contains("bypass"), "{words:?}: {shown}");
    }
    let Ok(Response::Status(status)) = scene.client.call(Request::Status(Status {})) else { panic!("a status") };
    assert_eq!(status.bypass, 1);
    let mut other = scene.another("vim", "");
    assert_eq!(other.attach(&scene.machine, scene.session, Seq(0)).mode, Mode::Bypass);
    scene.server.script(Reply::text("hello"));
    let asked = scene.machine.ctl(&["ask", "-s", &id, "--mode", "plan", "hi"]).run().expect(code::DONE);
    assert!(asked.stderr.contains("mode plan"), "{}", asked.stderr);
    let first = scene.server.wait_for(1).json.to_string();
    assert!(first.contains("plan mode on"), "the model is told: {first}");
}

#[test]
fn a_mode_survives_kill_9_and_is_listed_for_a_session_at_rest() {
    let mut scene = Scene::new();
    scene.client.set_mode(scene.session, Mode::Plan);
    scene.kill_daemon();
    scene.start_daemon();
    let Ok(Response::Sessions(list)) =
        scene.client.call(Request::ListSessions(ListSessions { archived: false, cwd: None }))
    else {
        panic!("a list")
    };
    assert_eq!(list.sessions[0].mode, Mode::Plan);
    assert_eq!(turn(&mut scene, Reply::bash("touch x")).0, Outcome::Denied {});
}

#[test]
fn a_workspace_cannot_choose_a_mode() {
    let mut scene = Scene::new();
    let folder = scene.machine.work().join(".agentd");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agentd.toml"), "mode = \"bypass\"\n[session]\nmode = \"bypass\"\n").unwrap();
    fs::write(folder.join("policy.toml"), "mode = \"bypass\"\n").unwrap();
    let mut client = scene.another("agentctl", "");
    let session = client.create(&scene.machine);
    assert_eq!(client.show(session).mode, Mode::Ask);
    assert_eq!(turn(&mut scene, Reply::bash("touch x")).0, Outcome::Denied {});
}

#[test]
fn a_command_of_the_agent_cannot_switch_the_mode() {
    let mut scene = Scene::new();
    let ctl = harness::binaries::agentctl();
    let command = format!("{} mode {} bypass --yes-really", ctl.display(), scene.session);
    scene.server.script(Reply::bash(&command));
    scene.server.script(Reply::text("refused"));
    scene.good_turn("free yourself");
    let result = scene.server.wait_for(2).results()[0].text.clone();
    assert!(result.contains("agent"), "{result}");
    assert_eq!(scene.client.show(scene.session).mode, Mode::Ask);
}
