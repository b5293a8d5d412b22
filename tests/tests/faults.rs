//! kill -9 of the daemon at each moment that `agentd/src/faults.rs` names: what was acknowledged is there, nothing ran
//! twice, the session goes on.
//!
//! The daemon of these claims is `agentd-faults`, the same program with the moments in it. Each moment is tried when it
//! comes for the first time and at one later time; `AGENTD_FAULT_SEED` makes a run again, `AGENTD_FAULT_TIMES=all` tries
//! every time.

use std::fs;
use std::io;

use harness::binaries::{self, repository};
use harness::client::Client;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{Block, ModelServer, Reply};
use harness::random::Random;
use proto::approval::Verdict;
use proto::event::{Event, EventBody};
use proto::ids::{ApprovalId, PromptId, Seq, SessionId};
use proto::mode::Mode;
use proto::request::{AnswerApproval, ApproveMode, Attach, ClientInfo, CreateSession, Hello, Request, SendPrompt};
use proto::response::{Response, ServerFrame};
use regex::Regex;

/// The session's name: whether it was made is seen by it.
const NAME: &str = "faulty";

/// Later times are drawn from here: no moment comes more often in the life that is played.
const TIMES_MAX: u64 = 12;

/// The names of the moments, from the file that defines them.
fn points() -> Vec<String> {
    let text = fs::read_to_string(repository().join("agentd/src/faults.rs")).expect("the moments");
    let name = Regex::new(r#"Self::\w+ => "(\w+)""#).expect("a pattern");
    let points: Vec<String> = name.captures_iter(&text).map(|found| found[1].to_owned()).collect();
    assert!(points.len() >= 12, "{points:?}");
    points
}

/// What the user knows to be done.
#[derive(Default)]
struct Known {
    session: Option<SessionId>,
    accepted: bool,
    answered: Vec<ApprovalId>,
    seen: Vec<Event>,
}

/// Plays a user who asks for two commands and allows each, from wherever an earlier try ended.
fn play(machine: &Machine, prompt: PromptId, known: &mut Known) -> io::Result<()> {
    let mut client = Client::connect(&machine.socket()).map_err(|error| io::Error::other(format!("{error:?}")))?;
    let result = play_with(&mut client, machine, prompt, known);
    // Each connection sees the log from its first row.
    if client.events.len() > known.seen.len() {
        known.seen = std::mem::take(&mut client.events);
    }
    result
}

fn play_with(client: &mut Client, machine: &Machine, prompt: PromptId, known: &mut Known) -> io::Result<()> {
    let info = ClientInfo { program: "user".into(), terminal: String::new() };
    let _ = client.try_call(Request::Hello(Hello { client: info }))?;
    if known.session.is_none() {
        let create = CreateSession {
            cwd: machine.work().to_string_lossy().into_owned(),
            env: machine.env_vars(),
            name: Some(NAME.into()),
            model: None,
            scenario: None,
            mode: Mode::Ask,
            endpoint: machine.endpoint(),
        };
        // The name is taken when the daemon died before it could say that the session is made.
        if let Ok(Response::Session(info)) = client.try_call(Request::CreateSession(create))? {
            known.session = Some(info.id);
        }
    }
    let session = known.session.map_or_else(|| NAME.to_owned(), |id| id.to_string());
    let attach = Attach { session: session.clone(), since: Seq(0), endpoint: machine.endpoint() };
    let attached = client.try_call(Request::Attach(attach))?;
    assert!(attached.is_ok(), "an acknowledged session is there: {attached:?}");
    let endpoint = machine.endpoint();
    let send = SendPrompt { session, prompt, text: "crash".into(), approve: ApproveMode::Ask, endpoint };
    let sent = client.try_call(Request::SendPrompt(send))?;
    assert!(sent.is_ok(), "{sent:?}");
    known.accepted = true;
    loop {
        let ServerFrame::Event(frame) = client.next_frame()? else { continue };
        match frame.event.body {
            EventBody::ApprovalAsked(asked) => {
                let approval = asked.approval.id.to_string();
                let answer = AnswerApproval { approval, digest: None, verdict: Verdict::Once {} };
                let answered = client.try_call(Request::AnswerApproval(answer))?;
                assert!(answered.is_ok(), "{answered:?}");
                known.answered.push(asked.approval.id);
            }
            EventBody::TurnEnded(_) => return Ok(()),
            _ => {}
        }
    }
}

/// One life with the fault in it; whether it came.
fn live_through(point: &str, time: u64) -> bool {
    let what = format!("{point}:{time}");
    let server = ModelServer::start();
    server.expect_kills();
    server.answer_with(|request| match (request.last_text().contains("again"), request.results().len()) {
        (false, 0) => Reply::blocks(vec![
            Block::Text("two calls".into()),
            Block::bash("echo ran >> one; echo first"),
            Block::bash("echo ran >> two; echo second"),
        ]),
        _ => Reply::text("both ran"),
    });
    let mut machine = Machine::with_model(&server.url());
    machine.set_env("AGENTD_FAULT", &what);
    let faulty = Daemon::start_program(&machine, &binaries::agentd_faults());
    machine.unset_env("AGENTD_FAULT");
    let (prompt, mut known) = (PromptId::new(), Known::default());
    let died = play(&machine, prompt, &mut known).is_err();
    if died {
        faulty.expect_killed();
    } else {
        // The moment must not come any more.
        faulty.kill();
    }
    let before = std::mem::take(&mut known.seen);
    let daemon = Daemon::start(&machine);
    let again = play(&machine, prompt, &mut known);
    assert!(again.is_ok(), "{what}: {again:?}");
    let log = std::mem::take(&mut known.seen);
    assert_eq!(log[..before.len()], before, "{what}: what a client saw stays");
    let prompts = log.iter().filter(|event| matches!(&event.body, EventBody::PromptAccepted(_))).count();
    let ends = log.iter().filter(|event| matches!(event.body, EventBody::TurnEnded(_))).count();
    assert_eq!((prompts, ends), (1, 1), "{what}");
    for approval in &known.answered {
        let closed = |event: &&Event| matches!(&event.body, EventBody::ApprovalClosed(it) if it.approval == *approval);
        assert_eq!(log.iter().filter(closed).count(), 1, "{what}: an answer that was acknowledged is there, once");
    }
    let results = server.requests().last().expect("a request").results();
    for (file, text) in [("one", "first"), ("two", "second")] {
        let runs = fs::read_to_string(machine.work().join(file)).unwrap_or_default();
        assert!(runs == "ran\n" || runs.is_empty(), "{what}: {file} ran {runs:?}");
        let told = results.iter().any(|result| result.text.starts_with(text));
        assert_eq!(told, runs == "ran\n", "{what}: {results:?}");
    }
    let mut client = daemon.client(&machine);
    let session = client.show_named(NAME);
    client.attach(&machine, session.id, session.head);
    client.prompt(&machine, session.id, "again", ApproveMode::All);
    client.until_turn_ended();
    drop(client);
    drop(daemon);
    let database = rusqlite::Connection::open(machine.database()).expect("the database");
    let sound: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(sound, "ok", "{what}");
    died
}

#[test]
fn a_kill_at_each_named_moment_loses_nothing_and_runs_nothing_twice() {
    let seed = Random::seed_from("AGENTD_FAULT_SEED");
    let all = std::env::var("AGENTD_FAULT_TIMES").is_ok_and(|times| times == "all");
    println!("AGENTD_FAULT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut kills = 0;
    for point in points() {
        assert!(live_through(&point, 1), "{point} never came");
        kills += 1;
        if all {
            kills += (2..).take_while(|time| live_through(&point, *time)).count();
        } else {
            kills += usize::from(live_through(&point, 2 + random.below(TIMES_MAX - 1)));
        }
    }
    println!("{kills} kills");
}
