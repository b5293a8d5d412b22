//! A file's change as coloured lines with line numbers.

use proto::diff::{DiffKind, DiffLine, FileDiff, Hunk};

use super::{Line, Style};

/// The head: `src/lib.rs  +3 −1`.
#[must_use]
pub fn head(diff: &FileDiff) -> Line {
    let what = match (diff.created, diff.deleted) {
        (true, false) => "  new file",
        (false, true) => "  file removed",
        (true, true) | (false, false) => "",
    };
    Line::new().text(Style::Bold, &diff.path).lit(Style::Dim, what).lit(Style::Plain, "  ").join(counts(diff))
}

/// `+3 −1`.
#[must_use]
pub fn counts(diff: &FileDiff) -> Line {
    Line::new()
        .text(Style::Added, &format!("+{}", diff.added))
        .lit(Style::Plain, " ")
        .text(Style::Removed, &format!("−{}", diff.removed))
}

/// The changed lines, indented by two, at most `limit` of them; what is left out is said.
#[must_use]
pub fn body(diff: &FileDiff, limit: usize) -> Vec<Line> {
    let digits = number_width(diff);
    let mut lines = Vec::new();
    for (at, hunk) in diff.hunks.iter().enumerate() {
        if at > 0 {
            lines.push(Line::new().lit(Style::Dim, "  ⋯"));
        }
        push_hunk(&mut lines, hunk, digits);
    }
    let cut = lines.len().saturating_sub(limit);
    lines.truncate(limit);
    let missing = cut + usize::try_from(diff.lines_left_out).unwrap_or(usize::MAX - cut);
    if missing > 0 {
        lines.push(Line::new().text(Style::Dim, &format!("  … {missing} more lines of the change")));
    }
    lines
}

fn number_width(diff: &FileDiff) -> usize {
    let last = diff.hunks.iter().map(|hunk| {
        let length = u32::try_from(hunk.lines.len()).unwrap_or(u32::MAX);
        hunk.old_start.max(hunk.new_start).saturating_add(length)
    });
    last.max().unwrap_or(0).to_string().len()
}

fn push_hunk(lines: &mut Vec<Line>, hunk: &Hunk, digits: usize) {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    for line in &hunk.lines {
        let number = match line.kind {
            DiffKind::Removed => old,
            DiffKind::Context | DiffKind::Added => new,
        };
        lines.push(diff_line(line, number, digits));
        match line.kind {
            DiffKind::Context => {
                old = old.saturating_add(1);
                new = new.saturating_add(1);
            }
            DiffKind::Removed => old = old.saturating_add(1),
            DiffKind::Added => new = new.saturating_add(1),
        }
    }
}

fn diff_line(line: &DiffLine, number: u32, digits: usize) -> Line {
    let (mark, whole, part) = match line.kind {
        DiffKind::Context => ("   ", Style::Plain, Style::Plain),
        DiffKind::Removed => (" - ", Style::Removed, Style::RemovedPart),
        DiffKind::Added => (" + ", Style::Added, Style::AddedPart),
    };
    let mut out = Line::new().text(Style::Dim, &format!("  {number:>digits$}")).lit(whole, mark);
    for span in &line.spans {
        out = out.text(if span.changed { part } else { whole }, &span.text);
    }
    if line.no_newline { out.lit(Style::Dim, "  (no line end)") } else { out }
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::expect;
    use proto::diff::DiffSpan;

    use super::*;

    pub(crate) fn sample() -> FileDiff {
        let span = |text: &str, changed| DiffSpan { text: text.to_owned(), changed };
        let line = |kind, spans| DiffLine { kind, spans, no_newline: false };
        FileDiff {
            path: "src/lib.rs".into(),
            created: false,
            deleted: false,
            added: 2,
            removed: 1,
            hunks: vec![Hunk {
                old_start: 9,
                new_start: 9,
                lines: vec![
                    line(DiffKind::Context, vec![span("fn main() {", false)]),
                    line(DiffKind::Removed, vec![span("\tlet x = ", false), span("1", true), span(";", false)]),
                    line(DiffKind::Added, vec![span("\tlet x = ", false), span("2\x1b[2J", true), span(";", false)]),
                    DiffLine { kind: DiffKind::Added, spans: vec![span("}", false)], no_newline: true },
                ],
            }],
            lines_left_out: 0,
        }
    }

    fn text(lines: &[Line], color: bool) -> String {
        lines.iter().map(|line| line.paint(color) + "\n").collect()
    }

    #[test]
    fn a_diff_has_numbers_marks_and_no_raw_control_characters() {
        let diff = sample();
        expect![[r#"
            src/lib.rs  +2 −1
               9   fn main() {
              10 -     let x = 1;
              10 +     let x = 2␛[2J;
              11 + }  (no line end)
        "#]]
        .assert_eq(&(head(&diff).paint(false) + "\n" + &text(&body(&diff, 100), false)));
    }

    #[test]
    fn a_long_diff_says_how_much_is_missing() {
        let diff = FileDiff { lines_left_out: 5, ..sample() };
        expect![[r#"
               9   fn main() {
            … 8 more lines of the change
        "#]]
        .assert_eq(&text(&body(&diff, 1), false).replace("  … ", "… "));
    }
}
