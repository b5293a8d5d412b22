//! Data to lines, all of it pure. A [`Line`] is the only thing that [`crate::screen`] prints besides streamed text, and
//! the only ways to put text into one are a literal of ours and [`Line::text`], which sanitises.

pub mod approval;
pub mod audit;
pub mod call;
pub mod changes;
pub mod code;
pub mod diff;
pub mod export;
pub mod jobs;
pub mod log;
pub mod markdown;
pub mod model;
pub mod notes;
pub mod policy;
pub mod sanitize;
pub mod session;
pub mod table;
pub mod time;
pub mod wrap;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::CtlError;

/// How a piece of a line looks. The sixteen basic colours only: they follow the terminal's theme, light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    Plain,
    /// Less important.
    Dim,
    /// More important.
    Bold,
    /// It went well.
    Good,
    /// It failed.
    Bad,
    /// Look here.
    Warn,
    /// A name or a command.
    Name,
    /// A line that came.
    Added,
    /// A line that went.
    Removed,
    /// The changed part of a line that came.
    AddedPart,
    /// The changed part of a line that went.
    RemovedPart,
    /// A title.
    Heading,
    /// Emphasis.
    Emph,
    /// Strong emphasis.
    StrongEmph,
    /// No longer holds.
    Struck,
    /// The words of a link.
    Link,
    /// Code within a sentence.
    Code,
    /// A word of a programming language.
    Keyword,
    /// A text in a program.
    Text,
    /// A number or constant in a program.
    Number,
    /// A comment in a program.
    Comment,
    /// A type in a program.
    Type,
    /// A function in a program.
    Function,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Good | Self::Added => "32",
            Self::Bad | Self::Removed => "31",
            Self::Warn => "33",
            Self::Name => "36",
            Self::AddedPart => "1;4;32",
            Self::RemovedPart => "1;4;31",
            Self::Heading => "1;35",
            Self::Emph => "3",
            Self::StrongEmph => "1;3",
            Self::Struck => "9",
            Self::Link => "4;34",
            Self::Code | Self::Type => "36",
            Self::Keyword => "35",
            Self::Text => "32",
            Self::Number => "33",
            Self::Comment => "2;3",
            Self::Function => "34",
        }
    }
}

/// The deepest that prose is indented after a break.
const SPACES: &str = "                    ";

/// One line for a terminal, without its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<(Style, String)>,
    /// Prose: it is broken between words at the terminal's edge, and this stands before the rest.
    hang: Option<&'static str>,
}

impl Line {
    /// An empty line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds words of our own.
    #[must_use]
    pub fn lit(mut self, style: Style, text: &'static str) -> Self {
        self.spans.push((style, text.to_owned()));
        self
    }

    /// Adds text of any origin, made harmless.
    #[must_use]
    pub fn text(mut self, style: Style, text: &str) -> Self {
        self.spans.push((style, sanitize::line(text)));
        self
    }

    /// Makes it prose, with this before each line after a break.
    #[must_use]
    pub fn prose(mut self, hang: &'static str) -> Self {
        self.hang = Some(hang);
        self
    }

    /// Makes it prose that goes on so many columns further to the right after a break, as far as there are spaces for that.
    #[must_use]
    pub fn prose_below(self, columns: usize) -> Self {
        self.prose(&SPACES[..columns.min(SPACES.len())])
    }

    /// As it is printed on a terminal of so many columns: prose broken between words, anything else as it is.
    #[must_use]
    pub fn broken(self, columns: usize) -> Vec<Self> {
        let Some(hang) = self.hang.filter(|_| self.width() > columns) else { return vec![self] };
        let mut lines = self.wrap(columns.saturating_sub(hang.width()).max(1)).into_iter();
        let first = lines.next();
        first.into_iter().chain(lines.map(|line| Self::new().lit(Style::Dim, hang).join(line))).collect()
    }

    /// Adds all of another line.
    #[must_use]
    pub fn join(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.iter().all(|(_, text)| text.is_empty())
    }

    /// Columns it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| text.width()).sum()
    }

    /// Cut to a number of columns, with `…` where something went.
    #[must_use]
    pub fn fit(mut self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut left = columns.saturating_sub(1);
        let mut spans = Vec::new();
        for (style, text) in self.spans {
            let cut = prefix(&text, left);
            left -= cut.width();
            let whole = cut.len() == text.len();
            spans.push((style, cut.to_owned()));
            if !whole {
                break;
            }
        }
        if columns > 0 {
            spans.push((Style::Dim, "…".to_owned()));
        }
        self.spans = spans;
        self
    }

    /// The line as it goes out.
    #[must_use]
    pub fn paint(&self, color: bool) -> String {
        let mut out = String::new();
        for (style, text) in &self.spans {
            let code = style.code();
            if color && !code.is_empty() && !text.is_empty() {
                out.extend(["\x1b[", code, "m", text, "\x1b[0m"]);
            } else {
                out.push_str(text);
            }
        }
        out
    }
}

/// The longest beginning of a text that fits a number of columns.
#[must_use]
pub fn prefix(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, char) in text.char_indices() {
        used += char.width().unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// Prints a failure: a sentence for people on standard error, and an object for programs on standard output.
pub fn report(error: &CtlError, json: bool) {
    use std::io::{IsTerminal, Write};
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
    let color = std::io::stderr().is_terminal() && !plain;
    let line = Line::new().lit(Style::Bad, "agentctl: ").text(Style::Plain, &error.to_string());
    // Where even standard error is gone there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "{}", line.paint(color));
    if json {
        let object = serde_json::json!({
            "error": { "code": error.word(), "message": error.to_string(), "exit": error.exit().code() }
        });
        let _ = writeln!(std::io::stdout(), "{object}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_and_not_by_bytes() {
        let line = Line::new().lit(Style::Good, "● ").text(Style::Plain, "日本語のテキスト");
        assert_eq!(line.clone().fit(9).paint(false), "● 日本語…");
        assert_eq!(line.clone().fit(18).paint(false), "● 日本語のテキスト");
        assert_eq!(line.fit(0).paint(false), "");
    }

    #[test]
    fn foreign_text_brings_no_colour_of_its_own() {
        let line = Line::new().text(Style::Bad, "x\x1b[32my\n");
        assert_eq!(line.paint(false), "x␛[32my␊");
        assert_eq!(line.paint(true), "\x1b[31mx␛[32my␊\x1b[0m");
    }
}
