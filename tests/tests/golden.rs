//! Databases of every earlier schema (`tests/data/db`) are opened, brought up to date and worked with.

use std::fs;
use std::path::PathBuf;

use harness::binaries::repository;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{ModelServer, Reply};
use proto::event::EventBody;
use proto::ids::Seq;
use proto::request::{ApproveMode, ListSessions, Request, Search};
use proto::response::Response;

/// The prompt in each of them.
const PROMPT: &str = "The first name is missing when I run hello.py. Find out why and mend it.";

fn folder(name: &str) -> PathBuf {
    repository().join(name)
}

fn version(file: &PathBuf) -> i64 {
    let database = rusqlite::Connection::open(file).expect("a database");
    database.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a version")
}

#[test]
fn every_schema_that_a_migration_makes_has_a_golden_database() {
    let names = |path: &str, suffix: &str| {
        let files = fs::read_dir(folder(path)).expect("a folder").flatten();
        let stem = |name: String| name.strip_suffix(suffix).map(str::to_owned);
        let mut names: Vec<String> =
            files.filter_map(|file| stem(file.file_name().to_string_lossy().into_owned())).collect();
        names.sort();
        names
    };
    let golden = names("tests/data/db", ".db");
    assert_eq!(golden, names("agentd/src/store/migrations", ".sql"));
    for name in golden {
        let file = folder("tests/data/db").join(format!("{name}.db"));
        assert_eq!(version(&file), name.parse::<i64>().expect("a number"), "{name}");
    }
}

#[test]
fn a_database_of_every_schema_is_migrated_read_searched_and_gone_on_with() {
    let newest = fs::read_dir(folder("agentd/src/store/migrations")).expect("the migrations").count();
    let mut files: Vec<PathBuf> = fs::read_dir(folder("tests/data/db"))
        .expect("the golden files")
        .flatten()
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let what = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let server = ModelServer::start();
        let machine = Machine::with_model(&server.url());
        fs::create_dir_all(machine.database().parent().expect("a folder")).expect("the state folder");
        fs::copy(&file, machine.database()).expect("a copy");
        let daemon = Daemon::start(&machine);
        let mut client = daemon.client(&machine);
        let list = ListSessions { archived: true, cwd: None };
        let Ok(Response::Sessions(found)) = client.call(Request::ListSessions(list)) else { panic!("{what}: a list") };
        let [session] = found.sessions.as_slice() else { panic!("{what}: {found:?}") };
        let log = client.log(session.id);
        let seqs: Vec<u64> = log.iter().map(|event| event.seq.0).collect();
        assert_eq!(seqs, (1..=session.head.0).collect::<Vec<_>>(), "{what}");
        let prompts =
            log.iter().filter(|event| matches!(&event.body, EventBody::PromptAccepted(it) if it.text == PROMPT));
        assert_eq!(prompts.count(), 1, "{what}");
        let calls = log.iter().filter(|event| matches!(event.body, EventBody::CallFinished(_))).count();
        assert_eq!(calls, 4, "{what}");
        let search = Search { text: "missing".into(), limit: 10 };
        let Ok(Response::Hits(hits)) = client.call(Request::Search(search)) else { panic!("{what}: hits") };
        assert!(hits.hits.iter().any(|hit| hit.session == session.id), "{what}: {hits:?}");
        // The old session's actor folds the old log; its workspace is gone, so the work is done in a new session.
        client.attach(&machine, session.id, session.head);
        let new = client.create(&machine);
        client.attach(&machine, new, Seq(0));
        server.script(Reply::bash("echo new"));
        server.script(Reply::text("done"));
        client.prompt(&machine, new, "beside the old one", ApproveMode::All);
        client.until_turn_ended();
        drop(client);
        assert!(daemon.terminate().success(), "{what}");
        assert_eq!(usize::try_from(version(&machine.database())), Ok(newest), "{what}");
        let database = rusqlite::Connection::open(machine.database()).expect("the database");
        let sound: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
        assert_eq!(sound, "ok", "{what}");
    }
}
