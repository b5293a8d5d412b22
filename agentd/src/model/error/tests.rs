//! The sentences of the commonest failures, as people read them.

use expect_test::{Expect, expect};

use super::*;

fn check(error: ModelError, expected: Expect) {
    let Problem { code, message, hint, request_id } = error.problem();
    expected.assert_eq(&format!("{code}\n{message}\n{hint}\n{request_id:?}"));
}

fn error(kind: ErrorKind) -> ModelError {
    ModelError::new(kind, Target { host: "api.anthropic.com".to_owned(), model: "claude-opus-5-5".to_owned() })
}

#[test]
fn a_missing_key() {
    check(
        error(ErrorKind::NoKey),
        expect![[r#"
        no_key
        No API key is set for api.anthropic.com
        Set ANTHROPIC_API_KEY or another key source, then send the prompt again; `agentctl doctor` shows which sources are read
        None"#]],
    );
}

#[test]
fn a_wrong_key() {
    let error = ModelError {
        status: Some(401),
        api_type: Some("authentication_error".to_owned()),
        message: "invalid x-api-key".to_owned(),
        request_id: Some("req_1".to_owned()),
        ..error(ErrorKind::Authentication)
    };
    check(
        error,
        expect![[r#"
        authentication
        api.anthropic.com did not accept the API key (401 authentication_error): invalid x-api-key
        Check the key and send the prompt again; `agentctl doctor` shows where the key comes from
        Some("req_1")"#]],
    );
}

#[test]
fn a_server_that_is_not_there() {
    check(
        error(ErrorKind::Refused("Connection refused (os error 111)".to_owned())),
        expect![[r#"
            refused
            Nothing answers at api.anthropic.com: Connection refused (os error 111)
            Start the server and `agentctl retry`, or correct the base URL and start a new session
            None"#]],
    );
}

#[test]
fn a_lost_network() {
    check(
        error(ErrorKind::Network("Temporary failure in name resolution".to_owned())),
        expect![[r#"
            network
            The connection to api.anthropic.com failed: Temporary failure in name resolution
            Check the network; the request is sent again by itself, or at once with `agentctl retry`
            None"#]],
    );
}

#[test]
fn a_model_that_does_not_exist() {
    let error = ModelError {
        status: Some(404),
        api_type: Some("not_found_error".to_owned()),
        message: "model: claude-opus-9".to_owned(),
        ..error(ErrorKind::NotFound)
    };
    check(
        error,
        expect![[r#"
        not_found
        api.anthropic.com does not know the model claude-opus-5-5 or the path of the API (404 not_found_error): model: claude-opus-9
        Check the model's name and the base URL
        None"#]],
    );
}

#[test]
fn an_overload_in_mid_stream() {
    let error = ModelError {
        api_type: Some("overloaded_error".to_owned()),
        message: "Overloaded".to_owned(),
        ..error(ErrorKind::Overloaded)
    };
    check(
        error,
        expect![[r#"
            overloaded
            claude-opus-5-5 on api.anthropic.com is overloaded (overloaded_error): Overloaded
            Wait: the request is sent again by itself, or at once with `agentctl retry`
            None"#]],
    );
}

#[test]
fn a_rate_limit() {
    let error = ModelError {
        status: Some(429),
        api_type: Some("rate_limit_error".to_owned()),
        ..error(ErrorKind::RateLimited)
    };
    check(
        error,
        expect![[r#"
            rate_limited
            api.anthropic.com limits the rate of requests to claude-opus-5-5 (429 rate_limit_error)
            Wait: the request is sent again by itself, or at once with `agentctl retry`
            None"#]],
    );
}

#[test]
fn a_full_window() {
    let error = ModelError {
        status: Some(400),
        message: "prompt is too long: 1200000 tokens > 1000000 maximum".to_owned(),
        ..error(ErrorKind::PromptTooLong)
    };
    check(
        error,
        expect![[r#"
        prompt_too_long
        The conversation is longer than the context window of claude-opus-5-5 on api.anthropic.com (400): prompt is too long: 1200000 tokens > 1000000 maximum
        Compact the conversation or start a new session
        None"#]],
    );
}

#[test]
fn a_cut_reply() {
    check(
        error(ErrorKind::Cut),
        expect![[r#"
        cut
        The reply of claude-opus-5-5 on api.anthropic.com was cut off
        Send the prompt again if it does not recover by itself
        None"#]],
    );
}

#[test]
fn a_silent_server() {
    check(
        error(ErrorKind::Idle(Duration::from_secs(180))),
        expect![[r#"
        idle
        claude-opus-5-5 on api.anthropic.com sent nothing for 180 s
        Send the prompt again if it does not recover by itself
        None"#]],
    );
}
