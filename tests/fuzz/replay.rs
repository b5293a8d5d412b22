//! Everything the fuzzer kept, through the code as it ships: `replay DIRECTORY…` holds each decision to its time bar.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "the policy's sources are included, not linked")]

mod one;
#[path = "../../agentd/src/policy/mod.rs"]
mod policy;

use std::time::Duration;

/// Longest time for a text of up to 64 KiB.
const LONGEST: Duration = Duration::from_millis(50);

fn main() {
    let mut times = Vec::new();
    for directory in std::env::args().skip(1) {
        for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
            let data = std::fs::read(entry.path()).expect("an input can be read");
            times.push(one::one(&data, LONGEST));
        }
    }
    times.sort_unstable();
    let (median, longest) = (times.get(times.len() / 2), times.last());
    println!("{} inputs, median {median:?}, longest {longest:?}", times.len());
}
