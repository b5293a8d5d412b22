//! kill -9 of the daemon at random moments of a turn of many commands: every command runs once, every output is whole,
//! and what is kept of the turn does not differ from a turn that nobody disturbed.
//!
//! `KILLS` says how many (5), `SEED` at which moments.

use std::fs;
use std::time::{Duration, Instant};

use harness::model_server::Reply;
use harness::scene::Scene;
use harness::wait;
use proto::event::{EventBody, TurnOutcome};
use proto::request::ApproveMode;

/// Commands of the turn.
const COMMANDS: usize = 50;

/// The longest pause between two kills: longer than a daemon needs to start and to go on for some commands.
const PAUSE_MAX_MS: u64 = 400;

/// Longer than the whole claim can take without a fault.
const PATIENCE: Duration = Duration::from_secs(120);

/// Prints little, much, nothing, or fails, and tells that it ran.
fn command(number: usize) -> String {
    let what = match number % 5 {
        0 => "seq 1 3000".to_owned(),
        1 => "echo short; sleep 0.03".to_owned(),
        2 => format!("cd /tmp; export LAST={number}; cd \"$OLDPWD\""),
        3 => format!("for i in 1 2 3; do echo part $i; sleep 0.01; done; (exit {number})"),
        _ => "sleep 0.02 & echo \"${LAST:-none}\"; wait".to_owned(),
    };
    format!("echo {number} >>ran; {what}")
}

/// What a turn left: what ran, the history that the model was sent last, and what the log says of each call.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    ran: String,
    history: Vec<String>,
    events: Vec<String>,
}

/// Plays the turn; between kills of the daemon passes the time that `pause` tells, until it tells none.
fn play(mut pause: impl FnMut() -> Option<Duration>) -> Left {
    let mut scene = Scene::new();
    scene.server.answer_with(|request| {
        let done = request.rounds();
        if done < COMMANDS { Reply::bash(&command(done)) } else { Reply::text("all done") }
    });
    scene.prompt("do it all", ApproveMode::All);
    while let Some(time) = pause() {
        // The moment itself is what is tried, so there is no event to wait for.
        let until = Instant::now() + time;
        wait::until("the moment of the kill", || (Instant::now() >= until).then_some(()));
        scene.kill_daemon();
        scene.start_daemon();
    }
    scene.client.patience(PATIENCE);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let work = scene.machine.work();
    // Two works are in two directories.
    let place = scene.machine.root().to_string_lossy().into_owned();
    let history = scene.server.requests().into_iter().map(|request| request.messages().to_vec());
    let history = history.max_by_key(Vec::len).expect("requests");
    let history = history.iter().map(|message| plain(&message.to_string(), &place)).collect();
    let events = scene.logged(|body| match body {
        EventBody::CallFinished(finished) => Some(plain(&format!("{:?} {}", finished.outcome, finished.text), &place)),
        EventBody::CallStarted(_) => Some("started".to_owned()),
        EventBody::TurnEnded(ended) => Some(format!("ended {:?}", ended.outcome)),
        _ => None,
    });
    Left { ran: fs::read_to_string(work.join("ran")).expect("commands ran"), history, events }
}

/// Without what differs from one run to the next by nature: directories, ids, times.
fn plain(text: &str, place: &str) -> String {
    let text = text.replace(place, "PLACE");
    let is_id = |word: &str| {
        let dashes = word.bytes().filter(|byte| *byte == b'-').count();
        (word.len() == 36 && dashes == 4) || word.starts_with("toolu_")
    };
    let parts = text.split_inclusive(|char: char| !char.is_ascii_alphanumeric() && !"-_".contains(char));
    parts.map(|part| if is_id(&part[..part.len().saturating_sub(1)]) { "ID " } else { part }).collect()
}

/// A small generator, so that a seed is all that is needed to see a run again.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn a_turn_of_fifty_commands_is_the_same_however_often_the_daemon_is_killed() {
    let kills = number("KILLS").unwrap_or(5);
    let seed = number("SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("SEED={seed} KILLS={kills}");
    let undisturbed = play(|| None);
    let numbers: String = (0..COMMANDS).map(|number| format!("{number}\n")).collect();
    assert_eq!(undisturbed.ran, numbers);
    assert_eq!(undisturbed.history.len(), 2 * COMMANDS + 1);
    let (mut left, mut state) = (kills, seed);
    while left > 0 {
        // As many as fall into one turn, and the rest into the next ones.
        let in_this = left.min(PER_TURN);
        left -= in_this;
        let mut to_come = in_this;
        let disturbed = play(|| {
            to_come = to_come.checked_sub(1)?;
            Some(Duration::from_millis(next(&mut state) % PAUSE_MAX_MS))
        });
        assert_eq!(disturbed, undisturbed, "SEED={seed}");
    }
}

/// Kills that fall into one turn: with pauses as above they are over before the turn is.
const PER_TURN: u64 = 10;
