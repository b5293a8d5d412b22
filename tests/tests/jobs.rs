//! Background commands: they run beside the turns, outlive the daemon, wake the model once, and end with their session.

use std::collections::VecDeque;
use std::fs;
use std::sync::Mutex;

use harness::ctl::code;
use harness::model_server::{Block, Received, Reply};
use harness::scene::Scene;
use harness::{processes, wait};
use proto::approval::{Subject, Verdict};
use proto::event::{EventBody, JobEnded, JobStarted, Outcome, TurnOutcome};
use proto::ids::JobId;
use proto::job::ListJobs;
use proto::request::{ApproveMode, ChangeSession, Request, SessionChange};
use proto::response::Response;
use serde_json::json;

fn background(command: &str) -> Reply {
    Reply::blocks(vec![Block::tool("bash_background", &json!({ "command": command }).to_string())])
}

fn tool(name: &str, input: &serde_json::Value) -> Reply {
    Reply::blocks(vec![Block::tool(name, &input.to_string())])
}

/// A job of the session's that has begun.
fn started(scene: &mut Scene) -> JobStarted {
    scene.client.until_event("a job", |body| match body {
        EventBody::JobStarted(started) => Some(started.clone()),
        _ => None,
    })
}

fn ended(scene: &mut Scene) -> JobEnded {
    scene.client.until_event("a job's end", |body| match body {
        EventBody::JobEnded(ended) => Some(ended.clone()),
        _ => None,
    })
}

fn woken(scene: &mut Scene) {
    scene.client.until_event("a turn without a prompt", |body| matches!(body, EventBody::TurnWoken(_)).then_some(()));
}

/// How often a text was told to the model in a request.
fn told(request: &Received, text: &str) -> usize {
    String::from_utf8_lossy(&request.body).matches(text).count()
}

/// The command waits until this file is there.
fn until(path: &str) -> String {
    format!("until [ -e {path} ]; do sleep 0.01; done")
}

fn touch(scene: &Scene, name: &str) {
    fs::write(scene.machine.work().join(name), "").unwrap();
}

fn short(job: JobId) -> String {
    job.short()
}

#[test]
fn a_finished_job_wakes_the_idle_model_once_with_its_last_words() {
    let mut scene = Scene::new();
    scene.server.script(background(&format!("echo begun; {}; echo the last words; exit 3", until("go"))));
    scene.server.script(Reply::text("it runs"));
    scene.good_turn("start it");
    let first = scene.server.wait_for(2).results();
    let job = scene.logged(|body| if let EventBody::JobStarted(it) = body { Some(it.clone()) } else { None }).remove(0);
    assert!(first[0].text.contains(&short(job.job)) && !first[0].is_error, "{first:?}");
    assert_eq!(scene.client.show(scene.session).jobs, 1);
    scene.server.script(Reply::text("I see"));
    touch(&scene, "go");
    let end = ended(&mut scene);
    assert_eq!((end.job, end.outcome), (job.job, Outcome::Exited { status: 3 }));
    woken(&mut scene);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let notice = scene.server.wait_for(3).last_text();
    assert!(notice.starts_with("[agentd, not the user: background job "), "{notice}");
    assert!(notice.contains("exit status 3") && notice.contains("the last words"), "{notice}");
    // The next prompt's request holds it once, where it was told.
    scene.server.script(Reply::text("bye"));
    scene.good_turn("and now?");
    assert_eq!(told(&scene.server.wait_for(4), "agentd, not the user"), 1);
    assert_eq!(scene.client.show(scene.session).jobs, 0);
}

#[test]
fn a_job_that_ends_while_a_turn_runs_is_told_with_the_next_request() {
    let mut scene = Scene::new();
    scene.server.script(background("echo quick"));
    scene.server.script(Reply::bash(&until("go")));
    scene.server.script(Reply::text("done"));
    scene.prompt("both", ApproveMode::All);
    ended(&mut scene);
    touch(&scene, "go");
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let last = scene.server.wait_for(3);
    assert!(last.last_text().contains("exit status 0"), "{}", last.last_text());
    assert_eq!(told(&last, "agentd, not the user"), 1);
    let woken = scene.logged(|body| matches!(body, EventBody::TurnWoken(_)).then_some(()));
    assert!(woken.is_empty());
}

#[test]
fn a_background_command_is_asked_about_like_any_other_and_reading_it_is_not() {
    let mut scene = Scene::new();
    let script = Mutex::new(VecDeque::from([
        background("touch made"),
        tool("job_output", &json!({ "wait_seconds": 20, "job": "?" })),
        tool("job_output", &json!({})),
        Reply::text("done"),
        background("touch other"),
        Reply::text("fine"),
    ]));
    // The job may end in the turn or wake the model after it.
    scene.server.answer_with(move |request| {
        let is_notice = request.results().is_empty() && request.last_text().starts_with("[agentd");
        let next = if is_notice { None } else { script.lock().unwrap().pop_front() };
        next.unwrap_or_else(|| Reply::text("I see"))
    });
    scene.prompt("make it", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let Subject::Command(command) = &asked.subject else { panic!("{asked:?}") };
    assert_eq!((command.command.as_str(), asked.tool.as_str()), ("touch made", "bash_background"));
    assert!(!scene.machine.work().join("made").exists());
    scene.client.answer(&asked, Verdict::Once {}).unwrap();
    scene.client.until_turn_ended();
    wait::until("the file", || scene.machine.work().join("made").exists().then_some(()));
    wait::until("rest", || (scene.client.show(scene.session).jobs == 0).then_some(()));
    scene.prompt("again", ApproveMode::Deny);
    scene.client.until_event("the refusal", |body| match body {
        EventBody::CallFinished(it) if it.outcome == Outcome::Denied {} => Some(()),
        _ => None,
    });
    assert!(!scene.machine.work().join("other").exists());
    let results: Vec<String> = scene.server.requests().iter().flat_map(Received::results).map(|it| it.text).collect();
    assert!(results[1].contains("There is no job `?`"), "{results:?}");
    assert!(results[2].contains("touch made"), "{results:?}");
}

#[test]
fn the_model_reads_waits_for_and_stops_its_job_and_is_not_woken_for_that() {
    let mut scene = Scene::new();
    scene.server.answer_with(move |request| {
        let job = request.messages().iter().find_map(|message| {
            let text = message.to_string();
            text.split_once("[job ").map(|(_, rest)| rest[..8].to_owned())
        });
        let job = job.unwrap_or_default();
        match request.rounds() {
            0 => background("for n in 1 2 3; do echo line $n; done; sleep 600"),
            1 => tool("job_output", &json!({ "job": job, "since": 7, "wait_seconds": 1 })),
            2 => tool("job_stop", &json!({ "job": job })),
            3 => tool("job_output", &json!({ "job": job })),
            _ => Reply::text("done"),
        }
    });
    scene.good_turn("go");
    let results: Vec<String> = (2..=5).map(|number| scene.server.wait_for(number).results()[0].text.clone()).collect();
    assert!(results[1].starts_with("line 2\nline 3\n[job ") && results[1].contains("since: 21"), "{results:?}");
    assert!(results[2].contains("line 1\n") && results[2].contains("was stopped"), "{results:?}");
    assert!(results[3].contains("was stopped"), "{results:?}");
    let ends = scene.logged(|body| if let EventBody::JobEnded(it) = body { Some(it.outcome.clone()) } else { None });
    assert_eq!(ends, [Outcome::Interrupted {}]);
    assert_eq!(scene.server.requests().len(), 5, "nothing more is asked of the model");
}

#[test]
fn a_job_outlives_the_daemon_and_its_end_is_told_by_the_next_one_once() {
    let mut scene = Scene::new();
    scene.server.script(background(&format!("echo ran >>count; {}; echo over; touch gone", until("go"))));
    scene.server.script(Reply::text("it runs"));
    scene.good_turn("start it");
    scene.kill_daemon();
    touch(&scene, "go");
    wait::until("the job's end", || scene.machine.work().join("gone").exists().then_some(()));
    scene.server.script(Reply::text("I see"));
    scene.start_daemon();
    woken(&mut scene);
    scene.client.until_turn_ended();
    assert!(scene.server.wait_for(3).last_text().contains("over"));
    // Another crash and another daemon: nothing is told again.
    scene.kill_daemon();
    scene.start_daemon();
    scene.server.script(Reply::text("bye"));
    scene.good_turn("and?");
    assert_eq!(told(&scene.server.wait_for(4), "agentd, not the user"), 1);
    let ends = scene.logged(|body| matches!(body, EventBody::JobEnded(_)).then_some(()));
    assert_eq!(ends.len(), 1);
    assert_eq!(fs::read_to_string(scene.machine.work().join("count")).unwrap(), "ran\n");
}

#[test]
fn a_job_whose_shim_dies_is_lost_and_the_model_is_told() {
    let mut scene = Scene::new();
    scene.server.script(background("echo seen; sleep 8765432"));
    scene.server.script(Reply::text("it runs"));
    scene.good_turn("start it");
    wait::until("the job's process", || (processes::with_argument("8765432").len() == 1).then_some(()));
    let shim = i32::try_from(scene.client.show(scene.session).shim_pid.unwrap()).unwrap();
    scene.server.script(Reply::text("a pity"));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(shim), nix::sys::signal::Signal::SIGKILL).unwrap();
    assert_eq!(ended(&mut scene).outcome, Outcome::Unknown {});
    scene.client.until_turn_ended();
    assert!(scene.server.wait_for(3).last_text().contains("is gone with it"));
    // A shell's processes die with their shim, or are swept when the next one starts.
    scene.server.script(Reply::bash("echo next"));
    scene.server.script(Reply::text("done"));
    scene.good_turn("go on");
    wait::until("the job's end", || processes::with_argument("8765432").is_empty().then_some(()));
}

#[test]
fn a_deadline_and_a_silence_are_told() {
    let mut scene = Scene::new();
    let input = json!({ "command": "echo one; sleep 600", "deadline_seconds": 2, "silence_seconds": 1 });
    scene.server.script(tool("bash_background", &input));
    for text in ["it runs", "quiet", "ended"] {
        scene.server.script(Reply::text(text));
    }
    scene.good_turn("start it");
    woken(&mut scene);
    let quiet = scene.server.wait_for(3).last_text();
    assert!(quiet.contains("has printed nothing for 1.0 s"), "{quiet}");
    assert_eq!(ended(&mut scene).outcome, Outcome::TimedOut { limit_ms: 2_000 });
    let late = scene.server.wait_for(4).last_text();
    assert!(late.contains("reached its deadline of 2.0 s"), "{late}");
    scene.client.until_turn_ended();
}

#[test]
fn jobs_that_start_jobs_for_ever_do_not_wake_the_model_for_ever() {
    let mut scene = Scene::with(&[("policy.read_only", "run")]);
    scene.server.answer_with(|request| {
        if request.results().is_empty() { background("echo again") } else { Reply::text("and again") }
    });
    scene.prompt("loop", ApproveMode::All);
    // The approvals of turns without a prompt are the user's again: the policy allows `echo` by itself.
    let notice = scene.client.until_event("the limit", |body| match body {
        EventBody::Notice(notice) if notice.text.contains("in a row") => Some(notice.text.clone()),
        _ => None,
    });
    assert!(notice.contains("10 turns"), "{notice}");
    let count = scene.logged(|body| matches!(body, EventBody::TurnWoken(_)).then_some(())).len();
    assert_eq!(count, 10);
    // A prompt is told of what happened meanwhile, and may wake again.
    let before = scene.server.requests().len();
    scene.server.answer_with(|_| Reply::text("stop"));
    scene.good_turn("what now?");
    assert!(scene.server.wait_for(before + 1).last_text().contains("exit status 0"));
}

#[test]
fn a_user_moves_the_running_command_to_the_background_and_the_turn_goes_on() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash(&format!("export A=1; echo so far; {}; echo later", until("go"))));
    scene.server.script(Reply::bash("echo \"shell [$A]\""));
    scene.server.script(Reply::text("went on"));
    scene.prompt("run long", ApproveMode::All);
    wait::until("the command's output", || {
        let show = scene.machine.ctl(&["background", &scene.session.to_string(), "--json"]).run();
        (show.code() == code::DONE).then_some(())
    });
    let job = started(&mut scene);
    assert!(job.moved);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    let moved = &scene.server.wait_for(2).results()[0];
    assert!(moved.text.contains("moved the command to the background") && !moved.is_error, "{moved:?}");
    assert!(moved.text.contains(&short(job.job)) && moved.text.contains("a new shell was started"), "{moved:?}");
    assert_eq!(scene.server.wait_for(3).results()[0].text, "shell []\n");
    scene.server.script(Reply::text("I see"));
    touch(&scene, "go");
    assert_eq!(ended(&mut scene).outcome, Outcome::Exited { status: 0 });
    scene.client.until_turn_ended();
    assert!(scene.server.wait_for(4).last_text().contains("so far\nlater\n"));
}

#[test]
fn a_user_lists_follows_and_kills_a_job() {
    let mut scene = Scene::new();
    scene.server.script(background(&format!("echo one; {}; echo two; sleep 600", until("go"))));
    scene.server.script(Reply::text("it runs"));
    scene.good_turn("start it");
    let session = scene.session.to_string();
    let list = scene.machine.ctl(&["jobs", &session]).run().expect(code::DONE);
    assert!(list.stdout.contains("running") && list.stdout.contains("echo one"), "{list:?}");
    let all = scene.machine.ctl(&["jobs", "--json"]).run().expect(code::DONE).json_lines();
    let id = all[0]["job"].as_str().unwrap().to_owned();
    let follow = scene.machine.ctl(&["job", &id[id.len() - 8..], "--follow"]).start();
    touch(&scene, "go");
    wait::until("the second line", || {
        let output = scene.machine.ctl(&["job", &id, "--since", "4"]).run().expect(code::DONE);
        (output.stdout == "two\n").then_some(())
    });
    let killed = scene.machine.ctl(&["kill", &id, "--json"]).run().expect(code::DONE).json_lines();
    assert!(killed[0]["outcome"]["interrupted"].is_object(), "{killed:?}");
    assert_eq!(follow.finish().stdout, "one\ntwo\n");
    // The user did it: the model is not woken, but told with the next prompt.
    scene.server.script(Reply::text("so be it"));
    scene.good_turn("I stopped it");
    assert!(scene.server.wait_for(3).last_text().contains("was stopped"));
    let missing = scene.machine.ctl(&["kill", "00000000"]).run();
    assert!(missing.stderr.contains("no job"), "{missing:?}");
}

#[test]
fn nothing_of_a_job_survives_its_session() {
    let mut scene = Scene::new();
    scene.server.script(background("(env -i setsid sleep 8765433 &); sleep 8765433"));
    scene.server.script(Reply::text("it runs"));
    scene.good_turn("start it");
    wait::until("its processes", || (processes::with_argument("8765433").len() == 2).then_some(()));
    let change = ChangeSession { session: scene.session.to_string(), change: SessionChange::Archive {} };
    scene.client.call(Request::ChangeSession(change)).unwrap();
    assert_eq!(processes::with_argument("8765433").len(), 0);
    ended(&mut scene);
    assert_eq!(scene.server.requests().len(), 2, "an archived session is not woken");
    let Ok(Response::Jobs(jobs)) = scene.client.call(Request::ListJobs(ListJobs { session: None })) else { panic!() };
    assert!(jobs.jobs.iter().all(|job| job.outcome.is_some()), "{jobs:?}");
}

#[test]
fn the_environment_of_the_shell_is_shown_without_secrets() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("export MADE='by hand'; export ANTHROPIC_TRAP=x"));
    scene.server.script(Reply::text("done"));
    scene.good_turn("set it");
    let session = scene.session.to_string();
    let shown = wait::until("the variable", || {
        let env = scene.machine.ctl(&["env", &session]).run().expect(code::DONE);
        env.stdout.contains("MADE=by hand\n").then_some(env)
    });
    assert!(!shown.stdout.contains("ANTHROPIC") && shown.stderr.contains("ANTHROPIC_TRAP"), "{shown:?}");
    let json = scene.machine.ctl(&["env", &session, "--json"]).run().expect(code::DONE).json_lines();
    assert!(json[0]["removed"].as_array().unwrap().iter().any(|name| name == "ANTHROPIC_TRAP"), "{json:?}");
}

#[test]
fn the_first_request_stays_small() {
    let mut scene = Scene::new();
    scene.server.script(Reply::text("hello"));
    scene.good_turn("hi");
    let size = scene.server.wait_for(1).body.len();
    println!("first request: {size} bytes");
    assert!(size < 8_000, "{size} bytes");
}

#[test]
fn kills_of_the_daemon_around_a_job_lose_and_double_nothing() {
    // Each round kills the daemon at another moment of the same life; more of them with JOB_KILLS.
    let rounds: u32 = std::env::var("JOB_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(6);
    for round in 0..rounds {
        let mut scene = Scene::new();
        scene.server.answer_with(|request| match request.rounds() {
            // A daemon that is killed while it starts a shell is another claim's.
            0 => Reply::bash("echo ready"),
            2 => background("echo ran >>count; sleep 0.05; echo over"),
            _ => Reply::text("fine"),
        });
        scene.good_turn("get ready");
        scene.prompt("start it", ApproveMode::All);
        let pause = std::time::Duration::from_millis(u64::from(round * 20));
        let moment = std::time::Instant::now() + pause;
        wait::until("the moment", || (std::time::Instant::now() >= moment).then_some(()));
        scene.kill_daemon();
        scene.start_daemon();
        let is_end = |body: &EventBody| matches!(body, EventBody::JobEnded(_)).then_some(());
        wait::until("the end of all", || {
            let log = scene.log();
            let rests = matches!(log.last().map(|event| &event.body), Some(EventBody::TurnEnded(_)));
            (rests && log.iter().any(|event| is_end(&event.body).is_some())).then_some(())
        });
        assert_eq!(told(scene.server.requests().last().unwrap(), "not the user"), 1, "round {round}");
        let count = scene.machine.work().join("count");
        assert_eq!(fs::read_to_string(count).unwrap(), "ran\n", "round {round}");
        let starts = scene.logged(|body| matches!(body, EventBody::JobStarted(_)).then_some(())).len();
        let ends = scene.logged(is_end).len();
        assert_eq!((starts, ends), (1, 1), "round {round}");
    }
}
