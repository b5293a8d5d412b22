//! Colours for code: strings, comments, numbers, keywords, types, calls. A lexer by line with a table per family of
//! languages: no grammar, no regular expressions, no start-up cost. Where it is wrong a word has the wrong colour.
//!
//! Invariant: the text itself is never changed but by [`super::sanitize`].

mod languages;

use super::{Line, Style};
pub use languages::{Language, find};

/// A program's lines, coloured one after the other.
#[derive(Clone, Debug)]
pub struct Highlighter {
    language: Option<&'static Language>,
    state: State,
}

/// What a line begins in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Code,
    /// A comment or text over several lines, up to this end.
    Inside {
        end: &'static str,
        style: Style,
    },
}

impl Highlighter {
    /// For a language as the fence of a code block names it; an unknown one has no colours.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { language: find(name), state: State::Code }
    }

    /// The next line, without its end.
    #[must_use]
    pub fn line(&mut self, text: &str) -> Line {
        let Some(language) = self.language else { return Line::new().text(Style::Plain, text) };
        if language.by_prefix {
            return Line::new().text(changed(text), text);
        }
        let mut line = Line::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (style, length) = self.token(language, rest, text.len() - rest.len(), text);
            let (token, after) = rest.split_at(length.min(rest.len()));
            line.push(style, token);
            rest = after;
        }
        line
    }

    fn token(&mut self, language: &'static Language, rest: &str, at: usize, whole: &str) -> (Style, usize) {
        if let State::Inside { end, style } = self.state {
            return match rest.find(end) {
                Some(found) => {
                    self.state = State::Code;
                    (style, found + end.len())
                }
                None => (style, rest.len()),
            };
        }
        if language.comments.iter().any(|mark| rest.starts_with(mark)) && begins_comment(language, at, whole) {
            return (Style::Comment, rest.len());
        }
        for &(begin, end, style) in language.blocks {
            if let Some(inside) = rest.strip_prefix(begin) {
                return match inside.find(end) {
                    Some(found) => (style, begin.len() + found + end.len()),
                    None => {
                        self.state = State::Inside { end, style };
                        (style, rest.len())
                    }
                };
            }
        }
        let Some(first) = rest.chars().next() else { return (Style::Plain, 0) };
        if language.quotes.contains(first) {
            return (Style::Text, quoted(rest, first));
        }
        // A lifetime or a character.
        if first == '\'' {
            return character(rest).map_or((Style::Type, 1), |length| (Style::Text, length));
        }
        if first.is_ascii_digit() {
            return (Style::Number, run(rest, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
        }
        if first.is_alphabetic() || first == '_' || language.in_words.contains(first) {
            let length = run(rest, |c| c.is_alphanumeric() || c == '_' || language.in_words.contains(c));
            return (word(language, &rest[..length], &rest[length..]), length);
        }
        (Style::Plain, first.len_utf8())
    }
}

/// In a shell `#` begins a comment only at the start of a word.
fn begins_comment(language: &Language, at: usize, whole: &str) -> bool {
    !language.spaced_comments || at == 0 || whole.as_bytes().get(at - 1).is_some_and(u8::is_ascii_whitespace)
}

fn changed(text: &str) -> Style {
    match text.as_bytes().first() {
        Some(b'+') => Style::Added,
        Some(b'-') => Style::Removed,
        Some(b'@') => Style::Name,
        Some(_) | None => Style::Plain,
    }
}

fn word(language: &Language, word: &str, after: &str) -> Style {
    let keyword = if language.any_case {
        language.keywords.contains(&&*word.to_ascii_lowercase())
    } else {
        language.keywords.contains(&word)
    };
    if keyword {
        return Style::Keyword;
    }
    if matches!(word, "true" | "false" | "null" | "nil" | "None" | "True" | "False" | "undefined") {
        return Style::Number;
    }
    if after.starts_with('(') || after.starts_with("!(") {
        return Style::Function;
    }
    if language.keys && after.trim_start().starts_with([':', '=']) {
        return Style::Name;
    }
    if language.types && word.starts_with(|c: char| c.is_uppercase()) && word.len() > 1 {
        return Style::Type;
    }
    Style::Plain
}

/// The length of a text in quotes on one line; to the end of the line when it is not closed there.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character in quotes: `'a'`, `'\n'`, `'\u{1f600}'`.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.get(1..)?;
    if inside.starts_with('\\') {
        return inside.get(2..)?.find('\'').map(|end| end + 4);
    }
    let first = inside.chars().next()?;
    inside[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8() + 2)
}

fn run(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.find(|c| !of(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Each token with the first letters of its style's name.
    fn check(language: &str, text: &str, expected: &Expect) {
        let mut code = Highlighter::new(language);
        let mut shown = String::new();
        for line in text.lines() {
            let line = code.line(line);
            for (style, text) in &line.spans {
                let mark = match style {
                    Style::Plain => "",
                    Style::Keyword => "k",
                    Style::Text => "s",
                    Style::Number => "n",
                    Style::Comment => "c",
                    Style::Type => "t",
                    Style::Function => "f",
                    Style::Name => "N",
                    Style::Added => "+",
                    Style::Removed => "-",
                    other => panic!("{other:?}"),
                };
                shown += &if mark.is_empty() { text.clone() } else { format!("{mark}⟨{text}⟩") };
            }
            shown.push('\n');
        }
        expected.assert_eq(&shown);
    }

    #[test]
    fn rust_has_its_words_strings_and_comments() {
        check(
            "rust",
            "fn main<'a>() -> Vec<u8> { // é\n  let x = \"a\\\"b\"; /* on\n and on */ f('\\n', 'x', 12_u8)\n",
            &expect![[r#"
                k⟨fn⟩ main<t⟨'⟩a>() -> t⟨Vec⟩<u8> { c⟨// é⟩
                  k⟨let⟩ x = s⟨"a\"b"⟩; c⟨/* on⟩
                c⟨ and on */⟩ f⟨f⟩(s⟨'\n'⟩, s⟨'x'⟩, n⟨12_u8⟩)
            "#]],
        );
    }

    #[test]
    fn other_languages_have_theirs() {
        check(
            "py",
            "def f(x):\n  \"\"\"doc\n  more\"\"\"\n  return 'a' # no\n",
            &expect![[r#"
                k⟨def⟩ f⟨f⟩(x):
                  s⟨"""doc⟩
                s⟨  more"""⟩
                  k⟨return⟩ s⟨'a'⟩ c⟨# no⟩
            "#]],
        );
        check(
            "bash",
            "for f in $#; do echo \"$f\" # x\n",
            &expect![[r#"
                k⟨for⟩ f k⟨in⟩ $#; k⟨do⟩ echo s⟨"$f"⟩ c⟨# x⟩
            "#]],
        );
        check(
            "toml",
            "name = \"x\" # y",
            &expect![[r#"
            N⟨name⟩ = s⟨"x"⟩ c⟨# y⟩
        "#]],
        );
        check(
            "SQL",
            "SELECT a FROM t -- all",
            &expect![[r#"
            k⟨SELECT⟩ a k⟨FROM⟩ t c⟨-- all⟩
        "#]],
        );
        check(
            "diff",
            "@@ 1\n-a\n+b\n c",
            &expect![[r#"
            N⟨@@ 1⟩
            -⟨-a⟩
            +⟨+b⟩
             c
        "#]],
        );
    }

    #[test]
    fn no_text_is_lost_whatever_it_is() {
        for text in ["'", "\"", "'\\", "\\", "/*", "é'é", "\"\\", "日'本'", "'\u{1f600}"] {
            for language in ["rust", "js", "py", "bash", "json", "html", "nothing"] {
                assert_eq!(Highlighter::new(language).line(text).paint(false), text, "{language}");
            }
        }
    }
}
