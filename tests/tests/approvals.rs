//! Nothing runs that was not allowed, everybody sees what is asked and who answered, and the first answer wins.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::thread;

use harness::client::Client;
use harness::ctl::code;
use harness::machine::Machine;
use harness::model_server::{Block, ModelServer, Reply};
use harness::scene::Scene;
use proto::approval::{Decider, Subject, Verdict};
use proto::event::{Event, EventBody, Outcome, TurnOutcome};
use proto::handshake::{Codec, Role};
use proto::request::{ApproveMode, Interrupt, ListApprovals, Request};
use proto::response::{ErrorCode, Response, SessionState};
use serde_json::json;

/// Terminals that answer at the same moment.
const CROWD: usize = 20;

/// Times they do so in the normal run; `AGENTD_TEST_CLAIMS` says otherwise.
const ROUNDS: usize = 25;

/// Scripts one command and the answer after it.
fn script(server: &ModelServer, command: &str) {
    server.script(Reply::bash(command));
    server.script(Reply::text("so be it"));
}

fn closed(body: &EventBody) -> Option<(Verdict, Decider)> {
    match body {
        EventBody::ApprovalClosed(closed) => Some((closed.verdict.clone(), closed.by.clone())),
        _ => None,
    }
}

fn finished(body: &EventBody) -> Option<(Outcome, bool, String)> {
    match body {
        EventBody::CallFinished(finished) => Some((finished.outcome.clone(), finished.is_error, finished.text.clone())),
        _ => None,
    }
}

#[test]
fn two_terminals_see_the_same_events_in_the_same_order_and_who_answered() {
    let mut scene = Scene::new();
    script(&scene.server, "echo out; echo made > made.txt");
    let mut first = scene.another("agentctl", "pts/1");
    let mut second = scene.another("agentctl", "pts/2");
    scene.prompt("make it", ApproveMode::Ask);
    let asked = first.until_asked();
    let Subject::Command(subject) = &asked.subject else { panic!("a command is asked: {asked:?}") };
    assert_eq!(subject.command, "echo out; echo made > made.txt");
    assert_eq!(subject.cwd, scene.machine.work().to_string_lossy());
    assert!(!scene.machine.work().join("made.txt").exists(), "nothing runs before the answer");
    assert_eq!(scene.client.show(scene.session).state, SessionState::Asking);
    assert!(second.answer(&asked, Verdict::Once {}).unwrap().yours);
    let (verdict, by) = first.until_event("the question to close", closed);
    assert_eq!(verdict, Verdict::Once {});
    let Decider::Client { name } = by else { panic!("a client answered: {by:?}") };
    assert!(name.contains("agentctl") && name.contains("pts/2"), "{name}");
    assert_eq!(first.until_turn_ended().outcome, TurnOutcome::Done {});
    second.until_turn_ended();
    scene.client.until_turn_ended();
    assert_eq!(first.events, second.events);
    assert_eq!(first.events, scene.client.events);
    assert_eq!(first.events, scene.log());
    assert!(scene.machine.work().join("made.txt").exists());
    assert!(scene.client.show(scene.session).approvals.is_empty());
}

#[test]
fn a_denial_reaches_the_model_with_its_reason_and_nothing_runs() {
    let mut scene = Scene::new();
    script(&scene.server, "touch denied.txt");
    scene.prompt("try", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let reason = Some("use the other directory".to_owned());
    scene.client.answer(&asked, Verdict::Deny { reason }).unwrap();
    let (outcome, is_error, _) = scene.client.until_event("the call's result", finished);
    assert_eq!((outcome, is_error), (Outcome::Denied {}, true));
    scene.client.until_turn_ended();
    let results = scene.server.wait_for(2).results();
    assert!(results[0].is_error && results[0].text.contains("use the other directory"), "{results:?}");
    assert!(!scene.machine.work().join("denied.txt").exists());
}

#[test]
fn an_edit_is_asked_with_its_diff_and_a_plain_view_is_not_asked() {
    let mut scene = Scene::new();
    fs::write(scene.machine.work().join("a.txt"), "alpha\nbeta\n").unwrap();
    let view = json!({ "command": "view", "path": "a.txt" });
    let edit = json!({ "command": "str_replace", "path": "a.txt", "old_str": "beta", "new_str": "gamma" });
    scene.server.script(Reply::blocks(vec![Block::edit(&view)]));
    scene.server.script(Reply::blocks(vec![Block::edit(&edit)]));
    scene.server.script(Reply::text("done"));
    scene.prompt("edit", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    assert!(scene.client.events.iter().any(|event| finished(&event.body).is_some()), "the view ran without a question");
    let Subject::Edit(subject) = &asked.subject else { panic!("an edit is asked: {asked:?}") };
    assert_eq!(subject.diff.path, "a.txt");
    assert_eq!((subject.diff.added, subject.diff.removed), (1, 1));
    assert_eq!(fs::read_to_string(scene.machine.work().join("a.txt")).unwrap(), "alpha\nbeta\n");
    scene.client.answer(&asked, Verdict::Once {}).unwrap();
    scene.client.until_turn_ended();
    assert_eq!(fs::read_to_string(scene.machine.work().join("a.txt")).unwrap(), "alpha\ngamma\n");
}

#[test]
fn an_edit_whose_file_changed_after_it_was_shown_does_not_run_as_shown() {
    let mut scene = Scene::new();
    let file = scene.machine.work().join("a.txt");
    fs::write(&file, "alpha\nbeta\n").unwrap();
    let edit = json!({ "command": "str_replace", "path": "a.txt", "old_str": "beta", "new_str": "gamma" });
    scene.server.script(Reply::blocks(vec![Block::edit(&edit)]));
    scene.server.script(Reply::text("done"));
    scene.prompt("edit", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    fs::write(&file, "something else\nbeta\n").unwrap();
    scene.client.answer(&asked, Verdict::Once {}).unwrap();
    let again = scene.client.until("another question or the turn's end", |frame| match frame {
        proto::response::ServerFrame::Event(event) => match &event.event.body {
            EventBody::ApprovalAsked(asked) => Some(Some(asked.approval.clone())),
            EventBody::TurnEnded(_) => Some(None),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(fs::read_to_string(&file).unwrap(), "something else\nbeta\n");
    if let Some(asked) = again {
        scene.client.answer(&asked, Verdict::Deny { reason: None }).unwrap();
        scene.client.until_turn_ended();
    }
}

#[test]
fn an_answer_for_the_session_covers_the_very_same_call_only() {
    let mut scene = Scene::new();
    for command in ["touch one", "touch one", "touch two"] {
        scene.server.script(Reply::bash(command));
    }
    scene.server.script(Reply::text("done"));
    scene.prompt("three times", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    scene.client.answer(&asked, Verdict::Session {}).unwrap();
    let asked = scene.client.until_asked();
    let Subject::Command(subject) = &asked.subject else { panic!("a command is asked") };
    assert_eq!(subject.command, "touch two", "the second call was the first again");
    scene.client.answer(&asked, Verdict::Once {}).unwrap();
    scene.client.until_turn_ended();
    let granted = |event: &Event| match &event.body {
        EventBody::CallStarted(started) => matches!(started.allowed_by, Decider::Grant { .. }),
        _ => false,
    };
    assert_eq!(scene.log().iter().filter(|event| granted(event)).count(), 1);
}

#[test]
fn an_interrupt_closes_the_open_question_and_the_turn() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("touch never"));
    scene.prompt("wait", ApproveMode::Ask);
    scene.client.until_asked();
    scene.client.call(Request::Interrupt(Interrupt { session: scene.session.to_string() })).unwrap();
    let (_, by) = scene.client.until_event("the question to close", closed);
    assert_eq!(by, Decider::Interrupt {});
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Interrupted {});
    scene.server.script(Reply::text("still here"));
    scene.good_turn("and now");
    assert!(!scene.machine.work().join("never").exists());
    let results = scene.server.wait_for(2).results();
    assert_eq!(results.len(), 1, "the open call was answered before the next prompt");
}

#[test]
fn an_observer_may_not_answer_and_an_approver_may_not_prompt() {
    let mut scene = Scene::new();
    script(&scene.server, "echo hi > out.txt");
    scene.prompt("run", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let connect = |role| Client::connect_as(&scene.machine.socket(), Codec::Bincode, role).unwrap();
    let error = connect(Role::Observer).answer(&asked, Verdict::Once {}).unwrap_err();
    assert_eq!(error.code, ErrorCode::Forbidden);
    let mut approver = connect(Role::Approver);
    let interrupt = Request::Interrupt(Interrupt { session: scene.session.to_string() });
    assert_eq!(approver.call(interrupt).unwrap_err().code, ErrorCode::Forbidden);
    assert!(approver.answer(&asked, Verdict::Once {}).unwrap().yours);
    scene.client.until_turn_ended();
}

#[test]
fn an_answer_to_something_else_than_what_was_asked_is_refused() {
    let mut scene = Scene::new();
    script(&scene.server, "echo hi > out.txt");
    scene.prompt("run", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let mut other = asked.clone();
    other.digest = "0".repeat(64);
    let error = scene.client.answer(&other, Verdict::Once {}).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    other.id = proto::ids::ApprovalId::new();
    assert_eq!(scene.client.answer(&other, Verdict::Once {}).unwrap_err().code, ErrorCode::NotFound);
    assert!(!scene.machine.work().join("out.txt").exists());
    scene.client.answer(&asked, Verdict::Deny { reason: None }).unwrap();
    scene.client.until_turn_ended();
}

#[test]
fn without_a_terminal_a_call_is_denied_and_ask_says_so_with_its_exit_code() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    script(&server, "touch unasked.txt");
    let output = machine.ctl(&["ask", "do it"]).run().expect(code::DENIED);
    assert!(!machine.work().join("unasked.txt").exists());
    assert!(output.stdout.contains("so be it"), "the model had the last word: {output:?}");
    assert!(server.wait_for(2).results()[0].is_error);
    script(&server, "touch allowed.txt");
    // Another first prompt: another session.
    let _ = machine.ctl(&["ask", "do it for all", "--approve", "all"]).run().expect(code::DONE);
    assert!(machine.work().join("allowed.txt").exists());
}

#[test]
fn a_question_is_listed_and_answered_from_any_shell() {
    let mut scene = Scene::new();
    for (prompt, verb, file) in [("yes please", "approve", "yes.txt"), ("no thanks", "deny", "no.txt")] {
        script(&scene.server, &format!("touch {file}"));
        scene.prompt(prompt, ApproveMode::Ask);
        let asked = scene.client.until_asked();
        let listed = scene.machine.ctl(&["approvals", "--json"]).run().expect(code::DONE);
        assert!(listed.stdout.contains(&asked.id.to_string()), "{}", listed.stdout);
        let _ = listed.json_lines();
        let plain = scene.machine.ctl(&["approvals"]).run().expect(code::DONE);
        assert!(plain.stdout.contains(&format!("touch {file}")), "{}", plain.stdout);
        let _ = scene.machine.ctl(&[verb, &asked.id.short()]).run().expect(code::DONE);
        scene.client.until_turn_ended();
        assert_eq!(scene.machine.work().join(file).exists(), verb == "approve");
        let Ok(Response::Approvals(open)) = scene.client.call(Request::ListApprovals(ListApprovals { session: None }))
        else {
            panic!("approvals are listed")
        };
        assert!(open.approvals.is_empty());
    }
    let output = scene.machine.ctl(&["approve", "00000000"]).run().expect(code::NOT_FOUND);
    assert_eq!(output.stderr.trim_end().lines().count(), 1, "{}", output.stderr);
}

#[test]
fn of_twenty_answers_one_wins_every_time_everyone_learns_whose_and_the_command_runs_at_most_once() {
    let rounds = std::env::var("AGENTD_TEST_CLAIMS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let mut scene = Scene::new();
    let mut crowd: Vec<Client> = (0..CROWD).map(|number| scene.another("crowd", &format!("pts/{number}"))).collect();
    let (mut yes, mut no) = (0, 0);
    for round in 0..rounds {
        let file = format!("ran-{round}.txt");
        script(&scene.server, &format!("echo ran >> {file}"));
        scene.prompt("run it once", ApproveMode::Ask);
        let asked = scene.client.until_asked();
        let start = Barrier::new(CROWD);
        let answers: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = crowd
                .iter_mut()
                .enumerate()
                .map(|(number, client)| {
                    let (start, asked) = (&start, &asked);
                    scope.spawn(move || {
                        let verdict = match number % 3 {
                            0 => Verdict::Once {},
                            1 => Verdict::Edit { command: asked_command(asked) + " # changed" },
                            _ => Verdict::Deny { reason: Some(format!("no from {number}")) },
                        };
                        start.wait();
                        let answer = client.answer(asked, verdict).unwrap();
                        let seen = client.until_event("the question to close", closed);
                        (answer, seen)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winners: Vec<_> = answers.iter().filter(|(answer, _)| answer.yours).collect();
        assert_eq!(winners.len(), 1, "round {round}: exactly one answer wins");
        let won = (winners[0].0.verdict.clone(), winners[0].0.by.clone());
        for (answer, seen) in &answers {
            assert_eq!((&answer.verdict, &answer.by), (&won.0, &won.1), "round {round}");
            assert_eq!(*seen, won, "round {round}: every terminal sees whose it was");
        }
        scene.client.until_turn_ended();
        crowd.iter_mut().for_each(|client| drop(client.until_turn_ended()));
        let ran = fs::read_to_string(scene.machine.work().join(file)).unwrap_or_default();
        assert_eq!(ran, if won.0.allows() { "ran\n" } else { "" }, "round {round}");
        if won.0.allows() { yes += 1 } else { no += 1 }
    }
    println!("{rounds} rounds of {CROWD}: {yes} allowed, {no} denied");
}

fn asked_command(asked: &proto::approval::Approval) -> String {
    match &asked.subject {
        Subject::Command(command) => command.command.clone(),
        other => panic!("a command is asked: {other:?}"),
    }
}

#[test]
fn always_writes_the_rule_that_was_shown_and_it_counts_at_once_and_in_other_sessions() {
    let mut scene = Scene::new();
    let file = scene.machine.config_file().with_file_name("policy.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "# mine\n[[rule]]\ndecision = \"deny\" # never\ncommand = \"rm\"\n").unwrap();
    script(&scene.server, "touch one");
    scene.prompt("touch it", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let proposal = asked.proposal.clone().expect("a rule is proposed");
    assert_eq!(proposal.file, file.display().to_string());
    let id = asked.id.short();
    let shown = scene.machine.ctl(&["approvals"]).run().expect(code::DONE).stdout;
    assert!(shown.contains(r#"always adds decision = "allow", command = ["touch", "one"], exact = true"#), "{shown}");
    let _ = scene.machine.ctl(&["approve", &id, "--always"]).run().expect(code::DONE);
    scene.client.until_turn_ended();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# mine\n") && text.contains("# never") && text.ends_with(&proposal.toml), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let session = scene.client.create(&scene.machine);
    scene.client.attach(&scene.machine, session, proto::ids::Seq(0));
    script(&scene.server, "touch one");
    scene.client.prompt(&scene.machine, session, "again", ApproveMode::Deny);
    let (outcome, ..) = scene.client.until_event("the call's result", finished);
    assert_eq!(outcome, Outcome::Exited { status: 0 });
    scene.client.until_turn_ended();
}

#[test]
fn when_the_rule_cannot_be_written_the_call_runs_once_and_the_user_is_told() {
    let mut scene = Scene::new();
    script(&scene.server, "touch one");
    scene.prompt("touch it", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let file = scene.machine.config_file().with_file_name("policy.toml");
    fs::create_dir_all(&file).unwrap();
    scene.client.answer(&asked, Verdict::Always {}).unwrap();
    scene.client.until_turn_ended();
    assert!(scene.machine.work().join("one").exists());
    let notices = scene.logged(|body| match body {
        EventBody::Notice(notice) => Some(notice.text.clone()),
        _ => None,
    });
    assert!(notices.iter().any(|text| text.contains("could not be added")), "{notices:?}");
}

#[test]
fn an_answer_for_the_session_is_the_proposed_rule_and_ends_with_the_session() {
    let mut scene = Scene::new();
    for command in ["git tag one", "git tag two"] {
        scene.server.script(Reply::bash(command));
    }
    scene.server.script(Reply::text("done"));
    scene.prompt("tag", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    scene.client.answer(&asked, Verdict::Session {}).unwrap();
    scene.client.until_turn_ended();
    scene.kill_daemon();
    scene.start_daemon();
    script(&scene.server, "git tag three");
    scene.prompt("and now", ApproveMode::Deny);
    rest(&mut scene);
    let granted = |body: &EventBody| match body {
        EventBody::CallStarted(started) => Some(matches!(started.allowed_by, Decider::Grant { .. })),
        _ => None,
    };
    assert_eq!(scene.logged(granted), [false, true, true]);
    assert!(!scene.machine.config_file().with_file_name("policy.toml").exists());
    scene.session = scene.client.create(&scene.machine);
    script(&scene.server, "git tag four");
    scene.prompt("elsewhere", ApproveMode::Deny);
    rest(&mut scene);
    assert!(scene.logged(granted).is_empty());
}

/// Waits until the session has nothing more to do.
fn rest(scene: &mut Scene) {
    harness::wait::until("the session to rest", || {
        let info = scene.client.show(scene.session);
        (info.state == SessionState::Idle && info.queued.is_empty()).then_some(())
    });
}

#[test]
fn a_changed_command_runs_instead_rules_that_deny_hold_for_it_and_the_model_is_told() {
    let mut scene = Scene::new();
    let file = scene.machine.config_file().with_file_name("policy.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[[rule]]\ndecision = \"deny\"\ncommand = \"rmdir\"\n").unwrap();
    script(&scene.server, "touch wrong");
    scene.prompt("touch it", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let _ =
        scene.machine.ctl(&["approve", &asked.id.short(), "--edit", "touch right; echo so"]).run().expect(code::DONE);
    scene.client.until_turn_ended();
    assert!(scene.machine.work().join("right").exists() && !scene.machine.work().join("wrong").exists());
    let told = scene.server.wait_for(2).results()[0].text.clone();
    assert!(
        told.contains("the user changed the command") && told.contains("touch right") && told.contains("so"),
        "{told}"
    );
    script(&scene.server, "touch wrong");
    scene.prompt("again", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let empty = scene.client.answer(&asked, Verdict::Edit { command: " ".into() }).unwrap_err();
    assert_eq!(empty.code, ErrorCode::Conflict, "{empty}");
    scene.client.answer(&asked, Verdict::Edit { command: "rmdir x".into() }).unwrap();
    scene.client.until_turn_ended();
    let result = scene.server.wait_for(4).results()[0].clone();
    assert!(result.is_error && result.text.contains("rmdir"), "{result:?}");
}

#[test]
fn a_question_outlives_kill_9_of_everybody_and_expires_on_time() {
    let mut scene = Scene::with(&[("approval.expiry", "3s")]);
    script(&scene.server, "touch late.txt");
    scene.prompt("anybody?", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    scene.kill_daemon();
    scene.start_daemon();
    let open = scene.client.show(scene.session).approvals;
    assert_eq!(open, std::slice::from_ref(&asked), "the same question, with the same expiry");
    let (_, by) = scene.client.until_event("the question to close", closed);
    assert_eq!(by, Decider::Expiry {});
    scene.client.until_turn_ended();
    let at = scene.log().iter().find(|event| closed(&event.body).is_some()).map(|event| event.at).unwrap();
    assert!(at >= asked.expires_at && at.0 < asked.expires_at.0 + 1_000, "{at:?}, due {:?}", asked.expires_at);
    assert!(!scene.machine.work().join("late.txt").exists());
}

#[test]
fn what_changed_in_the_shell_between_question_and_run_is_asked_again() {
    let mut scene = Scene::new();
    // A signal changes the shell while it waits, as a background process of an earlier command could.
    scene.server.script(Reply::bash("trap 'mkdir -p moved; cd moved; deploy() { :; }' USR1; echo $$ > pid"));
    scene.server.script(Reply::text("set"));
    scene.good_turn("set a trap");
    script(&scene.server, "touch here.txt");
    scene.prompt("touch it", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let pid: i32 = fs::read_to_string(scene.machine.work().join("pid")).unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGUSR1).unwrap();
    let moved = || fs::read_link(format!("/proc/{pid}/cwd")).unwrap().ends_with("moved").then_some(());
    harness::wait::until("the shell to move", moved);
    scene.client.answer(&asked, Verdict::Once {}).unwrap();
    let again = scene.client.until_asked();
    assert!(again.reason.contains("the shell moved"), "{}", again.reason);
    assert_ne!((again.id, &again.digest), (asked.id, &asked.digest));
    assert!(!scene.machine.work().join("here.txt").exists() && !scene.machine.work().join("moved/here.txt").exists());
    scene.client.answer(&again, Verdict::Once {}).unwrap();
    // That it has a function more may be found out later than that it moved: then it is asked once more.
    let asked_or_over = |body: &EventBody| match body {
        EventBody::ApprovalAsked(asked) => Some(Some(asked.approval.clone())),
        EventBody::TurnEnded(_) => Some(None),
        _ => None,
    };
    while let Some(more) = scene.client.until_event("a question or the turn's end", asked_or_over) {
        assert!(more.reason.contains("deploy is a function"), "{}", more.reason);
        scene.client.answer(&more, Verdict::Once {}).unwrap();
    }
    assert!(scene.machine.work().join("moved/here.txt").exists());
}
