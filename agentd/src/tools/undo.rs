//! Taking edits back, and the sum of changes: the shim's answers → what is recorded, what clients see, and what the model
//! is told of it. Pure.

use proto::event::Problem;
use proto::ids::{CallId, UndoId};
use proto::response::{ErrorCode, SessionChanges, Undone, WireError};
use proto::shim::files::{self, Apply, Change, Fault, FileError, FileOp, FileReply, Mode};

use super::{diff, editor};
use crate::store::entry::{UndoOrder, UndoResult};

/// Names of files in the note for the model; more says nothing more.
const NOTED_FILES_MAX: usize = 20;

/// [`Problem::code`] when the files or the history do not allow it.
const CONFLICT: &str = "conflict";

/// [`Problem::code`] when the session's shell could not be asked.
const SHELL: &str = "shell";

/// What the shim is asked to do. The undo's id is the call's: the shim takes back once for it, ever.
#[must_use]
pub fn op(order: &UndoOrder) -> FileOp {
    let mode = Mode::Apply(Apply { call: Some(CallId(order.undo.0)), expect: None });
    FileOp::Undo(files::Undo { steps: order.steps, newest: order.newest, mode })
}

/// What the shim is asked to show.
#[must_use]
pub fn preview_op(steps: u32) -> FileOp {
    FileOp::Undo(files::Undo { steps, newest: None, mode: Mode::Preview {} })
}

/// What is recorded of the shim's answer.
#[must_use]
pub fn result(order: &UndoOrder, reply: &FileReply) -> UndoResult {
    let undone = match reply {
        FileReply::Undone(undone) => undone,
        FileReply::Error(error) => return refused(order, conflict(&sentence(error, order.steps))),
        FileReply::Text(_)
        | FileReply::Listing(_)
        | FileReply::Image(_)
        | FileReply::Edited(_)
        | FileReply::Changes(_)
        | FileReply::Matches(_)
        | FileReply::Paths(_) => return refused(order, conflict("the id of this undo belongs to something else")),
    };
    let problem = undone.stopped.as_ref().map(|error| {
        let (done, wanted) = (undone.changes.len(), order.steps);
        conflict(&format!("{done} of {wanted} edits were taken back; then {}", sentence(error, order.steps)))
    });
    UndoResult {
        undo: order.undo,
        by: order.by.clone(),
        diffs: diff::file_diffs(&undone.changes),
        left: undone.left,
        newest: undone.newest,
        problem,
        note: (!undone.changes.is_empty()).then(|| note(&undone.changes)),
    }
}

/// What is recorded when the shell could not be asked.
#[must_use]
pub fn no_shell(order: &UndoOrder, why: &str) -> UndoResult {
    let message = format!("nothing was taken back: the session's shell cannot be asked ({why})");
    refused(order, Problem { code: SHELL.into(), message, hint: "try again".into(), request_id: None })
}

fn refused(order: &UndoOrder, problem: Problem) -> UndoResult {
    let (undo, by) = (order.undo, order.by.clone());
    UndoResult { undo, by, diffs: Vec::new(), left: 0, newest: 0, problem: Some(problem), note: None }
}

/// A recorded result, for the client that asked.
///
/// # Errors
/// When not all edits were taken back.
pub fn answer(result: &UndoResult) -> Result<Undone, WireError> {
    match &result.problem {
        Some(problem) => Err(wire(problem)),
        None => Ok(Undone {
            undo: result.undo,
            applied: true,
            diffs: result.diffs.clone(),
            left: result.left,
            newest: result.newest,
        }),
    }
}

/// A preview, for the client that asked.
///
/// # Errors
/// When it could not be done.
pub fn preview(undo: UndoId, steps: u32, reply: &FileReply) -> Result<Undone, WireError> {
    match reply {
        FileReply::Undone(undone) => Ok(Undone {
            undo,
            applied: false,
            diffs: diff::file_diffs(&undone.changes),
            left: undone.left,
            newest: undone.newest,
        }),
        other => Err(unfit(other, steps)),
    }
}

/// The sum of changes, for clients.
///
/// # Errors
/// When it cannot be told.
pub fn changes(reply: &FileReply) -> Result<SessionChanges, WireError> {
    match reply {
        FileReply::Changes(changes) => Ok(SessionChanges {
            diffs: diff::file_diffs(&changes.changes),
            left_out: changes.left_out,
            problems: changes.unknown.iter().map(|error| sentence(error, 0)).collect(),
        }),
        other => Err(unfit(other, 0)),
    }
}

fn unfit(reply: &FileReply, steps: u32) -> WireError {
    match reply {
        FileReply::Error(error) => wire(&conflict(&sentence(error, steps))),
        FileReply::Text(_)
        | FileReply::Listing(_)
        | FileReply::Image(_)
        | FileReply::Edited(_)
        | FileReply::Undone(_)
        | FileReply::Changes(_)
        | FileReply::Matches(_)
        | FileReply::Paths(_) => wire(&conflict("the session's shell answered something else than was asked")),
    }
}

fn conflict(message: &str) -> Problem {
    let hint = "`agentctl diff` shows the session's changes".into();
    Problem { code: CONFLICT.into(), message: message.into(), hint, request_id: None }
}

fn wire(problem: &Problem) -> WireError {
    let code = if problem.code == SHELL { ErrorCode::Shell } else { ErrorCode::Conflict };
    WireError { code, message: problem.message.clone(), hint: problem.hint.clone() }
}

/// Why edits cannot be taken back, in one sentence for the user. Faults that any operation may have keep the words that
/// the editor tool has for them.
fn sentence(error: &FileError, steps: u32) -> String {
    let path = &error.path;
    if let Fault::NothingToUndo { left } = &error.fault {
        return match left {
            0 => "there is no edit in this session that can be taken back".to_owned(),
            left => format!("only the last {left} edits can be taken back, not {steps}"),
        };
    }
    if let Fault::PriorGone {} = &error.fault {
        return format!("what {path} was before the edit is not kept any more");
    }
    if let Fault::ChangedSincePreview {} = &error.fault {
        return if path.is_empty() {
            "the session has other edits now than those that were shown; nothing was taken back".to_owned()
        } else {
            format!("{path} was changed in the meantime")
        };
    }
    if let Fault::UndoConflict { change } = &error.fault {
        let what = change.as_ref().map(|change| changed(change)).unwrap_or_default();
        return format!("{path} is not as the edit left it{what}; taking the edit back would lose that");
    }
    let text = editor::fault_text(error);
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// `: changed at line 3 (+1 −2)`.
fn changed(change: &Change) -> String {
    if change.deleted {
        return ": it was removed".to_owned();
    }
    let diff = diff::file_diff(change);
    let line = change.first + u64::from(change.context_above);
    format!(": changed at line {line} (+{} −{})", diff.added, diff.removed)
}

/// What the model is told before the user's next prompt.
fn note(changes: &[Change]) -> String {
    // Later steps of one file say what became of it.
    let mut files: Vec<(&str, bool)> = Vec::new();
    for change in changes {
        files.retain(|(path, _)| *path != change.path);
        files.push((&change.path, change.deleted));
    }
    let mut names: Vec<String> = files
        .iter()
        .take(NOTED_FILES_MAX)
        .map(|(path, gone)| if *gone { format!("{path} (it does not exist any more)") } else { (*path).to_owned() })
        .collect();
    if files.len() > NOTED_FILES_MAX {
        names.push(format!("{} more", files.len() - NOTED_FILES_MAX));
    }
    let edits = if changes.len() == 1 { "edit".to_owned() } else { format!("{} edits", changes.len()) };
    format!(
        "[The user took back your last {edits}. As before again: {}. View a file again before you change it.]",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::shim::files::Undone as Taken;

    use super::*;

    fn order(steps: u32) -> UndoOrder {
        UndoOrder { undo: UndoId::new(), steps, newest: None, by: "agentctl".into() }
    }

    fn change(path: &str, before: &str, after: &str) -> Change {
        Change {
            path: path.into(),
            created: false,
            deleted: after.is_empty(),
            first: 1,
            before: before.into(),
            after: after.into(),
            context_above: 0,
            context_below: 0,
            before_left_out: 0,
            after_left_out: 0,
            total_lines: 1,
        }
    }

    fn refusal(steps: u32, path: &str, fault: Fault) -> String {
        let reply = FileReply::Error(FileError { path: path.into(), fault });
        let result = result(&order(steps), &reply);
        assert!(result.note.is_none() && result.diffs.is_empty(), "nothing was taken back");
        answer(&result).unwrap_err().message
    }

    #[test]
    fn a_refusal_is_one_sentence_that_says_what_changed() {
        let changed = Some(Box::new(change("a", "2\n", "2\nmine\n")));
        let table = [
            refusal(1, "", Fault::NothingToUndo { left: 0 }),
            refusal(5, "", Fault::NothingToUndo { left: 2 }),
            refusal(1, "", Fault::ChangedSincePreview {}),
            refusal(1, "a", Fault::UndoConflict { change: changed }),
            refusal(1, "a", Fault::UndoConflict { change: None }),
            refusal(1, "a", Fault::PriorGone {}),
            refusal(1, "a", Fault::NoSpace { action: files::Action::Write }),
        ];
        expect![[r#"
            there is no edit in this session that can be taken back
            only the last 2 edits can be taken back, not 5
            the session has other edits now than those that were shown; nothing was taken back
            a is not as the edit left it: changed at line 1 (+1 −0); taking the edit back would lose that
            a is not as the edit left it; taking the edit back would lose that
            what a was before the edit is not kept any more
            No space left on the device: a could not be written; it is unchanged"#]]
        .assert_eq(&table.join("\n"));
    }

    #[test]
    fn the_model_is_told_each_file_once_with_what_became_of_it() {
        let changes = vec![change("b", "3", "2"), change("a", "2", "1"), change("b", "2", "")];
        let undone = Taken { applied: true, changes, left: 0, newest: 3, stopped: None };
        let result = result(&order(3), &FileReply::Undone(undone));
        expect!["[The user took back your last 3 edits. As before again: a, b (it does not exist any more). View a file again before you change it.]"]
            .assert_eq(&result.note.unwrap());
        assert_eq!(result.diffs.len(), 3);
    }

    #[test]
    fn what_was_taken_back_before_a_failure_is_told_to_both() {
        let stopped = Some(FileError { path: "a".into(), fault: Fault::ChangedSincePreview {} });
        let undone = Taken { applied: true, changes: vec![change("b", "2", "1")], left: 1, newest: 2, stopped };
        let result = result(&order(2), &FileReply::Undone(undone));
        assert!(result.note.as_ref().is_some_and(|note| note.contains("last edit. As before again: b.")));
        let error = answer(&result).unwrap_err();
        assert_eq!(error.message, "1 of 2 edits were taken back; then a was changed in the meantime");
    }
}
