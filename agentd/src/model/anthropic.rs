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

use proto::secret::Secret;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;
use tokio::sync::mpsc;

use super::error::{ErrorKind, ModelError, Target};
use super::failure::{self, Answer};
use super::wire::{self, Profile, Style};
use super::{Conversation, Progress, Reply};

mod receive;

/// The API version that requests name unless the configuration says otherwise.
pub const API_VERSION: &str = "2026-10-21";

/// Where Anthropic's own API is.
pub const BASE_URL: &str = "https://api.anthropic.com";

/// The API's limit on a request. Checked here, since the server may close the connection instead of answering.
pub const BODY_LIMIT: usize = 32_000_000;

/// Time for a connection to be made; longer than a lost SYN and its first two repetitions.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Silence on a connection before the kernel, or HTTP/2, asks whether the other side lives.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Bytes of an error's body that are read: many times the longest sentence.
const ERROR_BODY_LIMIT: usize = 64 * 1024;

/// Time for the body of an error to arrive; what came until then is used.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(10);

/// How long silence is borne.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the request to the first event.
    pub first_event: Duration,
    /// Between two pieces of the stream, comments included.
    pub bytes: Duration,
    /// Between two events, pings included.
    pub events: Duration,
    /// Between two events that say something: a server that only pings may be writing a long tool input, which comes all
    /// at once, but not for ever.
    pub pings: Duration,
}

impl Patience {
    /// For Anthropic: the limits that Claude Code uses; pings for as long as the longest reply takes.
    pub const ANTHROPIC: Self = Self {
        first_event: Duration::from_secs(300),
        bytes: Duration::from_secs(180),
        events: Duration::from_secs(300),
        pings: Duration::from_secs(1800),
    };

    /// For local servers: no pings at all, and reading a long prompt may take minutes before the first byte.
    pub const COMPAT: Self = Self {
        first_event: Duration::from_secs(1800),
        bytes: Duration::from_secs(300),
        events: Duration::from_secs(300),
        pings: Duration::from_secs(1800),
    };
}

/// A server and how to speak with it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `http` or `https`, host, port, and a path that `/v1/messages` is added to.
    pub base_url: String,
    /// The `anthropic-version` header.
    pub version: String,
    /// The `anthropic-beta` header's names.
    pub betas: Vec<String>,
    /// Dialect and effort.
    pub style: Style,
    /// Limits of silence.
    pub patience: Patience,
    /// Certificates (PEM) that are trusted besides the system's.
    pub extra_ca: Option<Vec<u8>>,
}

impl Endpoint {
    /// Defaults for a profile.
    #[must_use]
    pub fn new(profile: Profile, base_url: &str) -> Self {
        let patience = match profile {
            Profile::Anthropic => Patience::ANTHROPIC,
            Profile::Compat => Patience::COMPAT,
        };
        Self {
            base_url: base_url.to_owned(),
            version: API_VERSION.to_owned(),
            betas: Vec::new(),
            style: Style::from(profile),
            patience,
            extra_ca: None,
        }
    }
}

/// How a request proves who it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiKey {
    /// In `x-api-key`.
    Key(Secret),
    /// In `authorization`, as a bearer token.
    Bearer(Secret),
}

impl ApiKey {
    fn secret(&self) -> &Secret {
        match self {
            Self::Key(secret) | Self::Bearer(secret) => secret,
        }
    }

    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match self {
            Self::Key(secret) => (HeaderName::from_static("x-api-key"), secret.expose().trim().to_owned()),
            Self::Bearer(secret) => (AUTHORIZATION, format!("Bearer {}", secret.expose().trim())),
        };
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

/// An endpoint that cannot be used.
#[derive(Debug, Error)]
pub enum EndpointError {
    /// Not an `http` or `https` URL with a host.
    #[error("the base URL {0:?} is not an http or https URL")]
    BaseUrl(String),
    /// A version or beta that no header can hold.
    #[error("{0:?} cannot stand in a header")]
    Header(String),
    /// Not PEM certificates.
    #[error("the extra CA holds no readable PEM certificate: {0}")]
    ExtraCa(#[source] reqwest::Error),
    /// TLS cannot be set up.
    #[error("the HTTP client cannot be built: {0}")]
    Client(#[source] reqwest::Error),
}

/// A client of one endpoint.
pub struct Client {
    http: reqwest::Client,
    url: reqwest::Url,
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
        let host = host_of(&url);
        Ok(Self {
            http: http_client(&url, endpoint.extra_ca.as_deref())?,
            headers: headers(endpoint)?,
            style: endpoint.style,
            patience: endpoint.patience,
            url,
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
        result.map_err(|error| without_key(error, key))
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
        let body = wire::body(conversation, self.style);
        if body.len() > BODY_LIMIT {
            let message = format!("{} MB, the limit is {} MB", body.len() / 1_000_000, BODY_LIMIT / 1_000_000);
            return Err(ModelError { message, ..fail(ErrorKind::TooLarge) });
        }
        let mut request = self.http.post(self.url.clone()).headers(self.headers.clone()).body(body);
        if let Some(key) = key {
            let (name, value) = key.header().ok_or_else(|| fail(ErrorKind::Authentication))?;
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

fn messages_url(base: &str) -> Result<reqwest::Url, EndpointError> {
    let wrong = || EndpointError::BaseUrl(base.to_owned());
    // People write the base with `/v1` or without.
    let trimmed = base.trim().trim_end_matches('/');
    let trimmed = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
    let url = reqwest::Url::parse(&format!("{trimmed}/v1/messages")).map_err(|_| wrong())?;
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    if usable { Ok(url) } else { Err(wrong()) }
}

fn host_of(url: &reqwest::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or_else(|_| host == "localhost" || host.ends_with(".localhost"), |address| address.is_loopback())
}

fn http_client(url: &reqwest::Url, extra_ca: Option<&[u8]>) -> Result<reqwest::Client, EndpointError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_keepalive(KEEP_ALIVE)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(CONNECT_LIMIT)
        .referer(false);
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if let Some(pem) = extra_ca {
        let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(EndpointError::ExtraCa)?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(EndpointError::Client)
}

fn headers(endpoint: &Endpoint) -> Result<HeaderMap, EndpointError> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| EndpointError::Header(text.to_owned()));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert("anthropic-version", value(&endpoint.version)?);
    if !endpoint.betas.is_empty() {
        headers.insert("anthropic-beta", value(&endpoint.betas.join(","))?);
    }
    Ok(headers)
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
mod tests;
