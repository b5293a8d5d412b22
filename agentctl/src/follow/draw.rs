//! What stands below the text: the question, what is going on, the line that is typed.

use std::time::Duration;

use proto::ids::Timestamp;
use tokio::time::Instant;

use super::question::Question;
use super::{Follow, Output};
use crate::error::CtlError;
use crate::render::{Line, Style};

/// Shortest time between two repaints: twenty a second look smooth, more only cost.
const REPAINT_PAUSE: Duration = Duration::from_millis(50);

/// How often running times are brought up to date.
const TICK: Duration = Duration::from_secs(1);

impl Follow<'_> {
    /// Brings questions and the repainted area up to date; says when to do so again.
    pub(super) fn refresh(&mut self) -> Result<Option<Instant>, CtlError> {
        self.refresh_question()?;
        if !self.is_typing() {
            self.release_held()?;
        }
        let now = Instant::now();
        if let Some(question) = &mut self.question
            && let Some(at) = question.settles_at()
        {
            if now < at {
                self.repaint()?;
                return Ok(Some(at));
            }
            if let Some(keyboard) = &self.keyboard {
                keyboard.forget();
            }
            question.open();
            self.dirty = true;
            self.draw_choices_by_line()?;
        }
        if self.output == Output::Json || !self.screen.repaints() {
            return Ok(None);
        }
        let due = self.painted_at + if self.dirty { REPAINT_PAUSE } else { TICK };
        if now >= due || self.question.is_some() {
            self.repaint()?;
            self.painted_at = now;
            self.dirty = false;
        }
        let next = if self.dirty { REPAINT_PAUSE } else { TICK };
        Ok((self.dirty || self.view.ticks()).then(|| self.painted_at + next))
    }

    fn repaint(&mut self) -> Result<(), CtlError> {
        let columns = self.screen.columns().saturating_sub(1);
        if let Some((line, column)) = self.question.as_ref().and_then(|question| question.prompt(columns)) {
            return self.screen.repaint(&[line], Some((0, column)));
        }
        let mut lines =
            if self.output == Output::Full { self.view.status(Timestamp::now(), columns) } else { Vec::new() };
        match &self.editor {
            Some(editor) if self.keyboard.is_some() && (self.view.is_idle() || !editor.is_empty()) => {
                let (text, column) = editor.window(columns.saturating_sub(2));
                lines.push(Line::new().lit(Style::Bold, "› ").text(Style::Plain, &text));
                let row = lines.len() - 1;
                self.screen.repaint(&lines, Some((row, column + 2)))
            }
            Some(_) | None => self.screen.repaint(&lines, None),
        }
    }

    /// Draws the oldest open question when none is drawn; drops the drawn one when it was closed elsewhere.
    fn refresh_question(&mut self) -> Result<(), CtlError> {
        if let Some(question) = &self.question
            && !self.view.open.iter().any(|open| open.id == question.approval.id)
        {
            self.question = None;
            self.dirty = true;
            if !self.screen.repaints() {
                self.say(&Line::new())?;
            }
        }
        if self.output == Output::Json || self.question.is_some() {
            return Ok(());
        }
        let Some(approval) = self.view.open.first().cloned() else { return Ok(()) };
        if self.answers {
            for line in crate::render::approval::question(&approval) {
                self.say(&line)?;
            }
            self.view.drew(&approval);
            self.question = Some(Question::new(approval, Instant::now()));
        } else if self.announced.insert(approval.id) {
            for line in crate::render::session::approval_block(&approval) {
                self.say(&line)?;
            }
        }
        Ok(())
    }

    /// Where nothing can be repainted, the choices are an ordinary line.
    fn draw_choices_by_line(&mut self) -> Result<(), CtlError> {
        match &self.question {
            Some(question) if !self.screen.repaints() => {
                let line = crate::render::approval::choices(&question.approval);
                self.screen.line(&line)
            }
            Some(_) | None => Ok(()),
        }
    }
}
