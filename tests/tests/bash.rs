//! The bash tool does what a user of a persistent shell expects: the behaviour corpus, through the whole product.

use std::collections::{BTreeMap, BTreeSet};

use harness::corpus::bash::Case;
use harness::corpus::play::Stage;
use harness::corpus::{load, play_all, selected};

/// A deadline as a key of the map of stages.
fn key(case: &Case) -> String {
    format!("{}ms", (case.timeout_s * 1000.0).round())
}

#[test]
fn every_case_of_the_bash_corpus_holds() {
    let cases: Vec<Case> = selected(load("bash.jsonl"), |case: &Case| &case.id);
    let deadlines: BTreeSet<String> = cases.iter().map(key).collect();
    // The deadline is the daemon's configuration, so cases with one deadline share a daemon.
    let stages: BTreeMap<String, Stage> = deadlines
        .into_iter()
        .map(|deadline| {
            let stage = Stage::new(&[("shell.deadline", &deadline)]);
            (deadline, stage)
        })
        .collect();
    play_all(cases, |case| case.id.clone(), |case| case.play(&stages[&key(&case)]));
}
