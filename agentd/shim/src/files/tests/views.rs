//! What a view shows.

use std::os::unix::fs::symlink;

use proto::shim::files::{Entry, FileKind, Listing};

use super::*;

fn listing(bench: &mut Bench, path: &str) -> Listing {
    match bench.op(&view(path, None)) {
        FileReply::Listing(listing) => listing,
        other => panic!("not a listing: {other:?}"),
    }
}

#[test]
fn only_lf_and_crlf_end_a_line() {
    let mut bench = Bench::new();
    bench.put("f", "a\u{2028}b\u{C}c\u{85}d\re\r\nnext");
    assert_eq!(bench.view("f").lines, ["a\u{2028}b\u{C}c\u{85}d\u{240D}e", "next"]);
}

#[test]
fn a_view_knows_what_is_special_about_the_bytes() {
    let mut bench = Bench::new();
    bench.put("f", b"\xEF\xBB\xBFa\r\nb\n\xFF\rx");
    let view = bench.view("f");
    let traits = view.traits;
    assert_eq!(view.lines, ["a", "b", "\u{FFFD}\u{240D}x"]);
    assert!(traits.bom && traits.mixed_ends && traits.bare_cr && traits.not_utf8 && !traits.crlf);
}

#[test]
fn a_view_ends_at_its_limit_and_says_so() {
    let mut bench = Bench::new();
    bench.put("f", "0123456789\n".repeat(1000));
    let view = bench.view("f");
    assert!(view.cut && view.lines.len() == 2000 / 18 && view.total_lines == Some(1000));
}

#[test]
fn blank_lines_are_not_free() {
    let mut bench = Bench::new();
    bench.put("f", "\n".repeat(100_000));
    let view = bench.view("f");
    assert!(view.cut && view.lines.len() == 250 && view.total_lines == Some(100_000));
}

#[test]
fn a_line_that_is_too_long_is_shown_in_part() {
    let mut bench = Bench::new();
    bench.put("f", "é".repeat(10_000) + "\nnext\n");
    let view = bench.view("f");
    assert_eq!((view.lines.len(), view.lines[0].chars().count(), view.total_lines), (1, 2000, Some(2)));
    assert_eq!(view.bytes_cut, 2 * 8000 + 1);
}

#[test]
fn a_long_line_after_others_is_left_for_the_next_view() {
    let mut bench = Bench::new();
    bench.put("f", "short\n".to_owned() + &"x".repeat(10_000) + "\nend");
    let view = bench.view("f");
    assert_eq!((view.lines, view.cut, view.total_lines), (vec!["short".to_owned()], true, Some(3)));
}

#[test]
fn a_range_outside_of_the_file_is_refused_with_the_number_of_lines() {
    let mut bench = Bench::new();
    bench.put("f", "a\nb\nc");
    for range in [(0, 2), (4, 5), (2, 1), (1, -2), (4, -1)] {
        let fault = bench.fault(&view("f", Some(range)));
        assert!(matches!(fault, Fault::BadRange { total: 3, .. }), "{range:?}: {fault:?}");
    }
}

#[test]
fn a_file_is_no_directory() {
    let mut bench = Bench::new();
    bench.put("f", "a\n");
    for path in ["f/", "f/.", "f/x", "f/.."] {
        assert!(matches!(bench.fault(&view(path, None)), Fault::NotADirectory { .. }), "{path}");
    }
    assert!(matches!(bench.fault(&create("new/", "x")), Fault::NotFound { .. }));
}

#[test]
fn an_image_is_known_by_its_content() {
    let mut bench = Bench::new();
    bench.put("picture.txt", b"\x89PNG\r\n\x1A\n\0\0");
    match bench.op(&view("picture.txt", None)) {
        FileReply::Image(image) => {
            assert_eq!((image.media_type.as_str(), image.data.as_str()), ("image/png", "iVBORw0KGgoAAA=="))
        }
        other => panic!("not an image: {other:?}"),
    }
}

#[test]
fn an_image_beyond_the_limit_of_the_api_is_refused() {
    let mut bench = Bench::new();
    bench.put("big.jpg", [b"\xFF\xD8\xFF".to_vec(), vec![1; 4_000_000]].concat());
    assert!(matches!(bench.fault(&view("big.jpg", None)), Fault::TooLarge { size: 4_000_003, .. }));
}

#[test]
fn a_directory_is_listed_two_levels_deep_without_hidden_entries() {
    let mut bench = Bench::new();
    for name in ["b/c/d", "b/x", "a", ".h/x", "b/.h"] {
        bench.put(name, "");
    }
    symlink("b", bench.path("link")).expect("link");
    let listing = listing(&mut bench, ".");
    let shown: Vec<&str> = listing.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!((shown, listing.hidden), (vec!["a", "b", "b/c", "b/x", "link"], 1));
    let link = Entry { path: "link".into(), kind: FileKind::Symlink { target: "b".into() }, left_out: 0 };
    assert_eq!(listing.entries[4], link);
}

#[test]
fn one_large_directory_does_not_crowd_out_the_others() {
    let mut bench = Bench::new();
    for number in 0..300 {
        bench.put(&format!("a/{number}"), "");
    }
    bench.put("z/last", "");
    let listing = listing(&mut bench, ".");
    assert_eq!((listing.entries[0].left_out, listing.left_out), (200, 0));
    assert_eq!(listing.entries.last().map(|entry| entry.path.as_str()), Some("z/last"));
}

#[test]
fn a_range_of_a_huge_file_needs_no_memory_for_the_rest() {
    let mut bench = Bench::new();
    // 4 GiB, nearly all of it a hole: one endless line of NUL after the text.
    let file = fs::File::create(bench.path("f")).expect("file");
    std::io::Write::write_all(&mut &file, &b"line\n".repeat(5000)).expect("write");
    file.set_len(4 << 30).expect("hole");
    match bench.op(&view("f", Some((2000, 2002)))) {
        FileReply::Text(view) => assert_eq!((view.first, view.lines.len(), view.total_lines), (2000, 3, None)),
        other => panic!("not a text: {other:?}"),
    }
}
