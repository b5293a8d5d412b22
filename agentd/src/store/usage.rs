//! Queries about what was used.

use proto::event::Usage;
use proto::ids::SessionId;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::StoreError;
use super::read::{LogRow, collect, loaded};

/// What one session used of one model on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Days since 1970, UTC.
    pub day: u64,
    /// The session; it may be gone.
    pub session: SessionId,
    /// The model.
    pub model: String,
    /// Replies.
    pub requests: u64,
    /// What they took.
    pub usage: Usage,
}

pub(super) fn days(
    connection: &Connection,
    since_day: u64,
    session: Option<SessionId>,
) -> Result<Vec<UsageRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT day, session, model, requests, input, cache_write, cache_read, output, cost FROM usage
         WHERE day >= ?1 AND (?2 IS NULL OR session = ?2) ORDER BY day DESC, session, model",
    )?;
    let since = i64::try_from(since_day).unwrap_or(i64::MAX);
    let only = session.map(|session| session.0.as_bytes().to_vec());
    let rows = statement.query_map(params![since, only], |row| {
        let id: [u8; 16] = row.get(1)?;
        Ok(UsageRow {
            day: loaded(row.get(0)?),
            session: SessionId(Uuid::from_bytes(id)),
            model: row.get(2)?,
            requests: loaded(row.get(3)?),
            usage: Usage {
                input_tokens: loaded(row.get(4)?),
                cache_write_tokens: loaded(row.get(5)?),
                cache_read_tokens: loaded(row.get(6)?),
                output_tokens: loaded(row.get(7)?),
                cost_nanousd: row.get::<_, Option<i64>>(8)?.map(loaded),
            },
        })
    })?;
    rows.collect::<Result<_, _>>().map_err(StoreError::from)
}

pub(super) fn turns(connection: &Connection, session: SessionId, limit: u32) -> Result<Vec<LogRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, at, body FROM events WHERE session = ?1 AND kind = 'turn_ended' ORDER BY seq DESC LIMIT ?2",
    )?;
    collect(session, statement.query(params![session.0.as_bytes(), limit])?)
}
