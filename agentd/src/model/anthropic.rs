//! The Messages API over HTTP, Anthropic's and its compatible servers'.
//!
//! One [`Client`] per endpoint, cheap to clone behind an `Arc`; one [`Client::send`] is one try. It does not retry, and
//! it does not choose keys.
//!
//! Invariant: a key leaves only in a header to the endpoint's own host: redirects are not followed, and no text of an
//! error holds it.
//! Invariant: a reply has no total time limit; silence has ([`Patience`]).

use std::fmt;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use tokio::sync::mpsc;

pub use self::endpoint::{API_VERSION, ApiKey, BASE_URL, Endpoint, EndpointError, Patience};
use self::endpoint::{headers, host_of, http_client, messages_url, models_url};

use self::parts::Parts;
use super::error::{ErrorKind, ModelError, Target};
use super::failure::{self, Answer};
use super::wire::{self, Profile, Style};
use super::{Conversation, Progress, Reply};

mod endpoint;
mod models;
mod parts;
mod receive;

/// The API's limit on a request. Checked here, since the server may close the connection instead of answering.
pub const BODY_LIMIT: usize = 32_000_000;

/// Bytes of an error's body that are read: many times the longest sentence.
const ERROR_BODY_LIMIT: usize = 64 * 1024;

/// Time for the body of an error to arrive; what came until then is used.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(10);

/// A client of one endpoint.
pub struct Client {
    http: reqwest::Client,
    url: reqwest::Url,
    models_url: reqwest::Url,
    headers: HeaderMap,
    style: Style,
    patience: Patience,
    /// For error texts.
    host: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("host", &self.host).field("style", &self.style).finish_non_exhaustive()
    }
}

impl Client {
    /// A client. No connection is made yet.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn new(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        let url = messages_url(&endpoint.base_url)?;
        let models_url = models_url(&url);
        let host = host_of(&url);
        Ok(Self {
            http: http_client(&url, endpoint.extra_ca.as_deref())?,
            headers: headers(endpoint)?,
            style: endpoint.style,
            patience: endpoint.patience,
            url,
            models_url,
            host,
        })
    }

    /// One try. Dropping the future drops the connection.
    ///
    /// # Errors
    /// Whatever failed; a partial reply is gone with it.
    pub async fn send(
        &self,
        conversation: &Conversation,
        key: Option<&ApiKey>,
        progress: mpsc::Sender<Progress>,
    ) -> Result<Reply, ModelError> {
        let target = Target { host: self.host.clone(), model: conversation.model.clone() };
        let result = self.try_once(conversation, key, progress, &target).await;
        let result = result.map_err(|error| without_key(error, key));
        match &result {
            Ok(reply) => tracing::debug!(
                host = self.host,
                model = reply.model,
                request_id = reply.request_id,
                output_tokens = reply.usage.output_tokens,
                cache_read_tokens = reply.usage.cache_read_tokens,
                "reply"
            ),
            Err(error) => tracing::debug!(
                host = self.host,
                model = target.model,
                request_id = error.request_id,
                kind = error.kind.code(),
                status = error.status,
                "no reply"
            ),
        }
        result
    }

    /// The dialect that is spoken.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.style.profile
    }

    async fn try_once(
        &self,
        conversation: &Conversation,
        key: Option<&ApiKey>,
        progress: mpsc::Sender<Progress>,
        target: &Target,
    ) -> Result<Reply, ModelError> {
        let fail = |kind| ModelError::new(kind, target.clone());
        if key.is_none() && self.style.profile == Profile::Anthropic {
            return Err(fail(ErrorKind::NoKey));
        }
        let parts = Parts::new(wire::body(conversation, self.style));
        if parts.left() > BODY_LIMIT {
            let message = format!("{} MB, the limit is {} MB", parts.left() / 1_000_000, BODY_LIMIT / 1_000_000);
            return Err(ModelError { message, ..fail(ErrorKind::TooLarge) });
        }
        let body = reqwest::Body::wrap(parts);
        let mut request = self.http.post(self.url.clone()).headers(self.headers.clone()).body(body);
        if let Some(key) = key {
            let Some((name, value)) = key.header() else {
                let message = "it holds characters that cannot stand in a header".to_owned();
                return Err(ModelError { message, ..fail(ErrorKind::Authentication) });
            };
            request = request.header(name, value);
        }
        let deadline = tokio::time::Instant::now() + self.patience.first_event;
        let response = match tokio::time::timeout_at(deadline, request.send()).await {
            Ok(response) => response.map_err(|error| fail(transport(&error)))?,
            Err(_) => return Err(fail(ErrorKind::Idle(self.patience.first_event))),
        };
        let answer = answer(&response);
        if !is_event_stream(&response) {
            let body = error_body(response).await;
            return Err(failure::read(answer, &body, target.clone()));
        }
        receive::receive(response, answer, target, receive::Clock::new(self.patience, deadline), progress).await
    }
}

fn answer(response: &reqwest::Response) -> Answer {
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    Answer {
        status: Some(response.status().as_u16()),
        request_id: header("request-id").or_else(|| header("x-request-id")).map(str::to_owned),
        retry_after: failure::retry_after(header("retry-after-ms"), header("retry-after"), SystemTime::now()),
        should_retry: header("x-should-retry").and_then(|value| value.parse().ok()),
    }
}

/// A 200 that does not deny it. Some servers name no type at all.
fn is_event_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    response.status() == reqwest::StatusCode::OK && kind.is_none_or(|kind| kind.starts_with("text/event-stream"))
}

/// The beginning of an error's body.
async fn error_body(mut response: reqwest::Response) -> String {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= ERROR_BODY_LIMIT {
                break;
            }
        }
    };
    // Late or cut: what came is what there is.
    let _ = tokio::time::timeout(ERROR_BODY_WAIT, read).await;
    body.truncate(ERROR_BODY_LIMIT);
    String::from_utf8_lossy(&body).into_owned()
}

/// What failed below HTTP, by the innermost cause that says something.
fn transport(error: &reqwest::Error) -> ErrorKind {
    let mut causes = Vec::new();
    let mut source: Option<&dyn std::error::Error> = Some(error);
    let mut refused = false;
    while let Some(cause) = source {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        refused |= io == Some(std::io::ErrorKind::ConnectionRefused);
        causes.push(cause.to_string());
        source = cause.source();
    }
    // The outermost text repeats the URL, which may hold what is not for logs.
    let text = failure::shorten(causes.last().map(String::as_str).unwrap_or_default());
    if refused {
        ErrorKind::Refused(text)
    } else if error.is_connect() && causes.iter().any(|cause| cause.contains("certificate")) {
        ErrorKind::Certificate(text)
    } else if error.is_timeout() {
        ErrorKind::Network("it took too long to connect".to_owned())
    } else {
        ErrorKind::Network(text)
    }
}

/// Servers quote what they do not like, and some quote the key.
fn without_key(mut error: ModelError, key: Option<&ApiKey>) -> ModelError {
    let secret = key.map(|key| key.secret().expose().trim()).filter(|secret| !secret.is_empty());
    if let Some(secret) = secret
        && error.message.contains(secret)
    {
        error.message = error.message.replace(secret, "…");
    }
    error
}

#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;
