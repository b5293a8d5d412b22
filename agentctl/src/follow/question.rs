//! The question that is on the screen: which approval, how far its answer is. Pure but for the moment it is given.

use std::time::Duration;

use proto::approval::{Approval, Subject, Verdict};
use tokio::time::Instant;

use super::editor::{Edit, Editor};
use crate::render::approval::{Key, choices, key, keys_only};
use crate::render::{Line, Style};

/// How long the keys must rest before a question takes one. A key that comes sooner after it was drawn, or in the middle
/// of a word that is being typed, was meant for something else. Nobody reads and answers in this time.
pub const REST: Duration = Duration::from_millis(300);

/// A drawn question.
#[derive(Debug)]
pub struct Question {
    /// What is asked.
    pub approval: Approval,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Drawn just now, or something is being typed: keys are not for it.
    Settling { until: Instant },
    /// A key answers it.
    Open,
    /// A reason is typed.
    Reason(Editor),
    /// The command is changed.
    Command(Editor),
}

impl Question {
    /// Just drawn.
    #[must_use]
    pub fn new(approval: Approval, now: Instant) -> Self {
        Self { approval, stage: Stage::Settling { until: now + REST } }
    }

    /// When it begins to take keys, while it does not.
    #[must_use]
    pub fn settles_at(&self) -> Option<Instant> {
        match self.stage {
            Stage::Settling { until } => Some(until),
            Stage::Open | Stage::Reason(_) | Stage::Command(_) => None,
        }
    }

    /// Begins to take keys.
    pub fn open(&mut self) {
        self.stage = Stage::Open;
    }

    /// Takes keys that came at a moment.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) -> Fed {
        match &mut self.stage {
            Stage::Settling { until } => {
                *until = now + REST;
                Fed::NotMine
            }
            Stage::Open => match single(bytes).and_then(|byte| key(&self.approval, byte)) {
                Some(Key::Answer(verdict)) => Fed::Answer(verdict),
                Some(Key::Reason) => {
                    self.stage = Stage::Reason(Editor::default());
                    Fed::Taken
                }
                Some(Key::Edit) => {
                    self.stage = Stage::Command(Editor::with(command_of(&self.approval)));
                    Fed::Taken
                }
                // A word, a paste, an arrow key: somebody types, and not to this question.
                None => {
                    self.stage = Stage::Settling { until: now + REST };
                    Fed::NotMine
                }
            },
            Stage::Reason(editor) => match editor.feed(bytes).into_iter().next() {
                None => Fed::Taken,
                Some(Edit::Submit(text)) => {
                    let text = text.trim();
                    Fed::Answer(Verdict::Deny { reason: (!text.is_empty()).then(|| text.to_owned()) })
                }
                Some(Edit::Complete { .. } | Edit::Recall { .. } | Edit::Redraw) => Fed::Taken,
                Some(Edit::Cancel | Edit::End) => {
                    self.stage = Stage::Open;
                    Fed::Taken
                }
            },
            Stage::Command(editor) => match editor.feed(bytes).into_iter().next() {
                None => Fed::Taken,
                Some(Edit::Submit(text)) if text == command_of(&self.approval) => Fed::Answer(Verdict::Once {}),
                Some(Edit::Submit(text)) if !text.trim().is_empty() => Fed::Answer(Verdict::Edit { command: text }),
                Some(Edit::Complete { .. } | Edit::Recall { .. } | Edit::Redraw) => Fed::Taken,
                Some(Edit::Submit(_) | Edit::Cancel | Edit::End) => {
                    self.stage = Stage::Open;
                    Fed::Taken
                }
            },
        }
    }

    /// The line that waits for keys, and the cursor's column in it.
    #[must_use]
    pub fn prompt(&self, columns: usize) -> Option<(Line, usize)> {
        match &self.stage {
            Stage::Settling { .. } => None,
            Stage::Open => {
                let line = Some(choices(&self.approval)).filter(|line| line.width() <= columns);
                let line = line.unwrap_or_else(|| keys_only(&self.approval).fit(columns));
                let width = line.width();
                Some((line, width))
            }
            Stage::Reason(editor) => Some(typed("reason (Enter: no, Esc: back) > ", editor, columns)),
            Stage::Command(editor) => Some(typed("run instead (Enter: run, Esc: back) > ", editor, columns)),
        }
    }
}

/// A label and what is typed behind it, and the cursor's column.
fn typed(label: &'static str, editor: &Editor, columns: usize) -> (Line, usize) {
    let label = Line::new().lit(Style::Bold, label);
    let start = label.width();
    let (rows, (_, cursor)) = editor.rows(columns.saturating_sub(start), 1);
    (rows.into_iter().fold(label, Line::join), start + cursor)
}

fn command_of(approval: &Approval) -> &str {
    match &approval.subject {
        Subject::Command(command) => &command.command,
        Subject::Edit(_) | Subject::Other(_) => "",
    }
}

/// What became of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fed {
    /// They are the answer.
    Answer(Verdict),
    /// They were part of one.
    Taken,
    /// They were meant for something else, for the line that is typed if there is one.
    NotMine,
}

/// The one key of a read, with or without the end of its line.
fn single(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [byte] | [byte, b'\n' | b'\r'] => Some(*byte),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::approval::tests::command;

    #[test]
    fn keys_that_were_meant_for_something_else_do_not_answer() {
        let now = Instant::now();
        let mut question = Question::new(command("rm -rf x"), now);
        assert_eq!(question.feed(b"y", now + REST / 2), Fed::NotMine);
        assert_eq!(question.settles_at(), Some(now + REST / 2 + REST), "each key makes it wait again");
        assert!(question.prompt(80).is_none());
        for typed in [&b"typing"[..], b"t", b"\r", b"\x1b[200~y\x1b[201~", b"\x1b[C", b"yes"] {
            question.open();
            assert_eq!(question.feed(typed, now), Fed::NotMine, "{typed:?}");
            assert_eq!(question.feed(b"y", now), Fed::NotMine, "in the middle of a word");
        }
        question.open();
        assert_eq!(question.feed(b"y", now), Fed::Answer(Verdict::Once {}));
    }

    #[test]
    fn a_narrow_terminal_still_shows_every_key() {
        let mut question = Question::new(command("x"), Instant::now());
        question.open();
        assert_eq!(question.prompt(39).unwrap().0.paint(false), "[y] [s] [n] [r] > ");
        assert!(question.prompt(80).unwrap().0.paint(false).starts_with("[y]es once  [s]ession"));
    }

    #[test]
    fn a_command_is_changed_where_it_stands() {
        let now = Instant::now();
        let mut asked = command("make test");
        asked.choices.push(proto::approval::Choice::Edit);
        let mut question = Question::new(asked, now);
        question.open();
        assert_eq!(question.feed(b"e", now), Fed::Taken);
        assert_eq!(question.prompt(80).unwrap().0.paint(false), "run instead (Enter: run, Esc: back) > make test");
        assert_eq!(question.feed(b"\x1b", now), Fed::Taken);
        assert_eq!(question.feed(b"e", now), Fed::Taken);
        let changed = Verdict::Edit { command: "make test -k".into() };
        assert_eq!(question.feed(b" -k\r", now), Fed::Answer(changed));
        question.open();
        assert_eq!(question.feed(b"e", now), Fed::Taken);
        assert_eq!(question.feed(b"\r", now), Fed::Answer(Verdict::Once {}), "nothing was changed");
    }

    #[test]
    fn a_reason_is_typed_or_taken_back() {
        let now = Instant::now();
        let mut question = Question::new(command("x"), now);
        question.open();
        assert_eq!(question.feed(b"r", now), Fed::Taken);
        assert!(question.prompt(80).unwrap().0.paint(false).starts_with("reason"));
        assert_eq!(question.feed(b"y\x1b[D", now), Fed::Taken);
        assert_eq!(question.feed(b"\x1b", now), Fed::Taken);
        assert_eq!(question.feed(b"r", now), Fed::Taken);
        let reason = Some("use make".into());
        assert_eq!(question.feed(b"use make\r", now), Fed::Answer(Verdict::Deny { reason }));
    }
}
