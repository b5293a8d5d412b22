//! Faults that daemons of coding agents have had in the field, each a claim under the fault's name. `tests/README.md` has the
//! table of all such faults, with the claims that stand elsewhere.

use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Command;

use harness::binaries::repository;
use harness::client::Client;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{ModelServer, Reply};
use harness::scene::Scene;
use proto::approval::Verdict;
use proto::ids::{PromptId, Seq};
use proto::request::{
    ApproveMode, ChangeSession, ListApprovals, ListSessions, Request, SendPrompt, SessionChange, ShowSession,
};
use proto::response::Response;
use regex::Regex;

#[test]
fn a_lock_file_that_names_a_living_stranger_keeps_nobody_out_and_harms_no_stranger() {
    let machine = Machine::new();
    let mut stranger = Command::new("sleep").arg("600").spawn().expect("sleep runs");
    // What a killed daemon leaves, with the pid of somebody else in it.
    Daemon::start(&machine).kill();
    let folder = machine.socket().parent().expect("a folder").to_owned();
    let locks: Vec<_> = fs::read_dir(&folder)
        .expect("the folder")
        .flatten()
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "lock"))
        .collect();
    assert!(!locks.is_empty(), "the lock's file stays");
    for lock in &locks {
        fs::write(lock, stranger.id().to_string()).expect("a lock file");
    }
    let daemon = Daemon::start(&machine);
    assert!(daemon.terminate().success());
    assert!(stranger.try_wait().expect("our child").is_none(), "the stranger lives");
    stranger.kill().expect("our child");
    stranger.wait().expect("our child");
}

#[test]
fn a_daemon_that_cannot_bind_its_socket_ends_and_says_so() {
    let machine = Machine::new();
    fs::create_dir_all(machine.socket().join("in the way")).expect("something that is no socket");
    let failure = Daemon::try_start(&machine).expect_err("it cannot serve");
    assert!(!failure.status.success());
    assert!(failure.stderr.contains("agentd.sock"), "{failure:?}");
    assert!(machine.processes().is_empty(), "nothing runs on");
}

#[test]
fn connections_that_are_reset_end_nothing_but_themselves() {
    let mut scene = Scene::new();
    let pid = scene.daemon().pid();
    for number in 0..50 {
        let mut client = Client::connect(&scene.machine.socket()).expect("the daemon accepts");
        client.attach(&scene.machine, scene.session, Seq(0));
        // Closed with frames that were not read: the daemon's next write fails.
        if number % 2 == 0 {
            client.raw().shutdown(std::net::Shutdown::Read).expect("a live socket");
        }
        drop(client);
        drop(UnixStream::connect(scene.machine.socket()).expect("the daemon accepts"));
    }
    scene.server.script(Reply::text("still here"));
    scene.good_turn("are you there");
    assert_eq!(scene.daemon().pid(), pid);
    assert_eq!(scene.machine.daemons().len(), 1);
}

#[test]
fn an_answered_question_is_not_asked_again_after_a_restart_or_on_attaching() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("touch one"));
    scene.server.script(Reply::text("done"));
    scene.prompt("touch it", ApproveMode::Ask);
    let approval = scene.client.until_asked();
    scene.client.answer(&approval, Verdict::Once {}).expect("it is open");
    scene.client.until_turn_ended();
    scene.kill_daemon();
    scene.start_daemon();
    let list = Request::ListApprovals(ListApprovals { session: None });
    let Ok(Response::Approvals(open)) = scene.client.call(list) else { panic!("a list") };
    assert!(open.approvals.is_empty(), "{open:?}");
    let show = Request::ShowSession(ShowSession { session: scene.session.to_string() });
    let Ok(Response::Session(info)) = scene.client.call(show) else { panic!("a session") };
    assert!(info.approvals.is_empty(), "{info:?}");
}

#[test]
fn a_workspace_that_was_removed_is_one_clear_failure_and_the_session_can_be_removed() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    let daemon = Daemon::start(&machine);
    let gone = machine.root().join("work/gone");
    fs::create_dir(&gone).expect("a workspace");
    let mut client = daemon.client(&machine);
    let session = client.create_in(&machine, &gone);
    client.attach(&machine, session, Seq(0));
    daemon.kill();
    fs::remove_dir_all(&gone).expect("its end");
    let daemon = Daemon::start(&machine);
    let pid = daemon.pid();
    let mut client = daemon.client(&machine);
    server.script(Reply::bash("echo here"));
    server.script(Reply::text("I see"));
    client.attach(&machine, session, Seq(0));
    let send = SendPrompt {
        session: session.to_string(),
        prompt: PromptId::new(),
        text: "go on".into(),
        approve: ApproveMode::All,
        endpoint: machine.endpoint(),
    };
    client.call(Request::SendPrompt(send)).expect("the session is there");
    client.until_turn_ended();
    assert_eq!(machine.daemons().iter().map(|daemon| daemon.pid).collect::<Vec<_>>(), [pid], "the same daemon serves");
    let change = ChangeSession { session: session.to_string(), change: SessionChange::Remove {} };
    client.call(Request::ChangeSession(change)).expect("it can be removed");
    let list = ListSessions { archived: true, cwd: None };
    let Ok(Response::Sessions(left)) = client.call(Request::ListSessions(list)) else { panic!("a list") };
    assert!(left.sessions.is_empty(), "{left:?}");
}

#[test]
fn every_claim_in_the_table_of_faults_exists() {
    let table = fs::read_to_string(repository().join("tests/README.md")).expect("the table");
    let row = Regex::new(r"(?m)^\| [^|]+ \| `([a-z_0-9]+)` \| `([a-z_./]+)` \|$").expect("a pattern");
    let rows: Vec<(String, String)> =
        row.captures_iter(&table).map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
    assert!(rows.len() >= 25, "the table has {} rows", rows.len());
    for (name, file) in rows {
        let text = fs::read_to_string(repository().join(&file)).expect("a file of claims");
        let there = text.contains(&format!("fn {name}(")) || text.contains(&format!("\"{name}\""));
        assert!(there, "{file} has no claim {name}");
    }
}
