//! The texts of failures, whole: what failed, on what, what to do next.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use expect_test::{Expect, expect};
use proto::handshake::{Answer, Refusal, version_sentence};
use support::{Fake, agentctl, err, out};

/// Compares standard error, with the temporary directory replaced, and the exit code.
fn check(fake: &Fake, output: &Output, code: i32, expected: &Expect) {
    let text = err(output).replace(&fake.home.path().display().to_string(), "HOME");
    expected.assert_eq(&text);
    assert_eq!(output.status.code(), Some(code), "{text}");
}

fn script(fake: &Fake, text: &str) -> std::path::PathBuf {
    let path = fake.home.path().join("agentd");
    std::fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn an_unknown_session() {
    let fake = Fake::start(|_, _| {});
    check(
        &fake,
        &fake.run(&["show", "nope"]),
        8,
        &expect![[r#"
        agentctl: there is no session "nope"; `agentctl ls` lists them
    "#]],
    );
    check(
        &fake,
        &fake.run(&["ask", "-s", "nope", "x"]),
        8,
        &expect![[r#"
        agentctl: there is no session "nope"; `agentctl ls` lists them
    "#]],
    );
}

#[test]
fn no_session_in_this_directory() {
    let fake = Fake::start(|_, _| {});
    check(
        &fake,
        &fake.run(&["show"]),
        8,
        &expect![[r#"
        agentctl: there is no session of HOME; `agentctl ask "…"` starts one, `agentctl ls` shows those of other directories
    "#]],
    );
}

#[test]
fn a_daemon_of_another_version() {
    let answer = Answer::Refused { version: 9, refusal: Refusal::Version, sentence: version_sentence(1, 9) };
    let fake = Fake::answering(answer.to_string());
    check(
        &fake,
        &fake.run(&["ls"]),
        6,
        &expect![[r#"
        agentctl: agentctl speaks protocol 1, the running agentd speaks 9: upgrade agentctl to the daemon's release
    "#]],
    );
}

#[test]
fn a_daemon_that_refuses() {
    let sentence = "this is a command of an agent's own shell; it may not talk to agentd".to_owned();
    let fake = Fake::answering(Answer::Refused { version: 1, refusal: Refusal::Inside, sentence }.to_string());
    check(
        &fake,
        &fake.run(&["ls"]),
        6,
        &expect![[r#"
        agentctl: agentd at HOME/s.sock refused the connection: this is a command of an agent's own shell; it may not talk to agentd
    "#]],
    );
}

#[test]
fn something_else_listens() {
    let fake = Fake::answering("HTTP/1.1 400 Bad Request\r\n\x1b[2J\n");
    check(
        &fake,
        &fake.run(&["ls"]),
        6,
        &expect![[r#"
        agentctl: what listens at HOME/s.sock is not agentd (it answered "HTTP/1.1 400 Bad Request"); name the right socket with --socket or AGENTD_SOCKET
    "#]],
    );
}

#[test]
fn no_daemon_and_none_wanted() {
    let fake = Fake::start(|_, _| {});
    std::fs::remove_file(fake.socket()).unwrap();
    check(
        &fake,
        &fake.run(&["ls", "--no-start"]),
        6,
        &expect![[r#"
        agentctl: cannot reach agentd at HOME/s.sock: No such file or directory (os error 2); start it with `agentd` or run the command without --no-start
    "#]],
    );
}

#[test]
fn no_daemon_to_start() {
    let fake = Fake::start(|_, _| {});
    let output = fake
        .command(&["ls"])
        .env("AGENTD_SOCKET", fake.home.path().join("other.sock"))
        .env("AGENTD_BIN", "/nonexistent/agentd")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    check(
        &fake,
        &output,
        6,
        &expect![[r#"
        agentctl: cannot start /nonexistent/agentd: No such file or directory (os error 2); check AGENTD_BIN and its permissions
    "#]],
    );
}

#[test]
fn a_daemon_that_does_not_start_says_why() {
    let fake = Fake::start(|_, _| {});
    let binary = script(&fake, "printf 'ERROR cannot read /etc/agentd.toml: line 3: unknown key \"modle\"\\n' >&$2");
    let output = fake
        .command(&["ls"])
        .env("AGENTD_SOCKET", fake.home.path().join("other.sock"))
        .env("AGENTD_BIN", binary)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    check(
        &fake,
        &output,
        6,
        &expect![[r#"
            agentctl: agentd did not start: cannot read /etc/agentd.toml: line 3: unknown key "modle"
        "#]],
    );
}

#[test]
fn a_daemon_that_dies_at_once() {
    let fake = Fake::start(|_, _| {});
    let binary = script(&fake, "exit 3");
    let output = fake
        .command(&["ls"])
        .env("AGENTD_SOCKET", fake.home.path().join("other.sock"))
        .env("AGENTD_BIN", binary)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    check(
        &fake,
        &output,
        6,
        &expect![[r#"
        agentctl: agentd was started and ended at once (exit status: 3); its log HOME/.local/state/agentd/agentd.log says more
    "#]],
    );
}

/// Needs another user to own a file: root can make one, others meet `/`, which is root's.
#[test]
fn a_socket_of_another_user() {
    let fake = Fake::start(|_, _| {});
    let runtime = fake.home.path().join("run");
    std::fs::create_dir_all(runtime.join("agentd")).unwrap();
    let dir = runtime.join("agentd");
    std::os::unix::fs::chown(&dir, Some(12_345), None).unwrap();
    let output =
        agentctl(&["ls"]).env("XDG_RUNTIME_DIR", &runtime).current_dir(&runtime).stdin(Stdio::null()).output().unwrap();
    check(
        &fake,
        &output,
        6,
        &expect![[r#"
        agentctl: HOME/run/agentd belongs to user 12345, not to you (user 0); nothing was sent: use your own daemon's socket, see --socket and AGENTD_SOCKET
    "#]],
    );
}

#[test]
fn a_wrong_command_line_and_an_empty_prompt() {
    let fake = Fake::start(|_, _| {});
    let output = fake.run(&["frobnicate"]);
    assert_eq!(output.status.code(), Some(2));
    check(
        &fake,
        &fake.run(&["ask"]),
        2,
        &expect![[r#"
        agentctl: the prompt is empty; give it as an argument or pipe it in: agentctl ask "…"
    "#]],
    );
}

#[test]
fn with_json_the_error_is_an_object_too() {
    let fake = Fake::start(|_, _| {});
    let output = fake.run(&["show", "nope", "--json"]);
    expect![[r#"
        {"error":{"code":"not_found","message":"there is no session \"nope\"; `agentctl ls` lists them","exit":8}}
    "#]]
    .assert_eq(&out(&output));
}
