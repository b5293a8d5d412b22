//! Sessions: one actor each around a pure state machine.
//!
//! In reading order: [`machine`] is what a session is; [`spec`] what is frozen with it; `actor` runs it; `deeds` and the
//! `*_task` files carry its effects out; [`fanout`] tells the clients; [`registry`] finds, makes and resumes sessions.
//! [`SessionHandle`] is the face for the server.

mod actor;
mod audit;
mod call_task;
mod command;
mod deeds;
pub mod fanout;
mod file_task;
pub mod finding;
mod handle;
mod instructions;
mod job_registry;
mod job_task;
mod keep_rule;
mod keeping;
pub mod machine;
mod news;
mod open;
mod prompt;
pub mod registry;
mod request_task;
pub(crate) mod rules;
mod ruling;
pub mod select;
mod serving;
mod shell_rest;
mod shell_task;
pub mod spec;
mod spent;
mod trail;
mod wind_down;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use proto::event::Problem;
use proto::response::{ErrorCode, WireError};

pub use command::{Subscription, Wish};
pub use handle::SessionHandle;
use spec::{Source, Spec};
use spent::Spent;

use crate::config::paths::Paths;
use crate::config::{Config, ProviderKind};
use crate::desktop::Desktop;
use crate::keys::Keys;
use crate::model::retry::Waits;
use crate::model::{Capabilities, Profile, Provider, anthropic, scripted};
use crate::store::{Store, StoreError};

/// The beta of compaction on the server: where it is configured, the server makes the summaries.
const SERVER_COMPACTION: &str = "compact-2026-09-04";

/// What all sessions share.
#[derive(Debug)]
pub struct Context {
    /// The log.
    pub store: Store,
    /// The keys.
    pub keys: Keys,
    /// The folders.
    pub paths: Paths,
    /// This program, to start shims with.
    pub program: PathBuf,
    rules: rules::RuleFiles,
    config: Mutex<Arc<Config>>,
    clients: Mutex<HashMap<String, Arc<anthropic::Client>>>,
    /// What models take, by base URL and id.
    models: Mutex<HashMap<(String, String), Arc<Capabilities>>>,
    /// What was spent today.
    pub spent: Spent,
    /// The user's desktop.
    pub desktop: Desktop,
    /// By the scenario's text: a player counts the tries of its faults.
    players: Mutex<HashMap<String, Arc<scripted::Player>>>,
}

impl Context {
    /// Puts the shared parts together.
    #[must_use]
    pub fn new(store: Store, keys: Keys, paths: Paths, program: PathBuf, config: Config, desktop: Desktop) -> Self {
        Self {
            store,
            keys,
            paths,
            program,
            rules: rules::RuleFiles::default(),
            config: Mutex::new(Arc::new(config)),
            clients: Mutex::new(HashMap::new()),
            models: Mutex::new(HashMap::new()),
            spent: Spent::default(),
            desktop,
            players: Mutex::new(HashMap::new()),
        }
    }

    /// The settings as they are now.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes new settings; running turns keep what they began with.
    pub fn reload(&self, config: Config) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// When failed requests are sent again.
    fn waits(&self) -> Waits {
        let retry = &self.config().retry;
        Waits {
            first: retry.first_wait.get(),
            longest: retry.longest_wait.get(),
            tries: retry.tries,
            parked: retry.parked_wait.get(),
        }
    }

    /// The limits of a session's turns.
    fn limits(&self, spec: &Spec) -> machine::Limits {
        let config = self.config();
        machine::Limits {
            requests_max: config.turn.requests_max,
            approval_expiry_ms: config.approval.expiry.ms(),
            max_tokens: spec.max_tokens,
            caps: machine::Caps {
                turn_nanousd: config.budget.turn_usd.0,
                session_nanousd: config.budget.session_usd.0,
                day_nanousd: config.budget.day_usd.0,
                turn_tokens: config.budget.turn_tokens,
                turn_ms: config.budget.turn_time.ms(),
            },
            compact_at: config.context.compact_at,
            server_compaction: match &spec.source {
                Source::Api(api) => api.betas.iter().any(|beta| beta == SERVER_COMPACTION),
                Source::Scenario { .. } => false,
            },
        }
    }

    /// What a model takes, as far as it was asked for.
    fn capabilities(&self, spec: &Spec, model: &str) -> Option<Arc<Capabilities>> {
        let Source::Api(api) = &spec.source else { return None };
        let known = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(api.base_url.clone(), model.to_owned())).cloned()
    }

    /// Remembers what a model takes.
    fn learn(&self, base_url: &str, model: &str, capabilities: Arc<Capabilities>) {
        let mut known = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((base_url.to_owned(), model.to_owned()), capabilities);
    }

    /// Tokens that a model's window holds; 0 = not known.
    fn window(&self, spec: &Spec, model: &str) -> u64 {
        let configured = self.config().context.window;
        match &spec.source {
            _ if configured > 0 => configured,
            Source::Api(api) if api.provider == ProviderKind::Anthropic => self
                .capabilities(spec, model)
                .map_or_else(|| crate::model::capabilities_of(model).window, |known| known.window),
            // Nobody says how much a local model holds.
            Source::Api(_) | Source::Scenario { .. } => 0,
        }
    }

    /// The provider for a session. HTTP clients are shared by sessions of one endpoint, and with them connections.
    fn provider(&self, spec: &Spec) -> Result<Provider, Problem> {
        match &spec.source {
            Source::Scenario { name, text } => {
                let mut players = self.players.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(player) = players.get(text) {
                    return Ok(Provider::Scripted(Arc::clone(player)));
                }
                let player = scripted::Player::parse(text).map(Arc::new).map_err(|error| Problem {
                    code: "scenario".into(),
                    message: format!("the scenario {name} cannot be played: {error}"),
                    hint: "mend the scenario and start a new session".into(),
                    request_id: None,
                })?;
                players.insert(text.clone(), Arc::clone(&player));
                drop(players);
                Ok(Provider::Scripted(player))
            }
            Source::Api(api) => {
                let key = serde_json::to_string(api).unwrap_or_default();
                let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(client) = clients.get(&key) {
                    return Ok(Provider::Anthropic(Arc::clone(client)));
                }
                let mut endpoint = anthropic::Endpoint::new(profile(api.provider), &api.base_url);
                endpoint.version.clone_from(&api.version);
                endpoint.betas.clone_from(&api.betas);
                endpoint.extra_ca = extra_ca(&self.config().model.extra_ca)?;
                let client = anthropic::Client::new(&endpoint).map(Arc::new).map_err(|error| Problem {
                    code: "endpoint".into(),
                    message: error.to_string(),
                    hint: "correct model.base_url or ANTHROPIC_BASE_URL and start a new session".into(),
                    request_id: None,
                })?;
                clients.insert(key, Arc::clone(&client));
                drop(clients);
                Ok(Provider::Anthropic(client))
            }
        }
    }
}

/// The certificates of `model.extra_ca`.
fn extra_ca(path: &str) -> Result<Option<Vec<u8>>, Problem> {
    if path.is_empty() {
        return Ok(None);
    }
    std::fs::read(path).map(Some).map_err(|error| Problem {
        code: "endpoint".into(),
        message: format!("the certificates of model.extra_ca, {path}, cannot be read: {error}"),
        hint: "correct the path and send the prompt again".into(),
        request_id: None,
    })
}

/// The model client's word for a provider.
fn profile(provider: crate::config::ProviderKind) -> Profile {
    match provider {
        crate::config::ProviderKind::Anthropic => Profile::Anthropic,
        crate::config::ProviderKind::Compat => Profile::Compat,
    }
}

/// A store's failure as clients hear of it.
#[must_use]
pub fn storage_error(error: &StoreError) -> WireError {
    let code = match error {
        StoreError::NameTaken => ErrorCode::Conflict,
        StoreError::Open { .. }
        | StoreError::Newer { .. }
        | StoreError::Full
        | StoreError::Sqlite(_)
        | StoreError::Closed => ErrorCode::Storage,
    };
    WireError { code, message: error.to_string(), hint: String::new() }
}
