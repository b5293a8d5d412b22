//! A server, how to speak with it, and what proves who is asking. No requests are made here.

use std::time::Duration;

use proto::secret::Secret;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;

use super::super::wire::{Profile, Style};

/// The API version that requests name unless the configuration says otherwise.
pub const API_VERSION: &str = "2026-10-21";

/// Where Anthropic's own API is.
pub const BASE_URL: &str = "https://api.anthropic.com";

/// Time for a connection to be made; longer than a lost SYN and its first two repetitions.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Silence on a connection before the kernel, or HTTP/2, asks whether the other side lives.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

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

    /// For local servers: no pings at all, and reading a long prompt may take minutes before the first byte, or after a
    /// first event that was sent early.
    pub const COMPAT: Self = Self {
        first_event: Duration::from_secs(1800),
        bytes: Duration::from_secs(600),
        events: Duration::from_secs(600),
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
    pub(super) fn secret(&self) -> &Secret {
        match self {
            Self::Key(secret) | Self::Bearer(secret) => secret,
        }
    }

    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
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
    /// A PEM certificate that cannot be read.
    #[error("the extra CA cannot be read: {0}")]
    ExtraCa(#[source] reqwest::Error),
    /// No PEM certificate at all.
    #[error("the extra CA holds no PEM certificate")]
    NoExtraCa,
    /// TLS cannot be set up.
    #[error("the HTTP client cannot be built: {0}")]
    Client(#[source] reqwest::Error),
}

pub(super) fn messages_url(base: &str) -> Result<reqwest::Url, EndpointError> {
    let wrong = || EndpointError::BaseUrl(base.to_owned());
    // People write the base with `/v1` or without.
    let trimmed = base.trim().trim_end_matches('/');
    let trimmed = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
    let url = reqwest::Url::parse(&format!("{trimmed}/v1/messages")).map_err(|_| wrong())?;
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    if usable { Ok(url) } else { Err(wrong()) }
}

/// Where the models of a messages URL are told.
pub(super) fn models_url(messages: &reqwest::Url) -> reqwest::Url {
    let mut url = messages.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop().push("models");
    }
    url
}

pub(super) fn host_of(url: &reqwest::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

pub(super) fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or_else(|_| host == "localhost" || host.ends_with(".localhost"), |address| address.is_loopback())
}

pub(super) fn http_client(url: &reqwest::Url, extra_ca: Option<&[u8]>) -> Result<reqwest::Client, EndpointError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_keepalive(KEEP_ALIVE)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(CONNECT_LIMIT)
        .referer(false);
    if url.scheme() == "http" {
        // llama.cpp closes the connection after each streamed reply and does not say so in its headers: a second request
        // on it would be lost. Without TLS a new connection costs next to nothing.
        builder = builder.pool_max_idle_per_host(0);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if is_loopback(url) && url.scheme() == "http" {
        // Never TLS, so the system's certificates need not be read: that takes longer than all the rest.
        builder = builder.tls_certs_only([]);
    } else if let Some(pem) = extra_ca {
        let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(EndpointError::ExtraCa)?;
        if certificates.is_empty() {
            return Err(EndpointError::NoExtraCa);
        }
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(EndpointError::Client)
}

pub(super) fn headers(endpoint: &Endpoint) -> Result<HeaderMap, EndpointError> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| EndpointError::Header(text.to_owned()));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert("anthropic-version", value(&endpoint.version)?);
    if !endpoint.betas.is_empty() {
        headers.insert("anthropic-beta", value(&endpoint.betas.join(","))?);
    }
    Ok(headers)
}
