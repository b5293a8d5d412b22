//! The audit's chain: each row's hash covers the row before it, so that what was changed or taken out afterwards shows.
//!
//! A row is written in the transaction of the log row it belongs to: no further fsync, and neither is ever there without
//! the other. Whoever can write the database can also write a whole new chain; against that, the last hash is kept
//! elsewhere (the journal has each row's).

use proto::audit::{AuditRow, Audited, BrokenRow, Verified};
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use sha2::{Digest, Sha256};

use super::StoreError;

/// The hash that stands before the first row.
const GENESIS: [u8; 32] = [0; 32];

/// A row's hash.
pub(super) type Hash = [u8; 32];

/// Appends a row; returns it in its place.
pub(super) fn append(transaction: &Transaction<'_>, audited: &Audited) -> Result<AuditRow, StoreError> {
    let last: Option<(i64, Hash)> = transaction
        .prepare_cached("SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (last, before) = last.unwrap_or((0, GENESIS));
    let id = last.saturating_add(1);
    let body = serde_json::to_string(audited).map_err(|error| StoreError::Sqlite(error.to_string()))?;
    let hash = chained(&before, id, &body);
    transaction.prepare_cached("INSERT INTO audit (id, body, hash) VALUES (?1, ?2, ?3)")?.execute(params![
        id,
        body,
        hash.as_slice()
    ])?;
    Ok(AuditRow { id: u64::try_from(id).unwrap_or(0), audited: audited.clone(), hash: hex(&hash) })
}

fn chained(before: &Hash, id: i64, body: &str) -> Hash {
    let mut digest = Sha256::new();
    digest.update(before);
    digest.update(id.to_be_bytes());
    digest.update(body.as_bytes());
    digest.finalize().into()
}

fn hex(hash: &[u8]) -> String {
    use std::fmt::Write;
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Which rows a query wants; the rest of a filter is the caller's.
#[derive(Clone, Debug, Default)]
pub struct AuditRange {
    /// From this moment on, in milliseconds.
    pub since: Option<u64>,
    /// Before this moment.
    pub until: Option<u64>,
}

/// Hands the rows of a range to `take`, oldest first, until it returns false.
///
/// # Errors
/// What SQLite says, or a row that does not read.
pub fn each(
    connection: &Connection,
    range: &AuditRange,
    mut take: impl FnMut(AuditRow) -> bool,
) -> Result<(), StoreError> {
    let bound = |at: Option<u64>, open: i64| at.map_or(open, |at| i64::try_from(at).unwrap_or(i64::MAX));
    // By number where everything is wanted: moments may repeat or run backwards, numbers do not.
    let sql = if range.since.is_none() && range.until.is_none() {
        "SELECT id, body, hash FROM audit WHERE ?1 <= ?2 ORDER BY id"
    } else {
        "SELECT id, body, hash FROM audit WHERE at >= ?1 AND at < ?2 ORDER BY id"
    };
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params![bound(range.since, 0), bound(range.until, i64::MAX)])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let body: String = row.get(1)?;
        let hash: Vec<u8> = row.get(2)?;
        let audited = serde_json::from_str(&body)
            .map_err(|error| StoreError::Sqlite(format!("row {id} of the audit does not read: {error}")))?;
        if !take(AuditRow { id: u64::try_from(id).unwrap_or(0), audited, hash: hex(&hash) }) {
            break;
        }
    }
    Ok(())
}

/// Checks the whole chain.
///
/// # Errors
/// What SQLite says.
pub fn verify(connection: &Connection) -> Result<Verified, StoreError> {
    let mut before = GENESIS;
    let mut sound: i64 = 0;
    let mut statement = connection.prepare("SELECT id, body, hash FROM audit ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut broken = None;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        // A row of another kind than text or bytes is no row of ours.
        let problem = match (row.get::<_, String>(1), row.get::<_, Vec<u8>>(2)) {
            _ if id != sound + 1 => Some(format!("rows {} to {} are missing before it", sound + 1, id - 1)),
            (Ok(body), Ok(hash)) => {
                let wanted = chained(&before, id, &body);
                before = wanted;
                (hash != wanted).then(|| "its text, its number or the row before it was changed".to_owned())
            }
            _ => Some("it is not text and hash".to_owned()),
        };
        if let Some(problem) = problem {
            broken = Some(BrokenRow { id: u64::try_from(id).unwrap_or(0), problem });
            break;
        }
        sound = id;
    }
    if broken.is_none() {
        let last: Option<i64> = connection
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'audit'", [], |row| row.get(0))
            .optional()?;
        if let Some(last) = last.filter(|last| *last > sound) {
            let id = u64::try_from(sound + 1).unwrap_or(0);
            let problem = format!("it and all after it, up to {last}, were taken out");
            broken = Some(BrokenRow { id, problem });
        }
    }
    // After a break `before` is the hash that the broken row should have had.
    let head = (sound > 0 && broken.is_none()).then(|| hex(&before));
    Ok(Verified { rows: u64::try_from(sound).unwrap_or(0), broken, head })
}

#[cfg(test)]
mod tests {
    use proto::approval::Decider;
    use proto::audit::AuditEvent;
    use proto::ids::{CallId, Seq, SessionId, Timestamp};

    use super::*;

    fn chain(rows: u64) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::schema::prepare(&mut connection, std::path::Path::new("x")).unwrap();
        let transaction = connection.transaction().unwrap();
        for number in 1..=rows {
            let audited = Audited {
                at: Timestamp(number * 10),
                session: SessionId::new(),
                seq: Seq(number),
                call: CallId::new(),
                event: AuditEvent::Started,
                tool: "bash".into(),
                command: format!("echo {number}"),
                cwd: "/w".into(),
                workspace: "/w".into(),
                asked: false,
                by: Decider::Expiry {},
                reason: None,
                outcome: None,
                exit_status: None,
                duration_ms: None,
            };
            assert_eq!(append(&transaction, &audited).unwrap().id, number);
        }
        transaction.commit().unwrap();
        connection
    }

    fn broken_after(sql: &str) -> Option<u64> {
        let connection = chain(5);
        assert_eq!(verify(&connection).unwrap().rows, 5);
        connection.execute_batch(sql).unwrap();
        verify(&connection).unwrap().broken.map(|row| row.id)
    }

    #[test]
    fn every_way_to_change_the_past_shows_at_the_first_row_it_touches() {
        assert_eq!(broken_after("SELECT 1"), None);
        assert_eq!(broken_after("UPDATE audit SET body = replace(body, 'echo 3', 'echo 9') WHERE id = 3"), Some(3));
        assert_eq!(broken_after("UPDATE audit SET hash = zeroblob(32) WHERE id = 2"), Some(2));
        assert_eq!(broken_after("DELETE FROM audit WHERE id = 1"), Some(2));
        assert_eq!(broken_after("DELETE FROM audit WHERE id = 4"), Some(5));
        assert_eq!(broken_after("DELETE FROM audit WHERE id = 5"), Some(5));
        assert_eq!(broken_after("DELETE FROM audit"), Some(1));
        let swap = "UPDATE audit SET id = 99 WHERE id = 2; UPDATE audit SET id = 2 WHERE id = 3; UPDATE audit SET id = 3 WHERE id = 99";
        assert_eq!(broken_after(swap), Some(2));
        assert_eq!(broken_after("UPDATE audit SET body = x'00' WHERE id = 1"), Some(1));
    }

    #[test]
    fn a_range_is_by_moment_and_the_head_is_the_last_hash() {
        let connection = chain(5);
        let numbers = |since, until| {
            let mut found = Vec::new();
            each(&connection, &AuditRange { since, until }, |row| {
                found.push(row.id);
                found.len() < 3
            })
            .unwrap();
            found
        };
        assert_eq!(numbers(None, None), [1, 2, 3]);
        assert_eq!(numbers(Some(20), Some(50)), [2, 3, 4]);
        assert_eq!(numbers(Some(50), None), [5]);
        let mut last = String::new();
        each(&connection, &AuditRange::default(), |row| {
            last = row.hash;
            true
        })
        .unwrap();
        assert_eq!(verify(&connection).unwrap().head, Some(last));
    }
}
