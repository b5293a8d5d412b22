//! A model's text as it streams, rendered. Pure.
//!
//! * [`layout`] renders whole blocks; [`inline`] the text inside one; [`table`] aligns tables.
//! * This file decides what of a text that is still being written can no longer change: that is printed for good, the
//!   rest ([`Markdown::tail`]) is shown below it and painted again as it grows.
//!
//! Invariant: what [`Markdown::settled`] gave out is final; all of it, in order, then [`Markdown::finish`], is the whole
//! text rendered.

mod inline;
mod layout;
mod split;
mod table;

use super::code::Highlighter;
use super::{Line, Style};
use layout::Place;
use split::Cut;

/// Spaces before a line of a code block: what is copied from a terminal stays usable.
const CODE_INDENT: &str = "  ";

/// One text of a reply.
#[derive(Debug, Default)]
pub struct Markdown {
    /// What may still change.
    open: String,
    /// A code block whose lines go out one by one.
    fence: Option<Fence>,
    place: Place,
}

impl Markdown {
    /// Takes a piece.
    pub fn push(&mut self, text: &str) {
        self.open.push_str(text);
    }

    /// Whether nothing waits to be given out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.fence.is_none()
    }

    /// The lines that can no longer change, each given out once.
    pub fn settled(&mut self, columns: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        loop {
            if let Some(fence) = &mut self.fence {
                let Some(end) = self.open.find('\n') else { return lines };
                let line: String = self.open.drain(..=end).collect();
                if fence.is_closed_by(&line) {
                    self.fence = None;
                } else {
                    lines.push(fence.line(&line));
                }
                continue;
            }
            let Some(complete) = self.open.rfind('\n') else { return lines };
            match split::cut(&self.open[..=complete]) {
                Cut::Nothing => return lines,
                Cut::Blocks { upto, list_ends } => {
                    lines.extend(self.render(upto, columns));
                    if list_ends {
                        self.place.list = None;
                    }
                }
                Cut::Items { upto, first, count } => {
                    // A number that the list had before it was cut goes on.
                    let first = match (self.place.list, first) {
                        (Some(Some(before)), Some(_)) => Some(before),
                        (_, first) => first,
                    };
                    lines.extend(self.render(upto, columns));
                    self.place.list = Some(first.map(|first| first.saturating_add(count)));
                }
                Cut::Fence { upto, fence } => {
                    // The blank line before the block, if there is one.
                    lines.extend(self.render_gap(upto));
                    self.fence = Some(fence);
                }
            }
        }
    }

    /// What may still change, as it looks now. Code is broken at the edge, as everything here must fit.
    #[must_use]
    pub fn tail(&self, columns: usize) -> Vec<Line> {
        match &self.fence {
            Some(fence) if self.open.is_empty() || fence.is_closed_by(&self.open) => Vec::new(),
            Some(fence) => fence.clone().line(&self.open).chop(columns),
            None => {
                let lines = layout::render(&self.open, columns, &self.place);
                lines.into_iter().flat_map(|line| line.chop(columns)).collect()
            }
        }
    }

    /// The text is over: all that was not given out.
    pub fn finish(&mut self, columns: usize) -> Vec<Line> {
        if !self.open.ends_with('\n') {
            self.open.push('\n');
        }
        let mut lines = self.settled(columns);
        let rest = std::mem::take(&mut self.open);
        if !rest.trim().is_empty() {
            lines.extend(layout::render(&rest, columns, &self.place));
        }
        self.fence = None;
        self.place = Place::default();
        lines
    }

    fn render(&mut self, upto: usize, columns: usize) -> Vec<Line> {
        let text: String = self.open.drain(..upto).collect();
        let lines = layout::render(&text, columns, &self.place);
        self.place.after(&text);
        lines
    }

    fn render_gap(&mut self, upto: usize) -> Option<Line> {
        let text: String = self.open.drain(..upto).collect();
        let gap = self.place.needs_gap(&text);
        self.place.after("```");
        self.place.list = None;
        gap.then(Line::new)
    }
}

/// A whole text at once.
#[must_use]
pub fn render(text: &str, columns: usize) -> Vec<Line> {
    let mut markdown = Markdown::default();
    markdown.push(text);
    markdown.finish(columns)
}

/// An open code block.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    code: Highlighter,
}

impl Fence {
    /// The block that a line opens, if it opens one.
    fn open(line: &str) -> Option<Self> {
        let trimmed = line.trim_start_matches(' ');
        let indent = line.len() - trimmed.len();
        let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = trimmed.chars().take_while(|&char| char == mark).count();
        let info = trimmed[length..].trim();
        let opens = indent <= 3 && length >= 3 && !(mark == '`' && info.contains('`'));
        opens.then(|| Self { mark, length, indent, code: Highlighter::new(info) })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let trimmed = line.trim_end_matches(['\n', '\r', ' ', '\t']);
        let marks = trimmed.trim_start_matches(' ');
        trimmed.len() - marks.len() <= 3 && marks.len() >= self.length && marks.chars().all(|char| char == self.mark)
    }

    fn line(&mut self, line: &str) -> Line {
        let line = line.trim_end_matches(['\n', '\r']);
        let spaces = line.len() - line.trim_start_matches(' ').len();
        Line::new().lit(Style::Plain, CODE_INDENT).join(self.code.line(&line[spaces.min(self.indent)..]))
    }
}

#[cfg(test)]
mod tests;
