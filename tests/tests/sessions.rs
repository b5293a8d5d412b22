//! The main job, end to end: a prompt, tool calls in a real directory, an answer; and what the other verbs show of it.

use std::fs;

use harness::ctl::code;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{Block, ModelServer, Reply};
use harness::scene::Scene;
use harness::wait;
use proto::approval::{Subject, Verdict};
use proto::event::{EventBody, Outcome, TurnOutcome};
use proto::ids::Seq;
use proto::request::{ApproveMode, CreateSession, Endpoint, Interrupt, Request, WithdrawPrompt};
use proto::response::{Response, ServerFrame};
use serde_json::json;

/// The session that a machine's one `ls` line shows.
fn only_session(machine: &Machine) -> String {
    let listed = machine.ctl(&["ls", "--json"]).run().expect(code::DONE);
    let lines = listed.json_lines();
    let text = listed.stdout.clone();
    let id = lines.iter().find_map(|line| line["id"].as_str().or_else(|| line["sessions"][0]["id"].as_str()));
    id.unwrap_or_else(|| panic!("a session is listed: {text}")).to_owned()
}

#[test]
fn one_command_asks_runs_edits_and_answers() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    fs::write(machine.work().join("a.txt"), "one\ntwo\n").unwrap();
    let edit = json!({ "command": "str_replace", "path": "a.txt", "old_str": "two", "new_str": "zwei" });
    server.script(Reply::blocks(vec![
        Block::Thinking("First look.".into()),
        Block::Text("I look at the directory.".into()),
        Block::bash("ls; wc -l < a.txt"),
    ]));
    server.script(Reply::blocks(vec![Block::edit(&edit), Block::bash("cat a.txt")]));
    server.script(Reply::text("The file now says *zwei*."));
    let output = machine.ctl(&["ask", "translate the last line", "--approve", "all"]).run().expect(code::DONE);
    assert!(output.stdout.contains("The file now says"), "{output:?}");
    assert!(output.stdout.contains("zwei"), "{output:?}");
    assert_eq!(fs::read_to_string(machine.work().join("a.txt")).unwrap(), "one\nzwei\n");
    assert_eq!(server.wait_for(2).results()[0].text.trim_end(), "a.txt\n2");
    let results = server.wait_for(3).results();
    assert_eq!(results.len(), 2, "two parallel calls, two results");
    let (shown, hint) = results[1].text.split_once("\n[hint: ").expect("a plain view by bash is hinted at");
    assert_eq!((shown.trim_end(), hint.lines().count()), ("one\nzwei", 1));
    assert_eq!(machine.daemons().len(), 1, "a daemon was started and stays");
}

#[test]
fn the_request_is_what_the_api_asks_for() {
    let mut scene = Scene::new();
    scene.server.script(Reply::text("hello"));
    scene.good_turn("say hello");
    let request = scene.server.wait_for(1);
    assert_eq!(request.header("x-api-key"), Some("sk-test-key"));
    assert_eq!(request.json["stream"], true);
    let tools: Vec<_> = request.json["tools"].as_array().unwrap().iter().map(|tool| tool["type"].clone()).collect();
    assert!(tools.contains(&json!("bash_20250124")) && tools.contains(&json!("text_editor_20250728")), "{tools:?}");
    assert!(request.json["system"].to_string().contains(&*scene.machine.work().to_string_lossy()));
}

#[test]
fn the_key_is_neither_stored_nor_logged_nor_given_to_the_shell() {
    let mut scene = Scene::new();
    scene
        .server
        .script(Reply::bash("env; cat /proc/self/environ | tr '\\0' '\\n'; tr '\\0' ' ' < /proc/$PPID/cmdline"));
    scene.server.script(Reply::text("no key"));
    scene.good_turn("look for a key");
    let text = &scene.server.wait_for(2).results()[0].text;
    assert!(text.contains("HOME=") && !text.contains("sk-test-key"), "{text}");
    let mut files = vec![scene.machine.root().to_owned()];
    while let Some(path) = files.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if meta.is_file() {
            let bytes = fs::read(&path).unwrap();
            assert!(!bytes.windows(11).any(|window| window == b"sk-test-key"), "the key is in {}", path.display());
        }
    }
    for process in scene.machine.processes() {
        assert!(!process.argv.iter().any(|argument| argument.contains("sk-test-key")), "{process:?}");
    }
}

#[test]
fn a_session_goes_on_with_its_history_and_its_shell() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    server.script(Reply::bash("mkdir sub; cd sub; word=kept"));
    server.script(Reply::text("there"));
    let _ = machine.ctl(&["ask", "--new", "go there", "--approve", "all"]).run().expect(code::DONE);
    let session = only_session(&machine);
    server.script(Reply::bash("echo $word; pwd"));
    server.script(Reply::text("still there"));
    let output = machine.ctl(&["ask", "-s", &session, "where are we", "--approve", "all"]).run().expect(code::DONE);
    assert!(output.stdout.contains("still there"), "{output:?}");
    assert!(!output.stdout.contains("go there"), "an ask shows its own turn only: {output:?}");
    let results = server.wait_for(4).results();
    assert_eq!(results[0].text.trim_end(), format!("kept\n{}/sub", machine.work().display()));
}

#[test]
fn what_is_piped_in_is_context() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    server.script(Reply::text("a poem"));
    let output = machine.ctl(&["ask", "what is this"]).stdin("roses are red\n").run().expect(code::DONE);
    assert!(output.stdout.contains("a poem"), "{output:?}");
    let first = server.wait_for(1).first_prompt();
    assert!(first.contains("what is this") && first.contains("roses are red"), "{first}");
}

#[test]
fn every_verb_shows_the_session_and_json_is_json() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    server.script(Reply::bash("echo visible"));
    server.script(Reply::text("that was it"));
    let asked = machine.ctl(&["ask", "show me", "--approve", "all", "--json"]).run().expect(code::DONE);
    assert!(asked.json_lines().len() > 3, "{asked:?}");
    assert!(asked.stdout.contains("that was it"));
    let session = only_session(&machine);
    for verb in [&["ls"][..], &["show", &session], &["log", &session]] {
        let plain = machine.ctl(verb).run().expect(code::DONE);
        assert!(plain.stdout.contains("show me"), "{verb:?}: {}", plain.stdout);
        assert!(!plain.stdout.contains('\u{1b}'), "no colours without a terminal: {verb:?}");
        let json = machine.ctl(&[verb, &["--json"]].concat()).run().expect(code::DONE);
        assert!(!json.json_lines().is_empty(), "{verb:?}");
        assert!(json.stdout.contains(&session) || verb[0] == "log", "{verb:?}: {}", json.stdout);
    }
    let log = machine.ctl(&["log", &session]).run().expect(code::DONE).stdout;
    assert!(log.contains("echo visible") && log.contains("that was it"), "{log}");
    for verb in [&["status"][..], &["doctor"], &["approvals"]] {
        let _ = machine.ctl(verb).run().expect(code::DONE);
        assert!(!machine.ctl(&[verb, &["--json"]].concat()).run().json_lines().is_empty() || verb[0] == "approvals");
    }
}

#[test]
fn prompts_sent_while_a_turn_runs_wait_for_their_turn_and_can_be_withdrawn() {
    let mut scene = Scene::new();
    let gate = harness::model_server::Gate::new();
    scene.server.script(Reply::text("one").hold_after_events(2, &gate));
    scene.prompt("first", ApproveMode::Ask);
    scene.server.wait_for(1);
    let second = scene.prompt("second", ApproveMode::Ask);
    let third = scene.prompt("third", ApproveMode::Ask);
    assert_eq!(scene.client.show(scene.session).queued, [second, third]);
    let withdraw = WithdrawPrompt { session: scene.session.to_string(), prompt: second };
    scene.client.call(Request::WithdrawPrompt(withdraw)).unwrap();
    scene.server.script(Reply::text("three"));
    gate.open();
    scene.client.until_turn_ended();
    scene.client.until_turn_ended();
    let last = scene.server.wait_for(2);
    assert_eq!(last.last_text(), "third");
    assert!(!last.messages().iter().any(|message| message.to_string().contains("second")), "{:?}", last.messages());
}

#[test]
fn an_interrupt_ends_a_running_command_keeps_its_output_and_tells_the_model() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo started; touch started; sleep 8650001; echo never"));
    scene.prompt("take long", ApproveMode::All);
    harness::wait::until("the command", || fs::exists(scene.machine.work().join("started")).unwrap().then_some(()));
    scene.client.call(Request::Interrupt(Interrupt { session: scene.session.to_string() })).unwrap();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Interrupted {});
    assert!(harness::processes::with_argument("8650001").is_empty());
    let finished = scene.logged(|body| match body {
        EventBody::CallFinished(finished) => Some((finished.outcome.clone(), finished.text.contains("started"))),
        _ => None,
    });
    assert_eq!(finished, [(Outcome::Interrupted {}, true)]);
    scene.server.script(Reply::bash("echo alive"));
    scene.server.script(Reply::text("on"));
    scene.good_turn("go on");
    let request = scene.server.wait_for(2);
    assert!(request.results()[0].is_error && request.last_text().contains("go on"), "{:?}", request.json["messages"]);
    assert_eq!(scene.server.wait_for(3).results()[0].text.trim_end(), "alive");
}

#[test]
fn an_interrupt_while_the_reply_streams_drops_the_connection() {
    let mut scene = Scene::new();
    let gate = harness::model_server::Gate::new();
    scene.server.script(Reply::text("a long story that never ends").hold_after_events(5, &gate));
    scene.prompt("tell", ApproveMode::All);
    scene.client.until("a piece", |frame| matches!(frame, ServerFrame::Live(_)).then_some(()));
    let _ = scene.machine.ctl(&["interrupt", &scene.session.to_string()]).run().expect(code::DONE);
    scene.server.wait_for_hang_up(1);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Interrupted {});
    scene.server.script(Reply::text("short"));
    scene.good_turn("in short");
}

#[test]
fn two_sessions_run_beside_each_other() {
    let mut scene = Scene::new();
    let gate = harness::model_server::Gate::new();
    scene.server.script(Reply::text("late").hold_after_events(2, &gate));
    scene.prompt("hold this one", ApproveMode::All);
    scene.server.wait_for(1);
    scene.server.script(Reply::text("early"));
    let output = scene.machine.ctl(&["ask", "--new", "be quick"]).run().expect(code::DONE);
    assert!(output.stdout.contains("early"));
    gate.open();
    scene.client.until_turn_ended();
}

#[test]
fn the_demo_works_without_a_key_and_without_a_network() {
    let machine = Machine::new();
    let files = harness::binaries::repository().join("agentd/src/model/demo");
    for entry in fs::read_dir(files).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), machine.work().join(entry.file_name())).unwrap();
    }
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    let request = CreateSession {
        cwd: machine.work().to_string_lossy().into_owned(),
        env: machine.env_vars(),
        name: None,
        model: None,
        scenario: Some("demo".into()),
        endpoint: Endpoint::default(),
        mode: proto::mode::Mode::Ask,
    };
    let Ok(Response::Session(info)) = client.call(Request::CreateSession(request)) else { panic!("a session") };
    assert_eq!(info.provider, "scripted");
    client.attach(&machine, info.id, Seq(0));
    client.prompt(&machine, info.id, "show me what you can do", ApproveMode::Ask);
    let mut subjects = Vec::new();
    loop {
        let next = client.until_event("a question or the end", |body| match body {
            EventBody::ApprovalAsked(asked) => Some(Some(asked.approval.clone())),
            EventBody::TurnEnded(ended) => {
                assert_eq!(ended.outcome, TurnOutcome::Done {});
                Some(None)
            }
            _ => None,
        });
        let Some(asked) = next else { break };
        client.answer(&asked, Verdict::Once {}).unwrap();
        subjects.push(asked.subject);
    }
    let edits = subjects.iter().filter(|subject| matches!(subject, Subject::Edit(edit) if !edit.diff.hunks.is_empty()));
    assert!(edits.count() > 0, "an edit is asked with its diff: {subjects:?}");
    let calls = client.events.iter().filter(|event| matches!(event.body, EventBody::CallFinished(_))).count();
    assert!(calls >= 3, "it lists a directory, edits a file and runs a command");
}

#[test]
fn a_removed_session_is_gone_with_its_shell() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("sleep 8650002 & echo started"));
    scene.server.script(Reply::text("running"));
    scene.good_turn("start something");
    assert_eq!(harness::processes::with_argument("8650002").len(), 1);
    let change = proto::request::ChangeSession {
        session: scene.session.to_string(),
        change: proto::request::SessionChange::Remove {},
    };
    scene.client.call(Request::ChangeSession(change)).unwrap();
    harness::wait::until("the background command to end", || {
        harness::processes::with_argument("8650002").is_empty().then_some(())
    });
    let _ = scene.machine.ctl(&["show", &scene.session.to_string()]).run().expect(code::NOT_FOUND);
}

#[test]
fn much_output_is_cut_for_the_model_and_kept_whole_on_disk() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("seq 1 300000"));
    scene.server.script(Reply::text("much"));
    scene.good_turn("count");
    let text = scene.server.wait_for(2).results()[0].text.clone();
    assert!(text.len() < 250_000, "{} bytes", text.len());
    assert!(text.starts_with("1\n2\n"));
    let path = text
        .split_whitespace()
        .map(|word| word.trim_matches(['[', ']', '(', ')', ',', ';', '.', '`']))
        .find(|word| word.starts_with('/'));
    let path = path.unwrap_or_else(|| panic!("the path of the whole is told: {}", &text[text.len() - 300..]));
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 300_000);
}

#[test]
fn a_session_removed_in_the_middle_of_a_turn_is_gone_and_the_others_go_on() {
    let mut scene = Scene::new();
    scene.server.answer_with(|request| match request.results().len() {
        0 => Reply::bash("touch began; sleep 8650003"),
        _ => Reply::text("done"),
    });
    scene.prompt("take long", ApproveMode::All);
    wait::until("the command", || fs::exists(scene.machine.work().join("began")).unwrap().then_some(()));
    let removed = scene.machine.ctl(&["rm", &scene.session.to_string()]).run().expect(code::DONE);
    assert!(removed.stderr.contains("removed"), "{removed:?}");
    assert!(harness::processes::with_argument("8650003").is_empty());
    let folder = scene.machine.root().join(format!("state/agentd/sessions/{}", scene.session));
    assert!(!folder.exists(), "nothing of it is left on disk");
    scene.server.answer_with(|_| Reply::text("here"));
    let output = scene.machine.ctl(&["ask", "--new", "are you there"]).run().expect(code::DONE);
    assert!(output.stdout.contains("here"));
    let log = scene.machine.log_tails();
    assert!(!log.contains("cannot be written"), "nothing of it was written any more: {log}");
}

#[test]
fn attached_clients_are_told_who_comes_who_goes_and_what_they_may_do() {
    let mut scene = Scene::new();
    let told = |scene: &mut Scene, count: usize| {
        scene.client.until("who is attached", |frame| match frame {
            ServerFrame::Presence(presence) if presence.clients.len() == count => {
                Some(presence.clients.last().unwrap().clone())
            }
            _ => None,
        })
    };
    let session = scene.session.to_string();
    let watcher = scene.machine.ctl(&["attach", &session, "--read-only"]).start();
    let last = told(&mut scene, 2);
    assert_eq!((last.program.as_str(), last.role), ("agentctl", proto::handshake::Role::Observer));
    drop(scene.another("vim", "pts/9"));
    assert_eq!(told(&mut scene, 3).program, "vim");
    assert_eq!(told(&mut scene, 2).program, "agentctl");
    let shown = scene.machine.ctl(&["show", &session]).run().expect(code::DONE);
    assert!(shown.stdout.contains("agentctl (watching)"), "{}", shown.stdout);
    let _ = scene.machine.ctl(&["rm", &session]).run().expect(code::DONE);
    let shown = watcher.finish().expect(code::NOT_FOUND);
    for words in ["harness is attached too", "vim on pts/9 attached", "vim on pts/9 left"] {
        assert!(shown.stderr.contains(words), "{words}: {shown:?}");
    }
}

#[test]
fn a_client_that_has_gone_is_not_attached_any_more() {
    let mut scene = Scene::new();
    let mut other = scene.another("vim", "pts/9");
    other.until_caught_up();
    let programs = |scene: &mut Scene| -> Vec<String> {
        scene.client.show(scene.session).clients.into_iter().map(|client| client.program).collect()
    };
    assert!(programs(&mut scene).contains(&"vim".to_owned()));
    drop(other);
    wait::until("the other to be noticed as gone", || (programs(&mut scene).len() == 1).then_some(()));
}
