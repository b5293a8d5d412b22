//! The shim's promises, over its own socket.
//!
//! The program is its own shim (first argument `shim`), so it has no test harness: each claim is a function of the list.

#![allow(
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test: a failure is to stop it"
)]

mod common;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::{Claim, Client, Shim, living, processes, settle, tree};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::ids::CallId;
use proto::shim::outcome::{End, ExitStatus, LimitHit, Why};
use proto::shim::reply::{Facts, Refusal, Reply};
use proto::shim::request::Request;
use proto::shim::start::Wish;

const CLAIMS: [Claim; 22] = [
    ("a_call_runs_once_however_often_it_is_asked", runs_once),
    ("a_command_goes_on_without_its_controller", goes_on),
    ("what_a_command_prints_cannot_forge_its_end", no_forgery),
    ("a_deadline_ends_exactly_what_the_command_started", hostile_trees),
    ("a_deadline_stops_the_rest_of_the_command", nothing_after_deadline),
    ("a_command_that_ends_at_its_deadline_does_not_harm_the_next", end_at_deadline),
    ("an_interrupt_at_any_moment_does_not_harm_the_next_command", interrupt_at_any_moment),
    ("the_end_of_a_shell_is_seen_where_ends_of_children_are_ignored", ignored_ends),
    ("a_trap_of_the_users_survives_a_deadline", traps_survive),
    ("an_interrupt_ends_a_busy_loop_and_keeps_the_shell", interrupt),
    ("a_new_shell_takes_over_the_state", takes_over),
    ("a_shell_tells_what_makes_its_names_mean_something_else", tells_facts),
    ("a_hijacked_builtin_is_freed", freed),
    ("a_background_writer_does_not_spoil_the_next_result", no_spoiling),
    ("output_is_bounded_and_its_ends_are_kept", bounded),
    ("a_long_command_runs_whole", long_command),
    ("a_stranger_is_refused", strangers),
    ("garbage_closes_the_connection_and_nothing_else", garbage),
    ("nothing_survives_a_shutdown", shutdown),
    ("nothing_of_the_shell_survives_the_shim", shim_killed),
    ("a_limit_that_was_hit_is_told_once_and_for_its_own_command", limits),
    ("secrets_do_not_reach_the_shell", secrets),
];

fn main() -> ExitCode {
    common::try_claims(&CLAIMS)
}

/// A number that only this claim's processes have among their arguments: claims run beside each other.
fn token(number: u32) -> String {
    format!("88{number}{:07}", std::process::id())
}

fn runs_once(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let call = CallId::new();
    client.begin(call, "echo x >>ran; echo said", 5_000);
    client.begin(call, "echo x >>ran; echo said", 5_000);
    assert_eq!(client.wait(call).text(), "said\n");
    client.begin(call, "echo x >>ran; echo said", 5_000);
    assert_eq!(client.wait(call).text(), "said\n");
    client.ask(Request::Forget { call }, &[]);
    let run = Request::Run { call, deadline_ms: 1, head_bytes: 1, tail_bytes: 1, offset: 0 };
    let refused = client.ask(run, b"echo x >>ran").0;
    assert!(matches!(refused, Reply::Refused { code: Refusal::UnknownCall, .. }), "{refused:?}");
    assert_eq!(std::fs::read_to_string(shim.path("ran")).expect("the file"), "x\n");
}

fn goes_on(wish: Wish) {
    let shim = Shim::launch(wish);
    let call = CallId::new();
    let mut first = shim.client();
    first.begin(call, "echo one; until [ -e go ]; do sleep 0.01; done; echo two", 20_000);
    while !matches!(first.receive().expect("news").0.reply, Reply::Output { .. }) {}
    drop(first);
    std::fs::write(shim.path("go"), "").expect("a file");
    let mut second = shim.client();
    second.begin(call, "", 1);
    assert_eq!(second.wait(call).text(), "one\ntwo\n");
    // A new controller displaces the old one.
    let mut third = shim.client();
    assert_eq!(third.run("echo here").text(), "here\n");
    // The end may have been told twice: as news, and as the answer to being asked.
    while let Some((header, _)) = second.receive() {
        assert!(matches!(header.reply, Reply::Finished { .. }), "{header:?}");
    }
}

fn no_forgery(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let tricks = [
        ("echo 0 00000000000000000000000000000000; (exit 3)", 3),
        ("for f in /proc/self/fd/*; do echo '0 x' >&${f##*/}; done 2>/dev/null; (exit 4)", 4),
        ("trap 'echo 0 \"${BASH_COMMAND##* }\"' DEBUG; (exit 5)", 5),
        ("trap - DEBUG; (exit 6)", 6),
        ("exec 2>&-; exec 1>&-; (exit 7)", 7),
        ("set -x; (exit 8)", 8),
        ("set +x; set -v; (exit 9)", 9),
        ("set +v; cat; read x; (exit 10)", 10),
    ];
    for (command, status) in tricks {
        assert_eq!(client.run(command).end.end, End::Exited { status }, "{command}");
    }
    assert_eq!(client.run("echo clean").text(), "clean\n");
}

fn hostile_trees(wish: Wish) {
    let rounds = std::env::var("TREES").ok().and_then(|count| count.parse().ok()).unwrap_or(5);
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let earlier = token(1);
    client.run(&format!("kept=here; sleep {earlier} >/dev/null 2>&1 & setsid sleep {earlier} & true"));
    let mut late = Vec::new();
    for round in 0..rounds {
        let token = token(10 + round);
        let begun = Instant::now();
        let done = client.run_for(&tree(&token), 400);
        late.push(begun.elapsed().saturating_sub(Duration::from_millis(400)));
        assert_eq!(done.end.end, End::TimedOut { limit_ms: 400 }, "round {round}: {:?}", done.end);
        assert!(done.end.renewed.is_none(), "{:?}", done.end);
        assert_eq!(living(&token), 0, "round {round}");
        assert_eq!(client.run("echo $kept").text(), "here\n");
    }
    late.sort();
    println!("trees {wish:?}: {rounds} rounds, median {:?} after the deadline", late[late.len() / 2]);
    assert_eq!(living(&earlier), 2, "jobs of earlier commands live on");
}

fn nothing_after_deadline(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let commands = [
        "sleep 60; touch after",
        "while :; do :; done; touch after",
        "f() { while :; do :; done; touch after; }; while :; do f; touch after; done; touch after",
        "until sleep 60; do :; done; if true; then touch after; fi; (touch after); true | touch after",
        "sleep 60 & wait; touch after",
        "x=$(sleep 60); touch after",
        "sleep 60 | cat; touch after\ntouch after",
        "eval 'while :; do eval :; done; touch after'; touch after",
        "source <(echo 'while :; do :; done; touch after'); touch after",
        "for ((;;)); do y=1; done; touch after",
        "while [[ a ]]; do ((z++)); done; touch after",
    ];
    for command in commands {
        let done = client.run_for(command, 150);
        assert_eq!(done.end.end, End::TimedOut { limit_ms: 150 }, "{command}");
        assert!(done.end.renewed.is_none(), "{command}: {:?}", done.end);
        let after = client.run("echo alive; ls after");
        assert!(after.text().starts_with("alive\nls: "), "{command}: {}", after.text());
    }
}

/// The signal that aborts a command may reach a shell that has told its end already.
fn end_at_deadline(wish: Wish) {
    let rounds: u64 = std::env::var("RACES").ok().and_then(|count| count.parse().ok()).unwrap_or(30);
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    client.run("trap ': mine' DEBUG");
    let (mut ended, mut slowest) = (0, Duration::ZERO);
    for round in 0..rounds {
        // Around the moment at which the command ends by itself, which moves with the machine's load.
        let done = client.run_for("sleep 0.008", 9 + round % 8);
        ended += u64::from(matches!(done.end.end, End::Exited { status: 0 }));
        let begun = Instant::now();
        let next = client.run("for x in 1 2 3; do echo alive $x; done; trap -p DEBUG");
        slowest = slowest.max(begun.elapsed());
        let text = "alive 1\nalive 2\nalive 3\ntrap -- ': mine' DEBUG\n";
        assert_eq!((next.text().as_str(), next.end.end), (text, End::Exited { status: 0 }), "round {round}");
        assert!(next.end.renewed.is_none() && done.end.renewed.is_none(), "round {round}: {done:?}");
    }
    println!("races {wish:?}: {rounds} rounds, {ended} ended by themselves, slowest next command {slowest:?}");
}

/// From before the shell has taken the command to after its end.
fn interrupt_at_any_moment(wish: Wish) {
    let rounds: u32 = std::env::var("RACES").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    client.run("trap ': mine' DEBUG");
    let (mut interrupted, mut slowest) = (0, Duration::ZERO);
    for round in 0..rounds {
        let call = CallId::new();
        client.begin(call, ":", 5_000);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(u64::from(round % 60) * 4) {
            std::hint::spin_loop();
        }
        client.send(Request::Interrupt { call }, &[]);
        let done = client.wait_past_refusals(call);
        interrupted += u32::from(done.end.end == End::Interrupted {});
        assert!(done.end.renewed.is_none(), "round {round}: {done:?}");
        let begun = Instant::now();
        let call = CallId::new();
        client.begin(call, "for x in 1 2 3; do echo alive $x; done; trap -p DEBUG", 5_000);
        // The interrupt may be refused after the command's end was told.
        let next = client.wait_past_refusals(call);
        slowest = slowest.max(begun.elapsed());
        let text = "alive 1\nalive 2\nalive 3\ntrap -- ': mine' DEBUG\n";
        assert_eq!((next.text().as_str(), next.end.end), (text, End::Exited { status: 0 }), "round {round}");
    }
    println!("interrupts {wish:?}: {rounds} rounds, {interrupted} interrupted, slowest next command {slowest:?}");
}

fn ignored_ends(wish: Wish) {
    let mut program = std::process::Command::new("env");
    program.arg("--ignore-signal=CHLD").arg(std::env::current_exe().expect("a path"));
    let shim = Shim::launch_by(&mut program, wish, |_| {});
    let mut client = shim.client();
    let done = client.run("(exit 4); exit 3");
    assert_eq!(done.end.end, End::ShellEnded { status: ExitStatus::Code(3) });
    assert_eq!(client.run("echo alive; sleep 0; wait").text(), "alive\n");
}

fn traps_survive(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    client.run("seen=0; trap 'seen=$((seen+1))' DEBUG; shopt -u extdebug");
    assert_eq!(client.run_for("sleep 60", 150).end.end, End::TimedOut { limit_ms: 150 });
    let text = client.run("trap -p DEBUG; shopt extdebug").text();
    assert_eq!(text, "trap -- 'seen=$((seen+1))' DEBUG\nextdebug       \toff\n");
}

fn interrupt(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    client.run("kept=here");
    let call = CallId::new();
    client.begin(call, "echo begun; while :; do :; done", 60_000);
    while !matches!(client.receive().expect("news").0.reply, Reply::Output { .. }) {}
    client.send(Request::Interrupt { call }, &[]);
    let done = client.wait(call);
    assert_eq!(done.end.end, End::Interrupted {});
    assert_eq!(done.text(), "begun\n");
    assert_eq!(client.run("echo $kept").text(), "here\n");
}

fn takes_over(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    client.run(
        "mkdir -p deep/er; cd deep/er; export OUT='a \"b\"\n$c'; plain=1; f() { echo in-f; }; \
         shopt -s expand_aliases nullglob; alias hi='echo hello'; set -o pipefail; unset LANG; umask 027",
    );
    settle(&mut client);
    let done = client.run("kill -9 $$");
    assert_eq!(done.end.end, End::ShellEnded { status: ExitStatus::Signal(9) });
    let renewed = done.end.renewed.expect("a new shell");
    assert_eq!((renewed.why, renewed.restored), (Why::Ended { status: ExitStatus::Signal(9) }, true));
    assert!(renewed.cwd.ends_with("deep/er"));
    let text = client
        .run("basename $PWD; echo \"$OUT\"; echo \"[$plain]\"; f; echo \"[$LANG]\"; umask; shopt -q nullglob; echo $?")
        .text();
    assert_eq!(text, "er\na \"b\"\n$c\n[]\nin-f\n[]\n0027\n0\n");
    assert_eq!(client.run("hi; false | true; echo $?").text(), "hello\n1\n");
}

fn freed(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let done = client.run("x=1; builtin() { :; }; eval() { :; }; echo() { :; }; unset() { :; }; read() { :; }");
    assert!(done.end.builtin_freed || done.end.renewed.is_some(), "{:?}", done.end);
    let done = client.run("ls -d .; (exit 16)");
    assert_eq!((done.text().as_str(), done.end.end), (".\n", End::Exited { status: 16 }));
    assert!(client.run("builtin() { :; }; y=2").end.builtin_freed);
    let done = client.run("ls -d .; printf '%s\\n' $y");
    assert_eq!(done.text(), ".\n2\n");
}

fn no_spoiling(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let call = CallId::new();
    client.begin(call, "{ until [ -e stop ]; do echo tick; sleep 0.01; done; echo last; } & echo started", 5_000);
    let done = client.wait(call);
    assert!(done.text().starts_with("started\n") || done.text().contains("tick"), "{}", done.text());
    assert!(done.end.background > 0);
    for _ in 0..20 {
        assert_eq!(client.run("echo clean").text(), "clean\n");
    }
    let late = Instant::now();
    let mut stopping = false;
    loop {
        let (_, bytes) = client.ask(common::read(call), &[]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if !stopping && text.contains("tick\ntick\n") {
            client.run("touch stop; wait");
            stopping = true;
        }
        if text.ends_with("last\n") {
            return;
        }
        assert!(late.elapsed() < Duration::from_secs(5), "late output is missing: {text}");
    }
}

fn bounded(wish: Wish) {
    let shim = Shim::launch_with(wish, |start| start.limits.spool_bytes = 1 << 20);
    let mut client = shim.client();
    let done = client.run("seq 1 2000000");
    let all: u64 = (1..=2_000_000u64).map(|number| number.to_string().len() as u64 + 1).sum();
    assert_eq!((done.end.output_bytes, done.end.output_lines), (all, 2_000_000));
    assert!(done.text().starts_with("1\n2\n") && done.text().ends_with("\n1999999\n2000000\n"));
    assert_eq!(done.end.spool_gap_bytes, all - (1 << 20));
    let file = std::fs::read_to_string(done.end.spool.expect("a file")).expect("text");
    assert!(file.starts_with("1\n2\n") && file.ends_with("\n2000000\n"));
    assert!(file.contains(&format!("\n[{} bytes left out here]\n", all - (1 << 20))));
    assert!(file.len() < (1 << 20) + 100);
    let status = std::fs::read_to_string(format!("/proc/{}/status", shim.pid)).expect("a process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < 32 * 1024, "{peak} KiB");
}

fn long_command(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let text = "it's \u{e9} 'quoted'\n".repeat(50_000);
    let done = client.run(&format!("cat <<'END' | wc -c\n{text}END\n(exit 3)"));
    assert_eq!((done.text().trim(), done.end.end), (text.len().to_string().as_str(), End::Exited { status: 3 }));
    let run = Request::Run { call: CallId::new(), deadline_ms: 1, head_bytes: 1, tail_bytes: 1, offset: 0 };
    let refused = client.ask(run, &vec![b' '; (1 << 20) + 1]).0;
    assert!(matches!(refused, Reply::Refused { code: Refusal::Invalid, .. }), "{refused:?}");
}

fn strangers(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut wrong = shim.stranger();
    let hello = Request::Hello { token: proto::secret::Secret::new("guess".to_owned()), min: 1, max: 1 };
    let refused = wrong.ask(hello, &[]).0;
    assert!(matches!(refused, Reply::Refused { code: Refusal::Forbidden, .. }), "{refused:?}");
    assert!(wrong.receive().is_none());
    let mut old = shim.stranger();
    let hello = Request::Hello { token: shim.start.token.clone(), min: 90, max: 99 };
    let refused = old.ask(hello, &[]).0;
    assert!(matches!(refused, Reply::Refused { code: Refusal::Version, .. }), "{refused:?}");
    // What the session runs may not even say hello.
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(len(s.recv(1)))";
    let mut client = shim.client();
    let done = client.run(&format!("python3 -c '{script}' {}", shim.start.socket));
    assert_eq!(done.text(), "0\n");
}

fn garbage(wish: Wish) {
    use std::io::Write as _;
    let shim = Shim::launch(wish);
    let noise: [&[u8]; 4] =
        [b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\0\0\0\0\0", b"\0\0\0\x04\0\0\0\x09", b"GET / HTTP/1.1\r\n\r\n"];
    for bytes in noise {
        let mut client = shim.stranger();
        client.stream.write_all(bytes).expect("room");
        assert!(client.receive().is_none());
        let mut client = shim.client();
        client.stream.write_all(bytes).expect("room");
        assert!(client.receive().is_none());
    }
    let mut client = shim.client();
    let unknown = b"{\"id\":7,\"request\":\"dance\",\"steps\":3}";
    let mut frame = Vec::new();
    frame.extend_from_slice(&(unknown.len() as u32 + 4).to_be_bytes());
    frame.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
    frame.extend_from_slice(unknown);
    client.stream.write_all(&frame).expect("room");
    let (header, _) = client.receive().expect("an answer");
    assert_eq!(header.re, Some(7));
    assert!(matches!(header.reply, Reply::Refused { code: Refusal::Unsupported, .. }), "{header:?}");
    assert_eq!(client.run("echo alive").text(), "alive\n");
}

fn shutdown(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    client.run(&format!("({}) >/dev/null 2>&1 & true", tree(&token(2))));
    client.send(Request::Shutdown {}, &[]);
    while client.receive().is_some() {}
    wait_until("the shim is gone", || !shim.is_alive() || is_zombie(shim.pid));
    wait_until("no process is left", || living(&token(2)) == 0);
}

fn shim_killed(wish: Wish) {
    let shim = Shim::launch(wish);
    let mut client = shim.client();
    let call = CallId::new();
    client.begin(call, &format!("echo $$ >pid; echo captured; sleep {}", token(3)), 60_000);
    while !matches!(client.receive().expect("news").0.reply, Reply::Output { .. }) {}
    let bash: i32 = std::fs::read_to_string(shim.path("pid")).expect("a file").trim().parse().expect("a pid");
    let spool = std::path::Path::new(&shim.start.state_dir).join(format!("spool/{call}.out"));
    wait_until("the output is on disk", || std::fs::read(&spool).is_ok_and(|bytes| bytes == b"captured\n"));
    kill(Pid::from_raw(i32::try_from(shim.pid).expect("a pid")), Signal::SIGKILL).expect("a process");
    wait_until("bash is gone", || std::fs::read(format!("/proc/{bash}/cmdline")).map_or(true, |line| line.is_empty()));
    let records = shim::journal::read(std::path::Path::new(&shim.start.state_dir)).expect("a journal");
    let began = shim::journal::Record::Began { call, spool: spool.to_str().expect("text").to_owned() };
    assert!(records.iter().any(|(record, _)| *record == began), "{records:?}");
    // What a shim that was killed leaves behind is ended by the daemon, by group or by mark.
    if let Ok(group) = shim::cgroup::own_group() {
        shim::cgroup::sweep(&group.join(format!("{}{}", shim::cgroup::PREFIX, shim.start.session.0.simple())));
    }
    for pid in processes(&token(3)) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// tests/limits-on-uml.sh runs this on a kernel that has the controllers.
fn limits(wish: Wish) {
    let (memory, processes) = (16 << 20, 30);
    let shim = Shim::launch_with(wish, |start| {
        start.limits.memory_max = Some(memory);
        start.limits.pids_max = Some(processes);
    });
    let mut client = shim.client();
    let group = shim::cgroup::own_group().map(|group| std::fs::read_to_string(group.join("cgroup.subtree_control")));
    let passed_on = group.is_ok_and(|text| text.is_ok_and(|text| text.contains("memory") && text.contains("pids")));
    let enforced = wish == Wish::Auto && passed_on;
    if !enforced {
        println!(
            "limits {wish:?}: no memory and pids controllers of control groups v2: only that none is told is tried"
        );
    }
    let hit = |limit| if enforced { vec![limit] } else { Vec::new() };
    assert_eq!(client.run("true").end.limits_hit, []);
    let done = client.run_for("head -c 40M /dev/zero | tail -c 30M | wc -c; echo ${PIPESTATUS[1]}", 120_000);
    assert_eq!(done.end.limits_hit, hit(LimitHit::Memory { bytes: memory }), "{done:?}");
    assert_eq!(done.text(), if enforced { "0\n137\n" } else { "31457280\n0\n" });
    assert_eq!(client.run("true").end.limits_hit, []);
    let fork = "import os,time\nborn=[]\ntry:\n while len(born)<99:\n  pid=os.fork()\n  if not pid: time.sleep(60)\n  \
                born.append(pid)\nexcept OSError: pass\nfor pid in born: os.kill(pid,9)\nprint(len(born)<30)";
    let done = client.run(&format!("python3 -c '{fork}'; wait"));
    assert_eq!(done.end.limits_hit, hit(LimitHit::Processes { count: processes }), "{done:?}");
    assert_eq!(done.text(), if enforced { "True\n" } else { "False\n" });
    assert_eq!(client.run("echo alive").end.limits_hit, []);
    println!("limits {wish:?}: enforced: {enforced}");
}

fn secrets(wish: Wish) {
    let shim = Shim::launch_with(wish, |start| {
        let secret = |name: &str| (name.to_owned(), "hunter2".to_owned());
        start.env.0.extend(["ANTHROPIC_API_KEY", "MY_TOKEN", "CORP_A", "CORP_B", "FINE"].map(secret));
        start.secret_names = vec!["MY_TOKEN".to_owned(), "CORP_*".to_owned()];
    });
    let mut client = shim.client();
    assert_eq!(client.run("env | grep -c hunter2; echo $FINE $TERM").text(), "1\nhunter2 dumb\n");
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(5), "in vain: {what}");
        std::thread::yield_now();
    }
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}
/// What the shell tells of itself once it has; none while a command has run since.
fn facts(client: &mut Client) -> Facts {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let (Reply::State { state }, _) = client.ask(Request::State {}, &[]) else { panic!("no state") };
        if let Some(facts) = state.facts {
            return facts;
        }
        assert!(Instant::now() < until, "the shell does not tell");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn tells_facts(wish: Wish) {
    let shim = Shim::launch_with(wish, |start| {
        start.env.0.push(("ODD".to_owned(), "a\n\"b\" $c `d` \\e ü".to_owned()));
    });
    let mut client = shim.client();
    client.run("cat /dev/null; cd /; f=1");
    assert_eq!(facts(&mut client), Facts::default(), "a shell as it was");
    client.run("ls() { cat <<'E'\nfake () \nE\n}; alias rm='rm -i'; hash -p /x/ls cat; enable -n test");
    let told = facts(&mut client);
    assert!(told.functions.contains(&"ls".to_owned()), "{told:?}");
    assert_eq!(
        (told.aliases.as_slice(), told.rebound.as_slice()),
        (&["rm".to_owned()][..], &["cat".to_owned(), "test".to_owned()][..])
    );
    client.run("unset -f ls; unalias rm; hash -r; enable test; export GIT_DIR=x PATH=\"/x:$PATH\"; unset ODD; IFS=,");
    let mut told = facts(&mut client);
    told.variables.sort();
    told.variables.dedup();
    assert_eq!(told.variables, ["GIT_DIR", "IFS", "ODD", "PATH", "PS4"]);
    assert_eq!((told.functions.len(), told.aliases.len(), told.rebound.len()), (0, 0, 0), "{told:?}");
    client.run("trap 'echo \"it'\\''s\n\" over' USR1 EXIT; declare -i n; shopt -s extdebug; set -f");
    let told = facts(&mut client);
    assert_eq!(told.traps, ["EXIT", "USR1"]);
    assert_eq!(told.attributes, ["n"]);
    assert!(told.options.contains(&"extdebug".to_owned()) && told.options.contains(&"noglob".to_owned()), "{told:?}");
    client.run("trap - USR1 EXIT");
    client.begin(CallId::new(), "sleep 0.2", 5_000);
    let (Reply::State { state }, _) = client.ask(Request::State {}, &[]) else { panic!("no state") };
    assert_eq!(state.facts, None, "a command has begun since");
    client.run("enable -n declare");
    std::thread::sleep(Duration::from_millis(100));
    let (Reply::State { state }, _) = client.ask(Request::State {}, &[]) else { panic!("no state") };
    assert_eq!(state.facts, None, "a shell that cannot tell everything tells nothing");
}
