//! The change of one file as hunks of lines with word-level spans, made from the lines that the shim reports.

use std::time::Duration;

use proto::diff::{DiffKind, DiffLine, DiffSpan, FileDiff, Hunk};
use proto::shim::files::Change;
use similar::{ChangeTag, InlineChange, TextDiff};

/// Unchanged lines around a change, as `diff -u` has them.
const CONTEXT_LINES: usize = 3;

/// Lines in one diff: more is not read, and a frame stays small.
const LINES_MAX: usize = 2000;

/// After this long the diff is made coarser instead of smaller. A change of ordinary size takes a fraction of it.
const TIME_MAX: Duration = Duration::from_millis(200);

/// Bytes of changed lines up to which words are compared; beyond it a line is one span.
const WORDS_BYTES_MAX: usize = 64 * 1024;

/// Bytes of all diffs of one answer, as JSON: a row of the log and a frame stay small enough to be sent and read.
const DIFFS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The diff of a change.
#[must_use]
pub fn file_diff(change: &Change) -> FileDiff {
    let diff = TextDiff::configure().timeout(TIME_MAX).diff_lines(change.before.as_str(), change.after.as_str());
    let words = change.before.len() + change.after.len() <= WORDS_BYTES_MAX;
    let above = u32::try_from(change.first - 1).unwrap_or(u32::MAX);
    let mut result = FileDiff {
        path: change.path.clone(),
        created: change.created,
        deleted: change.deleted,
        added: u32::try_from(change.after_left_out).unwrap_or(u32::MAX),
        removed: u32::try_from(change.before_left_out).unwrap_or(u32::MAX),
        hunks: Vec::new(),
        lines_left_out: u32::try_from(change.after_left_out + change.before_left_out).unwrap_or(u32::MAX),
    };
    let mut room = LINES_MAX;
    for group in diff.grouped_ops(CONTEXT_LINES) {
        let mut hunk = Hunk { old_start: 0, new_start: 0, lines: Vec::new() };
        for op in &group {
            if words {
                for line in diff.iter_inline_changes(op) {
                    push(&mut hunk, &mut result, &mut room, above, &Line::from_inline(&line));
                }
            } else {
                for line in diff.iter_changes(op) {
                    let spans = vec![(false, line.value().to_owned())];
                    let place = (line.tag(), line.old_index(), line.new_index());
                    push(&mut hunk, &mut result, &mut room, above, &Line { place, spans });
                }
            }
        }
        if !hunk.lines.is_empty() {
            result.hunks.push(hunk);
        }
    }
    result
}

/// The diffs of several changes, within the room of one answer: beyond it only the numbers of lines are told.
#[must_use]
pub fn file_diffs(changes: &[Change]) -> Vec<FileDiff> {
    let mut room = DIFFS_BYTES_MAX;
    let fit = |mut diff: FileDiff| {
        // What serializes is a plain value; the worst case counts as too large.
        let bytes = serde_json::to_vec(&diff).map_or(usize::MAX, |text| text.len());
        match room.checked_sub(bytes) {
            Some(left) => room = left,
            None => {
                diff.hunks.clear();
                diff.lines_left_out = diff.added.saturating_add(diff.removed);
            }
        }
        diff
    };
    changes.iter().map(file_diff).map(fit).collect()
}

/// One line as the comparison gives it.
struct Line {
    /// Kind, and its index among the old and the new lines.
    place: (ChangeTag, Option<usize>, Option<usize>),
    /// (Differs from its partner, text), the line end included.
    spans: Vec<(bool, String)>,
}

impl Line {
    fn from_inline(line: &InlineChange<'_, str>) -> Self {
        let spans = line.values().iter().map(|(changed, text)| (*changed, (*text).to_owned())).collect();
        Self { place: (line.tag(), line.old_index(), line.new_index()), spans }
    }
}

fn push(hunk: &mut Hunk, result: &mut FileDiff, room: &mut usize, above: u32, line: &Line) {
    let (tag, old, new) = line.place;
    let kind = match tag {
        ChangeTag::Equal => DiffKind::Context,
        ChangeTag::Delete => DiffKind::Removed,
        ChangeTag::Insert => DiffKind::Added,
    };
    result.added += u32::from(kind == DiffKind::Added);
    result.removed += u32::from(kind == DiffKind::Removed);
    if *room == 0 {
        result.lines_left_out += 1;
        return;
    }
    *room -= 1;
    let number =
        |index: Option<usize>| index.and_then(|index| u32::try_from(index).ok()).map(|index| above + index + 1);
    hunk.old_start = if hunk.old_start == 0 { number(old).unwrap_or(0) } else { hunk.old_start };
    hunk.new_start = if hunk.new_start == 0 { number(new).unwrap_or(0) } else { hunk.new_start };
    hunk.lines.push(diff_line(kind, &line.spans));
}

fn diff_line(kind: DiffKind, spans: &[(bool, String)]) -> DiffLine {
    let mut shown: Vec<DiffSpan> =
        spans.iter().map(|(changed, text)| DiffSpan { text: text.clone(), changed: *changed }).collect();
    let ended = drop_end(&mut shown, '\n');
    if ended {
        drop_end(&mut shown, '\r');
    }
    DiffLine { kind, spans: shown, no_newline: !ended }
}

/// Takes one sign off the end of a line; CR and LF may stand in two spans.
fn drop_end(spans: &mut Vec<DiffSpan>, end: char) -> bool {
    let Some(last) = spans.last_mut() else { return false };
    let dropped = last.text.ends_with(end);
    if dropped {
        last.text.pop();
    }
    if last.text.is_empty() {
        spans.pop();
    }
    dropped
}

/// The diff as text, as `diff -u` writes hunks.
#[must_use]
pub fn unified(diff: &FileDiff) -> String {
    let mut text = String::new();
    for hunk in &diff.hunks {
        let count = |skipped: DiffKind| hunk.lines.iter().filter(|line| line.kind != skipped).count();
        let (old, new) = (count(DiffKind::Added), count(DiffKind::Removed));
        text.push_str(&format!("@@ -{},{old} +{},{new} @@\n", hunk.old_start, hunk.new_start));
        for line in &hunk.lines {
            text.push(match line.kind {
                DiffKind::Context => ' ',
                DiffKind::Removed => '-',
                DiffKind::Added => '+',
            });
            line.spans.iter().for_each(|span| text.push_str(&span.text));
            text.push('\n');
            if line.no_newline {
                text.push_str("\\ No newline at end of file\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: &str, after: &str) -> Change {
        Change {
            path: "f".into(),
            created: false,
            deleted: false,
            first: 10,
            before: before.into(),
            after: after.into(),
            context_above: 0,
            context_below: 0,
            before_left_out: 0,
            after_left_out: 0,
            total_lines: 100,
        }
    }

    #[test]
    fn words_that_differ_are_marked() {
        let diff = file_diff(&change("let limit = 5;\n", "let limit = 7;\n"));
        let spans = |index: usize| -> Vec<(&str, bool)> {
            diff.hunks[0].lines[index].spans.iter().map(|span| (span.text.as_str(), span.changed)).collect()
        };
        assert_eq!((diff.added, diff.removed, diff.hunks[0].old_start, diff.hunks[0].new_start), (1, 1, 10, 10));
        assert!(spans(0).iter().any(|(text, changed)| *changed && text.contains('5')), "{:?}", spans(0));
        assert!(spans(0).iter().any(|(text, changed)| !changed && text.contains("limit")), "{:?}", spans(0));
        assert_eq!(spans(1).iter().map(|(text, _)| *text).collect::<String>(), "let limit = 7;");
    }

    #[test]
    fn a_missing_last_line_end_is_told_and_crlf_is_not_shown() {
        let diff = file_diff(&change("a\r\nb\r\n", "a\r\nb"));
        assert_eq!(unified(&diff), "@@ -10,2 +10,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n");
    }

    #[test]
    fn distant_changes_make_hunks_of_their_own() {
        let lines = |mark: &str| -> String {
            (0..30).map(|n| format!("{n}{}\n", if n % 20 == 5 { mark } else { "" })).collect()
        };
        let diff = file_diff(&change(&lines(""), &lines("x")));
        assert_eq!(
            diff.hunks.iter().map(|hunk| (hunk.old_start, hunk.lines.len())).collect::<Vec<_>>(),
            [(12, 8), (32, 8)]
        );
    }

    #[test]
    fn a_new_file_starts_at_line_0_of_nothing() {
        let new = Change { created: true, first: 1, ..change("", "a\nb\n") };
        let diff = file_diff(&new);
        assert_eq!((diff.hunks[0].old_start, diff.hunks[0].new_start, diff.added, diff.created), (0, 1, 2, true));
    }

    #[test]
    fn a_long_diff_is_cut_and_counts_what_it_leaves_out() {
        let new = Change { after_left_out: 7, ..change("", &"line\n".repeat(3000)) };
        let diff = file_diff(&new);
        assert_eq!((diff.added, diff.lines_left_out, diff.hunks[0].lines.len()), (3007, 1007, 2000));
    }

    #[test]
    fn wildly_different_texts_do_not_take_long() {
        let text = |seed: u64| -> String {
            let mut state = seed;
            let mut line = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                format!("{:x}\n", state >> 60)
            };
            (0..30_000).map(|_| line()).collect()
        };
        let started = std::time::Instant::now();
        let diff = file_diff(&change(&text(1), &text(2)));
        assert!(started.elapsed() < TIME_MAX * 20 && diff.added > 0, "{:?}", started.elapsed());
    }
}
