//! What the shim costs, measured beside the same thing without it, in one run and in turns, because machines are noisy.
//!
//! `cargo bench -p agentd-shim` prints one JSON object a line: round trips of `true`, throughput of `yes | head -c 2G`, and
//! the time to the first byte of output. Arguments choose among `rt`, `big` and `first`.

#![allow(
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a bench: a failure is to stop it"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use proto::shim::reply::Reply;
use proto::shim::start::Wish;

use common::Shim;

/// Round trips of one turn, and turns.
const ROUND_TRIPS: usize = 2_000;
const TURNS: usize = 5;

/// The big output.
const BIG: &str = "yes | head -c 2G";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "shim") {
        return shim::main();
    }
    let wanted = |name: &str| {
        let named: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
        named.is_empty() || named.iter().any(|arg| *arg == name)
    };
    if wanted("rt") {
        for accounting in [Wish::Auto, Wish::Marks] {
            round_trips(accounting);
        }
    }
    if wanted("big") {
        big();
    }
    if wanted("first") {
        first();
    }
    ExitCode::SUCCESS
}

fn round_trips(accounting: Wish) {
    let shim = Shim::launch(accounting);
    let mut client = shim.client();
    let (mut ours, mut bare) = (0.0, 0.0);
    client.run("true");
    for _ in 0..TURNS {
        let begun = Instant::now();
        for _ in 0..ROUND_TRIPS {
            client.run("true");
        }
        ours += begun.elapsed().as_secs_f64();
        bare += bare_pipe();
    }
    let count = (ROUND_TRIPS * TURNS) as f64;
    println!(
        "{{\"bench\":\"true\",\"accounting\":\"{accounting:?}\",\"count\":{count},\"shim_per_s\":{:.0},\"pipe_per_s\":{:.0},\"ratio\":{:.2},\"rss_kb\":{}}}",
        count / ours,
        count / bare,
        bare / ours,
        rss(shim.pid)
    );
}

/// The loop that everybody writes first: the command, then `echo MARK`, on the same pipe.
fn bare_pipe() -> f64 {
    let mut bash = Command::new("/bin/bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash");
    let (mut input, mut output) = (bash.stdin.take().expect("a pipe"), bash.stdout.take().expect("a pipe"));
    let mut buffer = vec![0; 64 * 1024];
    let mut round = |number: usize| {
        let mark = format!("__DONE_{number:032x}__");
        input.write_all(format!("true\necho {mark}\n").as_bytes()).expect("room");
        let mut seen = Vec::new();
        while !seen.ends_with(format!("{mark}\n").as_bytes()) {
            let count = output.read(&mut buffer).expect("output");
            seen.extend_from_slice(&buffer[..count]);
        }
    };
    round(0);
    let begun = Instant::now();
    for number in 0..ROUND_TRIPS {
        round(number);
    }
    let took = begun.elapsed().as_secs_f64();
    drop(input);
    bash.wait().expect("an end");
    took
}

fn big() {
    let shim = Shim::launch(Wish::Auto);
    let mut client = shim.client();
    client.run("true");
    let (mut ours, mut bare) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let begun = Instant::now();
        let script = format!("bash -c '{BIG}' | cat >/dev/null");
        Command::new("/bin/bash").args(["-c", &script]).status().expect("bash");
        bare = bare.min(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let done = client.run_for(BIG, 60_000);
        ours = ours.min(begun.elapsed().as_secs_f64());
        assert_eq!(done.end.output_bytes, 2 << 30);
    }
    println!(
        "{{\"bench\":\"{BIG}\",\"shim_mb_per_s\":{:.0},\"bare_mb_per_s\":{:.0},\"ratio\":{:.2},\"rss_kb\":{}}}",
        2147.5 / ours,
        2147.5 / bare,
        bare / ours,
        rss(shim.pid)
    );
}

fn first() {
    let shim = Shim::launch(Wish::Auto);
    let mut client = shim.client();
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let call = proto::ids::CallId::new();
            let begun = Instant::now();
            client.begin(call, "echo x; sleep 0.01", 5_000);
            loop {
                let (header, _) = client.receive().expect("news");
                if matches!(header.reply, Reply::Output { .. }) {
                    break;
                }
            }
            let took = begun.elapsed().as_secs_f64() * 1e6;
            client.wait(call);
            took
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{{\"bench\":\"first byte\",\"us_median\":{:.0},\"us_p95\":{:.0}}}", times[100], times[190]);
}

/// The most memory a process has held, in KiB.
fn rss(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
