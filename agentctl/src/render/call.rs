//! A finished call: one tidy line, then what of its output matters to a reader, then its diff.

use proto::event::{CallFinished, Outcome};

use super::{Line, Style, diff, time};

/// Lines of a command's output that stay in the scrollback: enough for a test run's last words.
pub const TAIL_LINES: usize = 6;

/// The same for a command that failed: the error is seldom the last line.
pub const TAIL_LINES_FAILED: usize = 16;

/// The same for a command of the user's own: it was run to be read.
const ENTERED_LINES: usize = 500;

/// Lines of an edit's diff that stay in the scrollback; `agentctl log` has them all.
const DIFF_LINES: usize = 60;

/// Shorter calls were immediate for a reader; their time would only be noise.
const DURATION_SHOWN_MS: u64 = 100;

/// Lines of a tool's own error text.
const ERROR_LINES: usize = 4;

/// What a finished call leaves behind. `diff_shown`: the reader saw the change already, when asked for it.
#[must_use]
pub fn finished(title: &str, call: &CallFinished, columns: usize, diff_shown: bool) -> Vec<Line> {
    let mut lines = vec![head(title, call, columns)];
    lines.extend(output(call, columns));
    if let Some(diff) = call.diff.as_ref().filter(|_| !diff_shown) {
        lines.extend(diff::body(diff, DIFF_LINES));
    }
    lines
}

/// What a command leaves behind that a user ran to see its output.
#[must_use]
pub fn entered(title: &str, call: &CallFinished, columns: usize) -> Vec<Line> {
    let text = call.text.trim_end();
    let said = match &call.outcome {
        Outcome::Exited { status } => text.strip_suffix(&format!("[exit status {status}]")).unwrap_or(text),
        _ => text,
    };
    let mut lines = vec![head(title, call, columns)];
    lines.extend(last(said, ENTERED_LINES, columns));
    lines
}

fn head(title: &str, call: &CallFinished, columns: usize) -> Line {
    let (mark, ending) = ending(call);
    let mut tail = Line::new();
    if let Some(diff) = &call.diff {
        tail = tail.lit(Style::Plain, " ").join(diff::counts(diff));
    }
    if !ending.is_empty() {
        tail = tail.lit(Style::Dim, " · ").text(mark.1, &ending);
    }
    if call.duration_ms >= DURATION_SHOWN_MS {
        tail = tail.lit(Style::Dim, " · ").text(Style::Dim, &time::span(call.duration_ms));
    }
    let head = Line::new().lit(mark.1, mark.0).join(name(title));
    head.fit(columns.saturating_sub(tail.width())).join(tail)
}

/// A call's title: the first line of a command, whatever follows is hinted at.
#[must_use]
pub fn name(title: &str) -> Line {
    let mut rest = title.trim_end().lines();
    let first = rest.next().unwrap_or_default();
    let line = Line::new().text(Style::Name, first);
    if rest.next().is_some() { line.lit(Style::Dim, " …") } else { line }
}

/// How a call ended, in words; empty when there is nothing to say.
#[must_use]
pub fn ending_words(call: &CallFinished) -> String {
    ending(call).1
}

fn ending(call: &CallFinished) -> ((&'static str, Style), String) {
    let good = ("● ", Style::Good);
    let bad = ("● ", Style::Bad);
    let warn = ("● ", Style::Warn);
    match &call.outcome {
        Outcome::Exited { status: 0 } => (good, "exit 0".to_owned()),
        Outcome::Exited { status } => (bad, format!("exit {status}")),
        Outcome::Done {} => (good, String::new()),
        Outcome::Failed {} => (bad, "failed".to_owned()),
        Outcome::TimedOut { limit_ms } => (bad, format!("ended at its deadline of {}", time::span(*limit_ms))),
        Outcome::Interrupted {} => (warn, "interrupted".to_owned()),
        Outcome::Denied {} => (warn, "not allowed".to_owned()),
        Outcome::NotRun {} => (warn, "not run".to_owned()),
        Outcome::Unknown {} => (warn, "outcome unknown".to_owned()),
        Outcome::Background { job } => (good, format!("job {}", job.short())),
    }
}

fn output(call: &CallFinished, columns: usize) -> Vec<Line> {
    match &call.outcome {
        Outcome::Exited { status: 0 } => last(&call.text, TAIL_LINES, columns),
        // The head says it already.
        Outcome::Exited { status } => {
            let said = format!("[exit status {status}]");
            let text = call.text.trim_end();
            last(text.strip_suffix(said.as_str()).unwrap_or(text), TAIL_LINES_FAILED, columns)
        }
        Outcome::TimedOut { .. } | Outcome::Interrupted {} | Outcome::Unknown {} => {
            last(&call.text, TAIL_LINES_FAILED, columns)
        }
        Outcome::Failed {} | Outcome::Denied {} => first(&call.text, ERROR_LINES, columns),
        Outcome::Done {} | Outcome::NotRun {} | Outcome::Background { .. } => Vec::new(),
    }
}

fn last(text: &str, limit: usize, columns: usize) -> Vec<Line> {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let mut cut = all.len().saturating_sub(limit);
    // Empty lines at the top of what is shown tell nothing.
    while all.get(cut).is_some_and(|line| line.trim().is_empty()) {
        cut += 1;
    }
    let mut lines = Vec::new();
    if cut > 0 {
        let noun = if cut == 1 { "line" } else { "lines" };
        lines.push(Line::new().text(Style::Dim, &format!("  … {cut} {noun} above")));
    }
    lines.extend(all[cut..].iter().map(|line| output_line(line, columns)));
    lines
}

fn first(text: &str, limit: usize, columns: usize) -> Vec<Line> {
    let mut rest = text.trim_end().lines();
    let mut lines: Vec<Line> = rest.by_ref().take(limit).map(|line| output_line(line, columns)).collect();
    if rest.next().is_some() {
        lines.push(Line::new().lit(Style::Dim, "  …"));
    }
    lines
}

/// One line of output: indented, dim, cut to the terminal.
#[must_use]
pub fn output_line(text: &str, columns: usize) -> Line {
    Line::new().lit(Style::Dim, "  ").text(Style::Dim, text).fit(columns)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proto::ids::{CallId, TurnId};

    use super::*;

    fn check(title: &str, outcome: Outcome, text: &str, columns: usize, expected: &Expect) {
        let diff = matches!(outcome, Outcome::Done {}).then(crate::render::diff::tests::sample);
        let is_error = false;
        let call = CallFinished {
            turn: TurnId::new(),
            call: CallId::new(),
            outcome,
            text: text.to_owned(),
            is_error,
            duration_ms: 1_240,
            diff,
        };
        let lines = finished(title, &call, columns, false);
        expected.assert_eq(&lines.iter().map(|line| line.paint(false) + "\n").collect::<String>());
    }

    #[test]
    fn a_command_is_one_tidy_line_and_its_last_words() {
        let text: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        check(
            "$ cargo test",
            Outcome::Exited { status: 0 },
            &text,
            60,
            &expect![[r#"
            ● $ cargo test · exit 0 · 1.2 s
              … 3 lines above
              line 4
              line 5
              line 6
              line 7
              line 8
              line 9
        "#]],
        );
    }

    #[test]
    fn a_long_title_is_cut_and_the_ending_stays() {
        let title = "$ cargo test --workspace --all-features";
        check(
            title,
            Outcome::Exited { status: 101 },
            "boom\x1b]0;x\x07",
            40,
            &expect![[r#"
                ● $ cargo test --wor… · exit 101 · 1.2 s
                  boom␛]0;x␇
            "#]],
        );
    }

    #[test]
    fn the_other_endings_say_what_happened() {
        check(
            "$ sleep 99",
            Outcome::TimedOut { limit_ms: 120_000 },
            "",
            80,
            &expect![[r#"
            ● $ sleep 99 · ended at its deadline of 2 min 0 s · 1.2 s
        "#]],
        );
        check(
            "$ rm -rf /",
            Outcome::Denied {},
            "denied: no",
            80,
            &expect![[r#"
            ● $ rm -rf / · not allowed · 1.2 s
              denied: no
        "#]],
        );
        check(
            "edit src/lib.rs",
            Outcome::Done {},
            "ok",
            80,
            &expect![[r#"
            ● edit src/lib.rs +2 −1 · 1.2 s
               9   fn main() {
              10 -     let x = 1;
              10 +     let x = 2␛[2J;
              11 + }  (no line end)
        "#]],
        );
    }
}
