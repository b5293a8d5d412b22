//! The texts that the model receives, word for word, through the real files; and the reading of its input.

use std::fs;
use std::path::PathBuf;

use expect_test::{Expect, expect};
use proto::json::JsonText;
use proto::shim::files::{Apply, Mode};
use serde_json::{Value, json};
use shim::files::Files;

use super::*;
use crate::tools::Part;

struct Bench {
    base: tempfile::TempDir,
    files: Files,
}

impl Bench {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let base = tempfile::tempdir().expect("base");
        let root = base.path().join("root");
        fs::create_dir(&root).expect("root");
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("parent")).expect("parents");
            fs::write(path, content).expect("write");
        }
        let files = Files::open(&root, &[], &base.path().join("store")).expect("open");
        Self { base, files }
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.root().join(name), content).expect("write");
    }

    fn run(&mut self, input: &Value) -> ToolResult {
        let input = parse(&JsonText::from_value(input)).expect("input");
        let root = self.root();
        let reply = self.files.handle(&op(&input, Mode::Apply(Apply::default())), &root);
        render(&input, &reply)
    }

    /// Runs a call and compares its text.
    fn check(&mut self, input: &Value, expected: &Expect) {
        let result = self.run(input);
        let Part::Text(text) = &result.content[0] else { panic!("no text") };
        let text = text.replace(self.base.path().to_str().expect("UTF-8"), "BASE");
        let mark = if result.is_error { "ERROR " } else { "" };
        expected.assert_eq(&format!("{mark}{text}"));
    }
}

fn refused(input: &str, expected: &Expect) {
    let text = parse(&JsonText::parse(input).expect("JSON")).expect_err("a refusal");
    expected.assert_eq(&text);
}

#[test]
fn a_view_is_numbered_as_cat_does() {
    let mut bench = Bench::new(&[("a.txt", b"alpha\n\tbeta\n"), ("e", b""), ("w", b"\xEF\xBB\xBFa\r\nb\r\n\xE9\rx")]);
    bench.check(
        &json!({"command": "view", "path": "a.txt"}),
        &expect![[r#"
        Here is `cat -n` of a.txt:
             1	alpha
             2		beta
    "#]],
    );
    bench.check(
        &json!({"command": "view", "path": "a.txt", "view_range": [2, 9]}),
        &expect![[r#"
            Here is `cat -n` of a.txt, line 2 of 2:
                 2		beta
            [The file ends at line 2.]
        "#]],
    );
    bench.check(&json!({"command": "view", "path": "e"}), &expect!["e is empty: it has no lines."]);
    bench.check(
        &json!({"command": "view", "path": "w"}),
        &expect![[r#"
        Here is `cat -n` of w:
             1	a
             2	b
             3	�␍x
        [The file starts with a UTF-8 byte order mark, which is not shown and is kept by edits.]
        [Lines end in CRLF. Write plain newlines in edits: they become CRLF.]
        [Carriage returns that end no line are shown as ␍; in `old_str` they are \r.]
        [The file has bytes that are not UTF-8, shown as �. Edits keep them; leave them out of `old_str`.]
    "#]],
    );
}

#[test]
fn a_listing_names_kinds_and_escapes_names() {
    let mut bench = Bench::new(&[("src/a.rs", b""), (".hidden", b""), ("two\nlines", b"")]);
    std::os::unix::fs::symlink("src", bench.root().join("link")).expect("link");
    bench.check(
        &json!({"command": "view", "path": "."}),
        &expect![[r#"
            Here are the files and directories up to 2 levels deep in ., excluding hidden ones:
            link -> src
            src/
            src/a.rs
            two\nlines
            [1 hidden entry is not listed.]
        "#]],
    );
}

#[test]
fn an_edit_shows_its_place() {
    let mut bench = Bench::new(&[("a.txt", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n")]);
    bench.check(
        &json!({"command": "str_replace", "path": "a.txt", "old_str": "6\n", "new_str": "six\n"}),
        &expect![[r#"
        The file a.txt has been edited. Here is `cat -n` of the place:
             2	2
             3	3
             4	4
             5	5
             6	six
             7	7
             8	8
             9	9
            10	10
        Check that it is as you meant it, and edit again if it is not.
    "#]],
    );
    bench.check(
        &json!({"command": "insert", "path": "a.txt", "insert_line": 0, "insert_text": "0"}),
        &expect![[r#"
        The file a.txt has been edited. Here is `cat -n` of the place:
             1	0
             2	1
             3	2
             4	3
             5	4
        Check that it is as you meant it, and edit again if it is not.
    "#]],
    );
    bench.check(
        &json!({"command": "create", "path": "new/b.txt", "file_text": "x\n"}),
        &expect![[r#"
            The file new/b.txt has been created (1 line).
        "#]],
    );
}

#[test]
fn a_long_edit_is_shown_at_both_ends() {
    let mut bench = Bench::new(&[("a.txt", b"x\n")]);
    let text = (1..=200).map(|number| format!("{number}\n")).collect::<String>();
    let result = bench.run(&json!({"command": "str_replace", "path": "a.txt", "old_str": "x\n", "new_str": text}));
    let Part::Text(text) = &result.content[0] else { panic!("no text") };
    assert!(
        text.contains("    30\t30\n[140 lines omitted]\n   171\t171\n") && text.contains("   200\t200\n"),
        "{text}"
    );
    assert_eq!(result.diff.map(|diff| (diff.added, diff.removed)), Some((200, 1)));
}

#[test]
fn a_miss_says_how_to_hit() {
    let mut bench = Bench::new(&[("a.py", b"def f():\n\tif x:\n\t\treturn 1\n")]);
    let old = "    if x:\n        return 1";
    bench.check(
        &json!({"command": "str_replace", "path": "a.py", "old_str": old, "new_str": "y"}),
        &expect![[r#"
        ERROR `old_str` does not stand in a.py; nothing was changed.
        The most similar place is lines 2-3:
             2		if x:
             3			return 1
        - indentation differs: `old_str` has 4 space(s), the file has 1 tab(s)
    "#]],
    );
    let old = "     2\t\tif x:";
    bench.check(
        &json!({"command": "str_replace", "path": "a.py", "old_str": old, "new_str": "y"}),
        &expect![[r#"
            ERROR `old_str` does not stand in a.py; nothing was changed.
            The most similar place is line 2:
                 2		if x:
            - `old_str` carries the line numbers of a view; leave number and tab out
        "#]],
    );
    let old = "def f():\n\tif y:\n\t\treturn 1";
    bench.check(
        &json!({"command": "str_replace", "path": "a.py", "old_str": old, "new_str": "y"}),
        &expect![[r#"
        ERROR `old_str` does not stand in a.py; nothing was changed.
        The most similar place is lines 1-3:
             1	def f():
             2		if x:
             3			return 1
        - line 2: `old_str` has "\tif y:", the file has "\tif x:"
    "#]],
    );
    bench.check(
        &json!({"command": "str_replace", "path": "a.py", "old_str": "zzz", "new_str": "y"}),
        &expect![
            "ERROR `old_str` does not stand in a.py; nothing was changed. View the file and copy the text exactly."
        ],
    );
    bench.check(&json!({"command": "str_replace", "path": "a.py", "old_str": "f", "new_str": "y"}), &expect!["ERROR `old_str` stands 3 times in a.py, starting on lines 1, 2; nothing was changed. Add lines before or after it until it is unique."]);
}

#[test]
fn a_change_behind_the_back_is_shown() {
    let mut bench = Bench::new(&[("a.txt", b"one\ntwo\nthree\n")]);
    bench.run(&json!({"command": "view", "path": "a.txt"}));
    bench.put("a.txt", "one\n2\nthree\n");
    bench.check(&json!({"command": "insert", "path": "a.txt", "insert_line": 1, "insert_text": "x"}), &expect![[r#"
        ERROR a.txt has changed on disk since you last saw it; nothing was written. View it again and repeat the edit. What changed:
        @@ -1,3 +1,3 @@
         one
        -two
        +2
         three
    "#]]);
    bench.check(
        &json!({"command": "str_replace", "path": "a.txt", "old_str": "three", "new_str": "3"}),
        &expect![[r#"
            The file a.txt has been edited. Here is `cat -n` of the place:
                 1	one
                 2	2
                 3	3
            Check that it is as you meant it, and edit again if it is not.
            [The file had changed on disk since you last saw it, away from this edit. That change:]
            @@ -1,3 +1,3 @@
             one
            -two
            +2
             three
        "#]],
    );
}

#[test]
fn refusals_say_what_would_be_right() {
    let mut bench =
        Bench::new(&[("a.txt", b"one\ntwo\n"), ("d/editor.rs", b""), ("bin", b"\x7FELF\0"), ("u16", b"\xFF\xFEa\0")]);
    bench.check(
        &json!({"command": "view", "path": "d/edtior.rs"}),
        &expect!["ERROR d/edtior.rs does not exist. Did you mean d/editor.rs?"],
    );
    bench.check(
        &json!({"command": "view", "path": "x/y"}),
        &expect!["ERROR x/y does not exist: there is no directory x. Did you mean d?"],
    );
    bench.check(&json!({"command": "view", "path": "a.txt", "view_range": [5, 6]}), &expect!["ERROR `view_range` [5, 6] is not in a.txt, which has 2 lines. Valid are [first, last] with 1 <= first <= last, first at most 2, and last = -1 for the end."]);
    bench.check(
        &json!({"command": "view", "path": "bin"}),
        &expect![
            "ERROR bin is not text: an ELF program or library, 5 bytes. Use the bash tool to inspect or change it."
        ],
    );
    bench.check(&json!({"command": "view", "path": "u16"}), &expect!["ERROR u16 is text in UTF-16 (little endian); this tool shows and edits UTF-8 and single-byte text. Use `iconv` through the bash tool, and convert back afterwards."]);
    bench.check(&json!({"command": "view", "path": "/etc/passwd"}), &expect!["ERROR /etc/passwd lies outside of the workspace, where this tool does not go. The workspace is BASE/root. Give a path inside it, relative or absolute."]);
    bench.check(&json!({"command": "create", "path": "a.txt", "file_text": "x"}), &expect!["ERROR a.txt already exists; nothing was written. View it first if you mean to replace it whole, or change it with `str_replace` or `insert`."]);
    bench.check(&json!({"command": "create", "path": ".git/config", "file_text": "x"}), &expect!["ERROR .git/config lies in .git, whose files decide which programs run; this tool does not change it. Use the program that owns it through the bash tool."]);
    bench.check(&json!({"command": "insert", "path": "a.txt", "insert_line": 3, "insert_text": "x"}), &expect!["ERROR `insert_line` 3 is not in a.txt, which has 2 lines. Valid are 0 (before the first line) to 2 (after the last)."]);
    bench.check(
        &json!({"command": "str_replace", "path": "d", "old_str": "a"}),
        &expect!["ERROR d is a directory; only `view` works on directories. Give the path of a file."],
    );
    bench.check(
        &json!({"command": "str_replace", "path": "a.txt", "old_str": "one", "new_str": "one"}),
        &expect!["ERROR Nothing was changed in a.txt: the new text is the same as the old."],
    );
}

#[test]
fn wrong_input_is_named() {
    refused(
        r#"{"command": "undo_edit", "path": "a"}"#,
        &expect![
            "There is no command `undo_edit`; the commands are `view`, `create`, `str_replace` and `insert`. To take an edit back, make the opposite edit."
        ],
    );
    refused(
        r#"{"path": "a"}"#,
        &expect![
            "The parameter `command` is missing or not a string; the commands are `view`, `create`, `str_replace` and `insert`."
        ],
    );
    refused(
        r#"{"command": "view"}"#,
        &expect![
            "The parameter `path` is missing: the file or directory, relative to the working directory or absolute inside it, as a string."
        ],
    );
    refused(
        r#"{"command": "view", "path": "a", "view_range": [1.5, 2]}"#,
        &expect![
            "The parameter `view_range` must be two integers [first, last]: line numbers from 1, both inclusive, last = -1 for the end of the file."
        ],
    );
    refused(
        r#"{"command": "create", "path": "a", "content": "x"}"#,
        &expect!["The parameter `file_text` is missing: the file's whole content, as a string."],
    );
    refused(
        r#"{"command": "str_replace", "path": "a", "old_str": "x", "new_str": 7}"#,
        &expect!["The parameter `new_str` must be a string, not a number."],
    );
    refused(
        r#"{"command": "insert", "path": "a", "insert_line": "1", "insert_text": "x"}"#,
        &expect![
            "The parameter `insert_line` must be an integer: the number of the line after which the text goes, 0 for the start of the file."
        ],
    );
    refused(
        r#"{"command": "insert", "path": "a", "insert_line": 1}"#,
        &expect!["The parameter `insert_text` is missing: the lines to insert, as a string."],
    );
    refused(
        r#"{"command": "str_replace", "path": "a", "old_str": "x", "new_str": "\ud800"}"#,
        &expect![
            "The input is not valid JSON text (unexpected end of hex escape at line 1 column 75). Nothing was done. Every string must be valid Unicode."
        ],
    );
    refused(
        r#"["view"]"#,
        &expect![
            "The input must be a JSON object with `command` and `path`; the commands are `view`, `create`, `str_replace` and `insert`."
        ],
    );
}

#[test]
fn titles_are_one_line() {
    let of = |input: Value| title(&parse(&JsonText::from_value(&input)).expect("input"));
    assert_eq!(of(json!({"command": "view", "path": "a"})), "view a");
    assert_eq!(of(json!({"command": "view", "path": "a", "view_range": [10, 20]})), "view a 10-20");
    assert_eq!(of(json!({"command": "view", "path": "a", "view_range": [10, -1]})), "view a 10-end");
    assert_eq!(of(json!({"command": "str_replace", "path": "a\nb\u{1b}", "old_str": "x"})), "edit a\u{FFFD}b\u{FFFD}");
    assert_eq!(of(json!({"command": "create", "path": "a", "file_text": ""})), "create a");
}

#[test]
fn an_older_name_of_the_inserted_text_is_taken() {
    let input = json!({"command": "insert", "path": "a", "insert_line": 1, "new_str": "x"});
    let input = parse(&JsonText::from_value(&input)).expect("input");
    assert_eq!(input, EditorInput::Insert { path: "a".into(), line: 1, text: "x".into() });
}
