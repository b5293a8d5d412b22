//! The real client against a server on the loopback that says exactly what a test tells it, byte by byte.
//!
//! | what may become of a stream | claim |
//! |---|---|
//! | cut at each event | `a_stream_cut_at_any_event_is_an_error_and_no_shorter_reply` |
//! | cut at each byte, also inside a character | `a_stream_cut_at_any_byte_is_an_error_also_inside_a_character` |
//! | chunk too short, reset | `a_chunk_that_ends_too_early_and_a_reset_are_cuts`, `a_reset_in_mid_stream_is_a_cut` |
//! | `error` event under a 200 | `an_error_event_is_told_by_its_type` |
//! | nonsense, bytes that are not UTF-8 | `nonsense_in_the_stream_is_a_protocol_error` |
//! | silence: none, comments, pings for half an hour | `silence_ends_the_request_after_three_minutes`, `comments_alone_are_silence_after_five_minutes`, `pings_alone_are_borne_for_half_an_hour` |
//! | half an hour before the first event, locally | `a_local_server_may_read_the_prompt_for_half_an_hour` |
//! | slow, but alive | `slow_tokens_are_no_silence` |
//! | web page, redirect, JSON instead of a stream | `answers_that_are_no_stream_give_a_sentence` |
//!
//! How events become a message, with every known and unknown event, delta and field, is claimed in
//! `agentd/src/model/assemble/tests.rs`.

use std::path::PathBuf;
use std::sync::Arc;

use proto::secret::Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::endpoint::is_loopback;
use super::server::{Act, STREAM_HEAD, Server, answer_of, head, read_request};
use super::*;
use crate::model::{BlockKind, Message, Role, StopReason};

fn vector(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/data/sse/{name}.sse"))).unwrap()
}

fn conversation() -> Conversation {
    Conversation {
        model: "claude-opus-5-5".to_owned(),
        max_tokens: 1000,
        effort: None,
        takes: None,
        previous: None,
        compact: false,
        system: "Be brief.".to_owned(),
        tools: Vec::new(),
        written: None,
        messages: vec![Arc::new(Message {
            role: Role::User,
            content: vec![proto::json::JsonText::from_value(&json!({"type": "text", "text": "hi"}))],
        })],
    }
}

fn key() -> ApiKey {
    ApiKey::Key(Secret::new("sk-test-1".to_owned()))
}

async fn send(client: &Client) -> Result<Reply, ModelError> {
    let (sender, _receiver) = mpsc::channel(16);
    client.send(&conversation(), Some(&key()), sender).await
}

/// Sends one request to a server with one script.
async fn outcome(script: Vec<Act>) -> Result<Reply, ModelError> {
    let server = Server::start(vec![script]).await;
    send(&server.client(Profile::Anthropic)).await
}

#[tokio::test]
async fn a_request_carries_its_headers_and_a_reply_its_request_id() {
    let mut server = Server::start(vec![vec![head(), Act::Send(vector("03-parallel-tools"))]]).await;
    let mut endpoint = Endpoint::new(Profile::Anthropic, &format!("{}/v1/", server.base_url));
    endpoint.betas = vec!["a-2026-01-01".to_owned(), "b-2026-01-01".to_owned()];
    let reply = send(&Client::new(&endpoint).unwrap()).await.unwrap();
    assert_eq!(reply.request_id.as_deref(), Some("req_test"));
    assert_eq!(reply.stop, StopReason::ToolUse);
    let request = server.requests.recv().await.unwrap();
    let version = concat!("user-agent: agentd/", env!("CARGO_PKG_VERSION"));
    for line in [
        "POST /v1/messages HTTP/1.1",
        "content-type: application/json",
        "anthropic-version: 2026-10-21",
        "anthropic-beta: a-2026-01-01,b-2026-01-01",
        "x-api-key: sk-test-1",
        version,
    ] {
        assert!(request.head.lines().any(|had| had == line), "{line} is not in\n{}", request.head);
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["stream"], true);
}

#[tokio::test]
async fn a_bearer_token_goes_into_authorization() {
    let mut server = Server::start(vec![vec![head(), Act::Send(vector("01-text-only"))]]).await;
    let (sender, _receiver) = mpsc::channel(16);
    let token = ApiKey::Bearer(Secret::new("tok\n".to_owned()));
    server.client(Profile::Anthropic).send(&conversation(), Some(&token), sender).await.unwrap();
    let request = server.requests.recv().await.unwrap();
    assert!(request.head.lines().any(|line| line == "authorization: Bearer tok"), "{}", request.head);
    assert!(!request.head.contains("x-api-key"));
}

#[tokio::test]
async fn without_a_key_anthropic_is_not_asked_and_a_local_server_is() {
    let mut server = Server::start(vec![vec![head(), Act::Send(vector("11a-compat-minimal"))]]).await;
    let (sender, _receiver) = mpsc::channel(16);
    let error = server.client(Profile::Anthropic).send(&conversation(), None, sender).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoKey);
    let (sender, _receiver) = mpsc::channel(16);
    let reply = server.client(Profile::Compat).send(&conversation(), None, sender).await.unwrap();
    assert_eq!(reply.id, "chatcmpl-vec11a");
    let head = server.requests.recv().await.unwrap().head;
    assert!(!head.contains("x-api-key") && !head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn progress_shows_thinking_and_text_as_it_comes() {
    let body = String::from_utf8(vector("02-thinking-text")).unwrap();
    let mut script = vec![head()];
    script.extend(body.split_inclusive("\n\n").map(|event| Act::Send(event.as_bytes().to_vec())));
    let server = Server::start(vec![script]).await;
    let (sender, mut receiver) = mpsc::channel(64);
    server.client(Profile::Anthropic).send(&conversation(), Some(&key()), sender).await.unwrap();
    let mut shown: Vec<(u32, &str, String)> = Vec::new();
    while let Some(step) = receiver.recv().await {
        match step {
            Progress::BlockStarted { index, kind: BlockKind::Thinking(text) } => shown.push((index, "thinking", text)),
            Progress::BlockStarted { index, kind: BlockKind::Text(text) } => shown.push((index, "text", text)),
            Progress::BlockStarted { kind, .. } => panic!("{kind:?}"),
            Progress::Delta { index, text } => {
                let block = shown.iter_mut().find(|block| block.0 == index).unwrap();
                block.2.push_str(&text);
            }
        }
    }
    let shown: Vec<(u32, &str, &str)> = shown.iter().map(|(index, kind, text)| (*index, *kind, &**text)).collect();
    assert_eq!(
        shown,
        [
            (0, "thinking", "The test fails because of an off-by-one."),
            (1, "thinking", ""),
            (2, "thinking", ""),
            (3, "text", "Off-by-one in `parse`."),
        ]
    );
}

#[tokio::test]
async fn a_receiver_that_never_reads_does_not_hold_up_the_reply() {
    let server = Server::start(vec![vec![head(), Act::Send(vector("03-parallel-tools"))]]).await;
    let (sender, _receiver) = mpsc::channel(1);
    let reply = server.client(Profile::Anthropic).send(&conversation(), Some(&key()), sender).await.unwrap();
    assert_eq!(reply.stop, StopReason::ToolUse);
}

/// Sends one request per script, all with one client.
async fn outcomes(scripts: Vec<Vec<Act>>) -> Vec<Result<Reply, ModelError>> {
    let count = scripts.len();
    let server = Server::start(scripts).await;
    let client = server.client(Profile::Anthropic);
    let mut results = Vec::new();
    for _ in 0..count {
        results.push(send(&client).await);
    }
    results
}

#[tokio::test]
async fn a_stream_cut_at_any_event_is_an_error_and_no_shorter_reply() {
    for name in ["02-thinking-text", "03-parallel-tools", "05-ping-interleaved", "09c-pause-turn", "11b-compat-sparse"]
    {
        let body = vector(name);
        let ends = body.windows(2).enumerate().filter(|(_, window)| *window == b"\n\n").map(|(at, _)| at + 2);
        let cuts: Vec<usize> = std::iter::once(0).chain(ends).collect();
        let scripts = cuts.iter().map(|cut| vec![head(), Act::Send(body[..*cut].to_vec())]).collect();
        let mut results = outcomes(scripts).await;
        results.pop().unwrap().unwrap();
        for (result, cut) in results.into_iter().zip(cuts) {
            let error = result.unwrap_err();
            assert_eq!(
                (error.kind, error.request_id.as_deref()),
                (ErrorKind::Cut, Some("req_test")),
                "{name} at {cut}"
            );
        }
    }
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_is_an_error_also_inside_a_character() {
    let body = vector("10-utf8-split");
    let stop = b"{\"type\":\"message_stop\"}";
    let whole = body.windows(stop.len()).rposition(|window| window == stop).unwrap() + stop.len();
    let scripts = (0..body.len()).map(|cut| vec![head(), Act::Send(body[..cut].to_vec())]).collect();
    for (cut, result) in outcomes(scripts).await.into_iter().enumerate() {
        match result {
            Ok(_) => assert!(cut >= whole, "a reply at byte {cut} of {whole}"),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Cut, "at {cut}");
                assert!(cut < whole, "no reply at byte {cut} of {whole}");
            }
        }
    }
}

#[tokio::test]
async fn a_chunk_that_ends_too_early_and_a_reset_are_cuts() {
    let chunked =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nffff\r\nevent: ping";
    let early = outcome(vec![Act::Send(chunked.as_bytes().to_vec())]).await.unwrap_err();
    assert_eq!(early.kind, ErrorKind::Cut);
}

#[tokio::test]
async fn a_reset_in_mid_stream_is_a_cut() {
    let seen = Arc::new(Notify::new());
    let server = Server::start(vec![vec![head(), begun(), Act::Until(seen.clone()), Act::Reset]]).await;
    let client = server.client(Profile::Anthropic);
    let (sender, mut receiver) = mpsc::channel(16);
    let (conversation, key) = (conversation(), key());
    let (result, ()) = tokio::join!(client.send(&conversation, Some(&key), sender), async {
        receiver.recv().await.unwrap();
        seen.notify_one();
    });
    assert_eq!(result.unwrap_err().kind, ErrorKind::Cut);
}

#[tokio::test]
async fn an_error_event_is_told_by_its_type() {
    let error = outcome(vec![head(), Act::Send(vector("06-error-midstream"))]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Overloaded);
    assert_eq!(error.status, None);
    assert_eq!(error.message, "Overloaded");
    assert_eq!(error.request_id.as_deref(), Some("req_test"));
}

#[tokio::test]
async fn nonsense_in_the_stream_is_a_protocol_error() {
    for body in ["data: {nonsense}\n\n", "event: message_start\ndata: 5\n\n", "data: \u{fffd}\n\n"] {
        let error = outcome(vec![head(), Act::Send(body.as_bytes().to_vec()), Act::Hang]).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Protocol(_)), "{body}: {error:?}");
    }
    let error = outcome(vec![head(), Act::Send(b"data: \xff\n\n".to_vec()), Act::Hang]).await.unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

#[tokio::test]
async fn headers_of_an_error_are_read() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down, sk-test-1"}}"#;
    let headers = "request-id: req_429\r\nretry-after: 1800\r\nx-should-retry: true\r\n";
    let error = outcome(answer_of(429, headers, body)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_secs(1800)));
    assert_eq!(error.should_retry, Some(true));
    assert_eq!(error.request_id.as_deref(), Some("req_429"));
    assert_eq!(error.message, "slow down, …", "a key that the server quotes is not shown");
}

#[tokio::test]
async fn answers_that_are_no_stream_give_a_sentence() {
    let page = "<html><head><title>Sign in</title></head></html>";
    let error = outcome(answer_of(200, "content-type: text/html\r\n", page)).await.unwrap_err();
    assert!(error.to_string().ends_with("(200): a web page titled \"Sign in\""), "{error}");
    let redirect = answer_of(307, "location: http://elsewhere.example/\r\n", "");
    let error = outcome(redirect).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Protocol(_)), "{error:?}");
    let json = r#"{"error":{"type":"overloaded_error","message":"busy"}}"#;
    let error = outcome(answer_of(200, "content-type: application/json\r\n", json)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Overloaded);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_apart_from_a_lost_network() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let client = Client::new(&Endpoint::new(Profile::Compat, &format!("http://127.0.0.1:{port}"))).unwrap();
    let error = send(&client).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Refused(_)), "{error:?}");
    let problem = error.problem();
    assert_eq!(problem.code, "refused");
    assert_eq!(problem.message, format!("Nothing answers at 127.0.0.1:{port}: Connection refused (os error 111)"));
    let hung_up = outcome(vec![]).await.unwrap_err();
    assert!(matches!(hung_up.kind, ErrorKind::Network(_)), "{hung_up:?}");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_not_sent() {
    let server = Server::start(vec![]).await;
    let mut large = conversation();
    large.system = "x".repeat(BODY_LIMIT);
    let (sender, _receiver) = mpsc::channel(1);
    let error = server.client(Profile::Anthropic).send(&large, Some(&key()), sender).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert_eq!(
        error.to_string(),
        format!(
            "The request to claude-opus-5-5 is larger than {} takes: 32 MB, the limit is 32 MB",
            server.base_url.trim_start_matches("http://")
        )
    );
}

#[tokio::test]
async fn dropping_the_request_drops_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client =
        Client::new(&Endpoint::new(Profile::Compat, &format!("http://{}", listener.local_addr().unwrap()))).unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(STREAM_HEAD.as_bytes()).await.unwrap();
        stream
    };
    let mut stream = tokio::select! {
        stream = server => stream,
        result = send(&client) => panic!("{result:?}"),
    };
    let mut nothing = [0];
    let read = stream.read(&mut nothing).await;
    assert!(matches!(read, Ok(0) | Err(_)), "the connection is closed: {read:?}");
}

/// A reply whose end comes in a packet of its own, a moment later.
async fn answer_in_two_packets(stream: &mut TcpStream) {
    read_request(stream).await.unwrap();
    let body = vector("01-text-only");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(format!("{head}{:x}\r\n", body.len()).as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    stream.write_all(b"\r\n").await.unwrap();
    tokio::task::yield_now().await;
    stream.write_all(b"0\r\n\r\n").await.unwrap();
}

#[tokio::test]
async fn a_kept_connection_carries_the_next_request_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let mut client = Client::new(&Endpoint::new(Profile::Compat, &base_url)).unwrap();
    // As for https, without the TLS.
    client.http = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..3 {
            answer_in_two_packets(&mut stream).await;
        }
        stream
    };
    let requests = async {
        for _ in 0..3 {
            send(&client).await.unwrap();
        }
    };
    let (_stream, ()) = tokio::join!(server, requests);
}

/// llama.cpp closes after each streamed reply without `connection: close`; a request on such a connection was lost as
/// "connection closed before message completed" whenever the next step came at once.
#[tokio::test]
async fn a_plain_connection_is_never_used_twice() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::new(&Endpoint::new(Profile::Compat, &base_url)).unwrap();
    let server = async {
        let mut open = Vec::new();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.unwrap();
            answer_in_two_packets(&mut stream).await;
            open.push(stream);
        }
        open
    };
    let requests = async {
        for _ in 0..3 {
            send(&client).await.unwrap();
        }
    };
    let (_open, ()) = tokio::join!(server, requests);
}

#[tokio::test]
async fn a_reply_recorded_from_llama_cpp_is_read() {
    // Recorded from a real server: the first block stops after the second one has begun, the call's start has no input.
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/llama/tool-call.sse");
    let reply = outcome(vec![head(), Act::Send(std::fs::read(path).unwrap())]).await.unwrap();
    assert_eq!((reply.stop, reply.blocks.len()), (StopReason::ToolUse, 2));
    let BlockKind::ToolUse(call) = &reply.blocks[1].kind else { panic!("{:?}", reply.blocks) };
    let input = proto::json::JsonText::parse(r#"{"command": "wc -l", "restart": false}"#).unwrap();
    assert_eq!((call.name.as_str(), &call.input), ("bash", &crate::model::ToolInput::Valid(input)));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (549, 55));
}

/// Waits for the first progress in real time, then lets the clock run as fast as it can.
async fn silence_after(script: Vec<Act>, profile: Profile) -> (ErrorKind, Duration) {
    let server = Server::start(vec![script]).await;
    let client = server.client(profile);
    let (sender, mut receiver) = mpsc::channel(16);
    let conversation = conversation();
    let key = key();
    let request = client.send(&conversation, Some(&key), sender);
    tokio::pin!(request);
    tokio::select! {
        step = receiver.recv() => assert!(step.is_some()),
        result = &mut request => panic!("{result:?}"),
    }
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    let error = request.await.unwrap_err();
    (error.kind, start.elapsed())
}

fn begun() -> Act {
    let body = concat!(
        "data: {\"type\":\"message_start\",\"message\":{}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
    );
    Act::Send(body.as_bytes().to_vec())
}

#[tokio::test]
async fn silence_ends_the_request_after_three_minutes() {
    let (kind, elapsed) = silence_after(vec![head(), begun(), Act::Hang], Profile::Anthropic).await;
    assert_eq!(kind, ErrorKind::Idle(Duration::from_secs(180)));
    assert!((179..182).contains(&elapsed.as_secs()), "{elapsed:?}");
}

#[tokio::test]
async fn comments_alone_are_silence_after_five_minutes() {
    let comments = Act::Every(Duration::from_secs(20), b": still here\n\n".to_vec());
    let (kind, elapsed) = silence_after(vec![head(), begun(), comments], Profile::Anthropic).await;
    assert_eq!(kind, ErrorKind::Idle(Duration::from_secs(300)));
    assert!((299..322).contains(&elapsed.as_secs()), "{elapsed:?}");
}

#[tokio::test]
async fn pings_alone_are_borne_for_half_an_hour() {
    let pings = Act::Every(Duration::from_secs(20), b"event: ping\ndata: {\"type\": \"ping\"}\n\n".to_vec());
    let (kind, elapsed) = silence_after(vec![head(), begun(), pings], Profile::Anthropic).await;
    assert_eq!(kind, ErrorKind::Idle(Duration::from_secs(1800)));
    assert!((1799..1822).contains(&elapsed.as_secs()), "{elapsed:?}");
}

#[tokio::test]
async fn slow_tokens_are_no_silence() {
    let body = String::from_utf8(vector("03-parallel-tools")).unwrap();
    let mut script = vec![head(), begun()];
    for event in body.split_inclusive("\n\n") {
        script.extend([Act::Wait(Duration::from_secs(170)), Act::Send(event.as_bytes().to_vec())]);
    }
    let server = Server::start(vec![script]).await;
    let client = server.client(Profile::Anthropic);
    let (sender, mut receiver) = mpsc::channel(64);
    let conversation = conversation();
    let key = key();
    let request = client.send(&conversation, Some(&key), sender);
    tokio::pin!(request);
    tokio::select! {
        step = receiver.recv() => assert!(step.is_some()),
        result = &mut request => panic!("{result:?}"),
    }
    tokio::time::pause();
    assert_eq!(request.await.unwrap().stop, StopReason::ToolUse);
}

#[tokio::test]
async fn a_local_server_may_read_the_prompt_for_half_an_hour() {
    let mut server = Server::start(vec![vec![Act::Hang]]).await;
    let client = server.client(Profile::Compat);
    let (result, elapsed) = tokio::join!(send(&client), async {
        server.requests.recv().await.unwrap();
        tokio::time::pause();
        tokio::time::Instant::now()
    });
    assert_eq!(result.unwrap_err().kind, ErrorKind::Idle(Duration::from_secs(1800)));
    assert!((1790..1802).contains(&elapsed.elapsed().as_secs()), "{:?}", elapsed.elapsed());
}

#[test]
fn base_urls_are_read_with_and_without_the_version() {
    for (base, url) in [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/messages"),
        ("https://openrouter.ai/api", "https://openrouter.ai/api/v1/messages"),
        ("http://localhost:11434/v1/", "http://localhost:11434/v1/messages"),
    ] {
        assert_eq!(messages_url(base).unwrap().as_str(), url);
    }
    for base in ["", "api.anthropic.com", "ftp://x", "localhost:8080", "unix:/x", "https://x?y"] {
        assert!(messages_url(base).is_err(), "{base}");
    }
}

#[test]
fn loopback_hosts_are_never_behind_a_proxy() {
    let loopback = |url: &str| is_loopback(&reqwest::Url::parse(url).unwrap());
    for url in
        ["http://127.0.0.1:1/", "http://127.9.9.9/", "http://[::1]:8/", "http://localhost/", "http://a.localhost/"]
    {
        assert!(loopback(url), "{url}");
    }
    for url in ["https://api.anthropic.com/", "http://10.0.0.1/", "http://notlocalhost/"] {
        assert!(!loopback(url), "{url}");
    }
}

#[tokio::test]
async fn a_key_that_no_header_can_carry_is_told_without_being_shown() {
    let server = Server::start(vec![]).await;
    let (sender, _receiver) = mpsc::channel(1);
    let broken = ApiKey::Key(Secret::new("sk-\u{7f}1".to_owned()));
    let error = server.client(Profile::Anthropic).send(&conversation(), Some(&broken), sender).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Authentication);
    assert!(error.to_string().ends_with("it holds characters that cannot stand in a header"), "{error}");
}

#[test]
fn settings_that_cannot_work_are_refused_before_any_request() {
    let refused = |change: fn(&mut Endpoint)| {
        let mut endpoint = Endpoint::new(Profile::Anthropic, BASE_URL);
        change(&mut endpoint);
        Client::new(&endpoint).unwrap_err().to_string()
    };
    assert_eq!(refused(|e| e.base_url = "nowhere".to_owned()), "the base URL \"nowhere\" is not an http or https URL");
    assert_eq!(refused(|e| e.version = "1\n".to_owned()), "\"1\\n\" cannot stand in a header");
    assert_eq!(refused(|e| e.extra_ca = Some(b"junk".to_vec())), "the extra CA holds no PEM certificate");
}

#[test]
fn no_debug_text_holds_a_key() {
    assert!(!format!("{:?}", key()).contains("sk-test-1"));
    let (_, value) = key().header().unwrap();
    assert!(!format!("{value:?}").contains("sk-test-1"));
}
