//! What is frozen when a session starts: it is stored with the session and sent unchanged with every request, because
//! the newest models bind their thinking to everything before it.

use proto::json::JsonText;
use serde::{Deserialize, Serialize};

use crate::model::Effort;
use crate::store::entry::Settings;

/// A session's frozen facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Model id.
    pub model: String,
    /// Output limit in tokens.
    pub max_tokens: u32,
    /// The effort; `None`: the model's default.
    #[serde(default)]
    pub effort: Option<Effort>,
    /// Where replies come from.
    pub source: Source,
    /// The system prompt.
    pub system: String,
    /// The tool definitions.
    pub tools: Vec<JsonText>,
}

/// Where replies come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The Messages API.
    Api(Api),
    /// A scenario; its text is kept, so that a replay after a restart plays the same.
    Scenario {
        /// Its name or path, for people.
        name: String,
        /// Its text.
        text: String,
    },
}

/// An endpoint. The key is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Api {
    /// Base URL without `/v1`.
    pub base_url: String,
    /// `anthropic` or `compat`.
    pub provider: crate::config::ProviderKind,
    /// `anthropic-version`.
    pub version: String,
    /// Beta names.
    pub betas: Vec<String>,
}

impl Spec {
    /// What the requests are made with unless it is changed.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings { model: self.model.clone(), effort: self.effort, max_tokens: self.max_tokens }
    }

    /// The provider as a word.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        match &self.source {
            Source::Scenario { .. } => "scripted",
            Source::Api(api) => match api.provider {
                crate::config::ProviderKind::Anthropic => "anthropic",
                crate::config::ProviderKind::Compat => "compat",
            },
        }
    }
}
