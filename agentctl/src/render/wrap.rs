//! Breaking lines at the terminal's edge, between words where there are any. Pure.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{Line, Style, sanitize};

impl Line {
    /// Broken into lines of at most so many columns: at spaces, between wide characters, and inside a word only where it
    /// alone is longer than a line. The spaces at a break go.
    #[must_use]
    pub fn wrap(self, columns: usize) -> Vec<Self> {
        let columns = columns.max(1);
        if self.width() <= columns {
            return vec![self];
        }
        let mut wrapper = Wrapper { columns, lines: Vec::new(), line: Self::new(), used: 0, word: Vec::new(), long: 0 };
        for (style, text) in &self.spans {
            for piece in text.graphemes(true) {
                wrapper.take(*style, piece);
            }
        }
        wrapper.end()
    }

    /// Broken every so many columns, whatever stands there: for code, where spaces count.
    #[must_use]
    pub fn chop(self, columns: usize) -> Vec<Self> {
        let columns = columns.max(1);
        if self.width() <= columns {
            return vec![self];
        }
        let mut lines = Vec::new();
        let (mut line, mut used) = (Self::new(), 0);
        for (style, text) in &self.spans {
            for piece in text.graphemes(true) {
                if used + piece.width() > columns {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.add(*style, piece);
                used += piece.width();
            }
        }
        lines.push(line);
        lines
    }

    /// Adds text of any origin, made harmless; text of the same look becomes one piece.
    pub fn push(&mut self, style: Style, text: &str) {
        self.add(style, &sanitize::line(text));
    }

    /// Adds text that is harmless already.
    fn add(&mut self, style: Style, text: &str) {
        match self.spans.last_mut() {
            Some((last, before)) if *last == style => before.push_str(text),
            Some(_) | None => self.spans.push((style, text.to_owned())),
        }
    }
}

struct Wrapper {
    columns: usize,
    lines: Vec<Line>,
    line: Line,
    used: usize,
    /// The word being read, and its columns.
    word: Vec<(Style, String)>,
    long: usize,
}

impl Wrapper {
    fn take(&mut self, style: Style, piece: &str) {
        let width = piece.width();
        if piece == " " {
            self.end_word();
            if self.used < self.columns && self.used > 0 {
                self.line.add(style, piece);
                self.used += 1;
            } else if self.used == 0 && self.lines.is_empty() {
                // Spaces at the very beginning are an indentation.
                self.line.add(style, piece);
                self.used += 1;
            }
            return;
        }
        if width > 1 {
            self.end_word();
        }
        if self.long + width > self.columns {
            self.end_word();
        }
        self.word.push((style, piece.to_owned()));
        self.long += width;
        if width > 1 {
            self.end_word();
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.used + self.long > self.columns {
            self.break_line();
        }
        for (style, piece) in std::mem::take(&mut self.word) {
            self.line.add(style, &piece);
        }
        self.used += std::mem::take(&mut self.long);
    }

    fn break_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        self.used = 0;
        while let Some((_, text)) = line.spans.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
            if !text.is_empty() {
                break;
            }
            line.spans.pop();
        }
        if !line.is_empty() {
            self.lines.push(line);
        }
    }

    fn end(mut self) -> Vec<Line> {
        self.end_word();
        self.break_line();
        if self.lines.is_empty() {
            self.lines.push(Line::new());
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        Line::new().text(Style::Plain, text).wrap(columns).iter().map(|line| line.paint(false)).collect()
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one  two", 4), ["one", "two"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn a_word_longer_than_a_line_is_broken_inside() {
        assert_eq!(wrapped("ab abcdefghij", 4), ["ab", "abcd", "efgh", "ij"]);
    }

    #[test]
    fn wide_characters_are_never_cut_in_half_and_need_no_spaces() {
        assert_eq!(wrapped("日本語の文章", 5), ["日本", "語の", "文章"]);
        assert_eq!(wrapped("ab 👩‍💻👩‍💻 c", 5), ["ab 👩‍💻", "👩‍💻 c"]);
    }

    #[test]
    fn a_style_goes_on_behind_a_break() {
        let line = Line::new().text(Style::Plain, "aa ").text(Style::Bold, "bb cc");
        let lines: Vec<String> = line.wrap(5).iter().map(|line| line.paint(true)).collect();
        assert_eq!(lines, ["aa \x1b[1mbb\x1b[0m", "\x1b[1mcc\x1b[0m"]);
    }

    #[test]
    fn code_is_chopped_with_its_spaces() {
        let lines: Vec<String> =
            Line::new().text(Style::Plain, "a  b  c").chop(3).iter().map(|line| line.paint(false)).collect();
        assert_eq!(lines, ["a  ", "b  ", "c"]);
    }
}
