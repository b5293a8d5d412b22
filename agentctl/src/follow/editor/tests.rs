//! Claims about the input.

use super::*;

fn typed(keys: &[&str]) -> (Editor, Vec<Edit>) {
    let mut editor = Editor::default();
    let edits = keys.iter().flat_map(|keys| editor.feed(keys.as_bytes())).collect();
    (editor, edits)
}

fn shown(editor: &Editor, columns: usize, rows: usize) -> (Vec<String>, (usize, usize)) {
    let (lines, cursor) = editor.rows(columns, rows);
    (lines.iter().map(|line| line.paint(false)).collect(), cursor)
}

#[test]
fn typing_editing_and_enter_give_the_line() {
    let (editor, edits) = typed(&["helo", "\x1b[D", "l", "\x05 wrld", "\x7f\x7f\x7forld é", "\r"]);
    assert_eq!(edits, [Edit::Submit("hello world é".into())]);
    assert!(editor.is_empty());
    let (_, edits) = typed(&["one two three\x17\x17", "2\x01>\r"]);
    assert_eq!(edits, [Edit::Submit(">one 2".into())]);
    let (_, edits) = typed(&["one two\x1b[1;5Dbig \x0b\x19\x19\r"]);
    assert_eq!(edits, [Edit::Submit("one big twotwo".into())]);
}

#[test]
fn a_line_break_is_typed_in_the_ways_terminals_have() {
    for keys in ["a\nb\r", "a\x1b\rb\r", "a\\\rb\r", "a\x1b[13;2ub\r", "a\x1b[27;2;13~b\r"] {
        assert_eq!(typed(&[keys]).1, [Edit::Submit("a\nb".into())], "{keys:?}");
    }
    let mut lines = Editor::new(true);
    assert_eq!(lines.feed(b"a\n"), [Edit::Submit("a".into())]);
}

#[test]
fn a_pasted_text_with_line_breaks_is_one_input() {
    let (_, edits) = typed(&["\x1b[200~a\rb\r\nc\x1b[20", "1~", "\r"]);
    assert_eq!(edits, [Edit::Submit("a\nb\nc".into())]);
}

/// Ten thousand lines arrive in small reads, cut anywhere, also inside characters.
#[test]
fn a_paste_of_ten_thousand_lines_is_whole_and_quick() {
    let text: String = (0..10_000).map(|n| format!("line {n} é日👩‍💻\n")).collect();
    let keys = format!("\x1b[200~{}\x1b[201~", text.replace('\n', "\r"));
    let mut editor = Editor::default();
    let begun = std::time::Instant::now();
    for piece in keys.as_bytes().chunks(4093) {
        assert!(editor.feed(piece).is_empty());
    }
    let (rows, cursor) = shown(&editor, 40, 5);
    assert_eq!(rows[3], "line 9999 é日👩‍💻");
    assert_eq!(cursor, (4, 0));
    assert_eq!(editor.feed(b"\r"), [Edit::Submit(text)]);
    assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn characters_cut_between_two_reads_are_put_together() {
    let mut editor = Editor::default();
    assert!(editor.feed(&"日".as_bytes()[..2]).is_empty());
    assert_eq!(editor.feed(&[0xa5, b'\r']), [Edit::Submit("日".into())]);
    assert!(editor.feed(b"\x1b[").is_empty(), "half of an arrow key");
}

#[test]
fn what_a_person_takes_for_one_character_is_deleted_as_one() {
    let (editor, _) = typed(&["a👩‍💻e\u{301}\x7f\x7f"]);
    assert_eq!(editor.text(), "a");
}

#[test]
fn earlier_inputs_come_back_and_the_new_one_too() {
    let (mut editor, _) = typed(&["first\r", "second\r", "new"]);
    assert_eq!(editor.feed(b"\x1b[A"), [Edit::Recall { back: true }]);
    editor.recall(true);
    editor.recall(true);
    editor.recall(true);
    assert_eq!(editor.text(), "first");
    editor.recall(false);
    editor.recall(false);
    assert_eq!(editor.text(), "new");
    assert_eq!(editor.feed(b"\x1b"), [Edit::Cancel]);
    editor.clear();
    assert_eq!(editor.feed(b"\x04"), [Edit::End]);
}

#[test]
fn up_and_down_move_inside_an_input_of_several_lines() {
    let (mut editor, _) = typed(&["ab\ncdef\ng"]);
    editor.feed(b"\x1b[A\x1b[C\x1b[A!");
    assert_eq!(editor.text(), "ab!\ncdef\ng");
    assert!(editor.feed(b"\x1b[B\x1b[B").is_empty());
    assert_eq!(editor.feed(b"\x1b[B"), [Edit::Recall { back: false }]);
}

#[test]
fn a_long_line_goes_on_in_the_next_row_and_shows_no_raw_control() {
    let (editor, _) = typed(&["abcdef日本"]);
    assert_eq!(shown(&editor, 6, 5), (vec!["abcde".into(), "f日本".into()], (1, 5)));
    let (editor, _) = typed(&["\x1b[200~a\n\u{9b}b\x1b[201~"]);
    assert_eq!(shown(&editor, 20, 5).0, ["a", "‹9b›b"]);
    let (editor, _) = typed(&["a\nb\nc\nd\x1b[A\x1b[A"]);
    assert_eq!(shown(&editor, 20, 2), (vec!["a".into(), "b".into()], (1, 1)));
}
