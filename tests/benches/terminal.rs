//! What a person at a terminal waits for, and what the client costs while it paints.
//!
//! `cargo bench -p agentd-tests --bench terminal` builds the release binaries and prints one JSON object a line. Arguments
//! choose among `ask` (start of `agentctl ask` to the model server having the whole request: without a daemon, in a new
//! session, in a session that is there), `attach` (start to the first paint of the input) and `paint` (CPU of an `attach` that
//! repaints while a model writes 20,000 pieces). Beside the starts stands a reference from the same moment: how long the
//! system takes to start and end a program that does nothing.

#![allow(clippy::expect_used, clippy::cast_precision_loss, reason = "a bench: a failure is to stop it")]

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use harness::binaries;
use harness::machine::Machine;
use harness::model_server::{ModelServer, Reply};
use harness::processes::cpu;
use harness::scene::Scene;
use harness::wait;
use proto::event::TurnOutcome;
use serde_json::json;

/// Starts of one measurement.
const STARTS: usize = 20;

/// Pieces of the streamed text.
const DELTAS: usize = 20_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    if wanted("ask") {
        asks();
    }
    if wanted("attach") {
        attaches();
    }
    if wanted("paint") {
        paints();
    }
}

fn ms(since: Instant, until: Instant) -> f64 {
    until.saturating_duration_since(since).as_secs_f64() * 1_000.0
}

fn percentiles(mut all: Vec<f64>) -> serde_json::Value {
    all.sort_by(f64::total_cmp);
    let at = |part: usize| (all[(all.len() - 1) * part / 100] * 10.0).round() / 10.0;
    json!({ "median": at(50), "p90": at(90), "most": at(100) })
}

/// How long a program takes to start and end that does nothing.
fn bare_start() -> f64 {
    let began = Instant::now();
    let status = Command::new("/bin/true").status().expect("a program that does nothing");
    assert!(status.success());
    ms(began, Instant::now())
}

/// From the start of `agentctl ask` to the request at the model server; waits for the turn's end.
fn ask(machine: &Machine, server: &ModelServer, arguments: &[&str]) -> f64 {
    let before = server.requests().len();
    let mut command = machine.command(&binaries::agentctl());
    // Another text each time: the server knows sessions by their first prompts.
    command.arg("ask").args(arguments).arg(format!("say word {before}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status().expect("agentctl runs");
    assert!(status.success(), "{status}");
    ms(began, server.requests()[before].at)
}

fn asks() {
    let server = ModelServer::start();
    server.answer_with(|_| Reply::text("a word"));
    let (mut cold, mut fresh, mut again, mut bare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        // A daemon that has never run makes its database first; usually it did run before.
        let machine = Machine::with_model(&server.url());
        ask(&machine, &server, &["--new"]);
        let stop = || machine.ctl(&["shutdown", "--stop-shells"]).run();
        assert_eq!(stop().code(), 0);
        wait::until("the socket to go", || (!machine.socket().exists()).then_some(()));
        cold.push(ask(&machine, &server, &["--new"]));
        fresh.push(ask(&machine, &server, &["--new"]));
        again.push(ask(&machine, &server, &[]));
        bare.push(bare_start());
        assert_eq!(stop().code(), 0);
    }
    println!(
        "{}",
        json!({
            "bench": "ask", "starts": STARTS, "cold_ms": percentiles(cold), "new_session_ms": percentiles(fresh),
            "same_session_ms": percentiles(again), "bare_start_ms": percentiles(bare),
        })
    );
}

fn attaches() {
    let mut scene = Scene::with(&[("log.level", "warn")]);
    scene.server.answer_with(|_| Reply::text("# A heading\n\nsome **text** with `code`, and more of it.\n"));
    for _ in 0..10 {
        scene.good_turn("write");
    }
    let session = scene.session.to_string();
    let (mut painted, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut terminal = scene.machine.ctl_in_terminal(&["attach", &session]);
        terminal.wait_for("› ");
        terminal.wait_for(" · context ");
        painted.push(ms(began, Instant::now()));
        terminal.type_text("\u{4}");
        assert!(terminal.finish().0.success());
        bare.push(bare_start());
    }
    println!(
        "{}",
        json!({
            "bench": "attach", "starts": STARTS, "first_paint_ms": percentiles(painted), "bare_start_ms": percentiles(bare),
        })
    );
}

/// Markdown in small pieces, as a model writes it.
fn text(number: usize) -> String {
    match number % 50 {
        0 => "\n\n## Part ".to_owned(),
        10 => "\n- item with **bold**".to_owned(),
        20 => "\n- item with `code`".to_owned(),
        30 => "\n\n```rust\nlet x = 1;\n".to_owned(),
        35 => "\n```\n\n".to_owned(),
        _ => format!(" word{}", number % 100),
    }
}

fn stream() -> String {
    let mut out = String::new();
    let mut event = |name: &str, data: serde_json::Value| {
        write!(out, "event: {name}\ndata: {data}\n\n").expect("a string takes all");
    };
    let usage = json!({ "input_tokens": 10, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [],
        "stop_reason": null, "usage": usage });
    event("message_start", json!({ "type": "message_start", "message": message }));
    let block = json!({ "type": "text", "text": "" });
    event("content_block_start", json!({ "type": "content_block_start", "index": 0, "content_block": block }));
    for number in 0..DELTAS {
        let delta = json!({ "type": "text_delta", "text": text(number) });
        event("content_block_delta", json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
    }
    event("content_block_stop", json!({ "type": "content_block_stop", "index": 0 }));
    let delta = json!({ "stop_reason": "end_turn" });
    event("message_delta", json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": DELTAS } }));
    event("message_stop", json!({ "type": "message_stop" }));
    out
}

fn paints() {
    for pieces in [2_000, 1] {
        let mut scene = Scene::with(&[("log.level", "warn")]);
        let text = stream();
        // At once, and in many small writes, between which the client paints again and again.
        scene.server.answer_with(move |_| {
            if pieces == 1 { Reply::raw(text.clone()) } else { Reply::raw(text.clone()).pieces(text.len() / pieces) }
        });
        let session = scene.session.to_string();
        let mut terminal = scene.machine.ctl_in_terminal(&["attach", &session]);
        terminal.wait_for("› ");
        let before = cpu(terminal.pid());
        let began = Instant::now();
        assert_eq!(scene.turn("write much").outcome, TurnOutcome::Done {});
        terminal.wait_for("tokens in, ");
        let (seconds, used) = (began.elapsed().as_secs_f64(), cpu(terminal.pid()) - before);
        let bytes = terminal.raw().len();
        println!(
            "{}",
            json!({
                "bench": "paint", "deltas": DELTAS, "writes": pieces, "client_cpu_s": used, "took_s": seconds,
                "terminal_bytes": bytes,
            })
        );
        terminal.type_text("\u{4}");
        assert!(terminal.finish().0.success());
    }
}
