//! The commands that look around and change a session in a word: their tables, their JSON, their exit codes.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use expect_test::{Expect, expect};
use proto::approval::Verdict;
use proto::event::Outcome;
use proto::ids::Timestamp;
use proto::request::{ApproveMode, Request, SessionChange};
use proto::response::SessionState;
use support::{Fake, agentctl, err, out, rows, with_session};

fn check(output: &Output, expected: &Expect) {
    assert!(output.status.success(), "{}", err(output));
    expected.assert_eq(&(out(output) + &err(output)));
}

fn fake_with_history() -> Fake {
    let fake = Fake::start(|peer, _| {
        let call = peer.calls("$ cargo test");
        let approval = peer.asks(call, "cargo test");
        peer.closes(&approval, Verdict::Session {}, "agentctl on pts/3");
        peer.starts(call);
        peer.finishes(call, Outcome::Exited { status: 101 }, "error: \x1b[31mno\x1b[0m\n");
        peer.says("It fails.");
        peer.done();
    });
    with_session(&fake, |info| {
        info.cwd = "/home/me/project".into();
        info.name = Some("build".into());
        info.title = "why does it fail?".into();
        info.active_at = Timestamp::now();
        info.created_at = Timestamp::now();
        info.state = SessionState::Asking;
    });
    fake
}

#[test]
fn ls_is_a_table_and_with_json_one_session_a_line() {
    let fake = fake_with_history();
    let output = fake.command(&["ls"]).env("HOME", "/home/me").stdin(Stdio::null()).output().unwrap();
    check(
        &output,
        &expect![[r#"
            SESSION   NAME   STATE     MODE  ACTIVE  DIRECTORY  TITLE
            ab12cd34  build  asks you  ask   now     ~/project  why does it fail?
        "#]],
    );
    let json = fake.run(&["ls", "--json"]);
    let info: proto::response::SessionInfo = serde_json::from_str(out(&json).trim_end()).unwrap();
    assert_eq!(info.name.as_deref(), Some("build"));
    let empty = Fake::start(|_, _| {});
    check(
        &empty.run(&["ls"]),
        &expect![[r#"
        · no sessions; agentctl ask "…" starts one
    "#]],
    );
}

#[test]
fn show_says_everything_about_a_session_and_how_to_answer_its_question() {
    let fake = fake_with_history();
    let mut approval = rows::approval("make install");
    approval.id = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
    with_session(&fake, |info| {
        info.cwd = "/home/me/project".into();
        info.state = SessionState::Asking;
        info.title = "install\u{1b}[2J it".into();
        info.approvals = vec![approval];
        info.shim_pid = Some(4712);
    });
    let ages = |output: &Output| out(output).replace(&age(), "AGE");
    expect![[r#"
        session    0190163d-8694-739b-aea5-966cab12cd34
        name       –
        title      install␛[2J it
        directory  /home/me/project
        model      model-1 (anthropic), effort default, at most 32000 tokens a reply
        state      asks you
        mode       ask: what only reads and what rules allow runs, everything else asks
        created    2023-11-14 22:13 (AGE)
        active     2023-11-14 22:13 (AGE)
        rows       0
        queued     0
        window     not known yet
        used       0 tokens in, 0 out
        attached   nobody
        shell      process 4712

        ? Run this command?  approval 26f8ad91
          $ make install
          in /home/me/project
          asks because it is not known to only read
          agentctl approve 26f8ad91 | --session · agentctl deny 26f8ad91
    "#]]
    .assert_eq(&ages(&fake.run(&["show", "build"])));
    expect![[r#"
        session ab12cd34
        ? Run this command?  approval 26f8ad91
          $ make install
          in /home/me/project
          asks because it is not known to only read
          agentctl approve 26f8ad91 | --session · agentctl deny 26f8ad91
    "#]]
    .assert_eq(&ages(&fake.run(&["approvals"])));
}

#[test]
fn log_shows_every_row_with_all_that_belongs_to_it() {
    let fake = fake_with_history();
    let sent = fake.run(&["ask", "-s", "build", "why does it fail?"]);
    assert!(sent.status.success(), "{}", err(&sent));
    let output = fake.run(&["log"]);
    let text = out(&output);
    // Ids are random; all that matters is that they stand there.
    let text: Vec<String> = text
        .lines()
        .map(|line| line.split(' ').map(|word| if is_id(word) { "ID" } else { word }).collect::<Vec<_>>().join(" "))
        .collect();
    expect![[r#"
            1 22:13:20 prompt  by agentctl · approve none
              why does it fail?
            2 22:13:20 turn  ID
            3 22:13:20 request  
            4 22:13:20 reply  end_turn · 0 tokens in, 0 out
              ID $ cargo test
            5 22:13:20 asked  $ cargo test
        ? Run this command?  approval ID
          $ cargo test
          in /home/me/project
          asks because it is not known to only read
            6 22:13:20 answered  
          answered by agentctl on pts/3: yes, for this session
            7 22:13:20 call started  ID · allowed by --approve all
            8 22:13:20 call finished  ID · exit 101 · 1.2 s
              error: ␛[31mno␛[0m
            9 22:13:20 request  
           10 22:13:20 reply  end_turn · 0 tokens in, 0 out
              It fails.
           11 22:13:20 turn ended  done · 1 requests · 0 tokens in, 0 out
    "#]]
    .assert_eq(&(text.join("\n") + "\n"));
    let since = fake.run(&["log", "--since", "9", "--json"]);
    let frames: Vec<serde_json::Value> = out(&since).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(frames[0]["event"]["event"]["seq"], 10);
}

fn is_id(word: &str) -> bool {
    word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit())
}

#[test]
fn log_follow_goes_on_with_new_rows() {
    let fake = Fake::start(|peer, prompt| {
        peer.says(&prompt.text);
        peer.done();
    });
    assert!(fake.run(&["ask", "first"]).status.success());
    let mut log = fake.command(&["log", "-f", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(log.stdout.take().unwrap()).lines();
    let mut wait_for =
        |text: &str| assert!(lines.by_ref().any(|line| line.unwrap().contains(text)), "{text} never came");
    wait_for("turn_ended");
    assert!(fake.run(&["ask", "second"]).status.success());
    wait_for("second");
    wait_for("turn_ended");
    log.kill().unwrap();
    log.wait().unwrap();
}

#[test]
fn approve_and_deny_send_the_verdict_and_report_who_won() {
    let fake = fake_with_history();
    let output = fake.run(&["approve", "deadbeef", "--session"]);
    assert_eq!(output.status.code(), Some(8));
    expect![[r#"
        agentctl: there is no open approval deadbeef; `agentctl approvals` lists them
    "#]]
    .assert_eq(&err(&output));
    assert_eq!(fake.run(&["deny", "deadbeef", "--reason", "use make"]).status.code(), Some(8));
    let verdicts: Vec<Verdict> = fake
        .requests()
        .into_iter()
        .filter_map(|request| match request {
            Request::AnswerApproval(answer) => Some(answer.verdict),
            _ => None,
        })
        .collect();
    assert_eq!(verdicts, [Verdict::Session {}, Verdict::Deny { reason: Some("use make".into()) }]);
}

#[test]
fn send_returns_at_once_and_rename_archive_and_rm_change_the_session() {
    let fake = fake_with_history();
    let sent = fake.run(&["send", "build", "go on", "--approve", "all"]);
    check(
        &sent,
        &expect![[r#"
        · accepted as row 1 of session ab12cd34; agentctl attach ab12cd34 shows it
    "#]],
    );
    assert_eq!(fake.prompts()[0].approve, ApproveMode::All);
    check(
        &fake.run(&["rename", "build", "fix"]),
        &expect![[r#"
        · session ab12cd34: renamed to fix
    "#]],
    );
    check(
        &fake.run(&["archive", "build"]),
        &expect![[r#"
        · session ab12cd34: archived; agentctl ls --all still lists it
    "#]],
    );
    check(
        &fake.run(&["rm", "build"]),
        &expect![[r#"
        · session ab12cd34: removed with its log
    "#]],
    );
    let changes: Vec<SessionChange> = fake
        .requests()
        .into_iter()
        .filter_map(|request| match request {
            Request::ChangeSession(change) => Some(change.change),
            _ => None,
        })
        .collect();
    let rename = SessionChange::Rename { name: "fix".into() };
    assert_eq!(changes, [rename, SessionChange::Archive {}, SessionChange::Remove {}]);
}

#[test]
fn status_is_a_block_of_facts() {
    let fake = fake_with_history();
    let output = fake.run(&["status"]);
    let text = out(&output).replace(&age(), "AGE");
    expect![[r#"
        agentd      0.1.0 (process 4711, started AGE)
        socket      /run/user/7/agentd/agentd.sock
        database    /home/me/.local/state/agentd/agentd.db
        config      defaults
        model       model-1 at https://api.anthropic.com
        key         file
        accounting  cgroup
        sessions    1 (0 at work, 0 in the mode bypass)
        approvals   0
        clients     1
    "#]]
    .assert_eq(&text);
}

/// The age of the fake daemon, which started at a fixed time.
fn age() -> String {
    let started = rows::status().started_at;
    format!("{} days ago", (Timestamp::now().0 - started.0) / 86_400_000)
}

#[test]
fn doctor_has_a_line_for_every_check_and_json_for_programs() {
    let fake = Fake::start(|_, _| {});
    let agentd = fake.home.path().join("agentd");
    std::fs::write(&agentd, "").unwrap();
    std::fs::set_permissions(&agentd, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |args: &[&str]| fake.command(args).env("AGENTD_BIN", &agentd).stdin(Stdio::null()).output().unwrap();
    let output = run(&["doctor", "--json"]);
    let text = out(&output);
    let checks: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    let all =
        ["program", "socket", "daemon", "versions", "key", "accounting", "configuration", "disk", "shell", "systemd"];
    assert_eq!(names, all);
    assert!(checks.iter().all(|check| check["ok"] == true), "{text}");
    assert!(out(&run(&["doctor"])).starts_with("✓ program"));
}

#[test]
fn shutdown_does_not_start_a_daemon_to_stop_it() {
    let fake = fake_with_history();
    let stopped = fake.run(&["shutdown", "--stop-shells"]);
    assert!(err(&stopped).contains("agentd stopped, and the sessions' shells with it"), "{}", err(&stopped));
    let nothing = agentctl(&["shutdown"]).env("AGENTD_SOCKET", "/nonexistent/s.sock").output().unwrap();
    assert!(nothing.status.success());
    assert_eq!(err(&nothing), "· agentd is not running\n");
}

#[test]
fn help_man_and_completions_name_every_command_and_the_exit_codes() {
    let fake = Fake::start(|_, _| {});
    let help = out(&fake.run(&["--help"]));
    assert!(help.contains("Exit codes:\n  0  done") && help.contains("8  no such session"), "{help}");
    let page = out(&fake.run(&["man"]));
    assert!(page.contains(".TH agentctl 1") && page.contains("Exit codes"), "{page}");
    let ask = out(&fake.run(&["man", "ask"]));
    assert!(ask.contains("agentctl\\-ask") && ask.contains("scenario"), "{ask}");
    assert_eq!(fake.run(&["man", "nope"]).status.code(), Some(2));
    for shell in ["bash", "zsh", "fish"] {
        let script = out(&fake.run(&["completions", shell]));
        assert!(script.contains("agentctl") && script.contains("COMPLETE"), "{shell}: {script}");
    }
}

/// As the script for fish asks: the words after `--`, the last one being typed.
#[test]
fn a_shell_completes_commands_and_the_sessions_of_the_daemon() {
    let fake = Fake::start(|_, _| {});
    with_session(&fake, |info| {
        info.name = Some("build".into());
        info.title = "why does it fail\u{1b}[2J".into();
    });
    let complete = |words: &[&str]| {
        let mut all = vec!["--", "agentctl"];
        all.extend(words);
        out(&fake.command(&all).env("COMPLETE", "fish").output().unwrap())
    };
    assert!(complete(&["inter"]).starts_with("interrupt\t"));
    assert_eq!(complete(&["show", "b"]), "build\tidle · why does it fail␛[2J\n");
    assert_eq!(complete(&["show", "x"]), "");
}

#[test]
fn diff_shows_what_stands_and_what_cannot_be_shown() {
    let fake = Fake::start(|_, _| {});
    with_session(&fake, |_| {});
    check(
        &fake.run(&["diff"]),
        &expect![[r#"
        src/a.rs  +1 −1
          3   fn a() {
          4 -     2
          4 +     1
        old.txt  file removed  +0 −1
        ! b is a directory
        · 1 more files changed
    "#]],
    );
    check(
        &fake.run(&["diff", "--stat"]),
        &expect![[r#"
        src/a.rs  +1 −1
        old.txt  file removed  +0 −1
        ! b is a directory
        · 1 more files changed
    "#]],
    );
    let json = fake.run(&["diff", "--json"]);
    let sum: proto::response::SessionChanges = serde_json::from_str(out(&json).trim_end()).unwrap();
    assert_eq!(sum, rows::changes());
}

#[test]
fn undo_without_a_terminal_needs_the_word_and_then_says_what_it_did() {
    let fake = Fake::start(|_, _| {});
    with_session(&fake, |_| {});
    let refused = fake.run(&["undo", "2"]);
    assert_eq!(refused.status.code(), Some(2));
    expect![[r#"
        agentctl: nobody can be asked without a terminal; nothing was taken back: say --yes to take edits back without a question
    "#]]
    .assert_eq(&err(&refused));
    assert!(fake.requests().is_empty(), "nothing was asked of the daemon");
    check(
        &fake.run(&["undo", "2", "--yes"]),
        &expect![[r#"
        src/a.rs  +1 −1
          3   fn a() {
          4 -     2
          4 +     1
        · took back the last edit of src/a.rs; 2 earlier can be taken back too
    "#]],
    );
    let json = fake.run(&["undo", "2", "--yes", "--json"]);
    let undone: proto::response::Undone = serde_json::from_str(out(&json).trim_end()).unwrap();
    assert!(undone.applied);
    let asked: Vec<_> = fake.requests().into_iter().filter(|request| matches!(request, Request::Undo(_))).collect();
    assert!(matches!(asked.as_slice(), [Request::Undo(a), Request::Undo(b)] if a.steps == 2 && a.undo != b.undo));
}
