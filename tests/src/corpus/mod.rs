//! The behaviour corpora (`tests/data/*.jsonl`), played through the real daemon: each case is a session, each step a
//! reply of the model server with its tool calls, and what counts is the tool result that the model receives.
//!
//! * [`play`]: one session's script at the model server, and the stage (daemon and model server) it is played on.
//! * [`expect`]: what a result must look like, after the product's own decorations are taken off.
//! * [`bash`], [`editor`]: the two corpora; [`files`]: fixtures and what became of them;
//!   [`nature`]: adverse file systems.
//!
//! Cases run concurrently, a few at a time: most of them wait. Sessions of one stage share a daemon.

pub mod bash;
pub mod editor;
pub mod expect;
pub mod files;
pub mod nature;
pub mod play;

use std::collections::VecDeque;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use serde::de::DeserializeOwned;

use crate::binaries::repository;

/// Cases played at the same time: the machine has two cores, and half of the cases sleep.
const PLAYERS: usize = 6;

/// How a case ended.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Everything held.
    Passed,
    /// It was not played, for this reason.
    Skipped(String),
    /// What did not hold, one finding a line.
    Failed(Vec<String>),
}

/// The cases of a file in `tests/data`.
///
/// # Panics
/// When the file is not there or a line does not read.
#[must_use]
pub fn load<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let text = fs::read_to_string(repository().join("tests/data").join(name)).expect("the corpus is there");
    let parse =
        |(number, line)| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}:{}: {error}", number + 1));
    text.lines().enumerate().map(parse).collect()
}

/// The cases whose name fits `AGENTD_TEST_CASES` (a regular expression), each `AGENTD_TEST_REPEAT` times: for looking
/// closer at one. Without the variables all, once.
///
/// # Panics
/// When the expression or the number is none.
#[must_use]
pub fn selected<T: Clone>(cases: Vec<T>, id: impl Fn(&T) -> &str) -> Vec<T> {
    let wanted = std::env::var("AGENTD_TEST_CASES").map(|text| regex::Regex::new(&text).expect("a regular expression"));
    let times = std::env::var("AGENTD_TEST_REPEAT").map_or(1, |text| text.parse().expect("a number"));
    let fits = |case: &T| wanted.as_ref().map_or(true, |wanted| wanted.is_match(id(case)));
    let cases: Vec<T> = cases.into_iter().filter(fits).collect();
    std::iter::repeat_n(cases, times).flatten().collect()
}

/// Why a case cannot be played here, from its `requires`.
#[must_use]
pub fn missing(requires: &[String]) -> Option<String> {
    let root = nix::unistd::geteuid().is_root();
    let lacks = |what: &&String| match what.as_str() {
        "root" => !root,
        "non_root" => root,
        "x86_64" => !cfg!(target_arch = "x86_64"),
        "tzdata" => !fs::exists("/usr/share/zoneinfo/UTC").unwrap_or(false),
        program => !has_program(program),
    };
    requires.iter().find(lacks).map(|what| format!("needs {what}"))
}

fn has_program(name: &str) -> bool {
    let output = Command::new("sh").args(["-c", "command -v -- \"$1\"", "sh", name]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Plays cases, a few at a time, and fails with every finding.
///
/// # Panics
/// When a case did not hold.
pub fn play_all<T: Send>(cases: Vec<T>, id: impl Fn(&T) -> String + Sync, play: impl Fn(T) -> Verdict + Sync) {
    let queue = Mutex::new(VecDeque::from(cases));
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().expect("no player panics with it").pop_front() else { break };
                    let id = id(&case);
                    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(case)));
                    let verdict = played.unwrap_or_else(|panic| Verdict::Failed(vec![message(&*panic)]));
                    results.lock().expect("no player panics with it").push((id, verdict));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no player panics with it");
    results.sort_by(|a, b| a.0.cmp(&b.0));
    report(&results);
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("the player gave up: {}", text.unwrap_or("without a word"))
}

fn report(results: &[(String, Verdict)]) {
    let (mut passed, mut skipped, mut failures) = (0, Vec::new(), Vec::new());
    for (id, verdict) in results {
        match verdict {
            Verdict::Passed => passed += 1,
            Verdict::Skipped(reason) => skipped.push(format!("{id} ({reason})")),
            Verdict::Failed(findings) => failures.push(format!("{id}\n    {}", findings.join("\n    "))),
        }
    }
    println!("{passed} cases passed, {} skipped: {}", skipped.len(), skipped.join(", "));
    assert!(failures.is_empty(), "{} of {} cases failed:\n{}", failures.len(), results.len(), failures.join("\n"));
}
