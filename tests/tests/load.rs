//! Long logs, many clients, an idle daemon: nothing is missing or doubled, and figures for who asks. The usual run is small;
//! `AGENTD_LOAD=full` is the size that the project promises, its figures are printed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{ModelServer, Reply};
use harness::wait;
use proto::event::EventBody;
use proto::ids::{Seq, SessionId};
use proto::request::ApproveMode;
use proto::response::ServerFrame;

/// Whether the promised sizes are wanted.
fn full() -> bool {
    std::env::var("AGENTD_LOAD").is_ok_and(|size| size == "full")
}

/// Makes a session's log `rows` long by repeating one turn's rows, as years of use would.
fn lengthen(machine: &Machine, session: SessionId, rows: u64) {
    let script = "
import sqlite3, sys
c = sqlite3.connect(sys.argv[1]); s = bytes.fromhex(sys.argv[2]); n = int(sys.argv[3])
turn = [r for r in c.execute('select at, kind, body from events where session=? and seq>1 order by seq', (s,))]
def rows():
    for seq in range(len(turn) + 2, n + 1):
        yield (s, seq) + turn[(seq - 2) % len(turn)]
c.executemany('insert into events values (?,?,?,?,?)', rows()); c.commit()";
    let hex = session.0.simple().to_string();
    let output =
        Command::new("python3").args(["-c", script]).arg(machine.database()).args([&hex, &rows.to_string()]).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_last_page_of_a_long_log_comes_before_the_log_is_read() {
    let rows = if full() { vec![10_000, 1_000_000] } else { vec![20_000] };
    let server = ModelServer::start();
    // Without calls: a repeated turn must not repeat the id of a call.
    server.answer_with(|_| Reply::text("a word or two, and then some more of them, as models do"));
    for rows in rows {
        let machine = Machine::with_model(&server.url());
        let daemon = Daemon::start(&machine);
        let mut client = daemon.client(&machine);
        let session = client.create(&machine);
        client.attach(&machine, session, Seq(0));
        client.prompt(&machine, session, &format!("first of {rows}"), ApproveMode::All);
        client.until_turn_ended();
        daemon.kill();
        let turn = client.events.len() as u64 - 1;
        // Whole turns only: the session rests.
        let rows = rows - (rows - 1) % turn;
        lengthen(&machine, session, rows);
        let daemon = Daemon::start(&machine);
        let mut client = daemon.client(&machine);
        let begin = Instant::now();
        let info = client.show(session);
        assert_eq!(info.head, Seq(rows));
        client.attach(&machine, session, Seq(rows - 200));
        assert_eq!(client.until_caught_up(), Seq(rows));
        let page = begin.elapsed();
        assert_eq!(client.events.len(), 200);
        // A prompt waits until the log is read, and is answered as ever.
        let begin = Instant::now();
        client.patience(Duration::from_secs(120));
        client.prompt(&machine, session, "one more", ApproveMode::All);
        let accepted = begin.elapsed();
        if !full() {
            client.until_turn_ended();
            assert_eq!(client.events.last().map(|event| event.seq), Some(Seq(rows + turn)));
            let seqs: Vec<u64> = client.events.iter().map(|event| event.seq.0).collect();
            assert_eq!(seqs, (rows - 199..=rows + turn).collect::<Vec<_>>(), "no gap and no double");
        }
        println!("{rows} rows: last page after {page:?}, prompt accepted after {accepted:?}");
        // Generous: it is a debug build on a busy machine. Reading the log takes much longer.
        assert!(page < Duration::from_secs(2), "the last page came after {page:?}");
    }
}

#[test]
fn many_clients_of_many_sessions_see_every_row_once_and_soon() {
    const CLIENTS: usize = 4;
    let (sessions, turns) = if full() { (50, 10) } else { (6, 3) };
    let server = ModelServer::start();
    server.answer_with(|request| match request.results().len() {
        0 => Reply::bash("seq 1 200"),
        _ => Reply::text("some text that streams in pieces, as a model's does, for a while").pieces(48),
    });
    let machine = Machine::with_model(&server.url());
    let daemon = Daemon::start(&machine);
    let mut maker = daemon.client(&machine);
    let made: Vec<SessionId> = (0..sessions).map(|_| maker.create(&machine)).collect();
    let mut late: Vec<u64> = thread::scope(|scope| {
        let mut readers = Vec::new();
        for (number, session) in made.iter().enumerate() {
            for place in 0..CLIENTS {
                let (daemon, machine) = (&daemon, &machine);
                readers.push(scope.spawn(move || {
                    let mut client = daemon.client(machine);
                    client.patience(4 * wait::PATIENCE);
                    client.attach(machine, *session, Seq(0));
                    let mut late = Vec::new();
                    for turn in 0..turns {
                        if place == 0 {
                            client.prompt(machine, *session, &format!("{number} turn {turn}"), ApproveMode::All);
                        }
                        loop {
                            let frame = client.next_frame().expect("frames come");
                            let ServerFrame::Event(frame) = frame else { continue };
                            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                            let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
                            late.push(now.saturating_sub(frame.event.at.0));
                            if matches!(frame.event.body, EventBody::TurnEnded(_)) {
                                break;
                            }
                        }
                    }
                    let seqs: Vec<u64> = client.events.iter().map(|event| event.seq.0).collect();
                    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "no row missing, none doubled");
                    late
                }));
            }
        }
        readers.into_iter().flat_map(|reader| reader.join().expect("a reader")).collect()
    });
    late.sort_unstable();
    let at = |part: f64| late[((late.len() - 1) as f64 * part) as usize];
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: not told").to_owned();
    println!(
        "{sessions} sessions x {CLIENTS} clients, {} deliveries: p50 {} ms, p99 {} ms, most {} ms; daemon {peak}",
        late.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    let expected = sessions * CLIENTS;
    assert!(late.len() >= expected * turns * 5, "{} deliveries", late.len());
}

/// Voluntary context switches of each thread of a process: each is a sleep that ended by a wake-up.
fn sleeps(pid: i32) -> BTreeMap<String, u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |status: String| {
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let named = |task: fs::DirEntry| {
        let count = of(fs::read_to_string(task.path().join("status")).ok()?)?;
        Some((task.file_name().to_string_lossy().into_owned(), count))
    };
    tasks.filter_map(named).collect()
}

/// Wake-ups between two looks. Threads that ended meanwhile are spare ones whose time was over.
fn woken(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> u64 {
    after.iter().map(|(thread, count)| count - before.get(thread).copied().unwrap_or(0)).sum()
}

#[test]
fn an_idle_daemon_sleeps() {
    let server = ModelServer::start();
    server.answer_with(|_| Reply::text("done"));
    let machine = Machine::with_model(&server.url());
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    for number in 0..20 {
        let session = client.create(&machine);
        client.attach(&machine, session, Seq(0));
        client.prompt(&machine, session, &format!("{number}"), ApproveMode::Ask);
        client.until_turn_ended();
    }
    drop(client);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&machine);
    let pid = daemon.pid();
    // It has come to rest when two looks see the same.
    wait::until("the daemon to rest", || {
        let before = sleeps(pid);
        thread::sleep(Duration::from_millis(300));
        (woken(&before, &sleeps(pid)) == 0).then_some(())
    });
    let watched = Duration::from_secs(if full() { 60 } else { 1 });
    let before = sleeps(pid);
    thread::sleep(watched);
    let woken = woken(&before, &sleeps(pid));
    let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let pss = memory.lines().find(|line| line.starts_with("Pss:")).unwrap_or("Pss: not told").to_owned();
    println!("idle with 20 sessions in the store: {woken} wake-ups in {watched:?}, {pss}");
    assert_eq!(woken, 0, "an idle daemon is not woken");
    if full() {
        let kib: u64 = pss.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
        assert!(kib < 15 * 1024, "{pss}");
    }
}
