//! kill -9 of the daemon, or of daemon and shim, at any moment loses nothing that was acknowledged and runs nothing
//! twice.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use harness::ctl::code;
use harness::machine::Machine;
use harness::model_server::{Block, Gate, ModelServer, Reply};
use harness::scene::Scene;
use harness::{processes, wait};
use proto::approval::{Decider, Verdict};
use proto::event::{Block as Shown, EventBody, Outcome, TurnOutcome};
use proto::ids::Seq;
use proto::request::{ApproveMode, ListApprovals, Request};
use proto::response::{Response, ServerFrame};

/// A command that tells that it runs, and goes on when the test lets it.
#[derive(Debug)]
struct Held {
    count: PathBuf,
    fifo: PathBuf,
}

impl Held {
    fn new(machine: &Machine) -> Self {
        let held = Self { count: machine.work().join("count"), fifo: machine.work().join("go") };
        nix::unistd::mkfifo(&held.fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        held
    }

    /// The command: counts its run, waits for the test, prints much.
    fn command() -> &'static str {
        "echo ran >> count; echo before; read -r word < go; echo after $word; seq 1 200"
    }

    fn wait_until_it_runs(&self) {
        wait::until("the command to run", || fs::exists(&self.count).unwrap().then_some(()));
    }

    fn let_go(&self) {
        // Opening for writing returns when the command has it open for reading.
        fs::write(&self.fifo, "now\n").unwrap();
    }

    fn runs(&self) -> usize {
        fs::read_to_string(&self.count).unwrap().lines().count()
    }
}

fn whole_output() -> String {
    let numbers: String = (1..=200).map(|number| format!("{number}\n")).collect();
    format!("before\nafter now\n{numbers}")
}

fn reply_texts(body: &EventBody) -> Option<Vec<String>> {
    let EventBody::ReplyReceived(reply) = body else { return None };
    let text = |block: &Shown| match block {
        Shown::Text { text } => Some(text.clone()),
        Shown::Thinking { .. } | Shown::Call(_) | Shown::Other { .. } => None,
    };
    Some(reply.blocks.iter().filter_map(text).collect())
}

#[test]
fn a_command_outlives_the_daemon_and_the_next_agentctl_gets_its_whole_output() {
    let mut scene = Scene::new();
    let held = Held::new(&scene.machine);
    scene.server.script(Reply::bash(Held::command()));
    scene.server.script(Reply::text("it ran once"));
    scene.prompt("run long", ApproveMode::All);
    held.wait_until_it_runs();
    scene.kill_daemon();
    assert!(scene.machine.daemons().is_empty());
    let status = scene.machine.ctl(&["status"]).run().expect(code::DONE);
    assert_eq!(scene.machine.daemons().len(), 1, "{status:?}");
    held.let_go();
    let results = scene.server.wait_for(2).results();
    assert!(results[0].text.trim_end().starts_with(whole_output().trim_end()), "{results:?}");
    assert!(!results[0].is_error);
    let log = scene.machine.ctl(&["log", &scene.session.to_string(), "-f"]).start();
    wait::until("the turn's end", || {
        let shown = scene.machine.ctl(&["log", &scene.session.to_string(), "--json"]).run().expect(code::DONE);
        shown.stdout.contains("turn_ended").then_some(())
    });
    log.kill();
    assert_eq!(held.runs(), 1);
}

#[test]
fn a_clean_stop_leaves_a_running_command_to_the_next_daemon() {
    let mut scene = Scene::new();
    let held = Held::new(&scene.machine);
    scene.server.script(Reply::bash(Held::command()));
    scene.server.script(Reply::text("fine"));
    scene.prompt("run long", ApproveMode::All);
    held.wait_until_it_runs();
    scene.daemon().signal(nix::sys::signal::Signal::SIGTERM);
    wait::until("the daemon to stop", || scene.machine.daemons().is_empty().then_some(()));
    scene.start_daemon_after_stop();
    held.let_go();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert!(scene.server.wait_for(2).results()[0].text.starts_with(&whole_output()[..20]));
    assert_eq!(held.runs(), 1);
}

#[test]
fn a_command_that_ends_while_no_daemon_runs_is_reported_by_the_next() {
    let mut scene = Scene::new();
    let held = Held::new(&scene.machine);
    let timed = format!("from=$EPOCHREALTIME; {}; echo $from $EPOCHREALTIME > t; mv t finished", Held::command());
    scene.server.script(Reply::bash(&timed));
    scene.server.script(Reply::text("fine"));
    scene.prompt("run long", ApproveMode::All);
    held.wait_until_it_runs();
    scene.kill_daemon();
    held.let_go();
    wait::until("the command to end", || fs::exists(scene.machine.work().join("finished")).unwrap().then_some(()));
    scene.start_daemon();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let text = &scene.server.wait_for(2).results()[0].text;
    assert!(text.trim_end().starts_with(whole_output().trim_end()), "{text}");
    assert_eq!(held.runs(), 1);
    let told = scene.logged(|body| match body {
        EventBody::CallFinished(finished) => Some(finished.duration_ms),
        _ => None,
    });
    let clock = fs::read_to_string(scene.machine.work().join("finished")).unwrap();
    let clock: Vec<f64> = clock.split_whitespace().map(|seconds| seconds.parse().unwrap()).collect();
    let took = std::time::Duration::from_secs_f64(clock[1] - clock[0]);
    assert!(u128::from(told[0]) >= took.as_millis(), "it ran {took:?}, and {} ms are told", told[0]);
}

#[test]
fn a_reply_cut_by_a_crash_is_asked_for_again_and_its_text_is_there_once() {
    let mut scene = Scene::new();
    let gate = Gate::new();
    let text = "The answer is forty-two, and this sentence takes several pieces.";
    scene.server.script(Reply::text(text).hold_after_events(5, &gate));
    scene.server.script(Reply::text(text));
    scene.prompt("what is it", ApproveMode::Ask);
    scene.client.until("a piece of the reply", |frame| matches!(frame, ServerFrame::Live(_)).then_some(()));
    scene.kill_daemon();
    scene.server.wait_for_hang_up(1);
    gate.open();
    scene.start_daemon();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert_eq!(scene.logged(reply_texts), [[text.to_owned()]]);
    let (first, second) = (scene.server.wait_for(1), scene.server.wait_for(2));
    assert_eq!(first.json["messages"], second.json["messages"]);
    assert_eq!(scene.server.requests().len(), 2);
}

#[test]
fn an_open_question_survives_the_daemon_and_its_answer_runs_the_call_once() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo ran >> count"));
    scene.server.script(Reply::text("done"));
    scene.prompt("ask me", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    scene.kill_daemon();
    scene.start_daemon();
    let Ok(Response::Approvals(open)) = scene.client.call(Request::ListApprovals(ListApprovals { session: None }))
    else {
        panic!("approvals are listed")
    };
    assert_eq!(open.approvals.as_slice(), std::slice::from_ref(&asked));
    assert!(scene.client.answer(&asked, Verdict::Once {}).unwrap().yours);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert_eq!(fs::read_to_string(scene.machine.work().join("count")).unwrap(), "ran\n");
    let asked_count = scene.logged(|body| matches!(body, EventBody::ApprovalAsked(_)).then_some(())).len();
    assert_eq!(asked_count, 1, "the question is not asked again");
}

/// A denial is followed by a look at the next call, a permission by the run: whatever comes next, the answer is on disk first.
#[test]
fn an_answer_is_on_disk_when_it_is_acknowledged() {
    for verdict in [Verdict::Deny { reason: None }, Verdict::Once {}].into_iter().cycle().take(6) {
        let mut scene = Scene::new();
        scene.server.script(Reply::blocks(vec![Block::bash("echo 1 >> count"), Block::bash("echo 2 >> count")]));
        scene.server.script(Reply::text("done"));
        scene.prompt("ask me twice", ApproveMode::Ask);
        let first = scene.client.until_asked();
        assert!(scene.client.answer(&first, verdict.clone()).unwrap().yours);
        scene.kill_daemon();
        scene.start_daemon();
        let answers = scene.logged(|body| match body {
            EventBody::ApprovalClosed(closed) if closed.approval == first.id => Some(closed.verdict.clone()),
            _ => None,
        });
        assert_eq!(answers, [verdict]);
        let second = scene.client.until_event("the second question", |body| match body {
            EventBody::ApprovalAsked(asked) if asked.approval.id != first.id => Some(asked.approval.clone()),
            _ => None,
        });
        assert!(scene.client.answer(&second, Verdict::Once {}).unwrap().yours);
        assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    }
}

#[test]
fn queued_prompts_survive_the_daemon_and_each_is_answered_once_in_order() {
    let mut scene = Scene::new();
    let gate = Gate::new();
    scene.server.script(Reply::text("never whole").hold_after_events(2, &gate));
    scene.prompt("first", ApproveMode::Ask);
    scene.server.wait_for(1);
    for text in ["second", "third", "fourth"] {
        scene.prompt(text, ApproveMode::Ask);
    }
    scene.kill_daemon();
    for text in ["one", "two", "three", "four"] {
        scene.server.script(Reply::text(text));
    }
    scene.start_daemon();
    for _ in 0..4 {
        assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    }
    let texts: Vec<String> = scene.logged(reply_texts).concat();
    assert_eq!(texts, ["one", "two", "three", "four"]);
    let last = scene.server.wait_for(5);
    assert_eq!(last.last_text(), "fourth");
    assert_eq!(scene.client.show(scene.session).queued, []);
    // A restart later nothing of it runs again.
    scene.kill_daemon();
    scene.start_daemon();
    assert_eq!(scene.client.until_caught_up(), scene.log().last().unwrap().seq);
    assert_eq!(scene.server.requests().len(), 5);
}

#[test]
fn when_daemon_and_shim_die_the_call_is_reported_as_unknown_and_not_run_again() {
    let mut scene = Scene::new();
    let held = Held::new(&scene.machine);
    scene.server.script(Reply::bash(Held::command()));
    scene.server.script(Reply::bash("echo next"));
    scene.server.script(Reply::text("I see"));
    scene.prompt("run long", ApproveMode::All);
    held.wait_until_it_runs();
    let shim = i32::try_from(scene.client.show(scene.session).shim_pid.unwrap()).unwrap();
    scene.kill_daemon();
    processes::kill_hard(shim);
    wait::until("the shim to die", || (!processes::alive(shim)).then_some(()));
    scene.start_daemon();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let result = &scene.server.wait_for(2).results()[0];
    assert!(result.is_error, "{result:?}");
    let outcomes = scene.logged(|body| match body {
        EventBody::CallFinished(finished) => Some(finished.outcome.clone()),
        _ => None,
    });
    assert_eq!(outcomes, [Outcome::Unknown {}, Outcome::Exited { status: 0 }]);
    assert_eq!(scene.server.wait_for(3).results()[0].text.lines().next(), Some("next"), "a new shell works");
    assert_eq!(held.runs(), 1);
}

#[test]
fn when_only_the_shim_dies_the_turn_goes_on_with_a_new_shell() {
    let mut scene = Scene::new();
    let held = Held::new(&scene.machine);
    scene.server.script(Reply::bash(Held::command()));
    scene.server.script(Reply::bash("echo next"));
    scene.server.script(Reply::text("I see"));
    scene.prompt("run long", ApproveMode::All);
    held.wait_until_it_runs();
    let shim = i32::try_from(scene.client.show(scene.session).shim_pid.unwrap()).unwrap();
    processes::kill_hard(shim);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert!(scene.server.wait_for(2).results()[0].is_error);
    assert_eq!(scene.server.wait_for(3).results()[0].text.lines().next(), Some("next"));
    assert_eq!(held.runs(), 1);
}

#[test]
fn a_crash_at_each_event_of_a_turn_loses_nothing_and_runs_nothing_twice() {
    // The turn's own events, counted in a first run; then one run that is killed at each of them.
    let events = crash_at(usize::MAX);
    for event in 1..events {
        crash_at(event);
    }
}

/// A turn with two parallel calls and a last word; the daemon is killed when event `kill_at` was seen. Returns the
/// number of events of the whole session.
fn crash_at(kill_at: usize) -> usize {
    let server = ModelServer::start();
    server.answer_with(|request| match request.results().len() {
        0 => Reply::blocks(vec![
            Block::Text("two calls".into()),
            Block::bash("echo ran >> one; echo first"),
            Block::bash("echo ran >> two; echo second"),
        ]),
        _ => Reply::text("both ran"),
    });
    let machine = Machine::with_model(&server.url());
    let daemon = harness::daemon::Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    let session = client.create(&machine);
    client.attach(&machine, session, Seq(0));
    client.prompt(&machine, session, "crash", ApproveMode::All);
    let mut ended = false;
    while !ended && client.events.len() < kill_at {
        ended = client.until_event("an event", |body| Some(matches!(body, EventBody::TurnEnded(_))));
    }
    let seen = client.events.clone();
    daemon.kill();
    let daemon = harness::daemon::Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    client.attach(&machine, session, Seq(0));
    assert_eq!(client.until_turn_ended().outcome, TurnOutcome::Done {}, "killed at event {kill_at}");
    let log = client.log(session);
    assert_eq!(&log[..seen.len()], seen, "what a client saw stays, killed at event {kill_at}");
    for (file, text) in [("one", "first"), ("two", "second")] {
        let runs = fs::read_to_string(machine.work().join(file)).unwrap_or_default();
        let results: Vec<String> =
            server.requests().last().unwrap().results().into_iter().map(|result| result.text).collect();
        assert!(runs == "ran\n" || runs.is_empty(), "killed at event {kill_at}: {file} ran {runs:?}");
        assert_eq!(
            results.iter().any(|result| result.starts_with(text)),
            runs == "ran\n",
            "killed at {kill_at}: {results:?}"
        );
    }
    let ends = log.iter().filter(|event| matches!(event.body, EventBody::TurnEnded(_))).count();
    assert_eq!(ends, 1, "killed at event {kill_at}");
    log.len()
}

#[test]
fn an_interrupted_turn_does_not_come_back_after_a_restart() {
    let mut scene = Scene::new();
    let held = Held::new(&scene.machine);
    scene.server.script(Reply::bash(Held::command()));
    scene.prompt("run long", ApproveMode::All);
    held.wait_until_it_runs();
    let interrupt = proto::request::Interrupt { session: scene.session.to_string() };
    scene.client.call(Request::Interrupt(interrupt)).unwrap();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Interrupted {});
    scene.kill_daemon();
    scene.start_daemon();
    scene.client.until_caught_up();
    scene.server.script(Reply::text("something else"));
    scene.good_turn("next");
    assert_eq!(scene.server.requests().len(), 2);
    let results = scene.server.wait_for(2).results();
    assert!(results[0].text.contains("before"), "what the command had written is kept: {results:?}");
    assert_eq!(held.runs(), 1);
}

#[test]
fn a_grant_for_the_session_and_the_shell_state_survive_the_daemon() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("cd /usr; kept=yes; touch \"$OLDPWD\"/one"));
    scene.server.script(Reply::text("done"));
    scene.prompt("first", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    scene.client.answer(&asked, Verdict::Session {}).unwrap();
    scene.client.until_turn_ended();
    scene.kill_daemon();
    scene.start_daemon();
    scene.client.until_caught_up();
    scene.server.script(Reply::bash("pwd; echo \"$kept\""));
    scene.server.script(Reply::text("done"));
    scene.prompt("second", ApproveMode::All);
    scene.client.until_turn_ended();
    let results = scene.server.wait_for(4).results();
    assert_eq!(results[0].text.trim_end(), "/usr\nyes");
    let flags = scene.logged(|body| match body {
        EventBody::CallStarted(started) => Some(matches!(started.allowed_by, Decider::Client { .. })),
        _ => None,
    });
    assert_eq!(flags.first(), Some(&true));
}

#[test]
fn the_events_of_a_command_are_not_lost_to_a_client_that_comes_after_the_restart() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo once"));
    scene.server.script(Reply::text("done"));
    scene.good_turn("go");
    let before = scene.log();
    scene.kill_daemon();
    scene.start_daemon();
    scene.client.until_caught_up();
    assert_eq!(scene.client.events, before);
    // The database is sound after the kill, as an independent reader sees it.
    let output = Command::new("python3")
        .args([
            "-c",
            "import sqlite3,sys; print(sqlite3.connect(sys.argv[1]).execute('pragma integrity_check').fetchone()[0])",
        ])
        .arg(scene.machine.database())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok", "{output:?}");
}

#[test]
fn a_shell_started_by_a_later_daemon_has_the_environment_of_the_sessions_creator() {
    let mut scene = Scene::new();
    scene.machine.set_env("WHO", "creator");
    let session = scene.client.create(&scene.machine);
    scene.client.attach(&scene.machine, session, Seq(0));
    scene.server.answer_with(|request| match request.results().len() {
        0 => Reply::bash("echo \"$WHO, $(env | grep -c ANTHROPIC) keys\""),
        _ => Reply::text("so be it"),
    });
    scene.client.prompt(&scene.machine, session, "who made it", ApproveMode::All);
    scene.client.until_turn_ended();
    let shim = i32::try_from(scene.client.show(session).shim_pid.unwrap()).unwrap();
    scene.kill_daemon();
    processes::kill_hard(shim);
    wait::until("the shim to die", || (!processes::alive(shim)).then_some(()));
    scene.machine.set_env("WHO", "starter of the daemon");
    scene.start_daemon();
    scene.client.attach(&scene.machine, session, Seq(0));
    scene.client.until_turn_ended();
    scene.client.prompt(&scene.machine, session, "and now", ApproveMode::All);
    scene.client.until_turn_ended();
    let results = scene.server.requests().last().unwrap().results();
    assert_eq!(results[0].text.trim_end(), "creator, 0 keys");
}
