//! What is said when a text is not found, or a path.

use proto::shim::files::Difference;

use super::*;
use crate::files::near::find;

fn differences(file: &str, wanted: &str) -> Vec<Difference> {
    find(file.as_bytes(), wanted).unwrap_or_else(|| panic!("nothing is near {wanted:?}")).differences
}

#[test]
fn tabs_for_spaces_are_named() {
    let found = differences("if x:\n\treturn 1\n", "if x:\n        return 1");
    assert_eq!(found, [Difference::Indentation { wanted: " ".repeat(8), found: "\t".into() }]);
}

#[test]
fn blanks_at_the_end_and_inside_are_named() {
    assert_eq!(differences("key = 1\nnext\n", "key = 1 \nnext"), [Difference::TrailingBlanks {}]);
    assert_eq!(differences("a\nf(a, b)\nc\n", "a\nf(a,b)\nc"), [Difference::Blanks {}]);
    assert_eq!(differences("one\n\n\ntwo\n", "one\n\ntwo"), [Difference::Blanks {}]);
}

#[test]
fn signs_that_look_alike_are_named() {
    assert_eq!(differences("say \u{201C}hello\u{201D}\n", "say \"hello\""), [Difference::Punctuation {}]);
    assert_eq!(differences("say 'hello'\n", "say \"hello\""), [Difference::Punctuation {}]);
    assert_eq!(differences("cafe\u{301} au lait\n", "caf\u{E9} au lait"), [Difference::UnicodeForm {}]);
    assert_eq!(differences("Hello World\n", "hello world"), [Difference::Case {}]);
    assert_eq!(differences("print(\"a\\n\")\n", "print(\"a\\\\n\")"), [Difference::Escapes {}]);
}

#[test]
fn several_differences_are_all_named() {
    let found = differences("x\n\tsay \u{2018}Yes\u{2019}\n", "x\n    say 'yes'");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn numbers_of_a_view_are_named() {
    let near = find(b"alpha\nbeta\ngamma\n", "     2\tbeta\n     3\tgamma").expect("near");
    assert_eq!((near.first, near.lines.len()), (2, 2));
    assert_eq!(near.differences, [Difference::LineNumbers {}]);
}

#[test]
fn the_place_with_most_of_the_lines_is_shown_with_the_line_that_differs() {
    let near = find(b"a\nfn one() {\n    let x = 1;\n    done()\n}\n", "fn one() {\n    let x = 2;\n    done()\n}")
        .expect("near");
    assert_eq!((near.first, near.lines.len()), (2, 4));
    let line = Difference::Line { number: 3, wanted: "    let x = 2;".into(), found: "    let x = 1;".into() };
    assert_eq!(near.differences, [line]);
}

#[test]
fn one_line_with_another_word_is_found() {
    let near =
        find(b"alpha\nlet total = sum(first, second);\nomega\n", "let total = sum(first, third);").expect("near");
    assert_eq!((near.first, near.lines.len()), (2, 1));
}

#[test]
fn nothing_is_shown_when_nothing_is_alike() {
    assert_eq!(find(b"alpha\nbeta\n", "completely different words"), None);
    assert_eq!(find(b"", "x"), None);
    assert_eq!(find(b"abc", "  "), None);
}

#[test]
fn a_miss_on_disk_carries_the_near_place() {
    let mut bench = Bench::new();
    bench.put("f", "a\r\n\tb\r\n");
    let fault = bench.fault(&replace("f", "a\n  b", "x"));
    let Fault::NoMatch { near: Some(near), change: None } = fault else { panic!("{fault:?}") };
    assert_eq!((near.first, near.lines), (1, vec!["a".to_owned(), "\tb".to_owned()]));
}

#[test]
fn a_mistyped_path_is_answered_with_similar_names() {
    let mut bench = Bench::new();
    for name in ["src/editor.rs", "src/main.rs", "README.md"] {
        bench.put(name, "");
    }
    let similar = |bench: &mut Bench, path: &str| match bench.fault(&view(path, None)) {
        Fault::NotFound { similar, missing_directory } => (similar, missing_directory),
        other => panic!("{other:?}"),
    };
    assert_eq!(similar(&mut bench, "src/edtior.rs"), (vec!["src/editor.rs".to_owned()], None));
    assert_eq!(similar(&mut bench, "src/main.py").0, ["src/main.rs"]);
    assert_eq!(similar(&mut bench, "readme.md").0, ["README.md"]);
    assert_eq!(similar(&mut bench, "editor.rs").0, ["src/editor.rs"], "a path without its first part");
    assert_eq!(similar(&mut bench, "lib/x/main.rs").0, ["src/main.rs"], "a path with another first part");
    let (names, missing) = similar(&mut bench, "scr/main.rs");
    assert_eq!((names, missing.as_deref()), (vec!["src".to_owned()], Some("scr")));
}
