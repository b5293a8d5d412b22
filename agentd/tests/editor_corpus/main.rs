//! The behaviour corpus of the text editor tool, through the same steps as in the daemon: parse → operation → shim's
//! files → text for the model. Every case runs as the user who runs the tests, and, when that is root, once more as an
//! ordinary user.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod check;
mod fixture;
mod harness;

use std::fmt::Write as _;

use harness::{Actor, Case, Verdict, run};

const CORPUS: &str = include_str!("../../../tests/data/editor.jsonl");

/// Cases whose expectation another decision of this product overrules, with the decision.
const OVERRULED: [(&str, &str); 1] = [("edit-view-35", "images are shown as image blocks instead of being refused")];

/// A lone surrogate can stand in the JSON that a model sends, but in no string of ours: this stands for it until the
/// call is written as text.
const LONE_SURROGATE: (&str, &str) = ("\\ud800\"", "\u{F8FF}\"");

fn cases() -> Vec<Case> {
    let line = |line: &str| serde_json::from_str(&line.replace(LONE_SURROGATE.0, LONE_SURROGATE.1));
    CORPUS.lines().map(|text| line(text).expect("a corpus line")).collect()
}

/// Runs all cases as one actor; fails with every difference at once.
fn run_all(actor: Actor) {
    let (mut failed, mut skipped, mut passed) = (String::new(), 0, 0);
    for case in cases() {
        if OVERRULED.iter().any(|(id, _)| *id == case.id()) {
            continue;
        }
        match run(&case, actor) {
            Verdict::Passed => passed += 1,
            Verdict::Skipped => skipped += 1,
            Verdict::Failed(why) => {
                let _ = writeln!(failed, "{}: {why}", case.id());
            }
        }
    }
    println!("{passed} passed, {skipped} skipped");
    assert!(failed.is_empty(), "cases that failed:\n{failed}");
    assert!(skipped <= 10, "{skipped} cases were skipped: the corpus needs less than that");
}

#[test]
fn every_case_holds_for_the_user_who_runs_the_tests() {
    run_all(Actor::Myself);
}

#[test]
fn every_case_holds_for_an_ordinary_user() {
    if nix::unistd::geteuid().is_root() {
        run_all(Actor::Ordinary);
    }
}
