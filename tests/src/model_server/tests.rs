//! The server seen over a bare socket, byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::*;

fn post(server: &ModelServer, body: &str) -> TcpStream {
    post_with(server, body, "connection: close\r\n")
}

fn post_with(server: &ModelServer, body: &str, header: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let length = body.len();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nanthropic-version: 2023-06-01\r\n\
         x-api-key: k\r\n{header}content-length: {length}\r\n\r\n{body}"
    )
    .expect("sent");
    stream
}

fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A cut connection may be told as a reset: what came before it is the answer.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn ask(prompt: &str) -> String {
    json!({
        "model": "m", "max_tokens": 9, "stream": true, "messages": [{ "role": "user", "content": prompt }]
    })
    .to_string()
}

#[test]
fn a_reply_is_a_stream_of_events_and_the_request_is_recorded() {
    let server = ModelServer::start();
    server.script(Reply::text("hello there, how are you").pieces(7));
    let answer = rest(post(&server, &ask("hi")));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("request-id: req_fake_0001"), "{answer}");
    assert!(answer.contains("chunked"), "{answer}");
    let request = server.wait_for(1);
    assert_eq!(request.first_prompt(), "hi");
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.body, ask("hi").into_bytes());
}

#[test]
fn a_cut_delivers_exactly_what_stands_before_it() {
    let server = ModelServer::start();
    server.script(Reply::text("some text").cut_after_events(3));
    let answer = rest(post(&server, &ask("cut by events")));
    assert!(answer.contains("content_block_start"), "{answer}");
    assert!(!answer.contains("content_block_delta"), "{answer}");
    assert!(!answer.ends_with("0\r\n\r\n"), "the chunked end must be missing: {answer}");
    server.script(Reply::raw("data: 0123456789\n\n").cut_after_bytes(9));
    let answer = rest(post(&server, &ask("cut by bytes")));
    assert!(answer.ends_with("data: 012\r\n"), "{answer:?}");
}

#[test]
fn a_held_reply_waits_for_its_gate_and_a_client_that_leaves_is_noticed() {
    let server = ModelServer::start();
    let gate = Gate::new();
    server.script(Reply::text("later").hold_after_events(2, &gate));
    let stream = post(&server, &ask("held"));
    server.wait_for(1);
    gate.open();
    assert!(rest(stream).contains("message_stop"));
    server.script(Reply::text("never").hold_after_events(2, &Gate::new()));
    // A server looks for the end of a connection only while it means to keep it.
    let stream = post_with(&server, &ask("left"), "");
    server.wait_for(2);
    drop(stream);
    server.wait_for_hang_up(2);
}

#[test]
fn errors_pages_and_hang_ups_are_delivered_as_scripted() {
    let server = ModelServer::start();
    server.script(Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "3"));
    let answer = rest(post(&server, &ask("a")));
    assert!(answer.starts_with("HTTP/1.1 529") && answer.contains("retry-after: 3"), "{answer}");
    server.script(Reply::http(502, "text/html", "<html>bad gateway</html>"));
    assert!(rest(post(&server, &ask("b"))).contains("<html>bad gateway"));
    server.script(Reply::hang_up());
    assert_eq!(rest(post(&server, &ask("c"))), "");
    server.script(Reply::text("half").then_error("overloaded_error", "Overloaded"));
    let answer = rest(post(&server, &ask("d")));
    assert!(answer.contains("event: error") && !answer.contains("message_stop"), "{answer}");
}

#[test]
fn a_request_that_the_real_server_would_refuse_is_refused_and_told() {
    let server = ModelServer::start();
    let answer = rest(post(&server, r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":""}]}"#));
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(server.take_violations().join("").contains("non-empty"));
    let answer = rest(post(&server, &ask("nothing is scripted")));
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(server.take_violations().join("").contains("no reply is scripted"));
}

#[test]
fn a_handler_answers_by_what_it_is_asked() {
    let server = ModelServer::start();
    server.answer_with(|request| {
        Reply::text(&format!("you said {}", request.last_text())).pause(Duration::from_millis(1))
    });
    let answer = rest(post(&server, &ask("abc")));
    assert!(answer.contains("you said") && answer.contains("abc"), "{answer}");
}

#[test]
fn a_wrong_key_is_refused_with_401() {
    let server = ModelServer::start_with_key("right");
    let answer = rest(post(&server, &ask("x")));
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("authentication_error"), "{answer}");
    assert_eq!(server.refused().len(), 1);
    assert!(server.requests().is_empty());
}
