//! Why a request to the model failed, in terms of what can be done about it, and in words for a person.
//!
//! It owns the kinds and the sentences; `failure` decides which kind an answer of a server is,
//! [`super::retry`] whether and when to try again.
//!
//! Invariant: no text in here holds a key: servers' texts are scrubbed before they come in.

use std::fmt;
use std::time::Duration;

use proto::event::Problem;

/// One failed try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// What can be done about it.
    pub kind: ErrorKind,
    /// On what.
    pub target: Target,
    /// The HTTP status; an error inside a stream has none of its own.
    pub status: Option<u16>,
    /// The API's `error.type`.
    pub api_type: Option<String>,
    /// The server's words, shortened; may be empty.
    pub message: String,
    /// The server's id of the request.
    pub request_id: Option<String>,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// The server's own opinion on trying again (`x-should-retry`).
    pub should_retry: Option<bool>,
}

/// What a request was sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Host and port of the base URL, or the scenario.
    pub host: String,
    /// The model's id.
    pub model: String,
}

/// Kinds of failure, by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No key is set.
    NoKey,
    /// The key was not accepted: read it again, once.
    Authentication,
    /// The account has to be paid for.
    Billing,
    /// The key may not do this.
    Permission,
    /// No such model or path.
    NotFound,
    /// The request is wrong.
    InvalidRequest,
    /// The conversation is longer than the model's window: compact.
    PromptTooLong,
    /// A thinking block was not accepted: leave thinking out, once.
    SignatureInvalid,
    /// The request has too many bytes.
    TooLarge,
    /// Too many requests: wait.
    RateLimited,
    /// A spend limit is reached: somebody must raise it.
    SpendLimit,
    /// The server is overloaded or starting: wait.
    Overloaded,
    /// The request collided with another.
    Conflict,
    /// The server failed.
    Server,
    /// The server gave up waiting.
    Timeout,
    /// The network failed; the text says how.
    Network(String),
    /// Nothing listens there; the text says how.
    Refused(String),
    /// The server's certificate is not trusted; the text says why.
    Certificate(String),
    /// The stream ended before the reply did.
    Cut,
    /// The stream fell silent for this long.
    Idle(Duration),
    /// What came is not the Messages API; the text says what it is.
    Protocol(String),
}

impl ErrorKind {
    /// A stable word for scripts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoKey => "no_key",
            Self::Authentication => "authentication",
            Self::Billing => "billing",
            Self::Permission => "permission",
            Self::NotFound => "not_found",
            Self::InvalidRequest => "invalid_request",
            Self::PromptTooLong => "prompt_too_long",
            Self::SignatureInvalid => "signature_invalid",
            Self::TooLarge => "too_large",
            Self::RateLimited => "rate_limited",
            Self::SpendLimit => "spend_limit",
            Self::Overloaded => "overloaded",
            Self::Conflict => "conflict",
            Self::Server => "server",
            Self::Timeout => "timeout",
            Self::Network(_) => "network",
            Self::Refused(_) => "refused",
            Self::Certificate(_) => "certificate",
            Self::Cut => "cut",
            Self::Idle(_) => "idle",
            Self::Protocol(_) => "protocol",
        }
    }

    fn what_failed(&self, target: &Target) -> String {
        let Target { host, model } = target;
        match self {
            Self::NoKey => format!("No API key is set for {host}"),
            Self::Authentication => format!("{host} did not accept the API key"),
            Self::Billing => format!("{host} asks for payment before it answers"),
            Self::Permission => format!("The API key may not use {model} on {host}"),
            Self::NotFound => format!("{host} does not know the model {model} or the path of the API"),
            Self::InvalidRequest => format!("{host} refused the request to {model}"),
            Self::PromptTooLong => format!("The conversation is longer than the context window of {model} on {host}"),
            Self::SignatureInvalid => format!("{host} did not accept an earlier thinking block of this conversation"),
            Self::TooLarge => format!("The request to {model} is larger than {host} takes"),
            Self::RateLimited => format!("{host} limits the rate of requests to {model}"),
            Self::SpendLimit => format!("The spend limit of the account on {host} is reached"),
            Self::Overloaded => format!("{model} on {host} is overloaded"),
            Self::Conflict => format!("{host} reports a conflict with another request"),
            Self::Server => format!("{host} failed while it answered"),
            Self::Timeout => format!("{host} gave up on the request to {model}"),
            Self::Network(how) => format!("The connection to {host} failed: {how}"),
            Self::Refused(how) => format!("Nothing answers at {host}: {how}"),
            Self::Certificate(why) => format!("The certificate of {host} is not trusted: {why}"),
            Self::Cut => format!("The reply of {model} on {host} was cut off"),
            Self::Idle(silence) => format!("{model} on {host} sent nothing for {} s", silence.as_secs()),
            Self::Protocol(what) => format!("{host} does not speak the Messages API: {what}"),
        }
    }

    fn what_next(&self) -> &'static str {
        match self {
            Self::NoKey => {
                "Set ANTHROPIC_API_KEY or another key source, then send the prompt again; `agentctl doctor` shows which sources are read"
            }
            Self::Authentication => {
                "Check the key and send the prompt again; `agentctl doctor` shows where the key comes from"
            }
            Self::Billing => "Add credit to the account, then send the prompt again",
            Self::Permission => "Use a key that may use this model, or choose another model",
            Self::NotFound => "Check the model's name and the base URL",
            Self::InvalidRequest => {
                "Start a new session if it happens again; the server's text says what it did not like"
            }
            Self::PromptTooLong => "Compact the conversation or start a new session",
            Self::SignatureInvalid => "Start a new session if it happens again without the thinking",
            Self::TooLarge => "Start a new session, or leave large files and images out",
            Self::RateLimited | Self::Overloaded => {
                "Wait: the request is sent again by itself, or at once with `agentctl retry`"
            }
            Self::SpendLimit => "Raise the limit in the account's settings, then `agentctl retry`",
            Self::Conflict | Self::Server | Self::Timeout | Self::Cut | Self::Idle(_) => {
                "Send the prompt again if it does not recover by itself"
            }
            Self::Network(_) => {
                "Check the network; the request is sent again by itself, or at once with `agentctl retry`"
            }
            Self::Refused(_) => {
                "Start the server and `agentctl retry`, or correct the base URL and start a new session"
            }
            Self::Certificate(_) => {
                "Add the authority that signed it to the trusted ones (extra CA), or correct the base URL"
            }
            Self::Protocol(_) => "Check the base URL and the server behind it",
        }
    }
}

impl ModelError {
    /// An error that no answer of the server came with.
    #[must_use]
    pub fn new(kind: ErrorKind, target: Target) -> Self {
        Self {
            kind,
            target,
            status: None,
            api_type: None,
            message: String::new(),
            request_id: None,
            retry_after: None,
            should_retry: None,
        }
    }

    /// For a person: one sentence what failed and on what, and what to do next.
    #[must_use]
    pub fn problem(&self) -> Problem {
        Problem {
            code: self.kind.code().to_owned(),
            message: self.to_string(),
            hint: self.kind.what_next().to_owned(),
            request_id: self.request_id.clone(),
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.what_failed(&self.target))?;
        let status = self.status.map(|status| status.to_string());
        let facts: Vec<&str> = [status.as_deref(), self.api_type.as_deref()].into_iter().flatten().collect();
        if !facts.is_empty() {
            write!(f, " ({})", facts.join(" "))?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ModelError {}

#[cfg(test)]
mod tests;
