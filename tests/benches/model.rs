//! What the daemon costs between the model and the command, with full durability, beside the official Python SDK's loop
//! and a bare loop against the same server.
//!
//! `cargo bench -p agentd-tests` builds the release binaries and prints one JSON object a line. Arguments choose among
//! `round` (last byte of a reply to the head of the next request, a no-op command between), `first` (a command's first byte,
//! from when it prints it to when an attached client has it), `deltas` (CPU of the daemon and its clients for 20,000
//! pieces of text as fast as they can be sent, and for fewer of them a few hundred a second) and `long` (resident memory
//! and gap at 10, 100, 1,000 and 5,000 rounds of one session; `AGENTD_BENCH_LONG` ends it earlier).
//!
//! The SDK's loop (`benches/sdk_loop.py`) needs a Python with the `anthropic` package: `AGENTD_TEST_SDK_PYTHON` names it,
//! else `python3` is tried. Without one its figures are missing.

#![allow(clippy::expect_used, clippy::cast_precision_loss, reason = "a bench: a failure is to stop it")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use harness::binaries::{self, repository};
use harness::model_server::{ModelServer, Received, Reply};
use harness::processes::cpu;
use harness::scene::Scene;
use harness::wait;
use proto::event::TurnOutcome;
use proto::live::Live;
use proto::request::ApproveMode;
use proto::response::ServerFrame;
use serde_json::json;

/// Rounds of one measurement, and how often both take their turn.
const ROUNDS: usize = 150;
const TURNS: usize = 3;

/// Commands whose first byte is waited for.
const FIRSTS: usize = 200;

/// Where memory and gap of a long session are told, in rounds, and how many gaps before it are looked at.
const MARKS: [usize; 4] = [10, 100, 1_000, 5_000];
const WINDOW: usize = 9;

/// Requests of one size that the bare loop sends.
const BARE: usize = 20;

/// Pieces of the streamed text; fewer where there is a pause after each.
const DELTAS: usize = 20_000;
const DELTAS_PACED: usize = 5_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    if wanted("round") {
        rounds();
    }
    if wanted("first") {
        first();
    }
    if wanted("deltas") {
        for clients in [1, 3] {
            deltas(clients, DELTAS, Duration::ZERO);
            deltas(clients, DELTAS_PACED, Duration::from_millis(1));
        }
    }
    if wanted("long") {
        long();
    }
}

/// Percentiles of the gaps after replies, in milliseconds.
fn gaps(server: &ModelServer, from: usize) -> (f64, f64) {
    let delivered: HashMap<usize, Instant> = server.delivered().into_iter().collect();
    let mut gaps: Vec<f64> = server
        .requests()
        .iter()
        .filter(|request| request.number > from)
        .filter_map(|request| {
            let before = delivered.get(&(request.number - 1))?;
            Some(request.at.saturating_duration_since(*before).as_secs_f64() * 1_000.0)
        })
        .collect();
    gaps.sort_by(f64::total_cmp);
    (gaps[gaps.len() / 2], gaps[gaps.len() * 95 / 100])
}

fn call(number: usize) -> Reply {
    let last = number.is_multiple_of(ROUNDS);
    if last { Reply::text("done") } else { Reply::bash(&format!("true {number}")) }
}

fn rounds() {
    for turn in 1..=TURNS {
        let mut scene = Scene::with(&[("log.level", "warn")]);
        scene.server.answer_with(|request| call(request.number));
        let outcome = scene.turn("round and round").outcome;
        assert_eq!(outcome, TurnOutcome::Done {});
        // The first rounds warm up: connections, the shell, the allocator.
        let (median, p95) = gaps(&scene.server, ROUNDS / 10);
        let bodies: Vec<Vec<u8>> = scene.server.requests().into_iter().map(|request| request.body).collect();
        let (bare_median, bare_p95) = bare(&bodies);
        let sdk = sdk().map(|(median, p95)| json!({ "median": median, "p95": p95 }));
        println!(
            "{}",
            json!({
                "bench": "round", "turn": turn, "rounds": ROUNDS,
                "agentd_ms": { "median": median, "p95": p95 },
                "sdk_loop_ms": sdk,
                "bare_loop_ms": { "median": bare_median, "p95": bare_p95 },
                "added_ms": { "median": median - bare_median, "p95": p95 - bare_p95 },
            })
        );
    }
}

/// The same requests, sent by a loop that does nothing else: what server and network cost.
fn bare(bodies: &[Vec<u8>]) -> (f64, f64) {
    let server = ModelServer::start();
    server.answer_with(|request| call(request.number));
    for body in bodies {
        let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).expect("the server accepts");
        stream.set_nodelay(true).expect("a socket");
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-api-key: k\r\n\
             anthropic-version: 2026-10-21\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("a request");
        let mut lines = BufReader::new(stream).lines();
        while lines.next().is_some_and(|line| line.is_ok_and(|line| line != "event: message_stop")) {}
    }
    // Its histories are another run's calls, which the server takes note of.
    let _ = server.take_violations();
    gaps(&server, bodies.len() / 10)
}

/// The SDK's loop with a persistent bash of its own; `None` without the SDK.
fn sdk() -> Option<(f64, f64)> {
    let python = std::env::var("AGENTD_TEST_SDK_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = Command::new(&python).args(["-c", "import anthropic"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let server = ModelServer::start();
    server.answer_with(|request| call(request.number));
    let script = repository().join("tests/benches/sdk_loop.py");
    let status = Command::new(python).arg(script).arg(server.url()).status().expect("python runs");
    assert!(status.success(), "the SDK's loop ended with {status}");
    // It asks less than our rules want, and the server notes that.
    let _ = server.take_violations();
    Some(gaps(&server, ROUNDS / 10))
}

/// What is kept of a long session's requests: when each came, and the last one that a figure is told for.
#[derive(Default)]
struct Seen {
    at: HashMap<usize, Instant>,
    body: Vec<u8>,
}

/// One session of many rounds. Writing the whole history anew in each request is in the API's nature: the bare loop, which
/// sends the same bytes from memory, tells how much of the gap that is.
fn long() {
    let end = std::env::var("AGENTD_BENCH_LONG").ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let mut scene = Scene::with(&[("turn.requests_max", "1000"), ("log.level", "warn")]);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let watching = Arc::clone(&seen);
    scene.server.keep_no_requests();
    let told = |number: usize| number.is_multiple_of(500) || MARKS.contains(&number);
    scene.server.answer_with(move |request: &Received| {
        let mut seen = watching.lock().expect("nobody panics");
        seen.at.insert(request.number, request.at);
        if MARKS.contains(&request.number) {
            seen.body.clone_from(&request.body);
        }
        drop(seen);
        if told(request.number) { Reply::text("so far") } else { Reply::bash(&format!("true {}", request.number)) }
    });
    let pid = scene.daemon().pid();
    let last = MARKS.into_iter().filter(|mark| *mark <= end).max().unwrap_or(MARKS[0]);
    for number in (1..=last).filter(|number| told(*number)) {
        assert_eq!(scene.turn(&format!("until {number}")).outcome, TurnOutcome::Done {});
        if !MARKS.contains(&number) {
            continue;
        }
        let delivered: HashMap<usize, Instant> = scene.server.delivered().into_iter().collect();
        let (gap, body) = {
            let seen = seen.lock().expect("nobody panics");
            // The last reply's own gap is a prompt's.
            let gaps = (number - WINDOW..number)
                .map(|reply| seen.at[&(reply + 1)].saturating_duration_since(delivered[&reply]));
            let mut gaps: Vec<f64> = gaps.map(|gap| gap.as_secs_f64() * 1_000.0).collect();
            gaps.sort_by(f64::total_cmp);
            (gaps[gaps.len() / 2], seen.body.clone())
        };
        let (bare_median, _) = bare(&vec![body.clone(); BARE]);
        println!(
            "{}",
            json!({
                "bench": "long", "rounds": number, "resident_kib": resident_kib(pid), "request_bytes": body.len(),
                "gap_ms": gap, "bare_loop_ms": bare_median,
            })
        );
    }
}

fn resident_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the daemon runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The output is the time of its own printing, so that nothing before it counts; the command goes on for a while, so that
/// it is the live piece that tells it and not the result.
fn first() {
    let mut scene = Scene::with(&[("turn.requests_max", "1000"), ("log.level", "warn")]);
    let last = |number: usize| number.is_multiple_of(FIRSTS + 1);
    scene.server.answer_with(move |request| {
        if last(request.number) { Reply::text("done") } else { Reply::bash("echo $EPOCHREALTIME; sleep 0.01") }
    });
    scene.prompt("say when", ApproveMode::All);
    let mut times: Vec<f64> = (0..FIRSTS)
        .map(|_| {
            let printed = scene.client.until("a first byte", |frame| match frame {
                ServerFrame::Live(Live::Output(piece)) if piece.offset == 0 => Some(piece.text.clone()),
                _ => None,
            });
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs_f64();
            (now - printed.trim().parse::<f64>().expect("a time")) * 1_000.0
        })
        .collect();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    times.sort_by(f64::total_cmp);
    println!(
        "{}",
        json!({ "bench": "first", "commands": FIRSTS, "ms": { "median": times[FIRSTS / 2], "p95": times[FIRSTS * 95 / 100] } })
    );
}

/// One event for each piece, as a server with one token at a time sends them.
fn stream(deltas: usize) -> String {
    let event = |name: &str, data: serde_json::Value| format!("event: {name}\ndata: {data}\n\n");
    let usage = json!({ "input_tokens": 10, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [],
        "stop_reason": null, "usage": usage });
    let mut out = event("message_start", json!({ "type": "message_start", "message": message }));
    let block = json!({ "type": "text", "text": "" });
    out += &event("content_block_start", json!({ "type": "content_block_start", "index": 0, "content_block": block }));
    for number in 0..deltas {
        let delta = json!({ "type": "text_delta", "text": format!(" word{}", number % 100) });
        out += &event("content_block_delta", json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
    }
    out += &event("content_block_stop", json!({ "type": "content_block_stop", "index": 0 }));
    let delta = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": deltas } });
    out += &event("message_delta", delta);
    out + &event("message_stop", json!({ "type": "message_stop" }))
}

fn attach(scene: &Scene) -> Child {
    let mut command: Command = scene.machine.command(&binaries::agentctl());
    command.args(["attach", &scene.session.to_string(), "--json", "--read-only"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("agentctl runs")
}

fn deltas(clients: usize, deltas: usize, pause: Duration) {
    let mut scene = Scene::with(&[("log.level", "warn")]);
    let text = stream(deltas);
    scene.server.answer_with(move |_| Reply::raw(text.clone()).pause(pause));
    let mut watching: Vec<Child> = (0..clients).map(|_| attach(&scene)).collect();
    // The harness's own client is one of them.
    let all = clients + 1;
    let session = scene.session;
    wait::until("all clients to be attached", || (scene.client.show(session).clients.len() == all).then_some(()));
    let daemon = u32::try_from(scene.daemon().pid()).expect("a pid");
    let before = cpu(daemon) + watching.iter().map(|child| cpu(child.id())).sum::<f64>();
    let began = Instant::now();
    assert_eq!(scene.turn("write much").outcome, TurnOutcome::Done {});
    let seconds = began.elapsed().as_secs_f64();
    let (own, theirs) = (cpu(daemon), watching.iter().map(|child| cpu(child.id())).sum::<f64>());
    println!(
        "{}",
        json!({
            "bench": "deltas", "deltas": deltas, "pause_us": pause.as_micros(), "clients": clients, "cpu_s": own + theirs - before,
            "daemon_since_start_s": own, "clients_since_start_s": theirs, "took_s": seconds,
        })
    );
    for child in &mut watching {
        let _ = child.kill();
        let _ = child.wait();
    }
}
