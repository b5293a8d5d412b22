//! The changes of several files: a session's sum, and what an undo puts back.

use proto::diff::FileDiff;
use proto::event::UndoEnded;
use proto::response::{SessionChanges, Undone};

use super::{Line, Style, diff, notes};

/// One file, head and lines.
#[must_use]
pub fn whole(diff: &FileDiff) -> Vec<Line> {
    let mut lines = stat(diff);
    lines.extend(diff::body(diff, usize::MAX));
    lines
}

/// One file, its head alone.
#[must_use]
pub fn stat(diff: &FileDiff) -> Vec<Line> {
    vec![diff::head(diff)]
}

/// What is to say below a session's changes.
#[must_use]
pub fn rest(sum: &SessionChanges) -> Vec<Line> {
    let mut lines: Vec<Line> = sum.problems.iter().map(|problem| notes::notice(problem)).collect();
    if sum.left_out > 0 {
        lines.push(notes::remark(&format!("{} more files changed", sum.left_out)));
    }
    if sum.diffs.is_empty() && lines.is_empty() {
        lines.push(notes::remark("the session's edits changed nothing that still stands"));
    }
    lines
}

/// `take back 2 edits of a.txt, b.txt? [y/N]`.
#[must_use]
pub fn question(preview: &Undone) -> String {
    format!("take back {}? [y/N]", edits(preview))
}

/// `took back 2 edits of a.txt, b.txt; 3 more can be`.
#[must_use]
pub fn taken_back(undone: &Undone) -> String {
    match undone.left {
        0 => format!("took back {}; there are no earlier ones", edits(undone)),
        left => format!("took back {}; {left} earlier can be taken back too", edits(undone)),
    }
}

/// What the others in a session see of an undo.
#[must_use]
pub fn undo_ended(ended: &UndoEnded) -> Vec<Line> {
    let mut lines = Vec::new();
    if !ended.diffs.is_empty() {
        lines.push(notes::remark(&format!("{} took edits back:", ended.by)));
        lines.extend(ended.diffs.iter().map(|diff| Line::new().lit(Style::Plain, "  ").join(diff::head(diff))));
    }
    lines.extend(ended.problem.as_ref().map(notes::problem));
    lines
}

fn edits(undone: &Undone) -> String {
    let mut names: Vec<&str> = Vec::new();
    for diff in &undone.diffs {
        if !names.contains(&diff.path.as_str()) {
            names.push(&diff.path);
        }
    }
    let names = names.join(", ");
    match undone.diffs.len() {
        1 => format!("the last edit of {names}"),
        count => format!("the last {count} edits of {names}"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::ids::UndoId;

    use super::super::diff::tests::sample;
    use super::*;

    fn undone(paths: &[&str], left: u64) -> Undone {
        let diffs = paths.iter().map(|path| FileDiff { path: (*path).into(), ..sample() }).collect();
        Undone { undo: UndoId::new(), applied: true, diffs, left, newest: 3 }
    }

    #[test]
    fn an_undo_names_each_file_once_and_what_is_left() {
        let sentences = [
            question(&undone(&["a"], 0)),
            question(&undone(&["b", "a", "b"], 2)),
            taken_back(&undone(&["a"], 0)),
            taken_back(&undone(&["b", "a"], 2)),
        ];
        expect![[r#"
            take back the last edit of a? [y/N]
            take back the last 3 edits of b, a? [y/N]
            took back the last edit of a; there are no earlier ones
            took back the last 2 edits of b, a; 2 earlier can be taken back too"#]]
        .assert_eq(&sentences.join("\n"));
    }

    #[test]
    fn below_the_changes_stands_what_is_missing() {
        let text = |sum: &SessionChanges| rest(sum).iter().map(|line| line.paint(false) + "\n").collect::<String>();
        let none = SessionChanges { diffs: Vec::new(), left_out: 0, problems: Vec::new() };
        let some = SessionChanges { left_out: 2, problems: vec!["a is a directory".into()], ..none.clone() };
        expect![[r#"
            · the session's edits changed nothing that still stands
            ! a is a directory
            · 2 more files changed
        "#]]
        .assert_eq(&(text(&none) + &text(&some)));
    }
}
