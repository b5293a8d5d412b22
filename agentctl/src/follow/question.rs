//! The question that is on the screen: which approval, how far its answer is. Pure but for the moment it is given.

use std::time::Duration;

use proto::approval::{Approval, Verdict};
use tokio::time::Instant;

use super::editor::{Edit, Editor};
use crate::render::approval::{Key, choices, key};
use crate::render::{Line, Style};

/// Between drawing a question and taking keys. A key that comes sooner was pressed for something else: nobody reads and
/// answers in a fifth of a second.
pub const SETTLE: Duration = Duration::from_millis(200);

/// A drawn question.
#[derive(Debug)]
pub struct Question {
    /// What is asked.
    pub approval: Approval,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Drawn just now; keys are dropped.
    Settling { until: Instant },
    /// A key answers it.
    Open,
    /// A reason is typed.
    Reason(Editor),
}

impl Question {
    /// Just drawn.
    #[must_use]
    pub fn new(approval: Approval, now: Instant) -> Self {
        Self { approval, stage: Stage::Settling { until: now + SETTLE } }
    }

    /// When it begins to take keys, while it does not.
    #[must_use]
    pub fn settles_at(&self) -> Option<Instant> {
        match self.stage {
            Stage::Settling { until } => Some(until),
            Stage::Open | Stage::Reason(_) => None,
        }
    }

    /// Begins to take keys.
    pub fn open(&mut self) {
        self.stage = Stage::Open;
    }

    /// Takes keys; a verdict is the answer.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Verdict> {
        match &mut self.stage {
            Stage::Settling { .. } => None,
            Stage::Open => {
                // A sequence (arrow keys, a paste) is not an answer, whatever letters it holds.
                if bytes.contains(&0x1b) {
                    return None;
                }
                let (at, meant) =
                    bytes.iter().enumerate().find_map(|(at, &byte)| Some((at, key(&self.approval, byte)?)))?;
                match meant {
                    Key::Answer(verdict) => Some(verdict),
                    Key::Reason => {
                        self.stage = Stage::Reason(Editor::default());
                        // By line the rest of the line came along: at least its end.
                        let rest = bytes[at + 1..].trim_ascii_start();
                        if rest.is_empty() { None } else { self.feed(rest) }
                    }
                }
            }
            Stage::Reason(editor) => match editor.feed(bytes).into_iter().next()? {
                Edit::Submit(text) => {
                    let text = text.trim();
                    Some(Verdict::Deny { reason: (!text.is_empty()).then(|| text.to_owned()) })
                }
                Edit::Cancel | Edit::End => {
                    self.stage = Stage::Open;
                    None
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
                let line = choices(&self.approval).fit(columns);
                let width = line.width();
                Some((line, width))
            }
            Stage::Reason(editor) => {
                let label = Line::new().lit(Style::Bold, "reason (Enter: no, Esc: back) > ");
                let start = label.width();
                let (text, cursor) = editor.window(columns.saturating_sub(start));
                Some((label.text(Style::Plain, &text), start + cursor))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::approval::tests::command;

    #[test]
    fn keys_before_the_question_settled_do_not_answer_it() {
        let mut question = Question::new(command("rm -rf x"), Instant::now());
        assert_eq!(question.feed(b"y"), None);
        assert!(question.prompt(80).is_none());
        question.open();
        assert_eq!(question.feed(b"\r"), None);
        assert_eq!(question.feed(b"\x1b[200~yes\x1b[201~"), None, "a paste is no answer");
        assert_eq!(question.feed(b"y"), Some(Verdict::Once {}));
    }

    #[test]
    fn a_reason_is_typed_or_taken_back() {
        let mut question = Question::new(command("x"), Instant::now());
        question.open();
        assert_eq!(question.feed(b"r"), None);
        assert!(question.prompt(80).unwrap().0.paint(false).starts_with("reason"));
        assert_eq!(question.feed(b"y\x1b[D"), None);
        assert_eq!(question.feed(b"\x1b"), None);
        assert_eq!(question.feed(b"r"), None);
        assert_eq!(question.feed(b"use make\r"), Some(Verdict::Deny { reason: Some("use make".into()) }));
    }
}
