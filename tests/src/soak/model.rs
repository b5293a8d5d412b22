//! The model of a soak: for every prompt a few rounds of commands, each with a mark of its own, then an answer.

use serde_json::Value;

use crate::model_server::{Block, Received, Reply};

/// The file in the workspace in which each command leaves its mark.
pub(super) const RAN: &str = "ran";

/// Most rounds of commands for one prompt.
const ROUNDS_MAX: usize = 3;

/// Answers a request by the last prompt in it and the rounds since then.
pub(super) fn answer(request: &Received) -> Reply {
    let messages = request.messages();
    let mut prompts = messages.iter().enumerate().filter_map(|(index, message)| Some((index, job_of(message)?)));
    let Some((at, job)) = prompts.next_back() else { return Reply::text("no job") };
    let round = messages[at..].iter().filter(|message| message["role"] == "assistant").count();
    let number: usize = job.rsplit('.').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    if round > number % ROUNDS_MAX {
        return Reply::text(&format!("answer {job}, in a sentence of some length that comes in pieces")).pieces(64);
    }
    let mark = |call: usize| format!("{job}.{round}.{call}");
    let quick = |call| Block::bash(&format!("echo {0} >> {RAN}; echo out {0}", mark(call)));
    let slow = |call| Block::bash(&format!("echo {0} >> {RAN}; sleep 0.08; seq 1 300; echo out {0}", mark(call)));
    let behind = |call| Block::bash(&format!("echo {0} >> {RAN}; sleep 8670001 & echo out {0}", mark(call)));
    Reply::blocks(match (number + round) % 4 {
        0 => vec![slow(0)],
        1 => vec![Block::Text("Two at once.".into()), quick(0), slow(1)],
        2 => vec![behind(0)],
        _ => vec![quick(0), quick(1)],
    })
    .pieces(200)
}

fn job_of(message: &Value) -> Option<String> {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.filter_map(|text| text.strip_prefix("job ")).map(str::to_owned).next_back()
}

/// The mark that a command leaves.
pub(super) fn mark_of(command: &str) -> Option<&str> {
    command.strip_prefix("echo ")?.split(' ').next()
}
