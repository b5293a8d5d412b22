//! `ask` against a scripted daemon: what reaches standard output and standard error, and the exit codes.

mod support;

use std::io::Write;
use std::process::Stdio;

use expect_test::expect;
use proto::event::{Block, Outcome, TurnOutcome};
use proto::live::{Live, LiveRestarted};
use proto::request::{ApproveMode, Request};
use proto::response::{Goodbye, ServerFrame};
use support::{Fake, err, out, rows, with_session};

#[test]
fn the_answer_goes_to_stdout_and_everything_else_to_stderr() {
    let fake = Fake::start(|peer, _| {
        let call = peer.calls("$ cargo test");
        peer.starts(call);
        peer.output(call, 0, "running\n");
        peer.finishes(call, Outcome::Exited { status: 0 }, "running\nok\n");
        peer.says("All tests **pass**.");
        peer.done();
    });
    let output = fake.run(&["ask", "test it"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output), "All tests **pass**.\n");
    expect![[r#"
        · session ab12cd34 (new) · mode ask
        ● $ cargo test · exit 0 · 1.2 s
          running
          ok
    "#]]
    .assert_eq(&err(&output));
    let prompts = fake.prompts();
    assert_eq!(prompts.len(), 1);
    assert_eq!((prompts[0].text.as_str(), prompts[0].approve), ("test it", ApproveMode::Deny));
}

#[test]
fn the_subscription_comes_before_the_prompt() {
    let fake = Fake::start(|peer, _| peer.done());
    assert!(fake.run(&["ask", "x"]).status.success());
    let requests = fake.requests();
    let attach = requests.iter().position(|request| matches!(request, Request::Attach(_)));
    let prompt = requests.iter().position(|request| matches!(request, Request::SendPrompt(_)));
    assert!(attach.unwrap() < prompt.unwrap());
}

#[test]
fn a_new_session_gets_directory_environment_endpoint_model_and_scenario() {
    let fake = Fake::start(|peer, _| peer.done());
    std::fs::write(fake.home.path().join("play.toml"), "").unwrap();
    let status = fake
        .command(&["ask", "--scenario", "play.toml", "x"])
        .env("ANTHROPIC_BASE_URL", "http://localhost:1")
        .env("ANTHROPIC_API_KEY", "sk-secret")
        .env("ANTHROPIC_MODEL", "model-2")
        .env("EDITOR", "vi")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(status.status.success());
    let create = fake.requests().into_iter().find_map(|request| match request {
        Request::CreateSession(create) => Some(create),
        _ => None,
    });
    let create = create.unwrap();
    let home = fake.home.path().canonicalize().unwrap();
    assert_eq!(create.cwd, home.display().to_string());
    assert_eq!(create.env.get("EDITOR"), Some("vi"));
    assert_eq!(create.model.as_deref(), Some("model-2"));
    assert_eq!(create.scenario.unwrap(), home.join("play.toml").display().to_string());
    assert_eq!(create.endpoint.base_url.as_deref(), Some("http://localhost:1"));
    assert_eq!(create.endpoint.api_key.unwrap().expose(), "sk-secret");
}

#[test]
fn the_newest_idle_session_of_the_directory_is_continued_and_new_starts_another() {
    let fake = Fake::start(|peer, _| peer.done());
    with_session(&fake, |_| {});
    let continued = fake.run(&["ask", "x"]);
    assert!(err(&continued).contains("session ab12cd34 (continued; --new starts a fresh one)"), "{}", err(&continued));
    let new = fake.run(&["ask", "--new", "x"]);
    assert!(err(&new).contains("session ab12cd34 (new)"), "{}", err(&new));
    with_session(&fake, |info| info.state = proto::response::SessionState::Running);
    let busy = fake.run(&["ask", "x"]);
    assert!(err(&busy).contains("(new)"), "a session at work is not continued: {}", err(&busy));
    with_session(&fake, |info| info.provider = "scripted".into());
    let other = fake.run(&["ask", "x"]);
    assert!(err(&other).contains("(new)"), "a played session is not continued with a real model: {}", err(&other));
}

#[test]
fn what_is_piped_in_becomes_context() {
    let fake = Fake::start(|peer, _| peer.done());
    let mut child = fake.command(&["ask", "review"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"+ a line\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(fake.prompts()[0].text.contains("<stdin>\n+ a line\n</stdin>"));
}

#[test]
fn an_open_silent_pipe_does_not_hang_and_is_mentioned() {
    let fake = Fake::start(|peer, _| peer.done());
    let mut child = fake.command(&["ask", "review"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let held = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(held);
    assert!(output.status.success());
    assert!(err(&output).contains("nothing came through standard input"), "{}", err(&output));
    assert_eq!(fake.prompts()[0].text, "review");
}

/// A reply that broke off reached a file's reader twice in other clients; here a file gets whole replies only.
#[test]
fn a_reply_that_was_sent_again_is_in_the_output_once() {
    let fake = Fake::start(|peer, _| {
        let request = peer.request_sent();
        peer.text(request, 0, "Hello wor");
        let session = peer.session().id;
        peer.live(Live::Restarted(LiveRestarted { session, request }));
        peer.text(request, 0, "Hello ");
        peer.text(request, 6, "world");
        peer.reply(request, vec![Block::Text { text: "Hello world".into() }]);
        peer.done();
    });
    let output = fake.run(&["ask", "x"]);
    assert_eq!(out(&output), "Hello world\n");
}

#[test]
fn quiet_prints_the_final_answer_alone() {
    let fake = Fake::start(|peer, _| {
        peer.says("Let me look.");
        let call = peer.calls("$ ls");
        peer.finishes(call, Outcome::Exited { status: 0 }, "x\n");
        peer.says("It is 42.");
        peer.done();
    });
    let output = fake.run(&["ask", "--quiet", "x"]);
    assert_eq!((out(&output).as_str(), err(&output).as_str()), ("It is 42.\n", ""));
}

#[test]
fn json_is_every_frame_and_then_the_result() {
    let fake = Fake::start(|peer, _| {
        let request = peer.request_sent();
        peer.text(request, 0, "It is");
        peer.reply(request, vec![Block::Text { text: "It is 42.\u{9b}".into() }]);
        peer.done();
    });
    let output = fake.run(&["ask", "--json", "x"]);
    let text = out(&output);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line.as_object().unwrap().keys().next().unwrap().as_str()).collect();
    assert_eq!(kinds, ["caught_up", "event", "event", "event", "live", "event", "event", "result"]);
    assert_eq!(lines[4]["live"]["text"]["text"], "It is");
    let result = &lines[7]["result"];
    assert_eq!(
        (&result["outcome"], &result["text"], &result["exit"]),
        (&"done".into(), &"It is 42.\u{9b}".into(), &0.into())
    );
    assert_eq!(err(&output), "");
}

#[test]
fn every_end_of_a_turn_has_its_exit_code_and_sentence() {
    type Script = fn(&mut support::Peer);
    let table: [(Script, i32, &str); 5] = [
        (
            |peer| {
                let call = peer.calls("$ rm x");
                peer.finishes(call, Outcome::Denied {}, "not allowed: nobody is there to ask");
                peer.says("I may not.");
                peer.done();
            },
            4,
            "● $ rm x · not allowed",
        ),
        (|peer| peer.ends(TurnOutcome::Interrupted {}), 5, "! interrupted"),
        (
            |peer| {
                let (category, explanation) = (Some("cyber".into()), Some("no such help".into()));
                peer.ends(TurnOutcome::Refused { category, explanation });
            },
            7,
            "✗ the model refused to answer (cyber): no such help",
        ),
        (
            |peer| {
                let problem =
                    rows::problem("no_key", "there is no key for https://api.anthropic.com", "set ANTHROPIC_API_KEY");
                peer.ends(TurnOutcome::Failed { problem });
            },
            3,
            "✗ there is no key for https://api.anthropic.com; set ANTHROPIC_API_KEY",
        ),
        (|peer| peer.done(), 0, "new"),
    ];
    for (script, code, sentence) in table {
        let fake = Fake::start(move |peer, _| script(peer));
        let output = fake.run(&["ask", "x"]);
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert!(err(&output).contains(sentence), "{:?} lacks {sentence:?}", err(&output));
    }
}

#[test]
fn approve_says_what_happens_to_calls_that_would_ask() {
    let fake = Fake::start(|peer, _| peer.done());
    for (arg, mode) in [("all", ApproveMode::All), ("none", ApproveMode::Deny), ("rules", ApproveMode::Deny)] {
        assert!(fake.run(&["ask", "--approve", arg, "x"]).status.success());
        assert_eq!(fake.prompts().last().unwrap().approve, mode);
    }
}

#[test]
fn detach_returns_when_the_prompt_is_accepted() {
    let fake = Fake::start(|peer, _| {
        // The turn goes on; the client is gone by then.
        while peer.request().is_some() {}
    });
    let output = fake.run(&["ask", "--detach", "x"]);
    assert!(output.status.success());
    assert!(err(&output).contains("accepted; agentctl attach ab12cd34 shows it"), "{}", err(&output));
}

/// The daemon is killed and another takes its place while a turn runs: the client goes on after the last row it saw.
#[test]
fn a_lost_connection_is_made_again_and_no_row_is_missed_or_doubled() {
    let fake = Fake::start(|peer, _| {
        peer.says("one");
        peer.close();
        // What happened while nobody was connected.
        peer.says("two");
        peer.done();
    });
    let output = fake.run(&["ask", "x"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output), "one\ntwo\n");
    assert!(err(&output).contains("agentd went away; connecting again"), "{}", err(&output));
}

/// A daemon that was stopped on purpose is not started again by its clients; one that comes back is found.
#[test]
fn a_daemon_that_says_goodbye_is_waited_for() {
    let fake = Fake::start(|peer, _| {
        peer.says("one");
        peer.send(&ServerFrame::Goodbye(Goodbye { reason: "upgrade".into() }));
        peer.close();
        peer.says("two");
        peer.done();
    });
    let output = fake.command(&["ask", "x"]).env("AGENTD_BIN", "/bin/false").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output), "one\ntwo\n");
    assert!(err(&output).contains("agentd says: upgrade; connecting again"), "{}", err(&output));
}

#[test]
fn attach_takes_prompts_from_a_pipe_and_leaves_when_they_are_done() {
    let fake = Fake::start(|peer, prompt| {
        peer.says(&format!("You said {}.", prompt.text));
        peer.done();
    });
    with_session(&fake, |_| {});
    let mut command = fake.command(&["attach"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"first\nsecond\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(out(&output), "You said first.\nYou said second.\n", "{}", err(&output));
    assert!(output.status.success());
}

#[test]
fn a_client_that_read_too_slowly_takes_up_the_thread() {
    let fake = Fake::start(|peer, _| {
        peer.says("one");
        let session = peer.session().id;
        let after = proto::ids::Seq(4);
        peer.send(&ServerFrame::Lagged(proto::response::Lagged { session, after }));
        let attach = peer.request().unwrap();
        assert!(matches!(attach.1, Request::Attach(ref attach) if attach.since == after), "{attach:?}");
        let info = peer.session();
        peer.ok(attach.0, proto::response::Response::Attached(proto::response::Attached { session: info }));
        peer.says("two");
        peer.done();
    });
    let output = fake.run(&["ask", "x"]);
    assert_eq!(out(&output), "one\ntwo\n", "{}", err(&output));
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let fake = Fake::start(|peer, _| {
        for _ in 0..50 {
            peer.says(&"long text ".repeat(2_000));
        }
        peer.done();
    });
    let mut child =
        fake.command(&["ask", "x"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!err(&output).contains("agentctl:"), "{}", err(&output));
}
