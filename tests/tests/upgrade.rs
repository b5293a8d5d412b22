//! A new program takes the old one's place: what runs goes on, clients see a pause; an older one does not touch what a newer
//! one wrote.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use harness::client::Client;
use harness::ctl::code;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::Reply;
use harness::scene::Scene;
use harness::{binaries, wait};
use proto::event::{EventBody, TurnOutcome};
use proto::ids::Seq;
use proto::request::{ApproveMode, Request, Restart, Status};
use proto::response::{ErrorCode, Response, ServerFrame};

/// Writes a statement into a database.
fn sql(database: &PathBuf, statement: &str) {
    let script = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()";
    let output = Command::new("python3").args(["-c", script]).arg(database).arg(statement).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_restart_in_place_keeps_the_socket_the_shells_and_every_client() {
    let mut scene = Scene::new();
    let fifo = scene.machine.work().join("go");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    scene.server.script(Reply::bash("echo ran >> count; read -r word < go; echo $word"));
    scene.server.script(Reply::text("it went on"));
    scene.prompt("run long", ApproveMode::All);
    wait::until("the command", || scene.machine.work().join("count").exists().then_some(()));
    let session = scene.session.to_string();
    let watcher = scene.machine.ctl(&["attach", &session, "--json", "--read-only", "--since", "0"]).start();
    wait::until("the watcher", || (scene.client.show(scene.session).clients.len() == 2).then_some(()));
    let (pid, shim) = (scene.daemon().pid(), scene.client.show(scene.session).shim_pid);
    let socket = fs::metadata(scene.machine.socket()).unwrap();
    let restarted = scene.machine.ctl(&["restart"]).run().expect(code::DONE);
    assert!(restarted.stderr.contains("goes on"), "{restarted:?}");
    // The same process and the same socket: nobody who connects is refused at any moment.
    let mut client = scene.daemon().client(&scene.machine);
    let Ok(Response::Status(status)) = client.call(Request::Status(Status {})) else { panic!("a status") };
    assert_eq!(i32::try_from(status.pid).unwrap(), pid);
    use std::os::unix::fs::MetadataExt;
    assert_eq!(fs::metadata(scene.machine.socket()).unwrap().ino(), socket.ino());
    client.attach(&scene.machine, scene.session, Seq(0));
    fs::write(&fifo, "now\n").unwrap();
    assert_eq!(client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert_eq!(client.show(scene.session).shim_pid, shim, "the same shell");
    assert_eq!(fs::read_to_string(scene.machine.work().join("count")).unwrap(), "ran\n");
    // The watcher went over by itself and misses nothing.
    let log = client.log(scene.session);
    wait::until("the watcher to be back", || (client.show(scene.session).clients.len() == 2).then_some(()));
    let _ = scene.machine.ctl(&["rm", &session]).run().expect(code::DONE);
    let seen = watcher.finish();
    let seqs: Vec<u64> = seen
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()?["event"]["event"]["seq"].as_u64())
        .collect();
    assert_eq!(seqs, (1..=log.len() as u64).collect::<Vec<_>>(), "{seen:?}");
    // It stops like any other, and takes its socket with it.
    scene.daemon().signal(nix::sys::signal::Signal::SIGTERM);
    wait::until("the daemon to stop", || scene.machine.daemons().is_empty().then_some(()));
    assert!(!scene.machine.socket().exists());
}

#[test]
fn clients_that_connect_during_restarts_wait_and_are_served() {
    let machine = Machine::new();
    let daemon = Daemon::start(&machine);
    for _ in 0..3 {
        let mut client = daemon.client(&machine);
        client.call(Request::Restart(Restart {})).unwrap();
        client.until("the goodbye", |frame| matches!(frame, ServerFrame::Goodbye(_)).then_some(()));
        let mut next = Client::connect(&machine.socket()).expect("the socket is there");
        next.hello("next", "");
    }
    assert_eq!(machine.daemons().len(), 1);
}

#[test]
fn a_program_that_could_not_serve_is_not_started_and_the_old_one_goes_on() {
    let machine = Machine::new();
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    machine.write_config("[shell]\ndeadlin = \"9s\"\n");
    let refused = client.call(Request::Restart(Restart {})).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(refused.message.contains("deadlin"), "{refused}");
    fs::remove_file(machine.config_file()).unwrap();
    sql(&machine.database(), "PRAGMA user_version = 999");
    let refused = client.call(Request::Restart(Restart {})).unwrap_err();
    assert!(refused.message.contains("schema 999"), "{refused}");
    let Ok(Response::Status(_)) = client.call(Request::Status(Status {})) else { panic!("it serves") };
}

#[test]
fn an_older_binary_refuses_what_a_newer_one_wrote_and_changes_nothing() {
    let machine = Machine::new();
    Daemon::start(&machine).terminate();
    sql(&machine.database(), "PRAGMA user_version = 999; CREATE TABLE newer (x); INSERT INTO newer VALUES (1)");
    let before = fs::read(machine.database()).unwrap();
    let failure = Daemon::try_start(&machine).expect_err("it does not serve");
    assert_eq!(failure.status.code(), Some(5));
    assert!(failure.stderr.contains("schema 999") && failure.stderr.contains("newer agentd"), "{failure:?}");
    assert_eq!(fs::read(machine.database()).unwrap(), before);
    assert!(!machine.socket().exists(), "no socket that nobody serves");
    let told = machine.ctl(&["status"]).run().expect(code::DAEMON);
    assert!(told.stderr.contains("newer agentd"), "{told:?}");
}

#[test]
fn one_session_that_cannot_be_read_is_no_obstacle_for_the_others() {
    let mut scene = Scene::new();
    let broken = scene.client.create(&scene.machine);
    scene.client.attach(&scene.machine, broken, Seq(0));
    scene.server.answer_with(|_| Reply::text("fine"));
    scene.client.prompt(&scene.machine, broken, "first", ApproveMode::All);
    scene.client.until_turn_ended();
    scene.kill_daemon();
    // Its last row does not read: as if it had something under way that nobody understands.
    let hex = broken.0.simple();
    let statement =
        format!("UPDATE events SET kind='new', body='{{\"unheard_of\":1}}' WHERE session=x'{hex}' AND seq=2");
    sql(&scene.machine.database(), &statement);
    let statement = format!("DELETE FROM events WHERE session=x'{hex}' AND seq>2");
    sql(&scene.machine.database(), &statement);
    scene.start_daemon();
    scene.good_turn("and you");
    let Ok(Response::Status(status)) = scene.client.call(Request::Status(Status {})) else { panic!("a status") };
    assert!(status.warnings.iter().any(|warning| warning.contains("cannot be resumed")), "{:?}", status.warnings);
    let shown = scene.machine.ctl(&["show", &broken.to_string()]).run().expect(code::OTHER);
    assert!(shown.stderr.contains("does not read"), "{shown:?}");
    let _ = scene.machine.ctl(&["rm", &broken.to_string()]).run().expect(code::DONE);
    assert_eq!(scene.logged(|body| matches!(body, EventBody::TurnEnded(_)).then_some(())).len(), 1);
}

#[test]
fn the_program_checks_itself_without_touching_anything() {
    let machine = Machine::new();
    let output = machine.command(&binaries::agentd()).arg("check").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!machine.database().exists());
}
