//! Taking back.

use std::os::unix::fs::PermissionsExt as _;

use proto::shim::files::Change;

use super::*;

fn changes(bench: &mut Bench) -> Vec<Change> {
    match bench.op(&FileOp::Changes {}) {
        FileReply::Changes(changes) => changes.changes,
        other => panic!("not changes: {other:?}"),
    }
}

#[test]
fn undo_brings_back_bytes_and_mode_even_after_a_restart() {
    let mut bench = Bench::new();
    let before = b"\xEF\xBB\xBFa\r\nb\n\xFF".to_vec();
    bench.put("f", &before);
    fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(0o750)).expect("mode");
    bench.edit(&replace("f", "a\nb", "x"));
    bench.edit(&insert("f", 0, "first"));
    fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(0o600)).expect("mode");
    let mut bench = bench.reopened();
    assert_eq!(bench.undo(2).left, 0);
    assert_eq!(bench.bytes("f"), before);
    assert_eq!(fs::metadata(bench.path("f")).expect("metadata").permissions().mode() & 0o7777, 0o750);
}

#[test]
fn undo_of_a_create_removes_the_file_and_the_directories_made_for_it() {
    let mut bench = Bench::new();
    bench.put("kept/x", "");
    bench.edit(&create("kept/a/b/f", "x"));
    assert!(bench.undo(1).changes[0].deleted);
    assert_eq!(names_in(&bench.path("kept")), ["x"]);
}

#[test]
fn undo_goes_back_step_by_step_over_several_files() {
    let mut bench = Bench::new();
    bench.put("a", "1\n");
    bench.put("b", "1\n");
    bench.edit(&replace("a", "1", "2"));
    bench.edit(&replace("b", "1", "2"));
    bench.edit(&replace("a", "2", "3"));
    assert_eq!(bench.undo(1).left, 2);
    assert_eq!((bench.text("a"), bench.text("b")), ("2\n".into(), "2\n".into()));
    assert_eq!(bench.undo(2).left, 0);
    assert_eq!((bench.text("a"), bench.text("b")), ("1\n".into(), "1\n".into()));
    assert_eq!(bench.fault(&undo(1)), Fault::NothingToUndo { left: 0 });
}

#[test]
fn undo_never_takes_away_what_somebody_else_wrote() {
    let mut bench = Bench::new();
    bench.put("a", "1\n");
    bench.put("b", "1\n");
    bench.edit(&replace("a", "1", "2"));
    bench.edit(&replace("b", "1", "2"));
    bench.put("a", "2\nmine\n");
    let fault = bench.fault(&undo(2));
    let Fault::UndoConflict { change: Some(change) } = fault else { panic!("{fault:?}") };
    assert_eq!((change.path.as_str(), change.after.as_str()), ("a", "2\nmine\n"));
    assert_eq!(bench.text("b"), "2\n", "nothing is done when not all can be done");
}

#[test]
fn a_previewed_undo_shows_every_step_and_writes_nothing() {
    let mut bench = Bench::new();
    bench.put("a", "1\n");
    bench.edit(&replace("a", "1", "2"));
    bench.edit(&replace("a", "2", "3"));
    let op = FileOp::Undo(Undo { steps: 2, newest: None, mode: Mode::Preview {} });
    let FileReply::Undone(undone) = bench.op(&op) else { panic!("not undone") };
    let steps: Vec<(&str, &str)> = undone.changes.iter().map(|c| (c.before.as_str(), c.after.as_str())).collect();
    assert_eq!((steps, undone.applied, undone.left), (vec![("3\n", "2\n"), ("2\n", "1\n")], false, 0));
    assert_eq!(bench.text("a"), "3\n");
}

#[test]
fn an_undo_is_done_once_for_a_call() {
    let mut bench = Bench::new();
    bench.put("a", "1\n");
    bench.edit(&replace("a", "1", "2"));
    bench.edit(&replace("a", "2", "3"));
    let op = FileOp::Undo(Undo { steps: 1, newest: None, mode: apply_as(CallId::new()) });
    let first = bench.op(&op);
    assert_eq!(bench.op(&op), first);
    assert_eq!(bench.text("a"), "2\n");
}

#[test]
fn the_sum_of_changes_is_from_the_first_edit_to_now() {
    let mut bench = Bench::new();
    bench.put("a", "1\n");
    bench.put("same", "1\n");
    bench.edit(&replace("a", "1", "2"));
    bench.edit(&replace("a", "2", "3"));
    bench.edit(&create("new", "x\n"));
    bench.edit(&replace("same", "1", "2"));
    bench.edit(&replace("same", "2", "1"));
    let mut bench = bench.reopened();
    let sum = changes(&mut bench);
    let shown: Vec<(&str, &str, &str)> =
        sum.iter().map(|c| (c.path.as_str(), c.before.as_str(), c.after.as_str())).collect();
    assert_eq!(shown, [("a", "1\n", "3\n"), ("new", "", "x\n")]);
}

#[test]
fn a_journal_line_cut_short_by_a_crash_is_as_if_never_written() {
    let mut bench = Bench::new();
    bench.put("a", "1\n");
    bench.edit(&replace("a", "1", "2"));
    let journal = bench.base.path().join("store/edits.jsonl");
    let mut text = fs::read(&journal).expect("journal");
    text.extend_from_slice(b"{\"line\":\"begin\",\"numb");
    fs::write(&journal, text).expect("write");
    let mut bench = bench.reopened();
    bench.edit(&replace("a", "2", "3"));
    let mut bench = bench.reopened();
    assert_eq!(bench.undo(2).left, 0);
    assert_eq!(bench.text("a"), "1\n");
}

#[test]
fn the_model_is_told_what_the_user_took_back() {
    let mut bench = Bench::new();
    bench.put("a", "1\nx\n");
    bench.view("a");
    bench.edit(&replace("a", "1", "2"));
    bench.undo(1);
    assert!(matches!(bench.fault(&insert("a", 1, "y")), Fault::Stale { change: Some(_) }));
    assert_eq!(bench.edit(&replace("a", "x", "y")).notes.len(), 1);
}

#[test]
fn bytes_that_no_edit_names_are_dropped_at_the_start() {
    let mut bench = Bench::new();
    bench.put("a", "1\n");
    bench.edit(&replace("a", "1", "2"));
    let blobs = bench.base.path().join("store/blobs");
    fs::write(blobs.join("0".repeat(64)), "orphan").expect("write");
    fs::write(blobs.join("half.part"), "orphan").expect("write");
    let mut bench = bench.reopened();
    assert_eq!(names_in(&blobs).len(), 1);
    bench.undo(1);
    assert_eq!(bench.text("a"), "1\n");
}
