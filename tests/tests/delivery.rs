//! What is streamed reaches every client, once and soon; who does not read delays nobody. The usual run is small;
//! `AGENTD_LOAD=full` is the size that the project promises (`make load`), `AGENTD_STALL_S` how long a client does not read.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use harness::daemon::Daemon;
use harness::delivery::{Delays, Watcher, Written, quantiles};
use harness::machine::Machine;
use harness::model_server::{ModelServer, Reply};
use harness::wait::PATIENCE;
use proto::event::Event;
use proto::ids::{Seq, SessionId};
use proto::request::ApproveMode;
use proto::response::ServerFrame;

/// Terminals of one session.
const CLIENTS: usize = 4;

/// Time between two pieces of a reply: 20 a second, which is how models stream text.
const PAUSE: Duration = Duration::from_millis(50);

fn full() -> bool {
    std::env::var("AGENTD_LOAD").is_ok_and(|size| size == "full")
}

/// One client's view of its session, in a thread of its own.
fn watcher(daemon: &Daemon, machine: &Machine, session: SessionId, written: &Written) -> Watcher {
    let mut client = daemon.client(machine);
    client.patience(4 * PATIENCE);
    client.attach(machine, session, Seq(0));
    Watcher::new(client, session, written)
}

/// Serves turns of one call and one streamed answer, for the sessions that the prompts name by their number.
fn stream(server: &ModelServer, written: &[Written], pieces: usize, pause: Duration) {
    let written = written.to_vec();
    server.answer_with(move |request| match request.results().len() {
        0 => Reply::bash("seq 1 200"),
        _ => {
            let session: usize = request.first_prompt().trim().parse().expect("the prompt is the session's number");
            written[session].reply(pieces, pause)
        }
    });
}

#[test]
fn fifty_sessions_stream_to_four_clients_each_without_a_gap_and_soon() {
    let (sessions, turns, pieces) = if full() { (50, 3, 200) } else { (6, 2, 40) };
    let written: Vec<Written> = (0..sessions).map(|_| Written::default()).collect();
    let server = ModelServer::start();
    stream(&server, &written, pieces, PAUSE);
    let machine = Machine::with_model(&server.url());
    let daemon = Daemon::start(&machine);
    let mut maker = daemon.client(&machine);
    let made: Vec<SessionId> = (0..sessions).map(|_| maker.create(&machine)).collect();
    // All are attached before the first piece, so that each must see all of them.
    let mut watchers = Vec::new();
    for (number, session) in made.iter().enumerate() {
        let place = |place| (number, place, watcher(&daemon, &machine, *session, &written[number]));
        watchers.extend((0..CLIENTS).map(place));
    }
    let began = Instant::now();
    let delays = thread::scope(|scope| {
        let mut readers = Vec::new();
        for (number, place, mut watcher) in watchers {
            let (machine, session) = (&machine, made[number]);
            readers.push(scope.spawn(move || {
                for _ in 0..turns {
                    if place == 0 {
                        watcher.client.prompt(machine, session, &number.to_string(), ApproveMode::All);
                    }
                    watcher.turn();
                }
                watcher.delays
            }));
        }
        let mut all = Delays::default();
        readers.into_iter().for_each(|reader| all.add(reader.join().expect("a reader")));
        all
    });
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: not told").to_owned();
    let [p50, p99, most] = quantiles(&delays.pieces);
    let [row50, row99, row_most] = quantiles(&delays.rows);
    println!(
        "{sessions} sessions x {CLIENTS} clients, {} pieces/s each session, {:?}: {} pieces p50 {p50:.1} p99 {p99:.1} most \
         {most:.1} ms; {} rows p50 {row50:.0} p99 {row99:.0} most {row_most:.0} ms; daemon {peak}",
        1000 / PAUSE.as_millis(),
        began.elapsed(),
        delays.pieces.len(),
        delays.rows.len(),
    );
    assert_eq!(delays.pieces.len(), sessions * CLIENTS * turns * pieces, "every client saw every piece");
    if full() {
        assert!(p99 < 100.0, "a piece in a hundred is {p99:.1} ms on its way");
    }
}

#[test]
fn a_client_that_stops_reading_delays_nobody_and_gets_everything_afterwards() {
    const TURNS: usize = 3;
    let stall = std::env::var("AGENTD_STALL_S").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let stall = Duration::from_secs(stall);
    let written = [Written::default()];
    let server = ModelServer::start();
    stream(&server, &written, 100, Duration::from_millis(5));
    let machine = Machine::with_model(&server.url());
    let daemon = Daemon::start(&machine);
    let session = daemon.client(&machine).create(&machine);
    let mut quick = watcher(&daemon, &machine, session, &written[0]);
    let turn = |quick: &mut Watcher| {
        quick.client.prompt(&machine, session, "0", ApproveMode::All);
        quick.turn();
    };
    for _ in 0..TURNS {
        turn(&mut quick);
    }
    let before = std::mem::take(&mut quick.delays);
    let mut stalled = daemon.client(&machine);
    stalled.attach(&machine, session, Seq(0));
    let began = Instant::now();
    let mut turns = 0;
    while turns < TURNS || began.elapsed() < stall {
        turn(&mut quick);
        turns += 1;
    }
    let [before50, before99, _] = quantiles(&before.pieces);
    let [during50, during99, _] = quantiles(&quick.delays.pieces);
    println!(
        "p50 {before50:.1} p99 {before99:.1} ms; beside a client that does not read for {:?}, {turns} turns: p50 \
         {during50:.1} p99 {during99:.1} ms",
        began.elapsed()
    );
    // Room for a machine that has become busy: waiting for the other would last as long as it does not read.
    assert!(during50 < 3.0 * before50 + 50.0, "{during50:.1} ms beside it, {before50:.1} ms without");
    let log = quick.client.log(session);
    let mut seen: Vec<Event> = Vec::new();
    while seen.len() < log.len() {
        match stalled.next_frame().expect("its connection lives") {
            ServerFrame::Event(frame) => seen.push(frame.event),
            ServerFrame::Lagged(lagged) => {
                assert_eq!(seen.last().map_or(Seq(0), |event| event.seq), lagged.after);
                stalled.attach(&machine, session, lagged.after);
            }
            _ => {}
        }
    }
    assert_eq!(seen, log, "nothing is missing and nothing is doubled");
}
