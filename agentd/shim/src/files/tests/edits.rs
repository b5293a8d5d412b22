//! What an edit does to bytes.

use super::*;

/// Applies one replacement to a file of these bytes.
fn replaced(before: &[u8], old: &str, new: &str) -> Result<Vec<u8>, Fault> {
    let mut bench = Bench::new();
    bench.put("f", before);
    match bench.op(&replace("f", old, new)) {
        FileReply::Edited(_) => Ok(bench.bytes("f")),
        FileReply::Error(error) => {
            assert_eq!(bench.bytes("f"), before, "a refusal changes nothing");
            Err(error.fault)
        }
        other => panic!("neither edit nor refusal: {other:?}"),
    }
}

fn inserted(before: &[u8], line: i64, text: &str) -> Vec<u8> {
    let mut bench = Bench::new();
    bench.put("f", before);
    bench.edit(&insert("f", line, text));
    bench.bytes("f")
}

#[test]
fn a_replacement_in_a_crlf_file_gets_crlf_and_matches_lf() {
    assert_eq!(replaced(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz").as_deref(), Ok(&b"x\r\ny\r\nz\r\nc\r\n"[..]));
}

#[test]
fn a_wanted_text_may_have_crlf_itself() {
    assert_eq!(replaced(b"a\r\nb\r\n", "a\r\nb", "a\r\nc").as_deref(), Ok(&b"a\r\nc\r\n"[..]));
    assert_eq!(replaced(b"a\nb\n", "a\r\nb", "a\r\nc").as_deref(), Ok(&b"a\nc\n"[..]));
}

#[test]
fn untouched_lines_inside_the_wanted_text_keep_their_own_ends() {
    // The first line end is LF, the second CRLF; neither is part of what differs.
    assert_eq!(replaced(b"a\nb\r\nc\nd", "a\nb\nc", "a\nB\nc").as_deref(), Ok(&b"a\nB\r\nc\nd"[..]));
}

#[test]
fn new_lines_follow_the_replaced_place_and_not_the_rest_of_the_file() {
    let before = b"1\n2\n3\n4\na\r\nb\r\n";
    assert_eq!(replaced(before, "a\nb\n", "a\nx\nb\n").as_deref(), Ok(&b"1\n2\n3\n4\na\r\nx\r\nb\r\n"[..]));
}

#[test]
fn new_lines_in_the_middle_of_a_line_follow_the_majority_of_the_file() {
    assert_eq!(replaced(b"one two\r\nb\r\nc\n", "e t", "e\nt").as_deref(), Ok(&b"one\r\ntwo\r\nb\r\nc\n"[..]));
    assert_eq!(replaced(b"one two", "e t", "e\r\nt").as_deref(), Ok(&b"one\r\ntwo"[..]));
}

#[test]
fn a_line_end_alone_can_be_replaced() {
    assert_eq!(replaced(b"a\r\nb\nc", "a\nb", "ab").as_deref(), Ok(&b"ab\nc"[..]));
    assert_eq!(replaced(b"a\r\n", "\n", "").as_deref(), Ok(&b"a"[..]));
}

#[test]
fn a_bare_cr_is_a_byte_like_any_other() {
    assert_eq!(replaced(b"a\rb\r\r\nc", "b\r", "B\r").as_deref(), Ok(&b"a\rB\r\r\nc"[..]));
}

#[test]
fn overlapping_places_count_as_several() {
    assert_eq!(replaced(b"aXaXa", "aXa", "b"), Err(Fault::ManyMatches { count: 2, lines: vec![1, 1] }));
    assert_eq!(replaced(b"x\n\n\n\n", "\n\n", "\n"), Err(Fault::ManyMatches { count: 3, lines: vec![1, 2, 3] }));
}

#[test]
fn a_difference_of_line_ends_alone_is_refused() {
    assert_eq!(replaced(b"a\r\nb", "a\r\nb", "a\nb"), Err(Fault::NoChange { line_ends_only: true }));
}

#[test]
fn undecodable_bytes_stay() {
    assert_eq!(replaced(b"caf\xE9\nplain\n\xFF\n", "plain", "PLAIN").as_deref(), Ok(&b"caf\xE9\nPLAIN\n\xFF\n"[..]));
}

#[test]
fn characters_beyond_ascii_do_not_go_into_a_single_byte_file() {
    assert_eq!(replaced(b"caf\xE9\nplain\n", "plain", "pl\u{E4}in"), Err(Fault::MixedEncoding {}));
}

#[test]
fn a_utf8_file_with_one_broken_byte_takes_utf8() {
    let before = "für\n".as_bytes().iter().chain(b"\xFF\nplain\n").copied().collect::<Vec<u8>>();
    assert!(replaced(&before, "plain", "pläin").is_ok());
}

#[test]
fn wide_and_binary_files_are_not_edited() {
    assert!(matches!(replaced(b"\xFF\xFEa\0b\0", "a", "b"), Err(Fault::Encoding { .. })));
    assert!(matches!(replaced(b"a\0b\0c\0d\0e\0f\0g\0h\0", "a", "b"), Err(Fault::Encoding { .. })));
    assert!(matches!(replaced(b"\x7FELF\0\0 text", "text", "b"), Err(Fault::Binary { .. })));
}

#[test]
fn a_mark_stays_in_front_of_an_insertion() {
    assert_eq!(inserted(b"\xEF\xBB\xBFa\n", 0, "x"), b"\xEF\xBB\xBFx\na\n");
    assert_eq!(inserted(b"\xEF\xBB\xBF", 0, "x"), b"\xEF\xBB\xBFx");
}

#[test]
fn an_insertion_is_whole_lines_with_the_ends_of_the_file() {
    assert_eq!(inserted(b"a\r\nb\r\n", 1, "x\ny"), b"a\r\nx\r\ny\r\nb\r\n");
    assert_eq!(inserted(b"a\nb", 2, "c"), b"a\nb\nc");
    assert_eq!(inserted(b"a\nb", 2, "c\n"), b"a\nb\nc\n");
    assert_eq!(inserted(b"a\nb", 1, "c"), b"a\nc\nb");
    assert_eq!(inserted(b"a\n", 1, "\n"), b"a\n\n");
    assert_eq!(inserted(b"", 0, "a\r\nb"), b"a\r\nb");
}

#[test]
fn the_change_names_the_lines_and_some_around_them() {
    let mut bench = Bench::new();
    bench.put("f", (1..=20).map(|number| format!("{number}\n")).collect::<String>());
    let change = bench.edit(&replace("f", "10\n", "ten\nzehn\n")).change;
    assert_eq!((change.first, change.context_above, change.context_below, change.total_lines), (6, 4, 4, 21));
    assert_eq!(change.before, "6\n7\n8\n9\n10\n11\n12\n13\n14\n");
    assert_eq!(change.after, "6\n7\n8\n9\nten\nzehn\n11\n12\n13\n14\n");
}

#[test]
fn a_huge_change_is_told_by_its_size() {
    let mut bench = Bench::new();
    bench.put("f", "x\n");
    let change = bench.edit(&replace("f", "x\n", &"yy\n".repeat(100_000))).change;
    assert!(change.after.len() <= 128 * 1024);
    assert_eq!(change.after.lines().count() as u64 + change.after_left_out, 100_000);
}
