//! A server's answer that is no reply, to a [`ModelError`]. Pure.
//!
//! The shapes in use: Anthropic's envelope; OpenAI's and llama.cpp's `{"error":{…}}` with other types and a number as
//! code; `{"error":"…"}` and `{"detail":…}` of smaller servers; pages of HTML from whatever stands between. The kind is
//! told from type, code and status; the text is asked only where the API offers nothing else (section 10.3).

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::error::{ErrorKind, ModelError, Target};

/// Characters of a server's text that are shown: enough for its sentence, too few for a dump of the request.
const TEXT_LIMIT: usize = 400;

/// What came with an answer beside its body.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// The HTTP status; `None` for an error inside a stream.
    pub(super) status: Option<u16>,
    pub(super) request_id: Option<String>,
    pub(super) retry_after: Option<Duration>,
    pub(super) should_retry: Option<bool>,
}

/// What an error body says.
#[derive(Debug, Default)]
struct Said {
    api_type: Option<String>,
    code: Option<String>,
    text: String,
    request_id: Option<String>,
}

/// Classifies an error body.
pub(super) fn read(answer: Answer, body: &str, target: Target) -> ModelError {
    let said = parse(body);
    ModelError {
        kind: kind(answer.status, &said),
        target,
        status: answer.status,
        api_type: said.api_type,
        message: shorten(&said.text),
        request_id: answer.request_id.or(said.request_id),
        retry_after: answer.retry_after,
        should_retry: answer.should_retry,
    }
}

/// A `retry-after-ms` or `retry-after` header: seconds, also with a fraction, or a date.
pub(super) fn retry_after(ms: Option<&str>, seconds_or_date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let number = |text: &str, unit: f64| {
        let seconds = text.trim().parse::<f64>().ok()? * unit;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let date = |text: &str| httpdate::parse_http_date(text.trim()).ok()?.duration_since(now).ok();
    ms.and_then(|ms| number(ms, 0.001))
        .or_else(|| seconds_or_date.and_then(|text| number(text, 1.0).or_else(|| date(text))))
        .filter(|wait| !wait.is_zero())
}

/// One line of at most [`TEXT_LIMIT`] characters without control characters.
pub(super) fn shorten(text: &str) -> String {
    let line = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TEXT_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn parse(body: &str) -> Said {
    let Ok(value) = serde_json::from_str::<Value>(body) else {
        return Said { text: plain(body), ..Said::default() };
    };
    let text_of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let error = match value.get("error") {
        Some(error @ Value::Object(_)) => error,
        Some(Value::String(text)) => {
            return Said { text: text.clone(), ..Said::default() };
        }
        Some(_) | None => &value,
    };
    let text =
        error.get("message").or_else(|| error.get("detail")).map(|text| text_of(text).unwrap_or(text.to_string()));
    Said {
        api_type: error.get("type").and_then(text_of).filter(|kind| kind != "error"),
        code: error.pointer("/details/error_code").or_else(|| error.get("error_code")).and_then(text_of),
        text: text.unwrap_or_else(|| plain(body)),
        request_id: value.get("request_id").and_then(text_of),
    }
}

/// The words of a body that is not JSON: a page's title, else its first line.
fn plain(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    if !lower.contains("<html") && !lower.contains("<!doctype") {
        return body.trim().lines().next().unwrap_or_default().to_owned();
    }
    let title = lower.find("<title").and_then(|tag| {
        let start = tag + lower[tag..].find('>')? + 1;
        let end = start + lower[start..].find("</title")?;
        body.get(start..end)
    });
    match title {
        Some(title) => format!("a web page titled \"{}\"", title.trim()),
        None => "a web page".to_owned(),
    }
}

fn kind(status: Option<u16>, said: &Said) -> ErrorKind {
    let text = said.text.to_lowercase();
    if let Some("enforced_spend_limit_reached" | "contract_spend_limit_reached") = said.code.as_deref() {
        return ErrorKind::SpendLimit;
    }
    match said.api_type.as_deref() {
        Some("authentication_error") => ErrorKind::Authentication,
        Some("billing_error" | "insufficient_quota") => ErrorKind::Billing,
        Some("permission_error") => ErrorKind::Permission,
        Some("not_found_error") => ErrorKind::NotFound,
        Some("request_too_large") => ErrorKind::TooLarge,
        Some("rate_limit_error") => ErrorKind::RateLimited,
        Some("overloaded_error" | "unavailable_error") => ErrorKind::Overloaded,
        Some("timeout_error") => ErrorKind::Timeout,
        Some("conflict_error") => ErrorKind::Conflict,
        Some("exceed_context_size_error") => ErrorKind::PromptTooLong,
        Some("invalid_request_error") if status.is_none() => invalid(&text),
        // "api_error" too, since a 529 may come with it; and other servers say "invalid_request_error" to a wrong key.
        Some(_) | None => by_status(status, &text),
    }
}

fn by_status(status: Option<u16>, text: &str) -> ErrorKind {
    match status {
        Some(401) => ErrorKind::Authentication,
        Some(402) => ErrorKind::Billing,
        Some(403) => ErrorKind::Permission,
        Some(404) => ErrorKind::NotFound,
        Some(408 | 504) => ErrorKind::Timeout,
        Some(409) => ErrorKind::Conflict,
        Some(413) => ErrorKind::TooLarge,
        Some(429) => ErrorKind::RateLimited,
        // 503 is also what a local server says while it loads its model.
        Some(503 | 529) => ErrorKind::Overloaded,
        Some(400..=499) => invalid(text),
        Some(200..=399) => ErrorKind::Protocol("the answer is not an event stream".to_owned()),
        Some(_) | None => ErrorKind::Server,
    }
}

/// What a 400 is about; its text is all there is.
fn invalid(text: &str) -> ErrorKind {
    const TOO_LONG: [&str; 5] =
        ["prompt is too long", "context length", "context size", "context window", "exceed context limit"];
    const THINKING: [&str; 4] =
        ["invalid `signature`", "invalid signature", "bound to a different conversation", "blocks cannot be modified"];
    if TOO_LONG.iter().any(|words| text.contains(words)) {
        ErrorKind::PromptTooLong
    } else if THINKING.iter().any(|words| text.contains(words))
        || (text.contains("thinking") && text.contains("cannot be modified"))
    {
        ErrorKind::SignatureInvalid
    } else if text.contains("credit balance") {
        ErrorKind::Billing
    } else {
        ErrorKind::InvalidRequest
    }
}

#[cfg(test)]
mod tests;
