//! A search of a large tree, measured beside Debian's `rg` in the same run and in turns, because machines are noisy.
//!
//! `cargo bench -p agentd-shim --bench search` makes a tree of 100,000 files, asks a shim for a grep of it and runs `rg`
//! on it, and prints one JSON object a line with the ratio of the best times. While one search runs, the shell's
//! round trips show that the loop is not held up. Without `rg` there is nothing to compare with, which is said.

#![allow(clippy::expect_used, reason = "a measurement that cannot go on has failed")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use proto::ids::CallId;
use proto::shim::files::{Bounds, FileOp, FileReply, Glob, Grep, GrepOutput};
use proto::shim::reply::Reply;
use proto::shim::request::Request;
use proto::shim::start::Wish;

use common::{Client, Shim};

/// Directories of the tree, and files in each.
const DIRECTORIES: usize = 2_000;
const FILES: usize = 50;

/// Turns; the best of each side counts.
const TURNS: usize = 7;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|arg| arg == "shim") {
        return shim::main();
    }
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("{{\"bench\":\"search\",\"skipped\":\"rg is not installed\"}}");
        return ExitCode::SUCCESS;
    }
    let shim = Shim::launch(Wish::Auto);
    let root = shim.path("tree");
    grow(&root);
    let mut client = shim.client();
    let files = GrepOutput::Files {};
    let lines = GrepOutput::Lines { before: 0, after: 0 };
    compare(&mut client, &root, "files, few match", "needle_[0-9]+", files, &["-l"]);
    compare(&mut client, &root, "files, none matches", "no such (word|thing)", files, &["-l"]);
    compare(&mut client, &root, "files, all match", "let value", files, &["-l"]);
    compare(&mut client, &root, "lines, few match", "needle_[0-9]+", lines, &["-n", "--no-heading"]);
    compare(&mut client, &root, "lines, many match", "value_[0-9]*7 ", lines, &["-n", "--no-heading"]);
    names(&mut client, &root);
    beside(&mut client);
    println!("{{\"bench\":\"memory\",\"rss_peak_kb\":{}}}", peak(shim.pid));
    ExitCode::SUCCESS
}

/// Sources as they are: some kilobytes, some ignored, a rare word.
fn grow(root: &Path) {
    let mut number = 0_usize;
    for directory in 0..DIRECTORIES {
        let dir = root.join(format!("part{:02}/module{directory:04}", directory % 40));
        fs::create_dir_all(&dir).expect("a directory");
        for file in 0..FILES {
            number += 1;
            let mut text = String::new();
            for line in 0..20 + number % 60 {
                text.push_str(&format!("    let value_{line} = compute(input_{file}, \"some text {number}\");\n"));
            }
            if number.is_multiple_of(1000) {
                text.push_str(&format!("// needle_{number}\n"));
            }
            fs::write(dir.join(format!("file{file:02}.rs")), text).expect("a file");
        }
    }
    fs::write(root.join(".gitignore"), "*.log\n/out/\n").expect("a file");
}

fn bounds() -> Bounds {
    Bounds { results: 100_000, bytes: 1 << 20, line_bytes: 400, time_ms: 60_000 }
}

fn compare(client: &mut Client, root: &Path, name: &str, pattern: &str, output: GrepOutput, flags: &[&str]) {
    let op = FileOp::Grep(Grep {
        pattern: pattern.to_owned(),
        path: Some("tree".to_owned()),
        glob: None,
        ignore_case: false,
        multiline: false,
        all: false,
        output,
        bounds: bounds(),
    });
    let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
    let (mut found, mut rg_found) = (0, 0);
    for _ in 0..TURNS {
        let begun = Instant::now();
        let FileReply::Matches(matches) = ask(client, &op) else { panic!("not searched") };
        ours = ours.min(begun.elapsed().as_secs_f64());
        found = if output == (GrepOutput::Files {}) { matches.files_total } else { matches.lines_total };
        let begun = Instant::now();
        rg_found = rg(root, &[&["--no-require-git", "-e", pattern], flags].concat());
        theirs = theirs.min(begun.elapsed().as_secs_f64());
    }
    assert_eq!(found, rg_found, "{name}: both find the same");
    report(name, found, ours, theirs);
}

fn names(client: &mut Client, root: &Path) {
    let op = FileOp::Glob(Glob {
        pattern: "file0*.rs".to_owned(),
        path: Some("tree".to_owned()),
        all: false,
        bounds: bounds(),
    });
    let (mut ours, mut theirs, mut found) = (f64::MAX, f64::MAX, 0);
    for _ in 0..TURNS {
        let begun = Instant::now();
        let FileReply::Paths(paths) = ask(client, &op) else { panic!("not searched") };
        ours = ours.min(begun.elapsed().as_secs_f64());
        found = paths.total;
        let begun = Instant::now();
        // By time too: without it rg need not look at the files at all.
        assert_eq!(rg(root, &["--no-require-git", "--files", "--sortr", "modified", "-g", "file0*.rs"]), found);
        theirs = theirs.min(begun.elapsed().as_secs_f64());
    }
    report("names by time", found, ours, theirs);
}

/// Runs `rg` and counts its lines.
fn rg(root: &Path, args: &[&str]) -> u64 {
    let output = Command::new("rg").args(args).arg(root).stdin(Stdio::null()).output().expect("rg");
    output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn report(name: &str, found: u64, ours: f64, theirs: f64) {
    println!(
        "{{\"bench\":\"search: {name}\",\"found\":{found},\"shim_ms\":{:.1},\"rg_ms\":{:.1},\"ratio\":{:.2}}}",
        ours * 1e3,
        theirs * 1e3,
        ours / theirs
    );
}

fn ask(client: &mut Client, op: &FileOp) -> FileReply {
    let body = serde_json::to_vec(op).expect("JSON");
    let (reply, body) = client.ask(Request::File { call: CallId::new() }, &body);
    assert!(matches!(reply, Reply::File {}), "{reply:?}");
    serde_json::from_slice(&body).expect("an answer")
}

/// Round trips of the shell while a search runs.
fn beside(client: &mut Client) {
    client.run("true");
    let op = FileOp::Grep(Grep {
        pattern: "no such (word|thing)".to_owned(),
        path: None,
        glob: None,
        ignore_case: true,
        multiline: false,
        all: true,
        output: GrepOutput::Files {},
        bounds: bounds(),
    });
    let search = client.send(Request::File { call: CallId::new() }, &serde_json::to_vec(&op).expect("JSON"));
    let (mut worst, mut trips, mut over) = (0.0_f64, 0, false);
    while !over {
        let call = CallId::new();
        let begun = Instant::now();
        client.begin(call, "true", 5_000);
        loop {
            let (header, _) = client.receive().expect("news");
            over |= header.re == Some(search);
            if matches!(header.reply, Reply::Finished { call: of, .. } if of == call) {
                break;
            }
        }
        worst = worst.max(begun.elapsed().as_secs_f64());
        trips += 1;
        client.send(Request::Forget { call }, &[]);
    }
    println!("{{\"bench\":\"true beside a search\",\"count\":{trips},\"worst_ms\":{:.1}}}", worst * 1e3);
}

/// The most memory a process has held, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
