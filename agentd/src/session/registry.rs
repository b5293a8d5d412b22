//! The sessions of this daemon: made, found by what a person types, resumed after a start, removed.
//!
//! Invariant: a session has at most one actor. Idle sessions have none until somebody asks for them; those with
//! something under way get theirs when the daemon starts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use proto::ids::{ApprovalId, Seq, SessionId, Timestamp};
use proto::request::{CreateSession, Endpoint};
use proto::response::{ErrorCode, SessionInfo, SessionState, WireError};
use proto::secret::EnvVars;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::command::INBOX_MAX;
use super::instructions::{self, Instructions};
use super::select::{check_name, check_workspace, id_fits, not_found, scenario_text};
use super::spec::{Api, Source, Spec};
use super::trail::Trail;
use super::{Context, SessionHandle, profile, prompt, storage_error};
use crate::model::tool_definitions;
use crate::store::entry::{Created, Entry};
use crate::store::{NewRow, NewSession, SessionRow, StoreError};
use crate::tools::editor::VIEW_CHARACTERS_MAX;

/// All sessions.
#[derive(Debug)]
pub struct Registry {
    context: Arc<Context>,
    stop: CancellationToken,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    actors: HashMap<SessionId, SessionHandle>,
    tasks: JoinSet<SessionId>,
}

impl Registry {
    /// An empty registry; its sessions end when `stop` is cancelled.
    #[must_use]
    pub fn new(context: Arc<Context>, stop: CancellationToken) -> Self {
        Self { context, stop, inner: Mutex::new(Inner { actors: HashMap::new(), tasks: JoinSet::new() }) }
    }

    /// What the sessions share.
    #[must_use]
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Starts an actor for every session that has something under way. Returns what could not be resumed, in sentences.
    pub async fn resume_all(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let open = match self.context.store.unsettled().await {
            Ok(open) => open,
            Err(error) => return vec![error.to_string()],
        };
        for row in open {
            let id = row.id;
            if let Err(error) = self.actor(row, None).await {
                problems.push(format!("session {} cannot be resumed: {error}", id.short()));
            }
        }
        problems
    }

    /// Makes a session and starts its shell.
    ///
    /// # Errors
    /// A workspace that is no directory, a bad name, an unknown scenario, storage failures: nothing was made.
    pub async fn create(&self, request: CreateSession) -> Result<SessionHandle, WireError> {
        check_workspace(&request.cwd)?;
        if let Some(name) = &request.name {
            check_name(name)?;
        }
        let instructions = self.instructions(&request.cwd).await;
        let spec = Arc::new(self.spec(&request, &instructions)?);
        let id = SessionId::new();
        let now = Timestamp::now();
        let created = Created {
            cwd: request.cwd.clone(),
            name: request.name.clone(),
            model: spec.model.clone(),
            provider: spec.provider().to_owned(),
            mode: request.mode,
        };
        let new = NewSession {
            id,
            name: request.name.clone(),
            cwd: request.cwd.clone(),
            created_at: now,
            spec: serde_json::to_string(spec.as_ref()).map_err(|error| internal(&error.to_string()))?,
            first: NewRow { seq: Seq(1), at: now, entry: Arc::new(Entry::Created(created)), audited: None },
        };
        let row = SessionRow {
            id,
            name: request.name,
            archived: false,
            created_at: now,
            active_at: now,
            cwd: request.cwd,
            title: String::new(),
            spec: new.spec.clone(),
            mode: request.mode,
            head: Seq(1),
        };
        let entry = Arc::clone(&new.first.entry);
        self.context.store.create(new).await.map_err(|error| storage_error(&error))?;
        Trail::default().log(id, Seq(1), &entry, false);
        self.tell_left_out(id, now, instructions.left_out).await?;
        self.actor(row, Some(request.env)).await
    }

    /// What the user's and the project's files say.
    async fn instructions(&self, cwd: &str) -> Instructions {
        let (workspace, config) = (PathBuf::from(cwd), self.context.paths.config.clone());
        let read = tokio::task::spawn_blocking(move || instructions::read(&workspace, &config));
        read.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the instruction files were not read");
            Instructions { left_out: vec!["the instruction files could not be read".into()], ..Instructions::default() }
        })
    }

    /// What could not be taken into the system prompt, as the session's next rows.
    async fn tell_left_out(&self, id: SessionId, at: Timestamp, left_out: Vec<String>) -> Result<(), WireError> {
        if left_out.is_empty() {
            return Ok(());
        }
        let mut seq = Seq(1);
        let rows = left_out.into_iter().map(|text| {
            seq = seq.next();
            NewRow { seq, at, entry: Arc::new(Entry::Notice { text }), audited: None }
        });
        let done = self.context.store.append(id, rows.collect()).await.map_err(|error| storage_error(&error))?;
        done.await.unwrap_or(Err(StoreError::Closed)).map_err(|error| storage_error(&error))
    }

    fn spec(&self, request: &CreateSession, instructions: &Instructions) -> Result<Spec, WireError> {
        let config = self.context.config();
        let base_url = self.context.keys.offer(&request.endpoint);
        let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let provider = config.model.provider;
        let source = match request.scenario.clone().or_else(|| named(&config.model.scenario)) {
            Some(name) => Source::Scenario { text: scenario_text(&name)?, name },
            None => Source::Api(Api {
                base_url,
                provider,
                version: config.model.api_version.clone(),
                betas: config.model.betas.clone(),
            }),
        };
        let os = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        Ok(Spec {
            model: request.model.clone().unwrap_or_else(|| config.model.name.clone()),
            max_tokens: config.model.max_tokens,
            source,
            system: prompt::system(
                &prompt::Facts {
                    workspace: &request.cwd,
                    os: &prompt::os_name(&os),
                    date: &prompt::date(SystemTime::now()),
                },
                instructions,
            ),
            tools: tool_definitions(profile(provider), u32::try_from(VIEW_CHARACTERS_MAX).unwrap_or(u32::MAX)),
        })
    }

    /// Remembers the keys of a client's environment.
    pub fn offer(&self, endpoint: &Endpoint) {
        self.context.keys.offer(endpoint);
    }

    /// Finds a session by its id, the last digits of its id, or its name; starts its actor if it has none.
    ///
    /// # Errors
    /// None fits, or several do.
    pub async fn find(&self, selector: &str) -> Result<SessionHandle, WireError> {
        let row = self.select(selector).await?;
        self.actor(row, None).await
    }

    async fn select(&self, selector: &str) -> Result<SessionRow, WireError> {
        let rows = self.context.store.sessions().await.map_err(|error| storage_error(&error))?;
        let by_name = |row: &&SessionRow| !row.archived && row.name.as_deref() == Some(selector);
        if let Some(row) = rows.iter().find(by_name) {
            return Ok(row.clone());
        }
        let fits = |row: &SessionRow| id_fits(&row.id.to_string(), selector);
        let mut found: Vec<SessionRow> = rows.into_iter().filter(fits).collect();
        match found.len() {
            0 => Err(not_found(&format!("no session `{selector}`"), "`agentctl ls --all` lists them")),
            1 => Ok(found.remove(0)),
            many => Err(WireError {
                code: ErrorCode::Ambiguous,
                message: format!("`{selector}` fits {many} sessions"),
                hint: "give more digits of the id".into(),
            }),
        }
    }

    #[expect(
        clippy::significant_drop_tightening,
        reason = "held while the log is read: a session has one actor at most"
    )]
    async fn actor(&self, row: SessionRow, env: Option<EnvVars>) -> Result<SessionHandle, WireError> {
        let id = row.id;
        let mut inner = self.inner.lock().await;
        while let Some(ended) = inner.tasks.try_join_next() {
            // A successor may have been made meanwhile.
            if let Ok(id) = ended
                && inner.actors.get(&id).is_some_and(|handle| handle.inbox.is_closed())
            {
                inner.actors.remove(&id);
            }
        }
        if let Some(handle) = inner.actors.get(&id).filter(|handle| !handle.inbox.is_closed()) {
            return Ok(handle.clone());
        }
        let spec: Spec = serde_json::from_str(&row.spec)
            .map_err(|error| internal(&format!("the stored facts of session {} do not read: {error}", id.short())))?;
        let actor = Actor::load(row, Arc::new(spec), env, Arc::clone(&self.context))
            .await
            .map_err(|error| storage_error(&error))?;
        let (inbox, commands) = mpsc::channel(INBOX_MAX);
        let handle = SessionHandle { id, inbox };
        let stop = self.stop.clone();
        inner.tasks.spawn(async move {
            actor.run(commands, stop).await;
            id
        });
        inner.actors.insert(id, handle.clone());
        Ok(handle)
    }

    /// All sessions, newest activity first.
    ///
    /// # Errors
    /// Storage failures.
    pub async fn list(&self, archived: bool, cwd: Option<&str>) -> Result<Vec<SessionInfo>, WireError> {
        let rows = self.context.store.sessions().await.map_err(|error| storage_error(&error))?;
        let mut out = Vec::new();
        for row in rows {
            if (row.archived && !archived) || cwd.is_some_and(|cwd| cwd != row.cwd) {
                continue;
            }
            let handle = self.inner.lock().await.actors.get(&row.id).cloned();
            let live = match handle {
                Some(handle) => handle.info().await.ok(),
                None => None,
            };
            out.push(live.unwrap_or_else(|| resting(&row)));
        }
        Ok(out)
    }

    /// The session that asks an approval, by the approval's id or its last digits.
    ///
    /// # Errors
    /// None fits, or several do.
    pub async fn find_approval(&self, selector: &str) -> Result<(SessionHandle, ApprovalId), WireError> {
        let handles: Vec<SessionHandle> = self.inner.lock().await.actors.values().cloned().collect();
        let mut found = Vec::new();
        for handle in handles {
            let Ok(info) = handle.info().await else { continue };
            for approval in info.approvals {
                if id_fits(&approval.id.to_string(), selector) {
                    found.push((handle.clone(), approval.id));
                }
            }
            // A full id may be of a question that was answered: its session knows by whom.
            if found.is_empty()
                && let Ok(id) = selector.parse::<ApprovalId>()
                && handle.knows_approval(id).await
            {
                return Ok((handle, id));
            }
        }
        match found.len() {
            0 => Err(not_found(&format!("no open approval `{selector}`"), "`agentctl approvals` lists the open ones")),
            1 => Ok(found.remove(0)),
            many => Err(WireError {
                code: ErrorCode::Ambiguous,
                message: format!("`{selector}` fits {many} approvals"),
                hint: "give more digits of the id".into(),
            }),
        }
    }

    /// Whether no session in the list has this name.
    ///
    /// # Errors
    /// When one has.
    pub async fn check_free(&self, name: &str) -> Result<(), WireError> {
        let rows = self.context.store.sessions().await.map_err(|error| storage_error(&error))?;
        if rows.iter().any(|row| !row.archived && row.name.as_deref() == Some(name)) {
            return Err(storage_error(&crate::store::StoreError::NameTaken));
        }
        Ok(())
    }

    /// Removes a session: its shell, its log, its files.
    ///
    /// # Errors
    /// Storage failures.
    pub async fn remove(&self, handle: &SessionHandle) -> Result<(), WireError> {
        let id = handle.id();
        handle.end_shell().await?;
        self.inner.lock().await.actors.remove(&id);
        self.context.store.remove(id).await.map_err(|error| storage_error(&error))?;
        let folder = self.context.paths.session(id);
        match tokio::fs::remove_dir_all(&folder).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                Err(internal(&format!("the session is gone, its folder {} is not: {error}", folder.display())))
            }
        }
    }

    /// Ends every session's shell, also those no actor of this daemon has touched.
    pub async fn end_shells(&self) {
        let Ok(rows) = self.context.store.sessions().await else { return };
        for row in rows.into_iter().filter(|row| !row.archived) {
            if let Ok(handle) = self.actor(row, None).await {
                let _ = handle.end_shell().await;
            }
        }
    }

    /// The sessions that have an actor.
    pub(super) async fn handles(&self) -> Vec<SessionHandle> {
        self.inner.lock().await.actors.values().cloned().collect()
    }

    /// Waits until every actor has ended.
    pub async fn wait(&self) {
        let mut tasks = std::mem::take(&mut self.inner.lock().await.tasks);
        while tasks.join_next().await.is_some() {}
    }
}

/// A session without an actor, from its row.
fn resting(row: &SessionRow) -> SessionInfo {
    let spec: Option<Spec> = serde_json::from_str(&row.spec).ok();
    SessionInfo {
        id: row.id,
        name: row.name.clone(),
        cwd: row.cwd.clone(),
        model: spec.as_ref().map_or_else(String::new, |spec| spec.model.clone()),
        provider: spec.as_ref().map_or_else(String::new, |spec| spec.provider().to_owned()),
        state: SessionState::Idle,
        created_at: row.created_at,
        active_at: row.active_at,
        head: row.head,
        queued: Vec::new(),
        approvals: Vec::new(),
        title: row.title.clone(),
        clients: Vec::new(),
        archived: row.archived,
        shim_pid: None,
        next_try: None,
        mode: row.mode,
    }
}

fn internal(message: &str) -> WireError {
    WireError { code: ErrorCode::Internal, message: message.into(), hint: String::new() }
}
