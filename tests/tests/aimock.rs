//! A judge that is not ours: `@copilotkit/aimock`, an independent mock of the Messages API, and what it breaks on purpose.
//!
//! Needs its program: `npm install --prefix target/aimock @copilotkit/aimock@1.43.0`, as `.ci/run` does. Without it the
//! claims are skipped with their reason.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use harness::binaries::repository;
use harness::client::Client;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::wait;
use proto::event::{Block, EventBody, TurnOutcome};
use proto::ids::{Seq, SessionId};
use proto::request::ApproveMode;

/// Conversations: a text, a thought, and one round of a tool.
const FIXTURES: &str = r#"{"fixtures":[
 {"match":{"toolResultContains":"total 7"},"response":{"content":"Seven in all."}},
 {"match":{"userMessage":"count"},"response":{"content":"Let me look.","toolCalls":[{"name":"bash","arguments":{"command":"echo total 7"}}]}},
 {"match":{"userMessage":"think"},"response":{"reasoning":"hmm, thinking","content":"Thought über alles."}},
 {"match":{"userMessage":"hello"},"response":{"content":"Hello! This is a streamed text — with a dash."}}
]}"#;

fn program() -> Option<PathBuf> {
    let program = repository().join("target/aimock/node_modules/.bin/llmock");
    if program.exists() {
        return Some(program);
    }
    println!("skipped: no aimock (npm install --prefix target/aimock @copilotkit/aimock@1.43.0)");
    None
}

/// The mock, serving until its drop.
struct Mock {
    child: Child,
    port: u16,
}

impl Mock {
    fn start(program: &PathBuf, machine: &Machine, arguments: &[&str]) -> Self {
        let fixtures = machine.root().join("logs/fixtures.json");
        fs::write(&fixtures, FIXTURES).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "--strict", "--chunk-size", "8", "--log-level", "silent", "--fixtures"])
            .arg(fixtures)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node runs");
        let mock = Self { child, port };
        wait::until("aimock to serve", || mock.is_healthy().then_some(()));
        mock
    }

    fn is_healthy(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut answer = String::new();
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Judged {
    client: Client,
    session: SessionId,
    _daemon: Daemon,
    // Before the machine, which wants no process of its test left.
    _mock: Mock,
    machine: Machine,
}

impl Judged {
    fn new(program: &PathBuf, arguments: &[&str]) -> Self {
        let mut machine = Machine::new();
        let mock = Mock::start(program, &machine, arguments);
        machine.set_env("ANTHROPIC_BASE_URL", &format!("http://127.0.0.1:{}", mock.port));
        machine.set_env("ANTHROPIC_API_KEY", "sk-test-key");
        for (key, value) in [("retry.first_wait", "1ms"), ("retry.longest_wait", "2ms"), ("retry.parked_wait", "4ms")] {
            machine.configure(key, value);
        }
        let daemon = Daemon::start(&machine);
        let mut client = daemon.client(&machine);
        let session = client.create(&machine);
        client.attach(&machine, session, Seq(0));
        Self { client, session, _daemon: daemon, machine, _mock: mock }
    }

    fn turn(&mut self, text: &str) -> (TurnOutcome, Vec<String>) {
        self.client.prompt(&self.machine, self.session, text, ApproveMode::All);
        let outcome = self.client.until_turn_ended().outcome;
        let texts = self.client.log(self.session).into_iter().filter_map(|event| match event.body {
            EventBody::ReplyReceived(reply) => Some(reply.blocks),
            _ => None,
        });
        let text = |block: Block| match block {
            Block::Text { text } => Some(text),
            Block::Thinking { .. } | Block::Call(_) | Block::Other { .. } => None,
        };
        (outcome, texts.flatten().filter_map(text).collect())
    }

    fn failures(&mut self) -> Vec<String> {
        let log = self.client.log(self.session).into_iter();
        log.filter_map(|event| match event.body {
            EventBody::RequestFailed(failed) => Some(failed.problem.code),
            _ => None,
        })
        .collect()
    }
}

#[test]
fn an_independent_server_understands_us_and_we_understand_it() {
    let Some(program) = program() else { return };
    let mut judged = Judged::new(&program, &[]);
    for (prompt, said) in [
        ("hello", "Hello! This is a streamed text — with a dash."),
        ("think", "Thought über alles."),
        ("count", "Seven in all."),
    ] {
        let (outcome, texts) = judged.turn(prompt);
        assert_eq!((outcome, texts.last().map(String::as_str)), (TurnOutcome::Done {}, Some(said)));
    }
    assert_eq!(judged.failures(), Vec::<String>::new());
}

#[test]
fn what_an_independent_server_breaks_on_purpose_is_tried_again_until_it_works() {
    let Some(program) = program() else { return };
    for flag in ["--chaos-drop", "--chaos-disconnect", "--chaos-malformed"] {
        let mut judged = Judged::new(&program, &[flag, "0.5"]);
        // One of ten prompts gets through at once in a thousand years; which one fails is chance.
        for round in 0..5 {
            let (outcome, _) = judged.turn(&format!("hello {round}"));
            let lasting = flag == "--chaos-malformed" && matches!(outcome, TurnOutcome::Failed { .. });
            assert!(outcome == TurnOutcome::Done {} || lasting, "{flag}: {outcome:?}");
        }
        println!("{flag}: {:?}", judged.failures());
    }
}

#[test]
fn a_rate_limit_of_an_independent_server_is_waited_out() {
    let Some(program) = program() else { return };
    let mut judged = Judged::new(&program, &["--chaos-ratelimit", "1.0"]);
    judged.client.prompt(&judged.machine, judged.session, "hello", ApproveMode::All);
    let failed = judged.client.until_event("a failed try", |body| match body {
        EventBody::RequestFailed(failed) => Some(failed.clone()),
        _ => None,
    });
    assert_eq!(failed.problem.code, "rate_limited");
    assert!(failed.next_try.is_some(), "{failed:?}");
}
