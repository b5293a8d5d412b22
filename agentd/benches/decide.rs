//! What a decision costs: the corpus' commands under 1 KiB, each decided alone with rules in force.
//!
//! The bar is a median under 100 µs. Beside it stands the cheapest process there is, `/bin/true`, as what a command costs anyway.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints, and may stop at the first surprise")]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agentd::policy::{Call, Context, Mode, Repository, Rules, ShellFacts, decide};

/// The bar.
const MEDIAN_MAX: Duration = Duration::from_micros(100);

/// Longest command the bar speaks of.
const COMMAND_BYTES: usize = 1024;

/// Decisions about each command; the best counts, because other work on the machine is not the decision's.
const TRIES: usize = 20;

fn words(rules: &[&str]) -> Vec<Vec<String>> {
    rules.iter().map(|rule| rule.split(' ').map(str::to_owned).collect()).collect()
}

fn main() {
    let text = include_str!("../../tests/data/policy.jsonl");
    let cases = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a case is JSON"));
    let commands: Vec<String> = cases
        .filter_map(|case| case["command"].as_str().map(str::to_owned))
        .filter(|command| command.len() < COMMAND_BYTES)
        .collect();
    let rules = Rules::from_words(
        &words(&["npm test", "git commit", "cargo build"]),
        &words(&["git push"]),
        &words(&["rm -rf", "curl", "shutdown"]),
    );
    let (shell, repository, place) = (ShellFacts::default(), Repository::Ordinary, Path::new("/home/user/project"));
    let context = Context {
        mode: Mode::Ask,
        rules: &rules,
        workspace: place,
        cwd: place,
        shell: &shell,
        repository: &repository,
        trust_reads: true,
    };
    let mut times: Vec<Duration> = commands
        .iter()
        .map(|command| {
            best(|| {
                black_box(decide(&Call::Bash { command: black_box(command) }, &context));
            })
        })
        .collect();
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    let process = best(|| {
        let _ = Command::new("/bin/true").status();
    });
    println!("decide: {} commands, median {median:?}, longest {longest:?}; a process costs {process:?}", times.len());
    assert!(cfg!(debug_assertions) || median < MEDIAN_MAX, "the median is over {MEDIAN_MAX:?}");
}

fn best(mut work: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..TRIES).map(timed).min().expect("several tries")
}
