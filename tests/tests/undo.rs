//! What the agent's edits changed can be seen and taken back, after any restart, and the model is told.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use harness::ctl::code;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{Block, ModelServer, Reply};
use harness::processes;
use harness::scene::Scene;
use harness::wait;
use proto::diff::{DiffKind, FileDiff};
use proto::event::EventBody;
use proto::ids::{Seq, UndoId};
use proto::request::{ApproveMode, Request, SessionDiff, Undo};
use proto::response::{ErrorCode, Response, SessionChanges, Undone, WireError};
use serde_json::{Value, json};

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({ "command": "str_replace", "path": path, "old_str": old, "new_str": new })
}

fn create(path: &str, text: &str) -> Value {
    json!({ "command": "create", "path": path, "file_text": text })
}

/// A turn in which the model makes these edits.
fn edits(scene: &mut Scene, edits: &[Value]) {
    scene.server.script(Reply::blocks(edits.iter().map(Block::edit).collect()));
    scene.server.script(Reply::text("edited"));
    scene.good_turn("edit");
}

fn undo(scene: &Scene, steps: u32) -> Undo {
    Undo { session: scene.session.to_string(), undo: UndoId::new(), steps, preview: false, newest: None }
}

fn ask(scene: &mut Scene, wish: &Undo) -> Result<Undone, WireError> {
    match scene.client.call(Request::Undo(wish.clone()))? {
        Response::Undone(undone) => Ok(undone),
        other => panic!("an answer of another kind: {other:?}"),
    }
}

fn take_back(scene: &mut Scene, steps: u32) -> Result<Undone, WireError> {
    let wish = undo(scene, steps);
    ask(scene, &wish)
}

fn changes(scene: &mut Scene) -> SessionChanges {
    let request = Request::SessionDiff(SessionDiff { session: scene.session.to_string() });
    match scene.client.call(request) {
        Ok(Response::Changes(changes)) => changes,
        other => panic!("no changes: {other:?}"),
    }
}

/// `path: -old +new …`
fn short(diff: &FileDiff) -> String {
    let mut text = format!("{}:", diff.path);
    for line in diff.hunks.iter().flat_map(|hunk| &hunk.lines) {
        let mark = match line.kind {
            DiffKind::Context => continue,
            DiffKind::Removed => '-',
            DiffKind::Added => '+',
        };
        let words: String = line.spans.iter().map(|span| span.text.as_str()).collect();
        text.push_str(&format!(" {mark}{words}"));
    }
    text
}

fn shorts(diffs: &[FileDiff]) -> Vec<String> {
    diffs.iter().map(short).collect()
}

fn undo_rows(scene: &mut Scene) -> (usize, usize) {
    let started = scene.logged(|body| matches!(body, EventBody::UndoStarted(_)).then_some(())).len();
    let ended = scene.logged(|body| matches!(body, EventBody::UndoEnded(_)).then_some(())).len();
    (started, ended)
}

fn kill_shim(scene: &mut Scene) {
    let pid = scene.client.show(scene.session).shim_pid.expect("a shim runs");
    let pid = i32::try_from(pid).expect("a pid");
    processes::kill_hard(pid);
    wait::until("the shim to be gone", || (!processes::alive(pid)).then_some(()));
}

/// The texts that the user's side of the last request speaks at its end.
fn last_texts(scene: &Scene, request: usize) -> Vec<String> {
    let received = scene.server.wait_for(request);
    let last = received.messages().last().expect("a message").clone();
    let blocks = last["content"].as_array().expect("blocks").clone();
    blocks.iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn an_undo_brings_back_bytes_and_mode_and_is_in_the_log() {
    let mut scene = Scene::new();
    let file = scene.machine.work().join("a.txt");
    let before = b"\xEF\xBB\xBFone\r\ntwo\xFF\r\n";
    fs::write(&file, before).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    edits(&mut scene, &[replace("a.txt", "one", "uno"), create("new/b.txt", "b\n")]);
    assert_eq!(shorts(&changes(&mut scene).diffs), ["a.txt: -\u{feff}one +\u{feff}uno", "new/b.txt: +b"]);
    let look = Undo { preview: true, ..undo(&scene, 2) };
    let preview = ask(&mut scene, &look).unwrap();
    assert!(!preview.applied && file.exists() && scene.machine.work().join("new/b.txt").exists());
    let wish = Undo { newest: Some(preview.newest), ..undo(&scene, 2) };
    let undone = ask(&mut scene, &wish).unwrap();
    assert_eq!(undone.diffs, preview.diffs, "what was shown is what was done");
    assert!(undone.applied && undone.left == 0 && undone.diffs[0].deleted);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o750);
    assert!(!scene.machine.work().join("new").exists());
    assert_eq!(changes(&mut scene).diffs, []);
    // The same wish again, as after a lost answer.
    assert_eq!(ask(&mut scene, &wish).unwrap(), undone);
    assert_eq!(undo_rows(&mut scene), (1, 1));
    let ended = scene.client.until_event("the undo's row", |body| match body {
        EventBody::UndoEnded(ended) => Some(ended.clone()),
        _ => None,
    });
    assert_eq!((ended.undo, ended.problem, ended.diffs), (wish.undo, None, undone.diffs));
}

#[test]
fn edits_are_seen_and_taken_back_after_daemon_and_shim_were_killed() {
    let mut scene = Scene::new();
    let file = scene.machine.work().join("a.txt");
    fs::write(&file, "1\n").unwrap();
    edits(&mut scene, &[replace("a.txt", "1", "2"), replace("a.txt", "2", "3")]);
    kill_shim(&mut scene);
    assert_eq!(shorts(&changes(&mut scene).diffs), ["a.txt: -1 +3"], "a new shim knows");
    scene.kill_daemon();
    scene.start_daemon();
    assert_eq!(shorts(&changes(&mut scene).diffs), ["a.txt: -1 +3"], "a new daemon asks");
    let wish = undo(&scene, 1);
    let undone = ask(&mut scene, &wish).unwrap();
    assert_eq!((undone.left, fs::read_to_string(&file).unwrap().as_str()), (1, "2\n"));
    kill_shim(&mut scene);
    scene.kill_daemon();
    scene.start_daemon();
    assert_eq!(ask(&mut scene, &wish).unwrap(), undone, "the same id gets the same answer, from the log");
    let more = undo(&scene, 1);
    assert_eq!(ask(&mut scene, &more).unwrap().left, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
    assert_eq!(undo_rows(&mut scene), (2, 2));
}

#[test]
fn an_undo_cut_by_a_crash_is_done_once_by_the_next_daemon() {
    for _ in 0..5 {
        let mut scene = Scene::new();
        let file = scene.machine.work().join("a.txt");
        fs::write(&file, "1\n").unwrap();
        edits(&mut scene, &[replace("a.txt", "1", "2"), replace("a.txt", "2", "3"), replace("a.txt", "3", "4")]);
        let wish = undo(&scene, 2);
        scene.client.post(Request::Undo(wish.clone()));
        scene.client.until_event("the intent", |body| matches!(body, EventBody::UndoStarted(_)).then_some(()));
        kill_shim(&mut scene);
        scene.kill_daemon();
        scene.start_daemon();
        let undone = ask(&mut scene, &wish).unwrap();
        assert_eq!(shorts(&undone.diffs), ["a.txt: -4 +3", "a.txt: -3 +2"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "2\n");
        assert_eq!(undo_rows(&mut scene), (1, 1));
    }
}

#[test]
fn the_model_is_told_once_at_its_next_request() {
    let mut scene = Scene::new();
    fs::write(scene.machine.work().join("a.txt"), "1\n").unwrap();
    edits(&mut scene, &[replace("a.txt", "1", "2")]);
    take_back(&mut scene, 1).unwrap();
    scene.kill_daemon();
    scene.start_daemon();
    scene.server.script(Reply::text("I see"));
    scene.good_turn("go on");
    let texts = last_texts(&scene, 3);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("The user took back your last edit") && texts[0].contains("a.txt"), "{texts:?}");
    assert!(texts[1].contains("go on"), "the note stands before the prompt: {texts:?}");
    scene.server.script(Reply::text("again"));
    scene.good_turn("and now");
    let whole = serde_json::to_string(scene.server.wait_for(4).messages()).unwrap();
    assert_eq!(whole.matches("took back your last edit").count(), 1);
    assert_eq!(scene.server.take_violations(), Vec::<String>::new());
}

#[test]
fn an_undo_is_refused_while_a_turn_runs() {
    let mut scene = Scene::new();
    fs::write(scene.machine.work().join("a.txt"), "1\n").unwrap();
    edits(&mut scene, &[replace("a.txt", "1", "2")]);
    scene.server.script(Reply::bash("touch runs; until test -e go; do sleep 0.01; done"));
    scene.server.script(Reply::text("done"));
    scene.prompt("run", ApproveMode::All);
    wait::until("the command to run", || scene.machine.work().join("runs").exists().then_some(()));
    let error = take_back(&mut scene, 1).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.message.starts_with("a turn runs in this session"), "{error}");
    assert_eq!(shorts(&changes(&mut scene).diffs), ["a.txt: -1 +2"], "looking is not refused");
    fs::write(scene.machine.work().join("go"), "").unwrap();
    scene.client.until_turn_ended();
    assert!(take_back(&mut scene, 1).is_ok());
}

#[test]
fn a_file_that_somebody_changed_since_is_not_put_back() {
    let mut scene = Scene::new();
    let file = scene.machine.work().join("a.txt");
    fs::write(&file, "1\n").unwrap();
    edits(&mut scene, &[replace("a.txt", "1", "2")]);
    fs::write(&file, "2\nmine\n").unwrap();
    let error = take_back(&mut scene, 1).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    let sentence = "a.txt is not as the edit left it: changed at line 2 (+1 −0); taking the edit back would lose that";
    assert_eq!(
        error.message.replace(&scene.machine.work().display().to_string(), "").trim_start_matches('/'),
        sentence
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "2\nmine\n");
    // The refusal is in the log; the model has nothing to learn of it.
    assert_eq!(undo_rows(&mut scene), (1, 1));
    scene.server.script(Reply::text("fine"));
    scene.good_turn("go on");
    assert_eq!(last_texts(&scene, 3).len(), 1);
}

#[test]
fn agentctl_shows_asks_and_takes_back() {
    let mut scene = Scene::new();
    let file = scene.machine.work().join("a.txt");
    fs::write(&file, "1\n").unwrap();
    edits(&mut scene, &[replace("a.txt", "1", "2")]);
    let shown = scene.machine.ctl(&["diff"]).run().expect(code::DONE);
    assert!(shown.stdout.contains("a.txt  +1 −1") && shown.stdout.contains("1 + 2"), "{shown:?}");
    let refused = scene.machine.ctl(&["undo"]).run().expect(code::USAGE);
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    let undone = scene.machine.ctl(&["undo", "--yes"]).run().expect(code::DONE);
    assert!(undone.stderr.contains("took back the last edit of a.txt"), "{undone:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
    let none = scene.machine.ctl(&["undo", "--yes"]).run().expect(code::OTHER);
    assert!(none.stderr.contains("there is no edit in this session that can be taken back"), "{none:?}");
}

#[test]
fn the_editor_goes_beside_the_workspace_only_where_the_user_says_so() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    let notes = machine.root().join("notes");
    fs::create_dir(&notes).unwrap();
    let listed = [notes.display().to_string(), machine.root().join("not-there").display().to_string()];
    machine.write_config(&format!("[workspace]\nextra_roots = {listed:?}\n"));
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    let session = client.create(&machine);
    client.attach(&machine, session, Seq(0));
    let outside = machine.root().join("home/x").display().to_string();
    let inside = notes.join("x").display().to_string();
    server.script(Reply::blocks(vec![Block::edit(&create(&inside, "x\n")), Block::edit(&create(&outside, "x\n"))]));
    server.script(Reply::text("done"));
    client.prompt(&machine, session, "note it", ApproveMode::All);
    client.until_turn_ended();
    assert_eq!(fs::read_to_string(notes.join("x")).unwrap(), "x\n");
    assert!(!machine.root().join("home/x").exists());
    assert!(server.wait_for(2).results()[1].text.contains("lies outside of the workspace"));
}
