//! Keeping sessions: found again by their words, gone on with from any point, written out, removed when they are old.

use std::fs;

use harness::ctl::code;
use harness::model_server::Reply;
use harness::scene::Scene;
use proto::event::EventBody;
use proto::ids::Seq;
use proto::request::{ApproveMode, Attach, Request};
use proto::response::Response;

#[test]
fn words_are_found_in_prompts_answers_commands_and_output_of_all_sessions() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo Walrus-$((40 + 2))"));
    scene.server.script(Reply::text("The penguin is *done*."));
    scene.good_turn("look for an albatross");
    let find = |words: &[&str]| {
        let arguments = [&["search", "--json"], words].concat();
        let lines = scene.machine.ctl(&arguments).run().expect(code::DONE).json_lines();
        let short = |line: &serde_json::Value| format!("{} {}", line["seq"], line["speaker"].as_str().unwrap());
        lines.iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(find(&["albatross"]), ["2 \"user\"".replace('"', "")]);
    assert_eq!(find(&["PENGUIN", "done"]), ["9 model"]);
    assert_eq!(find(&["walrus"]), ["7 tool", "5 model"], "newest first; a word also begins longer ones");
    assert_eq!(find(&["walrus", "penguin"]), Vec::<String>::new(), "all words in one row");
    // What came after the first search is found by the next; nothing a person types is an operator.
    scene.server.script(Reply::text("a second penguin"));
    scene.good_turn("NOT \"quoted* AND (odd");
    let find = |words: &[&str]| {
        let arguments = [&["search"], words].concat();
        scene.machine.ctl(&arguments).run().expect(code::DONE).stdout
    };
    assert_eq!(find(&["penguin"]).lines().count(), 3, "a head and two rows");
    assert!(find(&["NOT \"quoted*"]).contains("NOT \"quoted* AND (odd"));
    let _ = scene.machine.ctl(&["search", "--", "-"]).run().expect(code::OTHER);
    let _ = scene.machine.ctl(&["rm", &scene.session.to_string()]).run().expect(code::DONE);
    let gone = scene.machine.ctl(&["search", "penguin"]).run().expect(code::DONE);
    assert_eq!(gone.stdout, "", "a removed session is not found");
}

#[test]
fn a_fork_goes_on_from_its_point_with_a_new_shell_and_the_other_session_does_not_notice() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("kept=yes; mkdir sub; cd sub"));
    scene.server.script(Reply::text("first answer"));
    scene.good_turn("first");
    let first_end = scene.log().last().unwrap().seq;
    scene.server.script(Reply::text("second answer"));
    scene.good_turn("second");
    let before = scene.log();
    // To the server a fork is the same session that says something else after the first turn.
    scene.server.expect_kills();
    // In the middle of the second turn: back to the end of the first.
    let at = (first_end.0 + 2).to_string();
    let forked =
        scene.machine.ctl(&["fork", &scene.session.to_string(), "--at", &at, "--name", "other", "--json"]).run();
    let forked = &forked.expect(code::DONE).json_lines()[0];
    let id = forked["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(forked["head"].as_u64().unwrap(), first_end.0 + 1);
    scene.server.answer_with(|request| match request.results().len() {
        0 => Reply::bash("echo \"[$kept]\"; pwd"),
        _ => Reply::text("in the fork"),
    });
    let endpoint = scene.machine.endpoint();
    scene.client.call(Request::Attach(Attach { session: "other".into(), since: Seq(0), endpoint })).unwrap();
    scene.client.until_caught_up();
    scene.client.prompt(&scene.machine, id, "third", ApproveMode::All);
    scene.client.until_turn_ended();
    let request = scene.server.requests().pop().unwrap();
    let said = request.json.to_string();
    assert!(said.contains("first answer") && !said.contains("second answer"), "its history ends at the point");
    assert!(said.contains("taken over from another session"), "the model is told");
    assert_eq!(request.results()[0].text.trim_end(), format!("[]\n{}", scene.machine.work().display()));
    assert_eq!(scene.log(), before, "the other session is as it was");
    let forks = scene.client.log(id);
    assert_eq!(forks[..usize::try_from(first_end.0).unwrap()], before[..usize::try_from(first_end.0).unwrap()]);
    // It stands on its own: after a restart, and when the other is gone.
    let _ = scene.machine.ctl(&["rm", &scene.session.to_string()]).run().expect(code::DONE);
    scene.daemon().signal(nix::sys::signal::Signal::SIGTERM);
    harness::wait::until("the daemon to stop", || scene.machine.daemons().is_empty().then_some(()));
    let log = scene.machine.ctl(&["log", "other"]).run().expect(code::DONE).stdout;
    assert!(log.contains("first answer") && log.contains("in the fork"), "{log}");
    let _ = scene.machine.ctl(&["shutdown", "--stop-shells"]).run().expect(code::DONE);
}

#[test]
fn a_fork_of_a_session_at_work_takes_what_was_finished_and_runs_nothing() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo ran >> count"));
    scene.prompt("ask me", ApproveMode::Ask);
    scene.client.until_asked();
    let forked = scene.machine.ctl(&["fork", &scene.session.to_string(), "--json"]).run().expect(code::DONE);
    let id = forked.json_lines()[0]["id"].as_str().unwrap().parse().unwrap();
    let kinds: Vec<bool> =
        scene.client.log(id).iter().map(|event| matches!(event.body, EventBody::SessionForked(_))).collect();
    assert_eq!(kinds, [false, true], "the session began, and nothing of the turn that runs");
    assert_eq!(scene.client.show(id).approvals, []);
    assert!(!scene.machine.work().join("count").exists());
}

#[test]
fn an_export_holds_what_was_asked_said_and_run() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo '```'; exit 3"));
    scene.server.script(Reply::text("It **failed**."));
    scene.good_turn("try it");
    let session = scene.session.to_string();
    let markdown = scene.machine.ctl(&["export", &session]).run().expect(code::DONE).stdout;
    assert!(markdown.starts_with(&format!("# {}: try it\n", scene.session.short())), "{markdown}");
    for part in ["> try it", "$ echo '```'; exit 3", "````\n```\n", "It **failed**."] {
        assert!(markdown.contains(part), "{part} is in\n{markdown}");
    }
    let lines = scene.machine.ctl(&["export", &session, "--json"]).run().expect(code::DONE).json_lines();
    let rows = scene.log();
    assert_eq!(lines.len(), 1 + rows.len(), "the session, then its rows");
    assert_eq!(lines[0]["session"]["id"], session);
    assert_eq!(lines[2]["event"]["event"], serde_json::to_value(&rows[1]).unwrap());
}

#[test]
fn old_sessions_are_listed_removed_and_their_space_given_back_but_none_that_is_used() {
    let mut scene = Scene::new();
    let text = "x".repeat(400_000);
    let old: Vec<_> = (0..3).map(|_| scene.client.create(&scene.machine)).collect();
    scene.server.answer_with(|request| match request.last_text().len() {
        0..1000 => Reply::bash("true; sleep 8680001"),
        _ => Reply::text("long"),
    });
    for session in &old[..2] {
        scene.client.attach(&scene.machine, *session, Seq(0));
        scene.client.prompt(&scene.machine, *session, &text, ApproveMode::All);
        scene.client.until_turn_ended();
        let detach = proto::request::Detach { session: session.to_string() };
        scene.client.call(Request::Detach(detach)).unwrap();
    }
    // One is at work, one is attached to.
    scene.client.prompt(&scene.machine, old[2], "work", ApproveMode::All);
    harness::wait::until("the command", || (!harness::processes::with_argument("8680001").is_empty()).then_some(()));
    let size = || fs::metadata(scene.machine.database()).unwrap().len();
    let listed = scene.machine.ctl(&["prune", "--older-than", "0m"]).run().expect(code::DONE);
    assert!(listed.stderr.contains("2 sessions; --yes"), "{listed:?}");
    let pruned = scene.machine.ctl(&["prune", "--older-than", "0m", "--yes", "--json"]).run().expect(code::DONE);
    let pruned = &pruned.json_lines()[0];
    assert_eq!(pruned["sessions"].as_array().unwrap().len(), 2);
    let freed = pruned["bytes_before"].as_u64().unwrap() - pruned["bytes_after"].as_u64().unwrap();
    assert!(freed > 800_000, "{pruned}");
    assert!(size() < pruned["bytes_before"].as_u64().unwrap() + 800_000);
    let left = scene.machine.ctl(&["ls", "--json"]).run().expect(code::DONE).json_lines();
    let mut left: Vec<&str> = left.iter().map(|line| line["id"].as_str().unwrap()).collect();
    let mut expected = [scene.session.to_string(), old[2].to_string()];
    left.sort_unstable();
    expected.sort_unstable();
    assert_eq!(left, expected);
    let wrong = scene.machine.ctl(&["prune", "--older-than", "soon"]).run().expect(code::USAGE);
    assert!(wrong.stderr.contains("30d"), "{wrong:?}");
    scene.client.call(Request::Interrupt(proto::request::Interrupt { session: old[2].to_string() })).unwrap();
    let Response::Session(_) = scene
        .client
        .call(Request::ShowSession(proto::request::ShowSession { session: scene.session.to_string() }))
        .unwrap()
    else {
        panic!("the attached session is there")
    };
}
