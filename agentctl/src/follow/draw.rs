//! What stands below the text: the end of the answer, what is going on, the question, the input, the status line.

use std::time::Duration;

use proto::ids::Timestamp;
use tokio::time::Instant;

use super::editor::Editor;
use super::question::Question;
use super::{Follow, Output};
use crate::error::CtlError;
use crate::render::{Line, Style, approval, session};
use crate::view::SPINNER_MS;

/// Shortest time between two repaints: twenty a second look smooth, more only cost.
const REPAINT_PAUSE: Duration = Duration::from_millis(50);

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(SPINNER_MS);

/// Rows of the input before it scrolls: a longer one would push the answer away.
const INPUT_ROWS: usize = 8;

/// Queued prompts that are shown; the others are counted.
const QUEUED_SHOWN: usize = 3;

impl Follow<'_> {
    /// Brings questions and the repainted area up to date; says when to do so again.
    pub(super) fn refresh(&mut self) -> Result<Option<Instant>, CtlError> {
        self.refresh_question()?;
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
        let pause = |dirty| if dirty { REPAINT_PAUSE } else { TICK };
        let due = self.painted_at.is_none_or(|at| now >= at + pause(self.dirty));
        if due || self.question.is_some() {
            self.repaint()?;
            self.painted_at = Some(now);
            self.dirty = false;
        }
        let next = self.painted_at.map(|at| at + pause(self.dirty));
        Ok(next.filter(|_| self.dirty || self.view.ticks()))
    }

    fn repaint(&mut self) -> Result<(), CtlError> {
        self.settle()?;
        let columns = self.screen.columns().saturating_sub(1);
        let full = self.output == Output::Full;
        let mut below = if full { self.view.status(Timestamp::now(), columns) } else { Vec::new() };
        if self.editor.is_some() {
            below.extend(self.queued(columns));
        }
        let mut cursor = None;
        let asked = self.question.as_ref().and_then(|question| question.prompt(columns));
        if let Some((line, column)) = asked {
            cursor = Some((below.len(), column));
            below.push(line);
            // What was typed before the question came stays, and stays in sight.
            let typed = self.editor.iter().filter(|editor| !editor.is_empty());
            below.extend(typed.flat_map(|editor| input(editor, columns).0));
        } else if let Some(line) = self.confirm.as_ref().map(|undo| undo.prompt(columns)) {
            cursor = Some((below.len(), line.width()));
            below.push(line);
        } else if let Some(editor) = self.editor.as_ref().filter(|_| self.keyboard.is_some()) {
            let (rows, (row, column)) = input(editor, columns);
            cursor = Some((below.len() + row, column));
            below.extend(rows);
            below.extend(self.menu.as_ref().map(|menu| menu.lines(columns)).unwrap_or_default());
        }
        if self.editor.is_some() {
            below.push(self.status_line(columns));
        }
        let mut lines = self.tail();
        let room = self.screen.rows().saturating_sub(below.len());
        lines.drain(..lines.len().saturating_sub(room));
        let cursor = cursor.map(|(row, column)| (row + lines.len(), column));
        lines.extend(below);
        self.screen.repaint(&lines, cursor)
    }

    fn queued(&self, columns: usize) -> Vec<Line> {
        let queued = &self.view.queued;
        let waits = self.view.turn.is_some();
        let mut lines: Vec<Line> = queued
            .iter()
            .filter(|_| waits)
            .take(QUEUED_SHOWN)
            .map(|queued| {
                let first = queued.text.trim().lines().next().unwrap_or_default();
                Line::new().lit(Style::Dim, "⋯ queued: ").text(Style::Dim, first).fit(columns)
            })
            .collect();
        if waits && queued.len() > QUEUED_SHOWN {
            let more = queued.len() - QUEUED_SHOWN;
            lines.push(Line::new().text(Style::Dim, &format!("⋯ and {more} more")).fit(columns));
        }
        lines
    }

    fn status_line(&self, columns: usize) -> Line {
        let Some(info) = &self.info else { return Line::new() };
        let now = session::Now {
            mode: self.view.mode,
            branch: self.branch.as_deref(),
            context_tokens: self.view.context_tokens,
            cost_nanousd: self.view.cost_nanousd,
            role: self.role,
        };
        session::status_line(info, &now, columns)
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
            self.gap()?;
            for line in approval::question(&approval) {
                self.say(&line)?;
            }
            self.view.drew(&approval);
            self.notify(&format!("asks: {}", session::approval_title(&approval)))?;
            self.question = Some(Question::new(approval, Instant::now()));
        } else if self.announced.insert(approval.id) {
            self.gap()?;
            for line in session::approval_block(&approval) {
                self.say(&line)?;
            }
        }
        Ok(())
    }

    /// Where nothing can be repainted, the choices are an ordinary line.
    fn draw_choices_by_line(&mut self) -> Result<(), CtlError> {
        match &self.question {
            Some(question) if !self.screen.repaints() => {
                let line = approval::choices(&question.approval);
                self.screen.line(&line)
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The input as it is painted, and the cursor's row and column.
fn input(editor: &Editor, columns: usize) -> (Vec<Line>, (usize, usize)) {
    let (rows, (row, column)) = editor.rows(columns.saturating_sub(2), INPUT_ROWS);
    let mark = |at| if at == 0 { "› " } else { "  " };
    let lines = rows.into_iter().enumerate();
    let lines = lines.map(|(at, line)| Line::new().lit(Style::Bold, mark(at)).join(line)).collect();
    (lines, (row, column + 2))
}
