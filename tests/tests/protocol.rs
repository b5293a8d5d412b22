//! The wire under hostile, broken, old and slow peers; and the JSON form for those who have nothing but a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown as How;
use std::os::unix::net::UnixStream;

use harness::client::{Client, ConnectError};
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{Block, Reply};
use harness::scene::Scene;
use harness::wait::PATIENCE;
use proto::frame::FRAME_BYTES_MAX;
use proto::handshake::{Answer, Codec, PROTOCOL, Refusal, Role};
use proto::ids::{PromptId, Seq};
use proto::request::{ApproveMode, Request, SendPrompt, Status};
use proto::response::{ErrorCode, Response, ServerFrame};
use serde_json::{Value, json};

fn connect(machine: &Machine) -> UnixStream {
    let stream = UnixStream::connect(machine.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Writes bytes and reads until the daemon closes the connection.
fn exchange(machine: &Machine, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(machine);
    // The daemon may close in the middle of it.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(How::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn refusal(answer: &[u8]) -> Option<(u32, Refusal, String)> {
    match Answer::parse(std::str::from_utf8(answer).ok()?)? {
        Answer::Refused { version, refusal, sentence } => Some((version, refusal, sentence)),
        Answer::Welcome { .. } => None,
    }
}

fn still_serves(machine: &Machine) {
    let mut client = Client::connect(&machine.socket()).unwrap();
    assert!(matches!(client.call(Request::Status(Status {})), Ok(Response::Status(_))));
}

#[test]
fn garbage_instead_of_a_preface_is_refused_in_one_line() {
    let machine = Machine::new();
    let _daemon = Daemon::start(&machine);
    let long = vec![b'x'; 100_000];
    let inputs: [&[u8]; 6] =
        [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\n", b"agentd/1\n", b"agentd/1 xml driver\n", &[0; 64], &long];
    for bytes in inputs {
        let answer = exchange(&machine, bytes);
        if let Some((version, refusal, sentence)) = refusal(&answer) {
            assert_eq!((version, refusal), (PROTOCOL, Refusal::Malformed), "{sentence}");
        } else {
            // Without a line feed within the limit there may be nothing to answer to.
            assert!(answer.is_empty() && !bytes.contains(&b'\n'), "{:?}", String::from_utf8_lossy(&answer));
        }
    }
    still_serves(&machine);
}

#[test]
fn another_version_is_told_which_side_to_upgrade_and_how() {
    let machine = Machine::new();
    let _daemon = Daemon::start(&machine);
    for (version, words) in [(PROTOCOL + 1, "restart the daemon"), (0, "upgrade agentctl")] {
        let answer = exchange(&machine, format!("agentd/{version} bincode driver\n").as_bytes());
        let (ours, refusal, sentence) = refusal(&answer).expect("a refusal");
        assert_eq!((ours, refusal), (PROTOCOL, Refusal::Version));
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn hostile_frames_end_their_own_connection_only() {
    let machine = Machine::new();
    let daemon = Daemon::start(&machine);
    let mut bystander = daemon.client(&machine);
    let preface = format!("agentd/{PROTOCOL} bincode driver\n").into_bytes();
    let over = u32::try_from(FRAME_BYTES_MAX + 1).unwrap().to_be_bytes();
    let hostile_string = [&9_u32.to_be_bytes()[..], &[253, 0, 0, 0, 0, 0, 0, 0, 0x80]].concat();
    let frames: [&[u8]; 5] = [&[0xff; 8], &over, &hostile_string, &[0, 0, 0, 3, 1, 2, 3], &[0, 0, 0, 0]];
    for frame in frames {
        let answer = exchange(&machine, &[&preface, frame].concat());
        assert!(answer.starts_with(b"agentd/"), "{frame:?}");
    }
    // A frame that ends in the middle.
    exchange(&machine, &[&preface[..], &[0, 0, 1, 0, 7]].concat());
    assert!(bystander.call(Request::Status(Status {})).is_ok());
    still_serves(&machine);
}

#[test]
fn a_silent_connection_does_not_keep_others_out() {
    let machine = Machine::new();
    let _daemon = Daemon::start(&machine);
    let silent: Vec<UnixStream> = (0..30).map(|_| connect(&machine)).collect();
    still_serves(&machine);
    drop(silent);
}

#[test]
fn a_prompt_over_its_limit_is_refused_and_the_connection_lives() {
    let mut scene = Scene::new();
    let request = SendPrompt {
        session: scene.session.to_string(),
        prompt: PromptId::new(),
        text: "x".repeat(proto::request::PROMPT_BYTES_MAX + 1),
        approve: ApproveMode::Ask,
        endpoint: scene.machine.endpoint(),
    };
    let error = scene.client.call(Request::SendPrompt(request)).unwrap_err();
    assert!(matches!(error.code, ErrorCode::Limit | ErrorCode::BadRequest), "{error}");
    assert!(scene.client.call(Request::Status(Status {})).is_ok());
}

#[test]
fn a_prompt_sent_twice_is_one_prompt() {
    let mut scene = Scene::new();
    scene.server.script(Reply::text("once"));
    let request = SendPrompt {
        session: scene.session.to_string(),
        prompt: PromptId::new(),
        text: "only once".into(),
        approve: ApproveMode::Ask,
        endpoint: scene.machine.endpoint(),
    };
    let first = scene.client.call(Request::SendPrompt(request.clone())).unwrap();
    let second = scene.client.call(Request::SendPrompt(request)).unwrap();
    assert_eq!(first, second);
    scene.client.until_turn_ended();
    assert_eq!(scene.server.requests().len(), 1);
}

#[test]
fn a_slow_reader_is_told_where_to_resume_and_holds_nobody_up() {
    let mut scene = Scene::new();
    let mut slow = scene.another("slow", "");
    scene.client.patience(4 * PATIENCE);
    // Much more than any buffer between daemon and client holds, as live output.
    scene.server.script(Reply::bash("head -c 60000000 /dev/zero | tr '\\0' x | fold -w 99"));
    // And more rows than its queue: live pieces are dropped for it, rows never.
    for _ in 0..40 {
        scene.server.script(Reply::blocks((0..10).map(|number| Block::bash(&format!("echo {number}"))).collect()));
    }
    scene.server.script(Reply::text("much was written"));
    scene.good_turn("write much");
    let log = scene.log();
    let mut seen = Vec::new();
    let after = loop {
        match slow.next_frame().expect("the slow connection lives") {
            ServerFrame::Event(event) => seen.push(event.event),
            ServerFrame::Lagged(lagged) => break Some(lagged.after),
            ServerFrame::Response(_)
            | ServerFrame::Live(_)
            | ServerFrame::CaughtUp(_)
            | ServerFrame::Presence(_)
            | ServerFrame::Goodbye(_) => {}
        }
        if seen.len() == log.len() {
            break None;
        }
    };
    let after = after.expect("a reader that slow is cut off");
    assert_eq!(seen.last().map_or(Seq(0), |event| event.seq), after, "it is told the last row it was sent");
    slow.attach(&scene.machine, scene.session, after);
    while seen.len() < log.len() {
        let frame = slow.next_frame().unwrap();
        if let ServerFrame::Event(event) = frame {
            seen.push(event.event);
        }
    }
    assert_eq!(seen, log, "nothing is missing and nothing is doubled");
}

#[test]
fn a_script_with_nothing_but_a_socket_can_drive_a_session_in_json() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo from json > out.txt"));
    scene.server.script(Reply::text("done"));
    let mut stream = connect(&scene.machine);
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut read = || {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line
    };
    stream.write_all(format!("agentd/{PROTOCOL} json driver\n").as_bytes()).unwrap();
    assert!(read().starts_with(&format!("agentd/{PROTOCOL} ok ")));
    let mut ask = |id: u64, request: Value| {
        stream.write_all(format!("{}\n", json!({ "id": id, "request": request })).as_bytes()).unwrap();
    };
    let mut until = |pick: &dyn Fn(&Value) -> bool| loop {
        let line = read();
        let frame: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        if pick(&frame) {
            break frame;
        }
    };
    let session = scene.session.to_string();
    ask(7, json!({ "hello": { "client": { "program": "socat", "terminal": "" } } }));
    let answer = until(&|frame| frame["response"]["id"] == 7);
    assert!(answer["response"]["result"]["ok"]["done"].is_object(), "{answer}");
    ask(8, json!({ "attach": { "session": session, "since": 0 } }));
    let answer = until(&|frame| frame["response"]["id"] == 8);
    assert_eq!(answer["response"]["result"]["ok"]["attached"]["session"]["id"], session);
    ask(9, json!({ "send_prompt": { "session": session, "prompt": PromptId::new().to_string(), "text": "by hand" } }));
    let asked = until(&|frame| !frame["event"]["event"]["body"]["approval_asked"].is_null());
    let approval = asked["event"]["event"]["body"]["approval_asked"]["approval"]["id"].clone();
    ask(10, json!({ "answer_approval": { "approval": approval, "verdict": { "once": {} } } }));
    let ended = until(&|frame| !frame["event"]["event"]["body"]["turn_ended"].is_null());
    assert!(ended["event"]["event"]["body"]["turn_ended"]["outcome"]["done"].is_object(), "{ended}");
    assert!(scene.machine.work().join("out.txt").exists());
    // A bad request is an answer, not the end.
    ask(11, json!({ "show_session": { "session": session, "colour": "red" } }));
    let answer = until(&|frame| frame["response"]["id"] == 11 || frame["response"]["id"] == 0);
    assert_eq!(answer["response"]["result"]["error"]["code"], "bad_request", "{answer}");
    ask(12, json!({ "status": {} }));
    let answer = until(&|frame| frame["response"]["id"] == 12);
    assert!(answer["response"]["result"]["ok"]["status"]["pid"].is_u64(), "{answer}");
    scene.client.until_turn_ended();
}

#[test]
fn both_codecs_show_the_same_events() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("printf 'a\\tb\\n'; echo ü"));
    scene.server.script(Reply::text("done"));
    scene.good_turn("go");
    let mut json = Client::connect_as(&scene.machine.socket(), Codec::Json, Role::Observer).unwrap();
    json.attach(&scene.machine, scene.session, Seq(0));
    json.until_caught_up();
    assert_eq!(json.events, scene.log());
    assert_eq!(json.log(scene.session), scene.log());
}

#[test]
fn a_request_for_what_does_not_exist_says_so() {
    let mut scene = Scene::new();
    let show = |session: &str| Request::ShowSession(proto::request::ShowSession { session: session.into() });
    let error = scene.client.call(show("ffffffff")).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert!(error.message.contains("ffffffff"), "{error}");
    let info = scene.client.call(show(&scene.session.short())).unwrap();
    assert!(matches!(info, Response::Session(info) if info.id == scene.session), "an id's last digits are enough");
}

#[test]
fn a_command_started_by_the_agent_cannot_speak_to_the_daemon_as_the_user() {
    let mut scene = Scene::new();
    let socket = scene.machine.socket();
    let script = format!(
        "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{}\"); s.sendall(b\"agentd/{PROTOCOL} json driver\\n\"); print(s.makefile().readline())'",
        socket.display()
    );
    scene.server.script(Reply::bash(&script));
    scene.server.script(Reply::bash(&format!("setsid --wait env -i {script}")));
    scene.server.script(Reply::text("refused"));
    scene.good_turn("approve yourself");
    for number in [2, 3] {
        let text = scene.server.wait_for(number).results()[0].text.clone();
        let line = text.lines().next().unwrap_or_default();
        assert!(matches!(refusal(line.as_bytes()), Some((_, Refusal::Inside, _))), "{text}");
    }
}

#[test]
fn a_connection_that_is_refused_says_why_to_a_typed_client() {
    let machine = Machine::new();
    let _daemon = Daemon::start(&machine);
    match Client::open(&machine.socket(), "agentd/77 bincode driver\n") {
        Err(ConnectError::Refused(Refusal::Version, sentence)) => assert!(sentence.contains("77"), "{sentence}"),
        other => panic!("{other:?}"),
    }
}
