//! Finding sessions: by what a person types, in a list, by an approval.

use proto::event::Usage;
use proto::ids::{ApprovalId, SessionId};
use proto::response::{ErrorCode, SessionInfo, SessionState, WireError};

use super::registry::Registry;
use super::select::{id_fits, not_found};
use super::spec::Spec;
use super::{SessionHandle, storage_error};
use crate::store::SessionRow;

/// Rows of a log that are read while a client waits for a look at its session. They take some ten milliseconds.
const ROWS_READ_AT_ONCE: u64 = 2_000;

/// A session that was found.
#[derive(Debug)]
pub enum Found {
    /// It has an actor.
    Awake(SessionHandle),
    /// It has none; nothing is under way in it.
    Resting(Box<SessionRow>),
}

impl Found {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        match self {
            Self::Awake(handle) => handle.id(),
            Self::Resting(row) => row.id,
        }
    }

    /// What it is.
    ///
    /// # Errors
    /// When it is going away.
    pub async fn info(&self) -> Result<SessionInfo, WireError> {
        match self {
            Self::Awake(handle) => handle.info().await,
            Self::Resting(row) => Ok(resting(row)),
        }
    }
}

impl Registry {
    /// Finds a session by its id, the last digits of its id, or its name; starts its actor if it has none.
    ///
    /// # Errors
    /// None fits, or several do.
    pub async fn find(&self, selector: &str) -> Result<SessionHandle, WireError> {
        let row = self.select(selector).await?;
        self.actor(row, None).await
    }

    /// As [`Self::find`], but a session that rests with a long log is not woken: reading such a log takes longer than a
    /// person should wait for a look at it.
    ///
    /// # Errors
    /// None fits, or several do.
    pub async fn look(&self, selector: &str) -> Result<Found, WireError> {
        let row = self.select(selector).await?;
        match self.running(row.id).await {
            Some(handle) => Ok(Found::Awake(handle)),
            None if row.head.0 > ROWS_READ_AT_ONCE => Ok(Found::Resting(Box::new(row))),
            None => self.actor(row, None).await.map(Found::Awake),
        }
    }

    /// Wakes a session that [`Self::look`] left resting.
    ///
    /// # Errors
    /// Storage failures.
    pub async fn wake(&self, row: SessionRow) -> Result<SessionHandle, WireError> {
        self.actor(row, None).await
    }

    /// The session a person means.
    ///
    /// # Errors
    /// None fits, or several do.
    pub async fn select(&self, selector: &str) -> Result<SessionRow, WireError> {
        // What programs send: one row instead of all.
        if let Ok(id) = selector.parse::<SessionId>()
            && let Some(row) = self.context.store.session(id).await.map_err(|error| storage_error(&error))?
        {
            return Ok(row);
        }
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
            let live = match self.running(row.id).await {
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
        let mut found = Vec::new();
        for handle in self.all_running().await {
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
}

/// A session without an actor, from its row.
#[must_use]
pub fn resting(row: &SessionRow) -> SessionInfo {
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
        max_tokens: spec.as_ref().map_or(0, |spec| spec.max_tokens),
        effort: spec.as_ref().and_then(|spec| spec.effort).map(|effort| effort.as_str().to_owned()),
        usage: Usage::default(),
        context_tokens: 0,
        context_window: 0,
        jobs: 0,
        mode: row.mode,
    }
}
