//! The answer as it streams: rendered for a terminal, as it is for a file.

use super::{Follow, Output};
use crate::error::CtlError;
use crate::render::{Line, Style};
use crate::view::Piece;

/// What was written last: between the answer and the lines beside it stands an empty line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Written {
    #[default]
    Nothing,
    Answer,
    Beside,
}

impl Follow<'_> {
    pub(super) fn show(&mut self, pieces: Vec<Piece>) -> Result<(), CtlError> {
        if self.output != Output::Full {
            return Ok(());
        }
        for piece in pieces {
            match piece {
                Piece::Text(text) if self.context.tty.stdout => {
                    self.markdown.push(&text);
                    // Where nothing is repainted each line goes out as soon as it stands.
                    if !self.screen.repaints() && text.contains('\n') {
                        self.settle()?;
                    }
                }
                Piece::Text(text) => self.screen.text(&text)?,
                Piece::EndText if self.context.tty.stdout => self.end_answer()?,
                Piece::EndText => self.screen.end_text()?,
                Piece::Line(line) => self.say(&line)?,
            }
        }
        Ok(())
    }

    /// Writes what can no longer change of the answer.
    pub(super) fn settle(&mut self) -> Result<(), CtlError> {
        let columns = self.text_columns();
        let lines = self.markdown.settled(columns);
        self.answer_lines(&lines)
    }

    pub(super) fn end_answer(&mut self) -> Result<(), CtlError> {
        let columns = self.text_columns();
        let lines = std::mem::take(&mut self.markdown).finish(columns);
        self.answer_lines(&lines)
    }

    fn answer_lines(&mut self, lines: &[Line]) -> Result<(), CtlError> {
        if lines.is_empty() {
            return Ok(());
        }
        if self.written == Written::Beside {
            self.screen.out_line(&Line::new())?;
        }
        self.written = Written::Answer;
        lines.iter().try_for_each(|line| self.screen.out_line(line))
    }

    /// What is still being written, as it looks now.
    pub(super) fn tail(&self) -> Vec<Line> {
        if self.markdown.is_empty() {
            return Vec::new();
        }
        let mut lines = self.markdown.tail(self.text_columns());
        if self.written == Written::Beside && !lines.is_empty() {
            lines.insert(0, Line::new());
        }
        lines
    }

    /// Writes a line of ours, in every output but JSON.
    pub(crate) fn say(&mut self, line: &Line) -> Result<(), CtlError> {
        self.dirty = true;
        self.end_answer()?;
        if self.written == Written::Answer && self.context.tty.stdout {
            self.screen.line(&Line::new())?;
        }
        self.written = Written::Beside;
        if !self.screen.repaints() {
            return self.screen.line(line);
        }
        line.clone().broken(self.text_columns()).iter().try_for_each(|line| self.screen.line(line))
    }

    /// A blank line before a block of lines that belong together, where something stands above.
    pub(crate) fn gap(&mut self) -> Result<(), CtlError> {
        if self.written == Written::Beside { self.say(&Line::new().lit(Style::Plain, "")) } else { Ok(()) }
    }

    /// Columns for text: a terminal's last one stays free, so that nothing wraps by itself.
    pub(super) fn text_columns(&self) -> usize {
        self.screen.columns().saturating_sub(1)
    }
}
