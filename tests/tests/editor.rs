//! The editor tool changes what it was asked to change and nothing else: the behaviour corpus, through the whole
//! product, and a writer killed in the middle of its work: `EDIT_KILLS` times (3).

use std::fs;

use harness::corpus::editor::Case;
use harness::corpus::play::Stage;
use harness::corpus::{load, play_all, selected};
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{Block, ModelServer, Reply};
use harness::processes;
use proto::event::EventBody;
use proto::ids::Seq;
use proto::request::ApproveMode;
use serde_json::json;

/// How often the writer is killed without `EDIT_KILLS`: each time at another moment, as the machine has it.
const KILLS: usize = 3;

/// Size of the new content: several pages, within what a model writes in one reply.
const NEW_BYTES: usize = 2_000_000;

#[test]
fn every_case_of_the_editor_corpus_holds() {
    let stage = Stage::new(&[]);
    let cases: Vec<Case> = selected(load("editor.jsonl"), |case: &Case| &case.id);
    play_all(cases, |case| case.id.clone(), |case| case.play(&stage));
}

#[test]
fn a_writer_killed_in_the_middle_leaves_the_old_or_the_new_content() {
    let kills = std::env::var("EDIT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    for round in 0..kills {
        let server = ModelServer::start();
        let machine = Machine::with_model(&server.url());
        let file = machine.work().join("a.txt");
        fs::write(&file, "x\n").unwrap();
        let new = "y".repeat(NEW_BYTES);
        let edit = json!({ "command": "str_replace", "path": "a.txt", "old_str": "x", "new_str": new });
        server.answer_with(move |request| match request.rounds() {
            0 => Reply::blocks(vec![Block::edit(&edit)]),
            _ => Reply::text("done"),
        });
        let daemon = Daemon::start(&machine);
        let mut client = daemon.client(&machine);
        let session = client.create(&machine);
        client.attach(&machine, session, Seq(0));
        client.prompt(&machine, session, "write much", ApproveMode::All);
        client.until_event("the call to start", |body| matches!(body, EventBody::CallStarted(_)).then_some(()));
        let shim = client.show(session).shim_pid.map(|pid| i32::try_from(pid).unwrap());
        shim.into_iter().for_each(processes::kill_hard);
        daemon.kill();
        let content = fs::read_to_string(&file).unwrap();
        assert!(content == "x\n" || content == format!("{new}\n"), "round {round}: {} bytes", content.len());
        let names: Vec<_> = fs::read_dir(machine.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        println!("round {round}: {} bytes, {names:?}", content.len());
    }
}
