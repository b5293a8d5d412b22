//! Whole blocks as lines: what stands before each line (points, numbers, quotes), where blank lines go.

use std::iter::Peekable;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, OffsetIter, Parser, Tag, TagEnd};

use super::inline::{Inline, OPTIONS};
use super::{CODE_INDENT, table};
use crate::render::code::Highlighter;
use crate::render::{Line, Style};

/// Fewest columns that text is broken at, however deep it is nested: below that nothing readable is left.
const COLUMNS_MIN: usize = 12;

/// Longest rule: across a wide terminal it says no more.
const RULE_COLUMNS: usize = 60;

/// Where a piece of a text stands: what was before it.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Something was given out before.
    begun: bool,
    /// It ended with a blank line.
    blank: bool,
    /// A list goes on: its next number, or a point.
    pub(super) list: Option<Option<u64>>,
}

impl Place {
    /// Moves behind a piece.
    pub(super) fn after(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.begun = true;
            self.blank = false;
        }
        self.blank |= text.ends_with("\n\n") || text == "\n";
    }

    /// Whether a blank line stands between what was before and the first block of a text.
    pub(super) fn needs_gap(&self, text: &str) -> bool {
        self.begun && (self.blank || text.starts_with('\n'))
    }
}

/// Renders whole blocks.
pub(super) fn render(text: &str, columns: usize, place: &Place) -> Vec<Line> {
    let events = Parser::new_ext(text, OPTIONS).into_offset_iter().peekable();
    let mut layout = Layout { text, events, columns, lines: Vec::new(), prefix: Vec::new(), list: place.list };
    if place.needs_gap(text) && !text.trim().is_empty() {
        layout.lines.push(Line::new());
    }
    layout.blocks();
    layout.lines
}

struct Layout<'a> {
    text: &'a str,
    events: Peekable<OffsetIter<'a>>,
    columns: usize,
    lines: Vec<Line>,
    prefix: Vec<Prefix>,
    list: Option<Option<u64>>,
}

/// What stands before the lines of a container: once on the first, then on the others.
struct Prefix {
    first: Option<Line>,
    rest: Line,
}

impl Layout<'_> {
    /// The blocks of the text or of a container, up to its end.
    fn blocks(&mut self) {
        let mut first = true;
        loop {
            let Some((event, range)) = self.events.peek() else { return };
            match event {
                Event::End(_) => {
                    self.events.next();
                    return;
                }
                _ => {
                    let start = range.start;
                    if !std::mem::take(&mut first) && self.is_after_blank(start) {
                        self.gap();
                    }
                    self.block();
                }
            }
        }
    }

    fn block(&mut self) {
        match self.events.peek() {
            Some((Event::Rule, _)) => {
                self.events.next();
                let rule = "─".repeat(self.width().min(RULE_COLUMNS));
                self.line(Line::new().text(Style::Dim, &rule));
            }
            Some((Event::Start(tag), _)) if is_block(tag) => {
                if let Some((Event::Start(tag), _)) = self.events.next() {
                    self.container(tag);
                }
            }
            Some(_) => self.paragraph(Style::Plain),
            None => {}
        }
    }

    fn container(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.paragraph(if level <= HeadingLevel::H2 { Style::Heading } else { Style::Bold });
                self.events.next();
            }
            Tag::BlockQuote(_) => {
                let bar = || Line::new().lit(Style::Dim, "│ ");
                self.prefix.push(Prefix { first: None, rest: bar() });
                self.blocks();
                self.prefix.pop();
            }
            Tag::CodeBlock(kind) => self.code(&kind),
            Tag::List(number) => self.items(number),
            Tag::Item => self.item(None),
            Tag::Table(alignments) => {
                let rows = self.table_rows();
                let lines = table::table(&rows, &alignments, self.width());
                lines.into_iter().for_each(|line| self.line(line));
            }
            Tag::Paragraph => {
                self.paragraph(Style::Plain);
                self.events.next();
            }
            Tag::HtmlBlock => self.blocks(),
            // Kinds that are not switched on: their content is shown as it is.
            _ => self.blocks(),
        }
    }

    /// The text up to the next block or the end of this one, which is left.
    fn paragraph(&mut self, base: Style) {
        let mut inline = Inline::new(base);
        let mut taken = false;
        while let Some((event, _)) = self.events.peek() {
            if !inline.take(event) {
                break;
            }
            taken = true;
            self.events.next();
        }
        if !taken {
            // Nothing here knows it; it must not stop the rest.
            self.events.next();
        }
        if inline.is_empty() {
            return;
        }
        let width = self.width();
        for line in inline.finish().into_iter().flat_map(|line| line.wrap(width)) {
            self.line(line);
        }
    }

    fn code(&mut self, kind: &CodeBlockKind<'_>) {
        let mut code = match kind {
            CodeBlockKind::Fenced(info) => Highlighter::new(info),
            CodeBlockKind::Indented => Highlighter::new(""),
        };
        let mut text = String::new();
        for (event, _) in self.events.by_ref() {
            match event {
                Event::Text(part) => text.push_str(&part),
                Event::End(TagEnd::CodeBlock) => break,
                _ => {}
            }
        }
        for line in text.lines() {
            let line = Line::new().lit(Style::Plain, CODE_INDENT).join(code.line(line));
            self.line(line);
        }
    }

    fn items(&mut self, number: Option<u64>) {
        // Only the first list of a piece can be the rest of one that was cut.
        let (mut number, goes_on) = match self.list.take() {
            Some(next) if next.is_some() == number.is_some() && self.prefix.is_empty() => (next, true),
            Some(_) | None => (number, false),
        };
        let mut first = !goes_on;
        while let Some((event, range)) = self.events.next() {
            match event {
                Event::Start(Tag::Item) => {
                    if !std::mem::take(&mut first) && self.is_after_blank(range.start) {
                        self.gap();
                    }
                    self.item(number);
                    number = number.map(|number| number.saturating_add(1));
                }
                _ => return,
            }
        }
    }

    fn item(&mut self, number: Option<u64>) {
        let mark = number.map_or("• ".to_owned(), |number| format!("{number}. "));
        let rest = Line::new().text(Style::Plain, &" ".repeat(mark.chars().count()));
        // A box to tick is a mark of its own.
        let boxed = matches!(self.events.peek(), Some((Event::TaskListMarker(_), _)));
        let first = if boxed { Line::new() } else { Line::new().text(Style::Name, &mark) };
        self.prefix.push(Prefix { first: Some(first), rest });
        self.blocks();
        // An empty item is an item.
        if self.prefix.last().is_some_and(|prefix| prefix.first.is_some()) {
            self.line(Line::new());
        }
        self.prefix.pop();
    }

    fn table_rows(&mut self) -> Vec<Vec<Line>> {
        let mut rows: Vec<Vec<Line>> = Vec::new();
        let mut cell = Inline::new(Style::Plain);
        for (event, _) in self.events.by_ref() {
            match event {
                Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
                Event::Start(Tag::TableCell) => {
                    cell = Inline::new(if rows.len() == 1 { Style::Bold } else { Style::Plain });
                }
                Event::End(TagEnd::TableCell) => {
                    let read = std::mem::replace(&mut cell, Inline::new(Style::Plain));
                    let line = read.finish().into_iter().fold(Line::new(), Line::join);
                    if let Some(row) = rows.last_mut() {
                        row.push(line);
                    }
                }
                Event::End(TagEnd::Table) => break,
                other => {
                    cell.take(&other);
                }
            }
        }
        rows
    }

    /// Whether the author left a line blank before this place.
    fn is_after_blank(&self, start: usize) -> bool {
        let mut before = self.text[..start].rsplit('\n');
        before.next();
        before.next().is_some_and(|line| line.chars().all(|char| matches!(char, ' ' | '\t' | '>' | '\r')))
    }

    fn gap(&mut self) {
        // Quotes go on through the gap; points and indentations do not show.
        let mut line = Line::new();
        if self.prefix.iter().any(|prefix| !prefix.rest.paint(false).trim().is_empty()) {
            for prefix in &self.prefix {
                line = line.join(prefix.rest.clone());
            }
        }
        self.lines.push(line);
    }

    fn line(&mut self, line: Line) {
        let mut whole = Line::new();
        for prefix in &mut self.prefix {
            whole = whole.join(prefix.first.take().unwrap_or_else(|| prefix.rest.clone()));
        }
        self.lines.push(whole.join(line));
    }

    fn width(&self) -> usize {
        let used: usize = self.prefix.iter().map(|prefix| prefix.rest.width()).sum();
        self.columns.saturating_sub(used).max(COLUMNS_MIN)
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::Superscript
            | Tag::Subscript
    )
}
