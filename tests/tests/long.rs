//! A long session: what is sent only ever grows, its cache markers stay within reach, and neither the daemon's memory nor
//! the gap between two requests grows with it.
//!
//! `AGENTD_TEST_ROUNDS` makes it longer (5,000 is the soak); the numbers are printed.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use harness::model_server::{Block, Received, Reply};
use harness::scene::Scene;
use proto::event::TurnOutcome;
use proto::request::ApproveMode;
use serde_json::json;

/// Requests in the normal run.
const ROUNDS: usize = 300;

/// Requests between two prompts.
const ROUNDS_PER_PROMPT: usize = 60;

/// Blocks that a marker looks back for an earlier entry, itself included.
const REACH: usize = 20;

const MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn rounds() -> usize {
    std::env::var("AGENTD_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// What is kept of each request: comparing the whole of it is done as it comes.
#[derive(Default)]
struct Seen {
    /// The last request's messages without markers and without the end that the next one continues.
    history: String,
    blocks: usize,
    /// Milliseconds from the end of the answer before to each request.
    gaps: Vec<f64>,
    answered: Option<Instant>,
    wrong: Vec<String>,
}

impl Seen {
    fn take(&mut self, request: &Received) {
        if let Some(answered) = self.answered {
            self.gaps.push(request.at.saturating_duration_since(answered).as_secs_f64() * 1000.0);
        }
        let body = String::from_utf8(request.body.clone()).expect("UTF-8");
        let (head, messages) = body.split_once(r#""messages":["#).expect("messages");
        let plain = messages.replace(MARKER, "");
        let plain = plain.strip_suffix("]}").expect("the messages stand last");
        if !plain.starts_with(&self.history) {
            self.wrong.push(format!("request {} does not begin with the one before", request.number));
        }
        // A prompt may join the results that stand last: the message is open, its blocks are not.
        self.history = plain.trim_end_matches("]}").to_owned();
        let marks = head.matches("cache_control").count() + messages.matches(MARKER).count();
        if marks > 4 {
            self.wrong.push(format!("request {} has {marks} markers", request.number));
        }
        let blocks: Vec<bool> = request
            .messages()
            .iter()
            .flat_map(|message| message["content"].as_array().into_iter().flatten())
            .map(|block| block.get("cache_control").is_some())
            .collect();
        // The entry that the last request wrote ends with its last block; the automatic marker stands on our last one.
        let entry = self.blocks;
        let reads = |at: usize| at + 1 >= entry && at + 1 < entry + REACH;
        let marked = (0..blocks.len()).filter(|at| blocks[*at]).chain([blocks.len() - 1]);
        if entry > 0 && !marked.into_iter().any(reads) {
            self.wrong.push(format!("request {} has no marker within reach of block {entry}", request.number));
        }
        self.blocks = blocks.len();
    }
}

fn reply(number: usize) -> Reply {
    if number.is_multiple_of(ROUNDS_PER_PROMPT) {
        return Reply::text(&format!("prompt {number} is answered"));
    }
    let thought = Block::Thinking(format!("step {number}: größer und größer"));
    // Now and then a wide step: more blocks than a marker reaches over.
    let width = if number.is_multiple_of(50) { 15 } else { 1 };
    let calls = (0..width).map(|call| {
        let input = json!({ "command": "view", "path": format!("file{}.txt", (number + call) % 7) });
        Block::edit(&input)
    });
    Reply::blocks(std::iter::once(thought).chain(calls).collect())
}

fn resident_kib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the daemon runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn median(gaps: &[f64]) -> f64 {
    let mut gaps = gaps.to_vec();
    gaps.sort_by(f64::total_cmp);
    gaps[gaps.len() / 2]
}

#[test]
fn over_a_long_session_the_history_only_grows_and_neither_memory_nor_the_gap_does() {
    let rounds = rounds();
    let mut scene = Scene::with(&[("turn.requests_max", "1000"), ("log.level", "warn")]);
    for number in 0..7 {
        fs::write(scene.machine.work().join(format!("file{number}.txt")), format!("content {number}\n")).unwrap();
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    let watching = Arc::clone(&seen);
    scene.server.keep_no_requests();
    scene.server.answer_with(move |request| {
        let mut seen = watching.lock().unwrap();
        seen.take(request);
        seen.answered = Some(Instant::now());
        reply(request.number)
    });
    let pid = scene.daemon().pid();
    let mut resident = Vec::new();
    for prompt in 0..rounds / ROUNDS_PER_PROMPT {
        scene.prompt(&format!("prompt {prompt}"), ApproveMode::All);
        assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
        resident.push(resident_kib(pid));
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.wrong, Vec::<String>::new());
    assert_eq!(seen.gaps.len() + 1, rounds / ROUNDS_PER_PROMPT * ROUNDS_PER_PROMPT);
    let tenth = seen.gaps.len() / 10;
    let (first, last) = (median(&seen.gaps[..tenth]), median(&seen.gaps[seen.gaps.len() - tenth..]));
    println!(
        "{rounds} requests, {} blocks: gap {first:.2} ms at first, {last:.2} ms at last; resident {} to {} KiB",
        seen.blocks,
        resident[0],
        resident[resident.len() - 1]
    );
    // Room for a loaded machine: growth with the history would be a multiple.
    assert!(last < 3.0 * first + 5.0, "the gap grew from {first:.2} to {last:.2} ms");
    let grown = resident[resident.len() - 1].saturating_sub(resident[0]);
    // The history itself is kept once, about 700 bytes a round.
    assert!(grown < 16_000 + 3 * rounds as u64, "memory grew by {grown} KiB");
}
