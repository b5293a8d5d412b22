//! Text of any origin inside a page: nothing in it is markup, nothing in it hides.

use crate::render::{Line, Style, sanitize};

/// Makes text harmless in HTML, with its lines.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in sanitize::lines(text).chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// An address that a click may open; anything else, such as `javascript:`, is none.
pub(super) fn address(url: &str) -> Option<String> {
    let known = ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    (known && !url.chars().any(char::is_control)).then(|| text(url))
}

/// A line of ours with its looks.
pub(super) fn line(line: &Line) -> String {
    line.spans
        .iter()
        .map(|(style, words)| match class(*style) {
            "" => text(words),
            class => format!("<span class=\"{class}\">{}</span>", text(words)),
        })
        .collect()
}

fn class(style: Style) -> &'static str {
    match style {
        Style::Plain => "",
        Style::Dim => "dim",
        Style::Bold | Style::StrongEmph => "bold",
        Style::Heading => "heading",
        Style::Good => "good",
        Style::Bad => "bad",
        Style::Warn => "warn",
        Style::Name | Style::Code | Style::Type => "name",
        Style::Added => "added",
        Style::Removed => "removed",
        Style::AddedPart => "added part",
        Style::RemovedPart => "removed part",
        Style::Emph => "emph",
        Style::Struck => "struck",
        Style::Link | Style::Function => "function",
        Style::Keyword => "keyword",
        Style::Text => "text",
        Style::Number => "number",
        Style::Comment => "comment",
    }
}
