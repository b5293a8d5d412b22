//! Every row of the API's error table, and the bodies that other servers send.

use std::time::UNIX_EPOCH;

use super::*;

fn error(status: Option<u16>, body: &str) -> ModelError {
    let target = Target { host: "api.example.org".to_owned(), model: "claude-x".to_owned() };
    read(Answer { status, ..Answer::default() }, body, target)
}

fn envelope(kind: &str, text: &str) -> String {
    serde_json::json!({"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}).to_string()
}

#[test]
fn every_row_of_the_error_table_has_its_kind() {
    let rows = [
        (400, "invalid_request_error", ErrorKind::InvalidRequest),
        (401, "authentication_error", ErrorKind::Authentication),
        (402, "billing_error", ErrorKind::Billing),
        (403, "permission_error", ErrorKind::Permission),
        (404, "not_found_error", ErrorKind::NotFound),
        (408, "timeout_error", ErrorKind::Timeout),
        (409, "conflict_error", ErrorKind::Conflict),
        (413, "request_too_large", ErrorKind::TooLarge),
        (429, "rate_limit_error", ErrorKind::RateLimited),
        (500, "api_error", ErrorKind::Server),
        (504, "timeout_error", ErrorKind::Timeout),
        (529, "overloaded_error", ErrorKind::Overloaded),
    ];
    for (status, api_type, kind) in rows {
        let with_body = error(Some(status), &envelope(api_type, "words"));
        assert_eq!(with_body.kind, kind, "{status} {api_type}");
        assert_eq!(with_body.request_id.as_deref(), Some("req_1"));
        assert_eq!(with_body.message, "words");
        assert_eq!(error(Some(status), "").kind, kind, "{status} without a body");
    }
    assert_eq!(error(Some(503), "").kind, ErrorKind::Overloaded);
    assert_eq!(error(Some(502), "").kind, ErrorKind::Server);
    assert_eq!(error(Some(529), &envelope("api_error", "")).kind, ErrorKind::Overloaded);
}

#[test]
fn an_error_inside_a_stream_is_told_by_its_type() {
    assert_eq!(error(None, &envelope("overloaded_error", "")).kind, ErrorKind::Overloaded);
    assert_eq!(error(None, &envelope("api_error", "")).kind, ErrorKind::Server);
    assert_eq!(error(None, &envelope("rate_limit_error", "")).kind, ErrorKind::RateLimited);
    assert_eq!(error(None, "half a JS").kind, ErrorKind::Server);
}

#[test]
fn a_spend_limit_is_no_rate_limit() {
    let body = r#"{"error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    assert_eq!(error(Some(429), body).kind, ErrorKind::SpendLimit);
}

#[test]
fn the_text_of_a_400_tells_what_can_be_healed() {
    let kind = |text: &str| error(Some(400), &envelope("invalid_request_error", text)).kind;
    assert_eq!(kind("prompt is too long: 1000001 tokens > 1000000 maximum"), ErrorKind::PromptTooLong);
    assert_eq!(kind("messages.1.content.0: Invalid `signature` in `thinking` block"), ErrorKind::SignatureInvalid);
    assert_eq!(
        kind("`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"),
        ErrorKind::SignatureInvalid
    );
    assert_eq!(kind("Your credit balance is too low to access the API"), ErrorKind::Billing);
    assert_eq!(kind("foo: Extra inputs are not permitted"), ErrorKind::InvalidRequest);
}

#[test]
fn other_servers_bodies_are_read() {
    let llama =
        r#"{"error":{"code":400,"message":"tools param requires --jinja flag","type":"invalid_request_error"}}"#;
    assert_eq!(error(Some(400), llama).message, "tools param requires --jinja flag");
    let loading = r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;
    assert_eq!(error(Some(503), loading).kind, ErrorKind::Overloaded);
    let full = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
    assert_eq!(error(Some(400), full).kind, ErrorKind::PromptTooLong);
    let openai = r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#;
    assert_eq!(error(Some(401), openai).message, "Incorrect API key");
    assert_eq!(error(Some(404), r#"{"error":"model 'x' not found"}"#).message, "model 'x' not found");
    assert_eq!(error(Some(422), r#"{"detail":"Field required"}"#).message, "Field required");
    assert_eq!(error(Some(400), r#"{"object":"error","message":"bad","code":400}"#).message, "bad");
}

#[test]
fn a_web_page_becomes_a_sentence() {
    let page = "<!DOCTYPE html>\n<HTML><head><TITLE>502 Bad\n Gateway</TITLE></head><body>…</body></html>";
    assert_eq!(
        error(Some(502), page).to_string(),
        "api.example.org failed while it answered (502): a web page titled \"502 Bad Gateway\""
    );
    assert_eq!(error(Some(502), "<html><body>x</body></html>").message, "a web page");
    // Characters that grow in lower case must not move the title's bounds.
    assert_eq!(error(Some(502), "İİ<html><title>x</title>").message, "a web page titled \"x\"");
}

#[test]
fn a_servers_text_is_one_short_line() {
    let error = error(Some(500), &envelope("api_error", &"a\u{1b}[31m\n\tb ".repeat(500)));
    assert_eq!(error.message.chars().count(), TEXT_LIMIT + 1);
    assert!(!error.message.contains(char::is_control), "{}", error.message);
}

#[test]
fn every_form_of_retry_after_is_read() {
    let now = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let wait = |ms, other| retry_after(ms, other, now);
    assert_eq!(wait(None, Some("30")), Some(Duration::from_secs(30)));
    assert_eq!(wait(None, Some(" 1.5 ")), Some(Duration::from_millis(1500)));
    assert_eq!(wait(Some("250"), Some("30")), Some(Duration::from_millis(250)));
    assert_eq!(wait(None, Some("Sun, 09 Sep 2001 01:47:40 GMT")), Some(Duration::from_secs(60)));
    for nothing in ["0", "-3", "soon", "", "NaN", "inf", "Sun, 09 Sep 2000 01:47:40 GMT"] {
        assert_eq!(wait(None, Some(nothing)), None, "{nothing}");
    }
}
