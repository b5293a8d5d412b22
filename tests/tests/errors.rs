//! The common failures: each is one sentence of what failed, on what, and what to do next, with its exit code.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread;

use harness::corpus::nature::{Mount, fill};
use harness::ctl::{Output, code};
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{ModelServer, Reply};
use harness::scene::Scene;
use nix::unistd::geteuid;
use proto::handshake::{PROTOCOL, version_sentence};
use proto::ids::PromptId;
use proto::request::{ApproveMode, Request, SendPrompt};
use proto::response::ErrorCode;

/// Checks the form of a failure that is all there is on standard error: the code, and one sentence that says what failed
/// and what to do.
#[track_caller]
fn one_sentence(output: &Output, code: i32, words: &[&str]) {
    last_sentence(output, code, words);
    assert_eq!(lines(output).len(), 1, "one sentence: {}", output.stderr);
}

/// As [`one_sentence`], for a verb that told its progress before.
#[track_caller]
fn last_sentence(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.code(), code, "{output:?}");
    let last = lines(output).pop().unwrap_or_default();
    for word in words {
        assert!(last.contains(word), "{word:?} is missing in: {last}");
    }
    assert!(!output.stderr.contains("panicked") && !last.ends_with('.'), "{}", output.stderr);
}

fn lines(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn a_missing_key() {
    let machine = Machine::new();
    let output = machine.ctl(&["ask", "hello"]).run();
    last_sentence(&output, code::MODEL, &["ANTHROPIC_API_KEY"]);
}

#[test]
fn a_wrong_key() {
    let server = ModelServer::start_with_key("right");
    let machine = Machine::with_model(&server.url());
    let output = machine.ctl(&["ask", "hello"]).run();
    last_sentence(&output, code::MODEL, &["key"]);
    assert!(!output.stderr.contains("sk-test-key"));
    assert_eq!(server.refused().len(), 1, "a wrong key is not tried again and again");
}

#[test]
fn an_unreachable_server() {
    // A port on which nobody listens: bound a moment ago, and free again.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = format!("127.0.0.1:{port}");
    let mut machine = Machine::with_model(&format!("http://{place}"));
    machine.configure("retry.tries", "1");
    let output = machine.ctl(&["ask", "hello"]).run();
    last_sentence(&output, code::MODEL, &[&place, "parked"]);
}

#[test]
fn an_unknown_session() {
    let machine = Machine::new();
    for verb in
        [&["show", "deadbeef"][..], &["log", "deadbeef"], &["send", "deadbeef", "hi"], &["interrupt", "deadbeef"]]
    {
        let output = machine.ctl(verb).run();
        one_sentence(&output, code::NOT_FOUND, &["deadbeef"]);
    }
}

#[test]
fn a_wrong_command_line() {
    let machine = Machine::new();
    let output = machine.ctl(&["asks"]).run();
    assert_eq!(output.code(), code::USAGE, "{output:?}");
    assert!(machine.daemons().is_empty(), "no daemon is started for it");
}

#[test]
fn a_daemon_of_another_version() {
    let machine = Machine::new();
    let other = PROTOCOL + 98;
    fs::create_dir(machine.socket().parent().unwrap()).unwrap();
    fs::set_permissions(machine.socket().parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
    let listener = UnixListener::bind(machine.socket()).unwrap();
    // A later release that knows this one's preface, as every release does.
    let daemon = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("agentd/{PROTOCOL} bincode driver\n"));
        let sentence = version_sentence(PROTOCOL, other);
        writeln!(stream, "agentd/{other} refused version {sentence}").unwrap();
    });
    let output = machine.ctl(&["status"]).run();
    daemon.join().unwrap();
    fs::remove_file(machine.socket()).unwrap();
    one_sentence(&output, code::DAEMON, &["upgrade agentctl", &other.to_string()]);
}

#[test]
fn a_socket_of_another_user() {
    if !geteuid().is_root() {
        println!("skipped: only root can give a socket to another user");
        return;
    }
    let machine = Machine::new();
    let directory = machine.socket().parent().unwrap().to_owned();
    fs::create_dir(&directory).unwrap();
    let listener = UnixListener::bind(machine.socket()).unwrap();
    chown(machine.socket(), Some(65534), Some(65534)).unwrap();
    chown(&directory, Some(65534), Some(65534)).unwrap();
    let output = machine.ctl(&["status"]).run();
    drop(listener);
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(output.code(), code::DAEMON, "{output:?}");
    assert_eq!(output.stderr.trim_end().lines().count(), 1, "{}", output.stderr);
    assert!(output.stderr.contains(&*directory.to_string_lossy()), "{}", output.stderr);
}

#[test]
fn another_user_is_refused_by_the_daemon_whatever_the_file_modes() {
    if !geteuid().is_root() {
        println!("skipped: only root can run a client as another user");
        return;
    }
    let machine = Machine::new();
    let _daemon = Daemon::start(&machine);
    for path in [machine.root().to_owned(), machine.root().join("run"), machine.root().join("run/agentd")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(machine.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    let script = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}'); s.sendall(b'agentd/{PROTOCOL} json driver\\n'); print(s.makefile().readline())",
        machine.socket().display()
    );
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", &script])
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with(&format!("agentd/{PROTOCOL} refused peer ")), "{output:?}");
}

#[test]
fn a_configuration_that_does_not_parse() {
    let machine = Machine::new();
    for (text, words) in [
        ("shell = [\n", "agentd.toml"),
        ("[shell]\ndeadlin = \"2s\"\n", "deadlin"),
        ("[shell]\ndeadline = \"soon\"\n", "deadline"),
    ] {
        machine.write_config(text);
        let output = machine.ctl(&["status"]).run();
        one_sentence(&output, code::DAEMON, &[words]);
        let failure = Daemon::try_start(&machine).expect_err("it does not start");
        assert!(!failure.status.success());
        assert!(failure.stderr.contains(words), "{}", failure.stderr);
    }
    fs::remove_file(machine.config_file()).unwrap();
}

#[test]
fn a_configuration_that_cannot_be_read() {
    let machine = Machine::new();
    fs::create_dir_all(machine.config_file()).unwrap();
    let output = machine.ctl(&["status"]).run();
    one_sentence(&output, code::DAEMON, &["agentd.toml"]);
    fs::remove_dir(machine.config_file()).unwrap();
}

#[test]
fn an_override_that_is_no_value_of_its_key() {
    let mut machine = Machine::new();
    machine.configure("shell.deadline", "tomorrow");
    let output = machine.ctl(&["status"]).run();
    one_sentence(&output, code::DAEMON, &["AGENTD_SHELL_DEADLINE"]);
}

#[test]
fn a_workspace_that_is_gone() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    let directory = machine.work().join("short-lived");
    fs::create_dir(&directory).unwrap();
    let _ = machine.ctl(&["status"]).run().expect(code::DONE);
    let ctl = machine.ctl(&["ask", "hello"]).current_dir(&directory);
    fs::remove_dir(&directory).unwrap();
    // The client itself cannot even start there; a client that names it can.
    drop(ctl);
    let mut client = harness::client::Client::connect(&machine.socket()).unwrap();
    let request = proto::request::CreateSession {
        cwd: directory.to_string_lossy().into_owned(),
        env: machine.env_vars(),
        name: None,
        model: None,
        scenario: None,
        endpoint: machine.endpoint(),
        mode: proto::mode::Mode::Ask,
    };
    let error = client.call(Request::CreateSession(request)).unwrap_err();
    assert!(error.message.contains(&*directory.to_string_lossy()), "{error}");
}

#[test]
fn a_full_disk_accepts_nothing_and_loses_nothing() {
    let server = ModelServer::start();
    let machine = Machine::with_model(&server.url());
    let _disk = match Mount::new(&machine.root().join("state"), 4096) {
        Ok(disk) => disk,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    let session = client.create(&machine);
    client.attach(&machine, session, proto::ids::Seq(0));
    // A request may be under way while its row is written; a prompt that was not accepted gets no answer here.
    server.answer_with(|request| match request.last_text().len() {
        0..1000 => Reply::text("there is room"),
        _ => Reply::hang_up(),
    });
    client.prompt(&machine, session, "fits", ApproveMode::All);
    client.until_turn_ended();
    let before = client.log(session);
    let filler = machine.root().join("state/filler");
    fill(&filler);
    // Small writes may still fit into a page that is there; a big one does not.
    let request = SendPrompt {
        session: session.to_string(),
        prompt: PromptId::new(),
        text: "x".repeat(500_000),
        approve: ApproveMode::All,
        endpoint: machine.endpoint(),
    };
    let error = client.call(Request::SendPrompt(request)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Storage, "{error}");
    assert!(error.to_string().contains("space"), "{error}");
    let output = machine.ctl(&["send", &session.to_string(), &"y".repeat(100_000)]).run();
    one_sentence(&output, code::OTHER, &["full"]);
    assert_eq!(client.log(session), before, "what was there is there");
    fs::remove_file(&filler).unwrap();
    client.prompt(&machine, session, "fits again", ApproveMode::All);
    client.until_turn_ended();
    let last = server.requests().pop().unwrap();
    assert_eq!((last.last_text().as_str(), last.rounds()), ("fits again", 1), "what was refused was never said");
    drop(client);
    drop(daemon);
}

#[test]
fn a_failed_turn_is_one_sentence_too() {
    let scene = Scene::new();
    scene.server.script(Reply::error(400, "invalid_request_error", "prompt is too long"));
    let output = scene.machine.ctl(&["ask", "--new", "too long"]).run();
    last_sentence(&output, code::MODEL, &["prompt is too long"]);
}
