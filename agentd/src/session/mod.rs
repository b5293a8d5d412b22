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
mod instructions;
mod keep_rule;
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
mod shell_task;
pub mod spec;
mod trail;
mod wind_down;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use proto::approval::{Decider, Verdict};
use proto::event::Problem;
use proto::ids::{ApprovalId, PromptId, SessionId, UndoId};
use proto::mode::Mode;
use proto::request::ClientInfo;
use proto::response::{Accepted, Answered, ErrorCode, SessionChanges, SessionInfo, Undone, WireError};
use proto::shim::files::FileOp;
use tokio::sync::{mpsc, oneshot};

use command::Command;
pub use command::Subscription;
use spec::{Source, Spec};

use crate::config::Config;
use crate::config::paths::Paths;
use crate::keys::Keys;
use crate::model::retry::Waits;
use crate::model::{Profile, Provider, anthropic, scripted};
use crate::store::entry::{Prompt, UndoOrder};
use crate::store::{Store, StoreError};
use crate::tools;

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
    /// By the scenario's text: a player counts the tries of its faults.
    players: Mutex<HashMap<String, Arc<scripted::Player>>>,
}

impl Context {
    /// Puts the shared parts together.
    #[must_use]
    pub fn new(store: Store, keys: Keys, paths: Paths, program: PathBuf, config: Config) -> Self {
        Self {
            store,
            keys,
            paths,
            program,
            rules: rules::RuleFiles::default(),
            config: Mutex::new(Arc::new(config)),
            clients: Mutex::new(HashMap::new()),
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

/// The model client's word for a provider.
fn profile(provider: crate::config::ProviderKind) -> Profile {
    match provider {
        crate::config::ProviderKind::Anthropic => Profile::Anthropic,
        crate::config::ProviderKind::Compat => Profile::Compat,
    }
}

/// A session's face; cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    id: SessionId,
    inbox: mpsc::Sender<Command>,
}

impl SessionHandle {
    /// The session's id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Submits a prompt; the answer means it is on disk. The same id again changes nothing.
    ///
    /// # Errors
    /// Storage failures; an archived session.
    pub async fn prompt(&self, prompt: Prompt) -> Result<Accepted, WireError> {
        self.ask(|reply| Command::Prompt { prompt, reply }).await
    }

    /// Takes back a queued prompt.
    ///
    /// # Errors
    /// When its turn has begun.
    pub async fn withdraw(&self, prompt: PromptId, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Withdraw { prompt, by, reply }).await
    }

    /// Ends the running turn.
    ///
    /// # Errors
    /// When none runs.
    pub async fn interrupt(&self, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Interrupt { by, reply }).await
    }

    /// Sends the failed request of a waiting or parked turn again at once.
    ///
    /// # Errors
    /// When none waits.
    pub async fn retry(&self, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Retry { by, reply }).await
    }

    /// Answers an approval; the first answer wins, and every answer learns which.
    ///
    /// # Errors
    /// When it is not this session's, or the answer is not possible.
    pub async fn answer(
        &self,
        approval: ApprovalId,
        digest: Option<String>,
        verdict: Verdict,
        by: Decider,
    ) -> Result<Answered, WireError> {
        self.ask(|reply| Command::Answer { approval, digest, verdict, by, reply }).await
    }

    /// Takes edits back; the answer means that it is done and on disk. The same id again changes nothing.
    ///
    /// # Errors
    /// While a turn runs; when a file is not as its edit left it; when the shell cannot be asked.
    pub async fn undo(&self, order: UndoOrder) -> Result<Undone, WireError> {
        self.ask(|reply| Command::Undo { order, reply }).await
    }

    /// What taking edits back would change.
    ///
    /// # Errors
    /// As for [`Self::undo`].
    pub async fn preview_undo(&self, undo: UndoId, steps: u32) -> Result<Undone, WireError> {
        let op = tools::undo::preview_op(steps);
        let reply = self.ask(|reply| Command::Look { op, resting: true, reply }).await?;
        tools::undo::preview(undo, steps, &reply)
    }

    /// The session's changes of files that stand.
    ///
    /// # Errors
    /// When the shell cannot be asked.
    pub async fn changes(&self) -> Result<SessionChanges, WireError> {
        let reply = self.ask(|reply| Command::Look { op: FileOp::Changes {}, resting: false, reply }).await?;
        tools::undo::changes(&reply)
    }

    /// Whether this session asked that question, also when it is answered.
    pub async fn knows_approval(&self, approval: ApprovalId) -> bool {
        self.ask(|reply| Command::KnowsApproval { approval, reply }).await.unwrap_or(false)
    }

    /// Attaches a client, until it drops the subscription's queue.
    ///
    /// # Errors
    /// When the session's log cannot be read.
    pub async fn attach(&self, client: ClientInfo) -> Result<Subscription, WireError> {
        self.ask(|reply| Command::Attach { client, reply }).await
    }

    /// The session as it is.
    ///
    /// # Errors
    /// When the session is going away.
    pub async fn info(&self) -> Result<SessionInfo, WireError> {
        self.ask(|reply| Command::Info { reply }).await
    }

    /// Gives it a name.
    ///
    /// # Errors
    /// When the name is taken.
    pub async fn rename(&self, name: String, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Rename { name, by, reply }).await
    }

    /// Switches its mode, and decides by it what is not decided yet.
    ///
    /// # Errors
    /// Storage failures; an archived session.
    pub async fn set_mode(&self, mode: Mode, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::SetMode { mode, by, reply }).await
    }

    /// Ends its shell and takes it off the list.
    ///
    /// # Errors
    /// Storage failures.
    pub async fn archive(&self, by: String) -> Result<(), WireError> {
        self.ask(|reply| Command::Archive { by, reply }).await
    }

    /// Ends its shell and everything it runs.
    ///
    /// # Errors
    /// When the session is going away.
    pub async fn end_shell(&self) -> Result<(), WireError> {
        self.ask(|reply| Command::EndShell { reply }).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, WireError>>) -> Command,
    ) -> Result<T, WireError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(command(reply)).await.map_err(|_| gone(self.id))?;
        answer.await.map_err(|_| gone(self.id))?
    }
}

fn gone(id: SessionId) -> WireError {
    WireError {
        code: ErrorCode::Internal,
        message: format!("the session {} is not served at the moment", id.short()),
        hint: "try again; the daemon's log says why".into(),
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
