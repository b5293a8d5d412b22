//! What searches find, leave out, and say of it.

use std::os::unix::fs::symlink;

use proto::shim::files::{Bounds, Glob, Grep, GrepOutput, Matches, Paths, SearchLimit};

use super::*;

const BOUNDS: Bounds = Bounds { results: 100, bytes: 10_000, line_bytes: 100, time_ms: 30_000 };

fn wish(pattern: &str) -> Grep {
    Grep {
        pattern: pattern.to_owned(),
        path: None,
        glob: None,
        ignore_case: false,
        multiline: false,
        all: false,
        output: GrepOutput::Files {},
        bounds: BOUNDS,
    }
}

fn lines(pattern: &str, around: u32) -> Grep {
    Grep { output: GrepOutput::Lines { before: around, after: around }, ..wish(pattern) }
}

impl Bench {
    fn grep(&mut self, grep: Grep) -> Matches {
        match self.op(&FileOp::Grep(grep)) {
            FileReply::Matches(matches) => matches,
            other => panic!("not searched: {other:?}"),
        }
    }

    fn files(&mut self, grep: Grep) -> Vec<String> {
        self.grep(grep).files.into_iter().map(|file| file.path).collect()
    }

    fn glob_all(&mut self, pattern: &str, path: Option<&str>, all: bool) -> Paths {
        let glob = Glob { pattern: pattern.to_owned(), path: path.map(str::to_owned), all, bounds: BOUNDS };
        match self.op(&FileOp::Glob(glob)) {
            FileReply::Paths(paths) => paths,
            other => panic!("not searched: {other:?}"),
        }
    }

    fn glob(&mut self, pattern: &str) -> Vec<String> {
        let mut paths = self.glob_all(pattern, None, false).paths;
        paths.sort();
        paths
    }
}

#[test]
fn ignore_files_hold_from_the_workspace_down_and_the_innermost_wins() {
    let mut bench = Bench::new();
    bench.put(".gitignore", "*.log\n/build/\n");
    bench.put("a/.gitignore", "!keep.log\nown\n");
    bench.put("a/.ignore", "plain\n");
    bench.put("b/.git/info/exclude", "secret\n");
    for name in ["x.log", "build/y", "a/keep.log", "a/own", "a/plain", "a/deep/own", "b/secret", "b/z.log", "c/build/v"]
    {
        bench.put(name, "word\n");
    }
    // b is a repository of its own, so the rules above it do not reach it.
    assert_eq!(bench.files(wish("word")), ["a/keep.log", "b/z.log", "c/build/v"]);
    assert_eq!(bench.grep(wish("word")).looked.ignored, 6);
    let below = Grep { path: Some("a/deep".into()), ..wish("word") };
    assert_eq!(bench.files(below), Vec::<String>::new(), "rules above the start count too");
    let inside = Grep { path: Some("build".into()), ..wish("word") };
    assert_eq!(bench.files(inside), ["build/y"], "a directory that is named is searched");
    assert_eq!(bench.files(Grep { all: true, ..wish("word") }).len(), 9);
}

#[test]
fn hidden_files_are_found_when_asked_for() {
    let mut bench = Bench::new();
    for name in [".env", ".github/ci.yml", "a", ".git/config"] {
        bench.put(name, "word\n");
    }
    assert_eq!(bench.files(wish("word")), ["a"]);
    assert_eq!(bench.files(Grep { all: true, ..wish("word") }), [".env", ".github/ci.yml", "a"]);
    assert_eq!(bench.files(Grep { path: Some(".github".into()), ..wish("word") }), [".github/ci.yml"]);
    assert_eq!(bench.files(Grep { path: Some(".env".into()), ..wish("word") }), [".env"]);
    assert_eq!(bench.glob(".github/**"), [".github/ci.yml"]);
    assert_eq!(bench.glob("*"), ["a"]);
}

#[test]
fn a_glob_without_a_slash_means_names_at_any_depth() {
    let mut bench = Bench::new();
    for name in ["a.rs", "d/b.rs", "d/e/c.rs", "d/f.txt"] {
        bench.put(name, "word\n");
    }
    assert_eq!(bench.glob("*.rs"), ["a.rs", "d/b.rs", "d/e/c.rs"]);
    assert_eq!(bench.glob("**/*.rs"), ["a.rs", "d/b.rs", "d/e/c.rs"]);
    assert_eq!(bench.glob("d/*.{rs,txt}"), ["d/b.rs", "d/f.txt"]);
    assert_eq!(bench.glob_all("e/*", Some("d"), false).paths, ["d/e/c.rs"], "relative to the path");
    assert_eq!(bench.files(Grep { glob: Some("!*.rs".into()), ..wish("word") }), ["d/f.txt"]);
    assert!(matches!(bench.fault(&FileOp::Grep(Grep { glob: Some("[".into()), ..wish("x") })), Fault::BadGlob { .. }));
}

#[test]
fn the_last_changed_file_comes_first() {
    let mut bench = Bench::new();
    for (name, age) in [("old", 300), ("new", 100), ("mid", 200)] {
        bench.put(name, "x");
        let file = fs::File::options().write(true).open(bench.path(name)).expect("open");
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(age)).expect("a time");
    }
    assert_eq!(bench.glob_all("*", None, false).paths, ["new", "mid", "old"]);
}

#[test]
fn links_pipes_and_swapped_directories_lead_nowhere() {
    let mut bench = Bench::new();
    fs::create_dir(bench.base.path().join("out")).expect("dir");
    fs::write(bench.base.path().join("out/f"), "word\n").expect("write");
    bench.put("d/f", "word\n");
    symlink("../out", bench.path("dir-link")).expect("link");
    symlink("../out/f", bench.path("file-link")).expect("link");
    symlink("/proc/self/root", bench.path("proc")).expect("link");
    let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
    for name in ["pipe", ".gitignore", "d/.ignore"] {
        nix::unistd::mkfifo(&bench.path(name), mode).expect("fifo");
    }
    assert_eq!(bench.files(Grep { all: true, ..wish("word") }), ["d/f"]);
    assert_eq!(bench.files(wish("word")), ["d/f"]);
    for path in ["dir-link", "file-link", "proc", "..", "/etc"] {
        let fault = bench.fault(&FileOp::Grep(Grep { path: Some(path.into()), ..wish("word") }));
        assert!(matches!(fault, Fault::Outside { .. }), "{path}: {fault:?}");
    }
}

#[test]
fn what_is_not_text_is_counted_and_utf_16_is_read() {
    let mut bench = Bench::new();
    bench.put("blob", b"word\0word\n");
    bench.put("late", [vec![b'x'; 1_000_000], b"\n\0word\n".to_vec()].concat());
    bench.put("wide", [vec![0xFF, 0xFE], "a word\n".encode_utf16().flat_map(u16::to_le_bytes).collect()].concat());
    bench.put("latin", b"caf\xE9 word\n");
    let found = bench.grep(lines("word", 0));
    let files: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["latin", "wide"]);
    assert_eq!(found.looked.binary, 2);
    assert_eq!(found.files[0].lines[0].text, "caf\u{FFFD} word");
}

#[test]
fn lines_come_with_their_numbers_and_those_around_them() {
    let mut bench = Bench::new();
    bench.put("f", "one\r\ntwo\r\nthree\nfour\nfive\n");
    let found = bench.grep(lines("th.ee", 1));
    let seen: Vec<(u64, &str, bool)> =
        found.files[0].lines.iter().map(|line| (line.number, line.text.as_str(), line.is_match)).collect();
    assert_eq!(seen, [(2, "two", false), (3, "three", true), (4, "four", false)]);
    let over = bench.grep(Grep { multiline: true, ..lines("three\\nfour", 0) });
    assert_eq!((over.lines_total, over.files[0].lines.len()), (2, 2));
    let counts = bench.grep(Grep { output: GrepOutput::Counts {}, ignore_case: true, ..wish("^[TF]") });
    assert_eq!((counts.files[0].count, counts.lines_total), (4, 4));
    let fault = bench.fault(&FileOp::Grep(wish("a(")));
    assert!(matches!(fault, Fault::BadPattern { .. }), "{fault:?}");
}

#[test]
fn a_cut_answer_is_the_first_part_in_the_order_of_paths_and_says_so() {
    let mut bench = Bench::new();
    for number in 0..500 {
        bench.put(&format!("d{}/f{number:03}", number % 7), "word\nword\n");
    }
    let few = Bounds { results: 5, ..BOUNDS };
    let found = bench.grep(Grep { bounds: few, ..wish("word") });
    let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["d0/f000", "d0/f007", "d0/f014", "d0/f021", "d0/f028"]);
    assert_eq!((found.files_total, found.limits), (500, vec![SearchLimit::Results { most: 5 }]));
    let found = bench.grep(Grep { bounds: few, ..lines("word", 0) });
    let shown: usize = found.files.iter().map(|file| file.lines.len()).sum();
    assert_eq!((shown, found.lines_total, found.limits), (5, 1000, vec![SearchLimit::Results { most: 5 }]));
    let found = bench.grep(Grep { bounds: Bounds { bytes: 50, ..BOUNDS }, ..wish("word") });
    assert_eq!((found.files.len(), found.limits), (7, vec![SearchLimit::Bytes { most: 50 }]));
    let all = bench.grep(Grep { bounds: Bounds { results: 500, ..BOUNDS }, ..wish("word") });
    assert_eq!((all.files.len(), all.limits), (500, vec![]));
}

#[test]
fn a_long_line_is_cut_around_its_match() {
    let mut bench = Bench::new();
    bench.put("f", format!("{}needle{}\n", "é".repeat(500), "é".repeat(500)));
    let found = bench.grep(lines("needle", 0));
    let line = &found.files[0].lines[0];
    assert!(line.text.contains("needle") && line.text.len() <= 100, "{line:?}");
    assert!(!line.text.contains('\u{FFFD}'), "no half characters");
    assert_eq!(line.cut_before + line.text.len() as u64 + line.cut_after, 2006);
}

#[test]
fn a_search_ends_when_its_time_is_over_or_somebody_says_so() {
    let mut bench = Bench::new();
    bench.put("f", "word\n");
    let found = bench.grep(Grep { bounds: Bounds { time_ms: 0, ..BOUNDS }, ..wish("word") });
    assert_eq!(found.limits, [SearchLimit::Time { most_ms: 0 }]);
    let root = bench.root();
    let search = bench.files.search(&FileOp::Grep(wish("word")), &root).expect("a search").expect("a start");
    search.stop().interrupt();
    let FileReply::Matches(found) = search.run() else { panic!("not searched") };
    assert_eq!((found.files.len(), found.limits), (0, vec![SearchLimit::Interrupted {}]));
}

#[test]
fn a_line_too_long_to_hold_is_told_and_the_rest_is_searched() {
    let mut bench = Bench::new();
    // Longer than the memory of a search; a hole would be zeros, and not text.
    bench.put("a-long", vec![b'x'; 40 * 1024 * 1024]);
    bench.put("b", "word\n");
    let found = bench.grep(wish("word"));
    assert_eq!((found.files.len(), found.looked.too_long), (1, 1));
}
