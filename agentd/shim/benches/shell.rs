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
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Instant;

use proto::shim::reply::Reply;
use proto::shim::start::Wish;

use common::Shim;

/// Round trips of one turn, and turns.
const ROUND_TRIPS: usize = 200;
const TURNS: usize = 50;

/// The big outputs and their sizes: many lines, bytes that are no text, one line.
const BIG: [(&str, u64); 3] = [
    ("yes | head -c 2G", 2 << 30),
    ("cat /dev/urandom | head -c 200M", 200 << 20),
    ("yes x | head -c 200M | tr -d \\\\n", 100 << 20),
];
const BIG_TURNS: usize = 3;

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

/// In short turns, each beside one of the bare loop, because the machine's own noise is larger than what is measured; the
/// medians of the turns count.
fn round_trips(accounting: Wish) {
    let shim = Shim::launch(accounting);
    let mut client = shim.client();
    let mut bare = BarePipe::start();
    for _ in 0..ROUND_TRIPS {
        client.run("true");
        bare.round();
    }
    let mut turns = Vec::new();
    let shell: u32 = client.run("echo $$").text().trim().parse().expect("a pid");
    let pids = [shim.pid, shell, bare.bash.id()];
    let before = pids.map(cpu_us);
    for _ in 0..TURNS {
        let begun = Instant::now();
        for _ in 0..ROUND_TRIPS {
            client.run("true");
        }
        let ours = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        for _ in 0..ROUND_TRIPS {
            bare.round();
        }
        turns.push((ours, begun.elapsed().as_secs_f64()));
    }
    let mut cpu = pids.map(cpu_us);
    cpu.iter_mut().zip(before).for_each(|(after, before)| *after = (*after - before) / (ROUND_TRIPS * TURNS) as f64);
    let per_s = |time: f64| ROUND_TRIPS as f64 / time;
    println!(
        "{{\"bench\":\"true\",\"accounting\":\"{accounting:?}\",\"count\":{},\"shim_per_s\":{:.0},\"pipe_per_s\":{:.0},\"ratio\":{:.2},\"cpu_us\":{{\"shim\":{:.1},\"shell\":{:.1},\"bare_shell\":{:.1}}},\"rss_kb\":{}}}",
        ROUND_TRIPS * TURNS,
        per_s(median(turns.iter().map(|turn| turn.0))),
        per_s(median(turns.iter().map(|turn| turn.1))),
        median(turns.iter().map(|turn| turn.1 / turn.0)),
        cpu[0],
        cpu[1],
        cpu[2],
        rss(shim.pid)
    );
}

/// Time that a process had on a processor, in microseconds: unlike the clock it hardly depends on what else runs.
fn cpu_us(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) / 1000.0
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The loop that everybody writes first: the command, then `echo MARK`, on the same pipe.
struct BarePipe {
    bash: Child,
    input: ChildStdin,
    output: ChildStdout,
    buffer: Vec<u8>,
    number: u64,
}

impl BarePipe {
    fn start() -> Self {
        let mut bash = Command::new("/bin/bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash");
        let (input, output) = (bash.stdin.take().expect("a pipe"), bash.stdout.take().expect("a pipe"));
        Self { bash, input, output, buffer: vec![0; 64 * 1024], number: 0 }
    }

    fn round(&mut self) {
        self.number += 1;
        let mark = format!("__DONE_{:032x}__\n", self.number);
        self.input.write_all(format!("true\necho {mark}").as_bytes()).expect("room");
        let mut seen = Vec::new();
        while !seen.ends_with(mark.as_bytes()) {
            let count = self.output.read(&mut self.buffer).expect("output");
            seen.extend_from_slice(&self.buffer[..count]);
        }
    }
}

impl Drop for BarePipe {
    fn drop(&mut self) {
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}

fn big() {
    let shim = Shim::launch(Wish::Auto);
    let mut client = shim.client();
    client.run("true");
    for (command, bytes) in BIG {
        let mut turns = Vec::new();
        for _ in 0..BIG_TURNS {
            let begun = Instant::now();
            let script = format!("bash -c '{command}' | cat >/dev/null");
            Command::new("/bin/bash").args(["-c", &script]).status().expect("bash");
            let bare = begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            let done = client.run_for(command, 120_000);
            assert_eq!(done.end.output_bytes, bytes);
            turns.push((begun.elapsed().as_secs_f64(), bare));
        }
        let per_s = |time: f64| bytes as f64 / 1e6 / time;
        println!(
            "{{\"bench\":\"{command}\",\"shim_mb_per_s\":{:.0},\"bare_mb_per_s\":{:.0},\"ratio\":{:.2},\"rss_kb\":{}}}",
            per_s(median(turns.iter().map(|turn| turn.0))),
            per_s(median(turns.iter().map(|turn| turn.1))),
            median(turns.iter().map(|turn| turn.1 / turn.0)),
            rss(shim.pid)
        );
    }
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
