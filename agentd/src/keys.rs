//! API keys: where they come from, for which endpoint, and nothing else. Keys live in memory only.
//!
//! Order: what a client of this user offered for that endpoint, then systemd's credentials directory, a helper command,
//! a private file, the daemon's own environment. A workspace is never asked.
//!
//! Invariant: a key is used only for the endpoint it was given for; it is never printed (see [`proto::secret::Secret`]).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proto::request::Endpoint;
use proto::secret::Secret;
use thiserror::Error;

use crate::model::ApiKey;

/// How long a helper's key is used before it is asked again; the field's own value.
const HELPER_TTL: Duration = Duration::from_secs(300);

/// How long a helper may take: it may open a password manager, which asks a person.
const HELPER_LIMIT: Duration = Duration::from_secs(60);

/// Name of the credential in `$CREDENTIALS_DIRECTORY`.
const CREDENTIAL: &str = "anthropic-api-key";

/// Longest key file or helper output read, in bytes: keys are about a hundred.
const KEY_BYTES_MAX: usize = 16 * 1024;

/// Why a configured source gives no key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The helper failed.
    #[error("the key helper `{command}` failed: {reason}")]
    Helper {
        /// The configured command.
        command: String,
        /// Why.
        reason: String,
    },
    /// The file cannot be used.
    #[error("the key file {path} cannot be used: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Where keys may come from, as configured.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `model.base_url`.
    pub base_url: String,
    /// `model.key_helper`, or empty.
    pub helper: String,
    /// `model.key_file`, or empty.
    pub file: String,
}

/// The daemon's keys.
#[derive(Debug)]
pub struct Keys {
    inner: Mutex<Inner>,
    credentials: Option<PathBuf>,
    environment: Option<(String, ApiKey)>,
}

#[derive(Debug)]
struct Inner {
    sources: Sources,
    offered: HashMap<String, ApiKey>,
    helper: Option<(Instant, ApiKey)>,
}

impl Keys {
    /// Reads the daemon's own environment through `env`.
    #[must_use]
    pub fn new(sources: Sources, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let base = env("ANTHROPIC_BASE_URL").unwrap_or_else(|| sources.base_url.clone());
        let environment = key_of(env("ANTHROPIC_API_KEY"), env("ANTHROPIC_AUTH_TOKEN")).map(|key| (normal(&base), key));
        let credentials = env("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(CREDENTIAL));
        Self { inner: Mutex::new(Inner { sources, offered: HashMap::new(), helper: None }), credentials, environment }
    }

    /// Takes new settings.
    pub fn reload(&self, sources: Sources) {
        let mut inner = self.lock();
        inner.sources = sources;
        inner.helper = None;
    }

    /// Remembers what a client's environment holds. Returns the endpoint's base URL.
    pub fn offer(&self, endpoint: &Endpoint) -> String {
        let mut inner = self.lock();
        let base = normal(endpoint.base_url.as_deref().unwrap_or(&inner.sources.base_url));
        if let Some(key) = key_of(
            endpoint.api_key.as_ref().map(|key| key.expose().to_owned()),
            endpoint.auth_token.as_ref().map(|key| key.expose().to_owned()),
        ) {
            inner.offered.insert(base.clone(), key);
        }
        drop(inner);
        base
    }

    /// Forgets a helper's cached key, after the server refused it.
    pub fn forget_cached(&self) {
        self.lock().helper = None;
    }

    /// The key for an endpoint, or `None` when no source has one.
    ///
    /// # Errors
    /// A configured source that fails.
    pub async fn find(&self, base_url: &str) -> Result<Option<ApiKey>, KeyError> {
        let base = normal(base_url);
        let (sources, cached) = {
            let inner = self.lock();
            if let Some(key) = inner.offered.get(&base) {
                return Ok(Some(key.clone()));
            }
            (inner.sources.clone(), inner.helper.clone())
        };
        if let Some(path) = self.credentials.as_deref().filter(|path| path.exists()) {
            return read_file(path, false).map(Some);
        }
        if !sources.helper.is_empty() {
            if let Some((asked, key)) = cached
                && asked.elapsed() < HELPER_TTL
            {
                return Ok(Some(key));
            }
            let key = run_helper(&sources.helper).await?;
            self.lock().helper = Some((Instant::now(), key.clone()));
            return Ok(Some(key));
        }
        if !sources.file.is_empty() {
            return read_file(Path::new(&sources.file), true).map(Some);
        }
        Ok(self.environment.as_ref().filter(|(for_base, _)| *for_base == base).map(|(_, key)| key.clone()))
    }

    /// Which source would give the key, as a word for `status`.
    #[must_use]
    pub fn source(&self, base_url: &str) -> &'static str {
        let base = normal(base_url);
        let inner = self.lock();
        if inner.offered.contains_key(&base) {
            "client"
        } else if self.credentials.as_deref().is_some_and(Path::exists) {
            "credentials directory"
        } else if !inner.sources.helper.is_empty() {
            "helper"
        } else if !inner.sources.file.is_empty() {
            "file"
        } else if self.environment.as_ref().is_some_and(|(for_base, _)| *for_base == base) {
            "environment"
        } else {
            "none"
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn key_of(api_key: Option<String>, auth_token: Option<String>) -> Option<ApiKey> {
    let given = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    // The SDK's order: the key, then the token.
    given(api_key)
        .map(|key| ApiKey::Key(Secret::new(key)))
        .or_else(|| given(auth_token).map(|token| ApiKey::Bearer(Secret::new(token))))
}

fn normal(base_url: &str) -> String {
    base_url.trim_end_matches('/').to_owned()
}

fn read_file(path: &Path, must_be_private: bool) -> Result<ApiKey, KeyError> {
    use std::os::unix::fs::PermissionsExt;
    let wrong = |reason: String| KeyError::File { path: path.to_owned(), reason };
    let meta = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if must_be_private && meta.permissions().mode() & 0o077 != 0 {
        return Err(wrong("others may read it; run `chmod 600` on it".into()));
    }
    if meta.len() > KEY_BYTES_MAX as u64 {
        return Err(wrong("it is too long to be a key".into()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    key_of(Some(text), None).ok_or_else(|| wrong("it is empty".into()))
}

async fn run_helper(command: &str) -> Result<ApiKey, KeyError> {
    let wrong = |reason: String| KeyError::Helper { command: command.to_owned(), reason };
    let run = tokio::process::Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(HELPER_LIMIT, run)
        .await
        .map_err(|_| wrong(format!("no answer within {} s", HELPER_LIMIT.as_secs())))?
        .map_err(|error| wrong(error.to_string()))?;
    if !output.status.success() {
        return Err(wrong(format!("{}", output.status)));
    }
    if output.stdout.len() > KEY_BYTES_MAX {
        return Err(wrong("its output is too long to be a key".into()));
    }
    key_of(Some(String::from_utf8_lossy(&output.stdout).into_owned()), None)
        .ok_or_else(|| wrong("it printed nothing".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    fn sources(base: &str) -> Sources {
        Sources { base_url: base.into(), ..Sources::default() }
    }

    #[tokio::test]
    async fn a_key_is_used_only_for_the_endpoint_it_was_given_for() {
        let keys = Keys::new(sources("https://api.example"), &none);
        let gateway = Endpoint {
            base_url: Some("http://127.0.0.1:9/".into()),
            api_key: Some(Secret::new("k".into())),
            auth_token: None,
        };
        let base = keys.offer(&gateway);
        assert!(keys.find(&base).await.unwrap().is_some());
        assert!(keys.find("https://api.example").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_key_file_that_others_may_read_is_refused_with_the_cure() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "k\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let keys = Keys::new(Sources { file: path.display().to_string(), ..sources("https://a") }, &none);
        let error = keys.find("https://a").await.unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(keys.find("https://a").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_helper_that_fails_is_named_and_its_key_never_shown() {
        let keys = Keys::new(Sources { helper: "echo secret; exit 3".into(), ..sources("https://a") }, &none);
        let error = keys.find("https://a").await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        let keys = Keys::new(Sources { helper: "echo secret".into(), ..sources("https://a") }, &none);
        assert!(keys.find("https://a").await.unwrap().is_some());
        assert!(!format!("{keys:?}").contains("Key(\"secret"), "{keys:?}");
    }
}
