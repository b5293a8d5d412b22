//! Shells of idle sessions rest and come back; none rests that is in use.

use std::fs;

use harness::model_server::Reply;
use harness::scene::Scene;
use harness::wait;
use proto::event::EventBody;
use proto::ids::{Seq, SessionId};
use proto::request::{ApproveMode, Request, ShowSession};
use proto::response::{Response, SessionInfo};

fn show(scene: &Scene, session: SessionId) -> SessionInfo {
    let mut client = scene.daemon().client(&scene.machine);
    match client.call(Request::ShowSession(ShowSession { session: session.to_string() })) {
        Ok(Response::Session(info)) => info,
        other => panic!("no session: {other:?}"),
    }
}

fn until_at_rest(scene: &Scene, session: SessionId) {
    wait::until("the shell to rest", || show(scene, session).shim_pid.is_none().then_some(()));
}

#[test]
fn an_idle_shell_is_put_to_rest_and_comes_back_with_its_directory_and_exports() {
    let mut scene = Scene::with(&[("shell.idle_rest", "300ms")]);
    scene
        .server
        .script(Reply::bash("mkdir -p sub; cd sub; export KEPT='a b'; PLAIN=gone; rm -f ../once; echo x >> ../once"));
    scene.server.script(Reply::text("set"));
    scene.good_turn("set it up");
    let shim = show(&scene, scene.session).shim_pid.expect("a shell");
    // The scene's client goes: another that is attached to nothing takes its place.
    scene.client = scene.daemon().client(&scene.machine);
    until_at_rest(&scene, scene.session);
    assert!(scene.machine.processes().iter().all(|process| process.pid.unsigned_abs() != shim), "its process is gone");
    let session = scene.session;
    scene.client.attach(&scene.machine, session, Seq(0));
    scene.server.script(Reply::bash("echo \"$KEPT|$PLAIN|${PWD##*/}\""));
    scene.server.script(Reply::text("seen"));
    scene.client.prompt(&scene.machine, session, "and now", ApproveMode::All);
    let ended = |body: &EventBody| matches!(body, EventBody::TurnEnded(_)).then_some(());
    scene.client.until_event("the first turn's end", ended);
    scene.client.until_event("the second turn's end", ended);
    assert_eq!(scene.server.requests()[3].results()[0].text.trim(), "a b||sub");
    assert_eq!(fs::read_to_string(scene.machine.work().join("once")).unwrap(), "x\n", "nothing ran again");
    let told = scene.logged(|body| match body {
        EventBody::Notice(notice) => Some(notice.text.clone()),
        _ => None,
    });
    assert!(told.iter().any(|text| text.contains("was at rest")), "{told:?}");
}

#[test]
fn a_shell_with_a_client_or_something_that_runs_is_not_put_to_rest() {
    let mut scene = Scene::with(&[("shell.idle_rest", "300ms")]);
    scene.server.script(Reply::text("I wait"));
    scene.good_turn("a client stays attached");
    let busy = scene.client.create(&scene.machine);
    scene.client.attach(&scene.machine, busy, Seq(0));
    scene.server.script(Reply::bash("sleep 8650044 & echo started"));
    scene.server.script(Reply::text("it runs"));
    scene.client.prompt(&scene.machine, busy, "leave something running", ApproveMode::All);
    scene.client.until_turn_ended();
    // Attached to the first session alone from here on.
    scene.client = scene.daemon().client(&scene.machine);
    scene.client.attach(&scene.machine, scene.session, Seq(0));
    // One that is idle later than both rests: their time has come before.
    for _ in 0..2 {
        let idle = scene.client.create(&scene.machine);
        wait::until("its shell", || show(&scene, idle).shim_pid);
        until_at_rest(&scene, idle);
    }
    assert!(show(&scene, scene.session).shim_pid.is_some(), "a client is attached");
    assert!(show(&scene, busy).shim_pid.is_some(), "something runs");
}
