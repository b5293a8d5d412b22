//! The shim's promises about background commands, over its own socket.

#![allow(clippy::expect_used, reason = "a test: a failure is to stop it")]

mod common;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::{Claim, Client, Shim, living, tree};
use proto::ids::{CallId, JobId};
use proto::shim::jobs::JobInfo;
use proto::shim::outcome::{End, ExitStatus, RunEnd, Why};
use proto::shim::reply::{Refusal, Reply};
use proto::shim::request::Request;
use proto::shim::start::Wish;

const CLAIMS: [Claim; 14] = [
    ("a_job_runs_beside_the_shell_with_its_state", beside),
    ("a_job_runs_once_and_is_known_to_the_next_controller", runs_once),
    ("the_session_shell_knows_nothing_of_a_job", unknown_to_shell),
    ("a_deadline_of_a_command_does_not_touch_jobs", untouched),
    ("stopping_a_job_ends_exactly_its_processes", stopped),
    ("a_deadline_ends_a_job_wherever_its_processes_hid", deadline),
    ("a_job_that_ends_leaves_what_it_started_until_it_is_stopped", left_behind),
    ("exit_and_kill_in_a_job_are_its_own_end", own_end),
    ("silence_is_told_once", silence),
    ("a_reader_waits_for_output_and_for_the_end", readers),
    ("a_running_command_can_be_moved_to_the_background", moved),
    ("a_moved_command_is_ended_like_any_job", moved_stopped),
    ("jobs_end_with_a_restart_and_with_the_shim", end_with_shell),
    ("the_environment_is_shown_without_secrets", environment),
];

fn main() -> ExitCode {
    common::try_claims(&CLAIMS)
}

/// A number that only this claim's processes have among their arguments.
fn token(number: u32) -> String {
    format!("9{number}{:07}", std::process::id())
}

fn start_with(client: &mut Client, command: &str, deadline_ms: u64, silence_ms: u64) -> JobId {
    let job = JobId::new();
    let reply = client.ask(Request::StartJob { job, deadline_ms, silence_ms }, command.as_bytes()).0;
    assert!(matches!(reply, Reply::JobStarted { job: of, .. } if of == job), "{reply:?}");
    job
}

fn start(client: &mut Client, command: &str) -> JobId {
    start_with(client, command, 60_000, 0)
}

fn jobs(client: &mut Client) -> Vec<JobInfo> {
    match client.ask(Request::Jobs {}, &[]).0 {
        Reply::Jobs { jobs } => jobs,
        reply => panic!("{reply:?}"),
    }
}

fn info(client: &mut Client, job: JobId) -> JobInfo {
    jobs(client).into_iter().find(|info| info.job == job).expect("the job")
}

/// What the job printed so far; waits for its end or for something.
fn read(client: &mut Client, job: JobId, offset: u64, until_end: bool) -> (String, bool) {
    let wish = Request::Read { call: CallId(job.0), offset, max: 1 << 20, wait_ms: 20_000, until_end, asker: None };
    match client.ask(wish, &[]) {
        (Reply::Data { over, .. }, body) => (String::from_utf8_lossy(&body).into_owned(), over),
        (reply, _) => panic!("{reply:?}"),
    }
}

fn end_of(client: &mut Client, job: JobId) -> (RunEnd, String) {
    let (text, over) = read(client, job, 0, true);
    assert!(over, "{text}");
    (info(client, job).end.expect("an end"), text)
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn beside(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    client.run(
        "mkdir deep; cd deep; export OUT='a \"b\"'; plain=1; f() { echo in-f; }; shopt -s expand_aliases; \
         alias hi='echo hello'; set -o pipefail; set -e",
    );
    let job =
        start(&mut client, "basename $PWD; echo \"$OUT\"; f; hi; set -o | grep -c 'pipefail.*on'; cat; false; echo no");
    assert_eq!(client.run("cd ..; plain=2; echo \"$plain\"").text(), "2\n");
    let (end, text) = end_of(&mut client, job);
    assert_eq!(text, "deep\na \"b\"\nin-f\nhello\n1\n");
    assert_eq!(end.end, End::Exited { status: 1 });
    assert_eq!((end.output_bytes, end.killed, end.background), (text.len() as u64, 0, 0));
    assert!(client.run("echo alive").end.renewed.is_none());
}

fn runs_once(wish: Wish) {
    let shim = Shim::launch(wish);
    let job = JobId::new();
    let begin = Request::StartJob { job, deadline_ms: 60_000, silence_ms: 0 };
    let command = b"echo x >>ran; until [ -e go ]; do sleep 0.01; done; echo two";
    let mut first = shim.client();
    first.ask(begin.clone(), command);
    first.ask(begin.clone(), command);
    drop(first);
    let mut second = shim.client();
    assert!(info(&mut second, job).end.is_none());
    second.ask(begin.clone(), command);
    drop(second);
    std::fs::write(shim.path("go"), "").expect("a file");
    wait_until("the end", || info(&mut shim.client(), job).end.is_some());
    let mut third = shim.client();
    let reply = third.ask(begin, command).0;
    assert!(matches!(reply, Reply::JobStarted { .. }), "{reply:?}");
    assert_eq!(end_of(&mut third, job).1, "two\n");
    assert_eq!(std::fs::read_to_string(shim.path("ran")).expect("the file"), "x\n");
    // Its output can still be read when the end is forgotten.
    third.ask(Request::Forget { call: CallId(job.0) }, &[]);
    assert_eq!(end_of(&mut third, job).1, "two\n");
}

fn unknown_to_shell(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    // The shell tells once of a job of its own that is over, in `jobs`.
    client.run("true & last=$!; wait; jobs");
    let job = start(&mut client, &format!("sleep {}", token(1)));
    let done = client.run_for("wait; jobs; [ \"$!\" = \"$last\" ] && echo same", 5_000);
    assert_eq!((done.end.end, done.text().as_str()), (End::Exited { status: 0 }, "same\n"));
    assert_eq!(done.end.background, 0);
    client.ask(Request::StopJob { job }, &[]);
    end_of(&mut client, job);
}

fn untouched(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let (theirs, ours) = (token(2), token(3));
    let job = start(&mut client, &format!("env -i setsid sleep {theirs} & (setsid sleep {theirs} &); sleep {theirs}"));
    wait_until("the job's processes", || living(&theirs) == 3);
    for _ in 0..3 {
        let done = client.run_for(&format!("(env -i setsid sleep {ours} &); sleep {ours}"), 150);
        assert_eq!(done.end.end, End::TimedOut { limit_ms: 150 });
        assert_eq!((living(&ours), living(&theirs)), (0, 3));
    }
    // The job goes on starting things while a command runs, and none of them is the command's.
    let (more, born) = (token(13), shim.path("born"));
    let spawner =
        format!("until [ -e spawn ]; do sleep 0.01; done; (env -i setsid sleep {more} &); >born; sleep {more}");
    let second = start(&mut client, &spawner);
    let call = CallId::new();
    client.begin(call, &format!(">spawn; sleep {ours}"), 400);
    wait_until("the job's new processes", || born.exists() && living(&more) == 2);
    assert_eq!(client.wait(call).end.end, End::TimedOut { limit_ms: 400 });
    assert_eq!((living(&ours), living(&theirs), living(&more)), (0, 3, 2));
    client.ask(Request::StopJob { job: second }, &[]);
    end_of(&mut client, second);
    assert_eq!((living(&theirs), living(&more)), (3, 0));
    client.ask(Request::StopJob { job }, &[]);
    end_of(&mut client, job);
    assert_eq!(living(&theirs), 0);
}

fn stopped(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let (first, second, shells) = (token(4), token(5), token(6));
    client.run(&format!("kept=here; sleep {shells} >/dev/null 2>&1 & true"));
    let one = start(&mut client, &format!("echo begun; {}", tree(&first)));
    let two = start(&mut client, &tree(&second));
    wait_until("both trees", || living(&first) >= 6 && living(&second) >= 6);
    client.ask(Request::StopJob { job: one }, &[]);
    let (end, text) = end_of(&mut client, one);
    assert_eq!(end.end, End::Interrupted {}, "{end:?}");
    assert!(text.starts_with("begun\n") && end.killed > 0, "{text} {end:?}");
    assert_eq!((living(&first), living(&shells)), (0, 1));
    assert!(living(&second) >= 6 && info(&mut client, two).end.is_none());
    assert_eq!(client.run("echo $kept").text(), "here\n");
    client.ask(Request::StopJob { job: two }, &[]);
    end_of(&mut client, two);
    assert_eq!(living(&second), 0);
}

fn deadline(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let hidden = token(7);
    let job = start_with(&mut client, &tree(&hidden), 300, 0);
    let begun = Instant::now();
    let (end, _) = end_of(&mut client, job);
    assert_eq!(end.end, End::TimedOut { limit_ms: 300 });
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(living(&hidden), 0);
    // One that heeds the first signal ends by itself, and what it says then is kept.
    let job = start_with(&mut client, "trap 'echo bye; exit 7' INT TERM; while :; do sleep 0.02; done", 150, 0);
    let (end, text) = end_of(&mut client, job);
    assert_eq!((end.end, end.killed, text.as_str()), (End::TimedOut { limit_ms: 150 }, 0, "bye\n"));
}

fn left_behind(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let daemon = token(8);
    let job = start(&mut client, &format!("(env -i setsid sleep {daemon} &); nohup sleep {daemon} & echo started"));
    let (end, text) = end_of(&mut client, job);
    assert_eq!((end.end, end.background), (End::Exited { status: 0 }, 2));
    assert!(text.contains("started"), "{text}");
    // Nobody else's deadline ends them.
    assert_eq!(client.run_for("sleep 60", 100).end.end, End::TimedOut { limit_ms: 100 });
    assert_eq!((living(&daemon), info(&mut client, job).processes), (2, 2));
    client.ask(Request::StopJob { job }, &[]);
    wait_until("their end", || living(&daemon) == 0);
    assert_eq!(info(&mut client, job).processes, 0);
}

fn own_end(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    client.run("kept=here");
    let cases: [(&str, End); 6] = [
        ("exit 3", End::Exited { status: 3 }),
        ("exec sh -c 'exit 4'", End::Exited { status: 4 }),
        ("kill -9 $BASHPID", End::Exited { status: 137 }),
        ("set -e; false", End::Exited { status: 1 }),
        ("kill -9 $$", End::ShellEnded { status: ExitStatus::Signal(9) }),
        ("echo 'open", End::Exited { status: 2 }),
    ];
    for (command, expected) in cases {
        let job = start(&mut client, command);
        let (end, text) = end_of(&mut client, job);
        assert_eq!(end.end, expected, "{command}: {text}");
    }
    assert_eq!(client.run("echo $kept").text(), "here\n");
}

fn silence(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let job = start_with(&mut client, "echo one; sleep 0.2; echo two; sleep 60", 60_000, 400);
    let begun = Instant::now();
    wait_until("the silence", || info(&mut client, job).silent);
    assert!(begun.elapsed() >= Duration::from_millis(500), "output begins the count anew: {:?}", begun.elapsed());
    client.ask(Request::StopJob { job }, &[]);
    assert!(end_of(&mut client, job).0.end == End::Interrupted {});
    assert!(info(&mut client, job).silent);
}

fn readers(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let job = start(
        &mut client,
        "echo one; until [ -e go ]; do sleep 0.01; done; echo two; until [ -e on ]; do sleep 0.01; done",
    );
    assert_eq!(read(&mut client, job, 0, false), ("one\n".to_owned(), false));
    let call = CallId(job.0);
    let wish = |asker| Request::Read { call, offset: 4, max: 100, wait_ms: 60_000, until_end: false, asker };
    let waiting = CallId::new();
    let id = client.send(wish(Some(waiting)), &[]);
    // A wait does not keep anything else from being answered, and ends with the call that waits.
    assert_eq!(client.run("echo beside").text(), "beside\n");
    client.send(Request::Interrupt { call: waiting }, &[]);
    let answer = loop {
        let (header, body) = client.receive().expect("an answer");
        if header.re == Some(id) {
            break (header.reply, body);
        }
    };
    assert!(matches!(answer, (Reply::Data { total: 4, over: false, .. }, body) if body.is_empty()));
    std::fs::write(shim.path("go"), "").expect("a file");
    assert_eq!(read(&mut client, job, 4, false), ("two\n".to_owned(), false));
    std::fs::write(shim.path("on"), "").expect("a file");
    assert_eq!(read(&mut client, job, 8, true), (String::new(), true));
    let none = Request::Read { call: CallId::new(), offset: 0, max: 1, wait_ms: 60_000, until_end: true, asker: None };
    let refused = client.ask(none, &[]).0;
    assert!(matches!(refused, Reply::Refused { code: Refusal::UnknownCall, .. }), "{refused:?}");
}

fn moved(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let earlier = token(9);
    client.run(&format!("mkdir in; export OUT=1; plain=1; sleep {earlier} >/dev/null 2>&1 & true"));
    common::settle(&mut client);
    let call = CallId::new();
    client.begin(call, "cd in; echo one; until [ -e go ]; do sleep 0.01; done; echo two; plain=3; exit 5", 60_000);
    while !matches!(client.receive().expect("news").0.reply, Reply::Output { .. }) {}
    let job = JobId::new();
    let request = Request::Background { call, job, deadline_ms: 60_000 };
    client.send(request.clone(), &[]);
    let done = client.wait(call);
    assert_eq!((done.end.end, done.text().as_str()), (End::Moved { job }, "one\n"));
    let renewed = done.end.renewed.clone().expect("a new shell");
    assert_eq!((renewed.why, renewed.restored), (Why::Moved {}, true));
    // Asked again, it says the same; and the shell is of use at once.
    assert_eq!(client.ask(request, &[]).0, Reply::Done {});
    client.begin(call, "", 1);
    assert_eq!(client.wait(call).end, done.end);
    assert_eq!(client.run("echo \"[$OUT$plain]\"; basename $PWD").text(), "[1]\nwork\n");
    assert_eq!(client.run_for("sleep 60", 100).end.end, End::TimedOut { limit_ms: 100 });
    assert!(info(&mut client, job).end.is_none());
    std::fs::write(shim.path("in/go"), "").expect("a file");
    let (end, text) = end_of(&mut client, job);
    assert_eq!((end.end, text.as_str()), (End::ShellEnded { status: ExitStatus::Code(5) }, "one\ntwo\n"));
    assert_eq!(living(&earlier), 1, "jobs of earlier commands live on");
    assert_eq!(client.run("echo alive").text(), "alive\n");
}

fn moved_stopped(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    for (number, command) in [(1, tree(&token(10))), (2, format!("while :; do sleep {} & wait; done", token(10)))] {
        let call = CallId::new();
        client.begin(call, &format!("echo begun; {command}"), 60_000);
        while !matches!(client.receive().expect("news").0.reply, Reply::Output { .. }) {}
        wait_until("its processes", || living(&token(10)) >= 1);
        let job = JobId::new();
        client.send(Request::Background { call, job, deadline_ms: 200 }, &[]);
        assert_eq!(client.wait(call).end.end, End::Moved { job });
        let ours = token(11);
        client.begin(CallId::new(), &format!("sleep {ours}"), 60_000);
        let (end, _) = end_of(&mut client, job);
        assert_eq!(end.end, End::TimedOut { limit_ms: 200 }, "{number}");
        assert_eq!((living(&token(10)), living(&ours)), (0, 1), "{number}: {end:?}");
        client.ask(Request::Restart { call: CallId::new() }, &[]);
    }
    // Nothing runs that could be moved.
    let refused = client.ask(Request::Background { call: CallId::new(), job: JobId::new(), deadline_ms: 1 }, &[]).0;
    assert!(matches!(refused, Reply::Refused { code: Refusal::UnknownCall, .. }), "{refused:?}");
}

fn end_with_shell(wish: Wish) {
    let hidden = token(12);
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let job = start(&mut client, &format!("(env -i setsid sleep {hidden} &); sleep {hidden}"));
    wait_until("its processes", || living(&hidden) == 2);
    client.ask(Request::Restart { call: CallId::new() }, &[]);
    assert_eq!(end_of(&mut client, job).0.end, End::Restarted {});
    assert_eq!(living(&hidden), 0);
    let job = start(&mut client, &format!("(env -i setsid sleep {hidden} &); echo seen; sleep {hidden}"));
    wait_until("its processes", || living(&hidden) == 2);
    read(&mut client, job, 0, false);
    client.send(Request::Shutdown {}, &[]);
    while client.receive().is_some() {}
    wait_until("the shim's end", || !shim.is_alive());
    assert_eq!(living(&hidden), 0);
    // The end is on disk for the daemon that comes later.
    let records = shim::journal::read(Path::new(&shim.start.state_dir)).expect("a journal");
    let ended = records.iter().any(|(record, body)| {
        matches!(record, shim::journal::Record::Ended { call, end }
            if *call == CallId(job.0) && end.end == End::Restarted {} && body == b"seen\n")
    });
    assert!(ended, "{records:?}");
}

fn environment(wish: Wish) {
    let shim = Shim::launch_with(wish, |start| {
        start.env.0.push(("ANTHROPIC_API_KEY".to_owned(), "sk-secret".to_owned()));
        start.env.0.push(("MY_TOKEN".to_owned(), "hush".to_owned()));
        start.secret_names = vec!["MY_*".to_owned()];
    });
    let mut client = shim.client();
    client.run("export NEW='a\nb'; unset LANG; export MY_OWN=made-here; hidden=1");
    common::settle(&mut client);
    let begun = Instant::now();
    let shown = loop {
        let Reply::Env { env } = client.ask(Request::Env {}, &[]).0 else { panic!("no environment") };
        if env.variables.iter().any(|(name, _)| name == "NEW") || begun.elapsed() > Duration::from_secs(20) {
            break env;
        }
    };
    let value = |name: &str| shown.variables.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
    assert_eq!((value("NEW"), value("LANG"), value("hidden")), (Some("a\nb"), None, None));
    assert_eq!(value("TERM"), Some("dumb"));
    assert_eq!(shown.removed, ["ANTHROPIC_API_KEY", "MY_OWN", "MY_TOKEN"]);
    assert!(!format!("{:?}", shown.variables).contains("hush") && value("MY_OWN").is_none());
}
