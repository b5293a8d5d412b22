//! Queries.

use proto::ids::{Seq, SessionId, Timestamp};
use proto::mode::Mode;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::StoreError;
use crate::store::entry::Entry;

/// A session's place in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: Option<String>,
    /// Whether it left the list.
    pub archived: bool,
    /// When it began.
    pub created_at: Timestamp,
    /// When its last row was committed.
    pub active_at: Timestamp,
    /// Its workspace.
    pub cwd: String,
    /// The first line of its first prompt.
    pub title: String,
    /// What is frozen with it, as JSON.
    pub spec: String,
    /// How much it may do without asking.
    pub mode: Mode,
    /// Its last row.
    pub head: Seq,
}

/// One row of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Its position.
    pub seq: Seq,
    /// When it was committed.
    pub at: Timestamp,
    /// What happened.
    pub entry: Entry,
}

/// The columns of a [`SessionRow`].
macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, archived, created_at, active_at, cwd, title, spec, mode,
                    (SELECT max(seq) FROM events WHERE session = sessions.id)
             FROM sessions ",
            $rest
        )
    };
}

pub(super) fn session(connection: &Connection, session: SessionId) -> Result<Option<SessionRow>, StoreError> {
    let found = session_rows(connection, select_sessions!("WHERE id = ?1"), [session.0.as_bytes()])?;
    Ok(found.into_iter().next())
}

pub(super) fn sessions(connection: &Connection) -> Result<Vec<SessionRow>, StoreError> {
    session_rows(connection, select_sessions!("ORDER BY active_at DESC"), [])
}

/// A session rests when its last row is one of these, because whatever was queued when a turn ended began in the same
/// commit, and when no job of it runs. (A new name or mode, or the end of a job, may come in the middle of a turn.) Jobs
/// among the rows that were taken over from another session are that one's. The indexes are named because the planner
/// prefers the primary key, by which whole logs would be read.
pub(super) fn unsettled(connection: &Connection) -> Result<Vec<SessionRow>, StoreError> {
    session_rows(
        connection,
        select_sessions!(
            "WHERE archived = 0 AND ((
                 SELECT kind FROM events WHERE session = sessions.id ORDER BY seq DESC LIMIT 1
             ) NOT IN ('created', 'turn_ended', 'archived', 'undo_ended', 'settings_changed', 'wakes_spent', 'forked')
             OR (SELECT count(*) FROM events INDEXED BY events_job_started
                 WHERE session = sessions.id AND kind = 'job_started' AND seq > (
                 SELECT coalesce(max(seq), 0) FROM events INDEXED BY events_forked
                 WHERE session = sessions.id AND kind = 'forked'))
              > (SELECT count(*) FROM events INDEXED BY events_job_ended
                 WHERE session = sessions.id AND kind = 'job_ended' AND seq > (
                 SELECT coalesce(max(seq), 0) FROM events INDEXED BY events_forked
                 WHERE session = sessions.id AND kind = 'forked')))
             ORDER BY active_at"
        ),
        [],
    )
}

fn session_rows(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<SessionRow>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(parameters, |row| {
        let id: [u8; 16] = row.get(0)?;
        Ok(SessionRow {
            id: SessionId(Uuid::from_bytes(id)),
            name: row.get(1)?,
            archived: row.get(2)?,
            created_at: Timestamp(loaded(row.get(3)?)),
            active_at: Timestamp(loaded(row.get(4)?)),
            cwd: row.get(5)?,
            title: row.get(6)?,
            spec: row.get(7)?,
            // A mode of a later release asks.
            mode: row.get::<_, String>(8)?.parse().unwrap_or_default(),
            head: Seq(loaded(row.get::<_, Option<i64>>(9)?.unwrap_or(0))),
        })
    })?;
    rows.collect::<Result<_, _>>().map_err(StoreError::from)
}

pub(super) fn rows(
    connection: &Connection,
    session: SessionId,
    since: Seq,
    limit: u32,
) -> Result<Vec<LogRow>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT seq, at, body FROM events WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3")?;
    let since = i64::try_from(since.0).unwrap_or(i64::MAX);
    collect(session, statement.query(params![session.0.as_bytes(), since, limit])?)
}

/// The rows of a query for seq, at and body.
pub(super) fn collect(session: SessionId, mut found: rusqlite::Rows<'_>) -> Result<Vec<LogRow>, StoreError> {
    let mut out = Vec::new();
    while let Some(row) = found.next()? {
        let seq = Seq(loaded(row.get(0)?));
        let body = row.get_ref(2)?.as_str().map_err(|error| StoreError::Sqlite(error.to_string()))?;
        let entry = serde_json::from_str(body)
            .map_err(|error| StoreError::Sqlite(format!("row {seq} of session {session} does not read: {error}")))?;
        out.push(LogRow { seq, at: Timestamp(loaded(row.get(1)?)), entry });
    }
    Ok(out)
}

/// Pages of the file that hold nothing and can be given back.
pub(super) fn free_pages(connection: &Connection) -> Result<u64, StoreError> {
    // A file made before it could shrink never does.
    let mode: i64 = connection.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
    let free: i64 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    Ok(if mode == 0 { 0 } else { loaded(free) })
}

/// The file's size in bytes.
pub(super) fn size(connection: &Connection) -> Result<u64, StoreError> {
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    Ok(loaded(pages) * loaded(bytes))
}

pub(super) fn loaded(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
