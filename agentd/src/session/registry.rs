//! The sessions of this daemon: made, resumed after a start, removed. `finding` is how they are found.
//!
//! Invariant: a session has at most one actor. Idle sessions have none until somebody asks for them; those with
//! something under way get theirs when the daemon starts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use proto::ids::{Seq, SessionId, Timestamp};
use proto::request::{CreateSession, Endpoint};
use proto::response::{ErrorCode, SessionInfo, WireError};
use proto::secret::EnvVars;
use tokio::sync::{Mutex, RwLock, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::command::INBOX_MAX;
use super::finding::resting;
use super::instructions::{self, Instructions};
use super::select::{check_name, check_workspace, not_found, scenario_text};
use super::shell_task::end_leftover;
use super::spec::{Api, Source, Spec};
use super::trail::Trail;
use super::{Context, SessionHandle, profile, prompt, storage_error};
use crate::faults::{self, Point};
use crate::model::{Effort, tool_definitions};
use crate::shell::recover;
use crate::store::entry::{Created, Entry};
use crate::store::{NewRow, NewSession, SessionRow, StoreError};
use crate::tools::editor::VIEW_CHARACTERS_MAX;

/// All sessions.
#[derive(Debug)]
pub struct Registry {
    pub(super) context: Arc<Context>,
    stop: CancellationToken,
    inner: Mutex<Inner>,
}

/// A session's actor, if it has one. Locked while its log is read: others wait for that session only.
pub(super) type Place = Arc<RwLock<Option<SessionHandle>>>;

#[derive(Debug)]
struct Inner {
    places: HashMap<SessionId, Place>,
    tasks: JoinSet<()>,
}

impl Registry {
    /// An empty registry; its sessions end when `stop` is cancelled.
    #[must_use]
    pub fn new(context: Arc<Context>, stop: CancellationToken) -> Self {
        Self { context, stop, inner: Mutex::new(Inner { places: HashMap::new(), tasks: JoinSet::new() }) }
    }

    /// What the sessions share.
    #[must_use]
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Clears away what dead shims left, and starts an actor for every session that has something under way. Returns what
    /// could not be resumed, in sentences: one session that cannot be is no obstacle for the others.
    pub async fn resume_all(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Ok(rows) = self.context.store.sessions().await {
            let sessions: Vec<SessionId> = rows.iter().map(|row| row.id).collect();
            let (shims, state_dir) = (self.context.paths.shims(), self.context.paths.sessions());
            // No client and no actor yet: nobody can start a shim meanwhile.
            let swept = tokio::task::spawn_blocking(move || {
                recover::sweep(&recover::dead(&sessions, &shims), &shims, &state_dir);
            });
            let _ = swept.await;
        }
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
        faults::reach(Point::SessionMade);
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
            effort: Effort::named(&config.model.effort),
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

    /// The session's actor, started if it has none.
    pub(super) async fn actor(&self, row: SessionRow, env: Option<EnvVars>) -> Result<SessionHandle, WireError> {
        let id = row.id;
        let place = {
            let mut inner = self.inner.lock().await;
            while inner.tasks.try_join_next().is_some() {}
            Arc::clone(inner.places.entry(id).or_default())
        };
        // Most come to a session that is served: they keep nobody out, see `running`.
        if let Some(handle) = place.read().await.as_ref().filter(|handle| !handle.inbox.is_closed()) {
            return Ok(handle.clone());
        }
        let mut place = place.write().await;
        if let Some(handle) = place.as_ref().filter(|handle| !handle.inbox.is_closed()) {
            return Ok(handle.clone());
        }
        // It may have been removed while this waited for its place.
        let row = match self.context.store.session(id).await.map_err(|error| storage_error(&error))? {
            Some(row) => row,
            None => return Err(not_found(&format!("no session `{}`", id.short()), "`agentctl ls --all` lists them")),
        };
        let spec: Spec = serde_json::from_str(&row.spec)
            .map_err(|error| internal(&format!("the stored facts of session {} do not read: {error}", id.short())))?;
        let actor = Actor::load(row, Arc::new(spec), env, Arc::clone(&self.context))
            .await
            .map_err(|error| storage_error(&error))?;
        let (inbox, commands) = mpsc::channel(INBOX_MAX);
        let handle = SessionHandle { id, inbox };
        let stop = self.stop.clone();
        self.inner.lock().await.tasks.spawn(actor.run(commands, stop));
        *place = Some(handle.clone());
        drop(place);
        Ok(handle)
    }

    /// The session's actor, if it has one that can be asked at once: not while it is started or removed.
    pub(super) async fn running(&self, id: SessionId) -> Option<SessionHandle> {
        let place = Arc::clone(self.inner.lock().await.places.get(&id)?);
        let place = place.try_read().ok()?;
        place.clone().filter(|handle| !handle.inbox.is_closed())
    }

    /// All sessions' actors that can be asked at once.
    pub(super) async fn all_running(&self) -> Vec<SessionHandle> {
        let places: Vec<Place> = self.inner.lock().await.places.values().cloned().collect();
        let handle = |place: &Place| place.try_read().ok()?.clone().filter(|handle| !handle.inbox.is_closed());
        places.iter().filter_map(handle).collect()
    }

    /// Removes a session: its shell and jobs, its log, its files. Returns what it was at last.
    ///
    /// # Errors
    /// Storage failures.
    pub async fn remove(&self, row: &SessionRow) -> Result<SessionInfo, WireError> {
        let id = row.id;
        let place = Arc::clone(self.inner.lock().await.places.entry(id).or_default());
        // Locked to the end: no actor may be started for a session that is half gone.
        let mut place = place.write().await;
        let last = match place.take().filter(|handle| !handle.inbox.is_closed()) {
            Some(handle) => {
                let last = handle.info().await.unwrap_or_else(|_| resting(row));
                // The actor ends with it: whatever it has under way must not be written any more.
                handle.retire().await?;
                last
            }
            None => {
                end_leftover(id, &self.context).await;
                resting(row)
            }
        };
        self.context.store.remove(id).await.map_err(|error| storage_error(&error))?;
        self.inner.lock().await.places.remove(&id);
        drop(place);
        let folder = self.context.paths.session(id);
        match tokio::fs::remove_dir_all(&folder).await {
            Ok(()) => Ok(last),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(last),
            Err(error) => {
                Err(internal(&format!("the session is gone, its folder {} is not: {error}", folder.display())))
            }
        }
    }

    /// Ends every session's shell, also those no actor of this daemon has touched.
    pub async fn end_shells(&self) {
        let Ok(rows) = self.context.store.sessions().await else { return };
        for row in rows.into_iter().filter(|row| !row.archived) {
            match self.running(row.id).await {
                Some(handle) => {
                    // One that is going away ends its shell itself.
                    let _ = handle.end_shell().await;
                }
                None => end_leftover(row.id, &self.context).await,
            }
        }
    }

    /// Waits until every actor has ended.
    pub async fn wait(&self) {
        let mut tasks = std::mem::take(&mut self.inner.lock().await.tasks);
        while tasks.join_next().await.is_some() {}
    }
}

pub(super) fn internal(message: &str) -> WireError {
    WireError { code: ErrorCode::Internal, message: message.into(), hint: String::new() }
}
