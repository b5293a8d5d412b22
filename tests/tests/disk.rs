//! A disk without room: prompts are refused in one sentence, what runs goes on and is parked, nothing is half-written, and
//! the work goes on by itself when there is room again.
//!
//! A limit on the size of the daemon's files stands for the disk: the same writes fail, for this daemon only, and the
//! limit can be lifted while it runs. Its log is such a file, too.

use std::fs;

use harness::model_server::Reply;
use harness::scene::Scene;
use harness::wait;
use proto::event::EventBody;
use proto::ids::{PromptId, Seq, SessionId};
use proto::request::{ApproveMode, Request, SendPrompt};
use proto::response::{ErrorCode, WireError};

/// No file of the process may be written beyond this size.
fn limit_files(pid: i32, bytes: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the new limit is read from `limit`, the old one is not asked for.
    let set = unsafe { libc::prlimit(pid, libc::RLIMIT_FSIZE, &raw const limit, std::ptr::null_mut()) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

fn refused(scene: &mut Scene, session: SessionId) -> WireError {
    let send = SendPrompt {
        session: session.to_string(),
        prompt: PromptId::new(),
        text: "more".into(),
        approve: ApproveMode::All,
        endpoint: scene.machine.endpoint(),
    };
    scene.client.call(Request::SendPrompt(send)).expect_err("a prompt that cannot be stored is refused")
}

#[test]
fn a_full_disk_refuses_prompts_parks_what_runs_and_work_goes_on_by_itself_when_there_is_room() {
    let mut scene = Scene::new();
    let other = scene.client.create(&scene.machine);
    scene.server.script(Reply::bash("until [ -e go ]; do sleep 0.05; done; echo ran >> one; echo through"));
    scene.server.script(Reply::text("it ran"));
    scene.prompt("work", ApproveMode::All);
    scene.client.until_event("the call", |body| matches!(body, EventBody::CallStarted(_)).then_some(()));
    let pid = scene.daemon().pid();
    limit_files(pid, 0);
    for session in [other, scene.session] {
        let error = refused(&mut scene, session);
        assert_eq!(error.code, ErrorCode::Storage);
        assert!(error.message.contains("full"), "{error:?}");
    }
    fs::write(scene.machine.work().join("go"), "").unwrap();
    wait::until("the command to end", || {
        (fs::read_to_string(scene.machine.work().join("one")).ok()? == "ran\n").then_some(())
    });
    assert_eq!(refused(&mut scene, other).code, ErrorCode::Storage);
    limit_files(pid, libc::RLIM_INFINITY);
    // Nobody asks for anything: it goes on by itself.
    scene.client.until_turn_ended();
    let results = scene.server.requests()[1].results();
    assert_eq!(results.iter().map(|result| result.text.trim()).collect::<Vec<_>>(), ["through"]);
    assert_eq!(fs::read_to_string(scene.machine.work().join("one")).unwrap(), "ran\n", "it ran once");
    let log = scene.log();
    let seqs: Vec<Seq> = log.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=log.len() as u64).map(Seq).collect::<Vec<_>>(), "nothing is half-written");
    let prompts = log.iter().filter(|event| matches!(event.body, EventBody::PromptAccepted(_))).count();
    assert_eq!(prompts, 1, "what was refused is not there");
    scene.server.script(Reply::text("there is room"));
    scene.good_turn("and now");
    let database = rusqlite::Connection::open(scene.machine.database()).unwrap();
    let sound: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}
