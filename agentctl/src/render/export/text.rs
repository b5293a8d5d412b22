//! A model's Markdown as HTML. Its own HTML is shown as text, never passed on.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::escape;
use crate::render::code::Highlighter;

/// The same as at the terminal.
const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Renders a text.
pub(super) fn render(text: &str) -> String {
    let mut page = Page { out: String::new(), code: None, alignments: Vec::new(), column: 0, head: false };
    for event in Parser::new_ext(text, OPTIONS) {
        page.take(event);
    }
    page.out
}

struct Page {
    out: String,
    /// The code block that is being read, and its text.
    code: Option<(Highlighter, String)>,
    alignments: Vec<Alignment>,
    column: usize,
    head: bool,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.out.push_str(&escape::text(&text)),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.out.push_str(&format!("<code>{}</code>", escape::text(&text)));
            }
            Event::Html(text) | Event::InlineHtml(text) => self.out.push_str(&escape::text(&text)),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(name) => self.out.push_str(&format!("[{}]", escape::text(&name))),
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let open = match tag {
            Tag::Paragraph => "<p>".to_owned(),
            Tag::Heading { level, .. } => format!("<{}>", heading(level)),
            Tag::BlockQuote(_) => "<blockquote>".to_owned(),
            Tag::CodeBlock(kind) => {
                let name = match &kind {
                    CodeBlockKind::Fenced(name) => name,
                    CodeBlockKind::Indented => "",
                };
                self.code = Some((Highlighter::new(name), String::new()));
                return;
            }
            Tag::List(Some(first)) => format!("<ol start=\"{first}\">"),
            Tag::List(None) => "<ul>".to_owned(),
            Tag::Item => "<li>".to_owned(),
            Tag::Table(alignments) => {
                self.alignments = alignments;
                "<table>".to_owned()
            }
            Tag::TableHead => {
                self.head = true;
                self.column = 0;
                "<tr>".to_owned()
            }
            Tag::TableRow => {
                self.column = 0;
                "<tr>".to_owned()
            }
            Tag::TableCell => {
                let align = match self.alignments.get(self.column) {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    Some(Alignment::Left | Alignment::None) | None => "",
                };
                self.column += 1;
                format!("<{}{align}>", if self.head { "th" } else { "td" })
            }
            Tag::Emphasis => "<em>".to_owned(),
            Tag::Strong => "<strong>".to_owned(),
            Tag::Strikethrough => "<del>".to_owned(),
            // An address that is none of ours is shown, and cannot be opened.
            Tag::Link { dest_url, .. } => match escape::address(&dest_url) {
                Some(url) => format!("<a rel=\"noreferrer\" href=\"{url}\">"),
                None => format!("<a title=\"{}\">", escape::text(&dest_url)),
            },
            // A picture would be fetched when the page is opened: its address is shown instead.
            Tag::Image { dest_url, .. } => format!("<span class=\"dim\">[image {}: ", escape::text(&dest_url)),
            _ => "<div>".to_owned(),
        };
        self.out.push_str(&open);
    }

    fn end(&mut self, end: TagEnd) {
        let close = match end {
            TagEnd::Paragraph => "</p>\n".to_owned(),
            TagEnd::Heading(level) => format!("</{}>\n", heading(level)),
            TagEnd::BlockQuote(_) => "</blockquote>\n".to_owned(),
            TagEnd::CodeBlock => {
                let Some((mut code, text)) = self.code.take() else { return };
                let lines: Vec<String> = text.lines().map(|line| escape::line(&code.line(line))).collect();
                format!("<pre>{}</pre>\n", lines.join("\n"))
            }
            TagEnd::List(true) => "</ol>\n".to_owned(),
            TagEnd::List(false) => "</ul>\n".to_owned(),
            TagEnd::Item => "</li>\n".to_owned(),
            TagEnd::Table => "</table>\n".to_owned(),
            TagEnd::TableHead => {
                self.head = false;
                "</tr>\n".to_owned()
            }
            TagEnd::TableRow => "</tr>\n".to_owned(),
            TagEnd::TableCell => if self.head { "</th>" } else { "</td>" }.to_owned(),
            TagEnd::Emphasis => "</em>".to_owned(),
            TagEnd::Strong => "</strong>".to_owned(),
            TagEnd::Strikethrough => "</del>".to_owned(),
            TagEnd::Link => "</a>".to_owned(),
            TagEnd::Image => "]</span>".to_owned(),
            _ => "</div>\n".to_owned(),
        };
        self.out.push_str(&close);
    }
}

/// The page has titles of its own above these.
fn heading(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "h3",
        HeadingLevel::H2 => "h4",
        HeadingLevel::H3 => "h5",
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h6",
    }
}
