//! The Models API: what a model takes, asked once for each.

use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderValue};
use serde_json::Value;

use super::super::capabilities::{self, Capabilities};
use super::super::wire::Profile;
use super::{ApiKey, Client};

/// How long the answer may take: the first request of a session waits for it, and the built-in table is nearly as good.
const LIMIT: Duration = Duration::from_secs(3);

/// Largest answer that is read: an entry has about two kilobytes.
const BYTES_MAX: usize = 64 * 1024;

impl Client {
    /// What a model takes, when the server says so.
    pub async fn capabilities(&self, model: &str, key: Option<&ApiKey>) -> Option<Capabilities> {
        if self.style.profile == Profile::Compat {
            return None;
        }
        match tokio::time::timeout(LIMIT, self.ask(model, key)).await {
            Ok(Some(entry)) => Some(capabilities::read(model, &entry)),
            Ok(None) | Err(_) => {
                tracing::debug!(host = self.host, model, "no entry of the model; the built-in table is used");
                None
            }
        }
    }

    async fn ask(&self, model: &str, key: Option<&ApiKey>) -> Option<Value> {
        let mut url = self.models_url.clone();
        url.path_segments_mut().ok()?.push(model);
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut request = self.http.get(url).headers(headers);
        if let Some((name, value)) = key.and_then(ApiKey::header) {
            request = request.header(name, value);
        }
        let mut response = request.send().await.ok()?.error_for_status().ok()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() > BYTES_MAX {
                return None;
            }
        }
        let entry: Value = serde_json::from_slice(&body).ok()?;
        entry.is_object().then_some(entry)
    }
}
