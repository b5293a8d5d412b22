//! The text inside a block: emphasis, code, links, as pieces of a line.

use pulldown_cmark::{Event, Options, Tag, TagEnd};

use crate::render::{Line, Style};

/// What models write beside CommonMark.
pub(super) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Text that is being collected: its lines, as hard breaks divide it.
#[derive(Debug)]
pub(super) struct Inline {
    lines: Vec<Line>,
    base: Style,
    strong: usize,
    emph: usize,
    struck: usize,
    /// Where the links being read go to, and the words read of each.
    links: Vec<(String, String)>,
}

impl Inline {
    /// Nothing yet; words without a look of their own have this one.
    pub(super) fn new(base: Style) -> Self {
        Self { lines: vec![Line::new()], base, strong: 0, emph: 0, struck: 0, links: Vec::new() }
    }

    /// Takes an event that belongs inside a block; `false` when it does not.
    pub(super) fn take(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::Text(text) => self.words(self.style(), text),
            Event::Code(text) => self.words(Style::Code, text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.words(Style::Code, text),
            Event::InlineHtml(text) => self.words(Style::Dim, text),
            Event::Html(text) => {
                for (at, line) in text.trim_end_matches('\n').split('\n').enumerate() {
                    if at > 0 {
                        self.lines.push(Line::new());
                    }
                    self.words(Style::Dim, line);
                }
            }
            Event::SoftBreak => self.words(self.style(), " "),
            Event::HardBreak => self.lines.push(Line::new()),
            Event::TaskListMarker(true) => self.words(Style::Good, "☑ "),
            Event::TaskListMarker(false) => self.words(Style::Plain, "☐ "),
            Event::FootnoteReference(name) => self.words(Style::Dim, &format!("[{name}]")),
            Event::Start(tag) => return self.start(tag),
            Event::End(end) => return self.end(*end),
            Event::Rule => return false,
        }
        true
    }

    fn start(&mut self, tag: &Tag<'_>) -> bool {
        match tag {
            Tag::Emphasis => self.emph += 1,
            Tag::Strong => self.strong += 1,
            Tag::Strikethrough => self.struck += 1,
            Tag::Link { dest_url, .. } => self.links.push((dest_url.to_string(), String::new())),
            Tag::Image { dest_url, .. } => {
                self.words(Style::Dim, "image: ");
                self.links.push((dest_url.to_string(), String::new()));
            }
            _ => return false,
        }
        true
    }

    fn end(&mut self, end: TagEnd) -> bool {
        match end {
            TagEnd::Emphasis => self.emph = self.emph.saturating_sub(1),
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Strikethrough => self.struck = self.struck.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => {
                if let Some((url, words)) = self.links.pop()
                    && words != url
                    && url.strip_prefix("mailto:") != Some(&words)
                    && !url.is_empty()
                {
                    self.words(Style::Dim, &format!(" ({url})"));
                }
            }
            _ => return false,
        }
        true
    }

    fn words(&mut self, style: Style, text: &str) {
        if let Some((_, words)) = self.links.last_mut() {
            words.push_str(text);
        }
        if let Some(line) = self.lines.last_mut() {
            line.push(style, text);
        }
    }

    fn style(&self) -> Style {
        match (self.strong > 0, self.emph > 0) {
            _ if self.struck > 0 => Style::Struck,
            _ if !self.links.is_empty() => Style::Link,
            _ if self.base != Style::Plain => self.base,
            (true, true) => Style::StrongEmph,
            (true, false) => Style::Bold,
            (false, true) => Style::Emph,
            (false, false) => Style::Plain,
        }
    }

    /// Whether nothing was read.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(Line::is_empty)
    }

    /// The lines, not yet broken at the terminal's edge.
    pub(super) fn finish(self) -> Vec<Line> {
        self.lines
    }
}
