//! Claims about rendered answers.

use expect_test::{Expect, expect};

use super::*;

fn plain(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{}\n", line.paint(false).trim_end())).collect()
}

fn check(text: &str, columns: usize, expected: &Expect) {
    expected.assert_eq(&plain(&render(text, columns)));
}

const SAMPLE: &str = "\
# Title

Some *soft* and **hard** words with `code` and [a link](https://example.org/x), quite long so that it wraps.
- one
- two
  with more
  - deep

    deeper paragraph
- [x] three

1. first

   ```rust
   fn main() {}
   ```
2. second

> quoted **text**
>
> - in a list

```sh
$ ls # all

rest
```
| a | long name | n |
|---|:---------:|--:|
| x | `y` | 12 |
| 日本 | z | 3 |

---
Last line\\
broken <b>here</b>
";

#[test]
fn everything_models_write_has_its_look() {
    check(
        SAMPLE,
        60,
        &expect![[r#"
            Title

            Some soft and hard words with code and a link
            (https://example.org/x), quite long so that it wraps.
            • one
            • two with more
              • deep

                deeper paragraph
            ☑ three

            1. first

                 fn main() {}
            2. second

            │ quoted text
            │
            │ • in a list

              $ ls # all

              rest
            a    │ long name │  n
            ─────┼───────────┼───
            x    │     y     │ 12
            日本 │     z     │  3

            ────────────────────────────────────────────────────────────
            Last line
            broken <b>here</b>
        "#]],
    );
}

#[test]
fn looks_are_colours_and_only_colours() {
    let painted: String = render("## T\na **b** `c` *d* ~~e~~\n```rs\nfn x() {}\n```", 80)
        .iter()
        .map(|line| line.paint(true) + "\n")
        .collect();
    expect![[r#"
        [1;35mT[0m
        a [1mb[0m [36mc[0m [3md[0m [9me[0m
          [35mfn[0m [34mx[0m() {}
    "#]]
    .assert_eq(&painted.replace('\x1b', ""));
}

/// However a text is cut into pieces, what comes out in the end is the same.
#[test]
fn a_streamed_text_ends_up_as_the_whole_one() {
    let whole = plain(&render(SAMPLE, 60));
    for size in [1, 2, 3, 7, 50, 1000] {
        let mut markdown = Markdown::default();
        let mut lines = Vec::new();
        let chars: Vec<char> = SAMPLE.chars().collect();
        for piece in chars.chunks(size) {
            markdown.push(&piece.iter().collect::<String>());
            lines.extend(markdown.settled(60));
            for line in markdown.tail(60) {
                assert!(line.width() <= 60, "{line:?}");
            }
        }
        lines.extend(markdown.finish(60));
        assert_eq!(plain(&lines), whole, "in pieces of {size}");
    }
}

#[test]
fn settled_lines_come_early_and_the_tail_is_short() {
    let mut markdown = Markdown::default();
    markdown.push("Intro\n\n- one\n- tw");
    assert_eq!(plain(&markdown.settled(60)), "Intro\n");
    assert_eq!(plain(&markdown.tail(60)), "\n• one\n• tw\n");
    markdown.push("o\n- three");
    assert_eq!(plain(&markdown.settled(60)), "\n• one\n");
    markdown.push("\n\n```py\nx = 1\ny");
    assert_eq!(plain(&markdown.settled(60)), "• two\n• three\n\n  x = 1\n");
    assert_eq!(plain(&markdown.tail(60)), "  y\n");
    markdown.push("\n```");
    assert_eq!(plain(&markdown.settled(60)), "  y\n");
    assert_eq!(plain(&markdown.tail(60)), "");
    assert_eq!(plain(&markdown.finish(60)), "");
}

#[test]
fn numbers_go_on_where_a_list_was_cut() {
    let text = "1. a\n1. b\n1. c\n";
    let mut markdown = Markdown::default();
    let mut lines = Vec::new();
    for char in text.chars() {
        markdown.push(&char.to_string());
        lines.extend(markdown.settled(60));
    }
    lines.extend(markdown.finish(60));
    assert_eq!(plain(&lines), "1. a\n2. b\n3. c\n");
}

#[test]
fn a_table_too_wide_breaks_its_cells_and_then_becomes_a_list() {
    let text = "| name | what it does |\n|---|---|\n| alpha | it does a lot of things |\n";
    check(
        text,
        24,
        &expect![[r#"
            name  │ what it does
            ──────┼─────────────────
            alpha │ it does a lot of
                  │ things
        "#]],
    );
    check(
        text,
        13,
        &expect![[r#"
        name: alpha
        what it does:
        it does a lot
        of things
    "#]],
    );
}

#[test]
fn hostile_text_stays_text_everywhere() {
    let text = "# \x1b[2J\n`\x1b]0;x\x07` [\u{202e}a](http://\u{9b}b)\n\n```\x1b[2J\n\x1b[31m\n```\n| \x1b | b |\n|-|-|\n| \u{200b} | \x07 |\n<a \x1b[2J>\n";
    for line in render(text, 40) {
        assert!(!line.paint(false).chars().any(char::is_control), "{line:?}");
    }
}

/// A text that was cut at a bad place, nested deeply or not Markdown at all must neither panic nor lose its words.
#[test]
fn odd_text_is_shown_in_some_way() {
    for text in ["```", "~~~\nx", "|", "- ", "1.", "> > > deep", "****", "[a](", "<div", "\n\n\n", "    indented\n\nx"]
    {
        let mut markdown = Markdown::default();
        for char in text.chars() {
            markdown.push(&char.to_string());
            markdown.settled(20);
            let _ = markdown.tail(20);
        }
        markdown.finish(20);
    }
    check(
        "a\n\n    indented\n\n[x][y]\n",
        20,
        &expect![[r#"
        a

          indented

        [x][y]
    "#]],
    );
    let deep = "> ".repeat(200) + "deep";
    assert!(plain(&render(&deep, 20)).contains("deep"));
}
