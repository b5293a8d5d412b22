//! The writer thread: takes what waits, commits it as one transaction, tells each waiter.

use std::sync::Arc;

use proto::audit::AuditRow;
use proto::event::Usage;
use proto::ids::{Seq, SessionId};
use rusqlite::{Connection, Transaction, params};
use tokio::sync::{mpsc, oneshot};

use super::search::{self, Page};
use super::{AuditSink, NewRow, NewSession, StoreError, audit};
use crate::faults::{self, Point};
use crate::store::entry::{Created, Entry};

/// Jobs in one transaction: enough to share an fsync among all sessions, few enough to keep the first waiter's delay low.
const GROUP_MAX: usize = 64;

/// Pages given back in one transaction: 4 MiB, so that nobody waits long for the writer meanwhile.
const SHRINK: &str = "PRAGMA incremental_vacuum(1024)";

type Done = oneshot::Sender<Result<(), StoreError>>;

/// Something to write.
#[derive(Debug)]
pub(super) enum Job {
    Create {
        session: Box<NewSession>,
        reply: Done,
    },
    Append {
        session: SessionId,
        rows: Vec<NewRow>,
        reply: Done,
    },
    Remove {
        session: SessionId,
        reply: Done,
    },
    /// Copies the rows up to `upto` into a new session; its own first row comes after them.
    Fork {
        source: SessionId,
        upto: Seq,
        session: Box<NewSession>,
        reply: Done,
    },
    /// Puts texts into the search index.
    Index {
        page: Box<Page>,
        reply: Done,
    },
    /// Gives some free pages of the file back to the disk.
    Shrink {
        reply: Done,
    },
    Flush {
        reply: Done,
    },
}

/// Serves jobs until the last handle is gone.
pub(super) fn run(mut connection: Connection, mut jobs: mpsc::Receiver<Job>, mut sink: AuditSink) {
    let mut group = Vec::with_capacity(GROUP_MAX);
    loop {
        if jobs.blocking_recv_many(&mut group, GROUP_MAX) == 0 {
            return;
        }
        match commit(&mut connection, &group) {
            Ok(audited) => {
                for job in group.drain(..) {
                    answer(job, Ok(()));
                }
                audited.into_iter().for_each(&mut sink);
            }
            // One bad job must not fail its neighbours: each on its own.
            Err(_) if group.len() > 1 => {
                for job in group.drain(..) {
                    let result = commit(&mut connection, std::slice::from_ref(&job));
                    answer(job, result.map(|audited| audited.into_iter().for_each(&mut sink)));
                }
            }
            Err(error) => {
                for job in group.drain(..) {
                    answer(job, Err(error.clone()));
                }
            }
        }
    }
}

fn answer(job: Job, result: Result<(), StoreError>) {
    let reply = match job {
        Job::Create { reply, .. }
        | Job::Append { reply, .. }
        | Job::Remove { reply, .. }
        | Job::Fork { reply, .. }
        | Job::Index { reply, .. }
        | Job::Shrink { reply }
        | Job::Flush { reply } => reply,
    };
    // A waiter that went away does not undo what was written.
    let _ = reply.send(result);
}

fn commit(connection: &mut Connection, group: &[Job]) -> Result<Vec<AuditRow>, StoreError> {
    let written = try_commit(connection, group);
    written.map_err(|error| if no_room(connection, &error) { StoreError::Full } else { error })
}

/// Whether the last write failed because there is no room for it: SQLite itself says so of a full disk only, and calls a
/// quota or a limit on the file's size an I/O error.
fn no_room(connection: &Connection, error: &StoreError) -> bool {
    if !matches!(error, StoreError::Sqlite(_)) {
        return false;
    }
    // SAFETY: the handle is open as long as the connection, and the function only reads a number from it.
    let errno = unsafe { rusqlite::ffi::sqlite3_system_errno(connection.handle()) };
    [libc::ENOSPC, libc::EDQUOT, libc::EFBIG].contains(&errno)
}

fn try_commit(connection: &mut Connection, group: &[Job]) -> Result<Vec<AuditRow>, StoreError> {
    let transaction = connection.transaction()?;
    let mut audited = Vec::new();
    for job in group {
        apply(&transaction, job, &mut audited)?;
    }
    faults::reach(Point::Inserted);
    transaction.commit()?;
    faults::reach(Point::Committed);
    Ok(audited)
}

fn apply(transaction: &Transaction<'_>, job: &Job, audited: &mut Vec<AuditRow>) -> Result<(), StoreError> {
    match job {
        Job::Create { session, .. } => {
            create(transaction, session)?;
            insert(transaction, session.id, &session.first)
        }
        Job::Append { session, rows, .. } => rows.iter().try_for_each(|row| {
            insert(transaction, *session, row)?;
            if let Some(what) = &row.audited {
                audited.push(audit::append(transaction, what)?);
            }
            Ok(())
        }),
        Job::Fork { source, upto, session, .. } => {
            create(transaction, session)?;
            transaction
                .prepare_cached(
                    "INSERT INTO events (session, seq, at, kind, body)
                     SELECT ?2, seq, at, kind, body FROM events WHERE session = ?1 AND seq <= ?3",
                )?
                .execute(params![source.0.as_bytes(), session.id.0.as_bytes(), stored(upto.0)])?;
            transaction
                .prepare_cached(
                    "UPDATE sessions SET title = (SELECT title FROM sessions WHERE id = ?1), indexed = ?3 WHERE id = ?2",
                )?
                .execute(params![source.0.as_bytes(), session.id.0.as_bytes(), stored(upto.0)])?;
            insert(transaction, session.id, &session.first)
        }
        Job::Index { page, .. } => search::index(transaction, page),
        Job::Remove { session, .. } => {
            search::forget(transaction, *session)?;
            transaction.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([session.0.as_bytes()])?;
            Ok(())
        }
        Job::Shrink { .. } => {
            let mut statement = transaction.prepare_cached(SHRINK)?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        }
        Job::Flush { .. } => Ok(()),
    }
}

fn create(transaction: &Transaction<'_>, session: &NewSession) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "INSERT INTO sessions (id, name, created_at, active_at, cwd, spec) VALUES (?1, ?2, ?3, ?3, ?4, ?5)",
        )?
        .execute(params![
            session.id.0.as_bytes(),
            session.name,
            stored(session.created_at.0),
            session.cwd,
            session.spec
        ])?;
    Ok(())
}

fn insert(transaction: &Transaction<'_>, session: SessionId, row: &NewRow) -> Result<(), StoreError> {
    let body = serde_json::to_string(row.entry.as_ref()).map_err(|error| StoreError::Sqlite(error.to_string()))?;
    transaction
        .prepare_cached("INSERT INTO events (session, seq, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![session.0.as_bytes(), stored(row.seq.0), stored(row.at.0), row.entry.kind(), body])?;
    touch(transaction, session, row)
}

/// Keeps the session's place in the list in step with its log, in the same transaction.
fn touch(transaction: &Transaction<'_>, session: SessionId, row: &NewRow) -> Result<(), StoreError> {
    let id = session.0.as_bytes();
    let at = stored(row.at.0);
    transaction.prepare_cached("UPDATE sessions SET active_at = ?2 WHERE id = ?1")?.execute(params![id, at])?;
    match Arc::as_ref(&row.entry) {
        Entry::PromptAccepted(prompt) => {
            let title = title_of(&prompt.text);
            transaction
                .prepare_cached("UPDATE sessions SET title = ?2 WHERE id = ?1 AND title = ''")?
                .execute(params![id, title])?;
        }
        Entry::Renamed { name, .. } => {
            transaction.prepare_cached("UPDATE sessions SET name = ?2 WHERE id = ?1")?.execute(params![id, name])?;
        }
        Entry::Archived { .. } => {
            transaction.prepare_cached("UPDATE sessions SET archived = 1 WHERE id = ?1")?.execute([id])?;
        }
        Entry::Created(Created { mode, .. }) | Entry::ModeChanged { mode, .. } => {
            transaction
                .prepare_cached("UPDATE sessions SET mode = ?2 WHERE id = ?1")?
                .execute(params![id, mode.name()])?;
        }
        Entry::ReplyReceived(reply) => count(transaction, session, row, &reply.model, &reply.usage)?,
        Entry::Compacted(summary) => count(transaction, session, row, &summary.model, &summary.usage)?,
        // For the list, where sessions that rest have no actor.
        Entry::SettingsChanged { settings, .. } => {
            transaction
                .prepare_cached("UPDATE sessions SET spec = json_set(spec, '$.model', ?2) WHERE id = ?1")?
                .execute(params![id, settings.model])?;
        }
        Entry::PromptWithdrawn { .. }
        | Entry::TurnStarted { .. }
        | Entry::RequestSent { .. }
        | Entry::RequestFailed { .. }
        | Entry::Nudged { .. }
        | Entry::ApprovalAsked { .. }
        | Entry::ApprovalClosed { .. }
        | Entry::CallStarted { .. }
        | Entry::CallFinished(_)
        | Entry::InterruptRequested { .. }
        | Entry::TurnEnded { .. }
        | Entry::Notice { .. }
        | Entry::PauseAsked { .. }
        | Entry::PauseClosed { .. }
        | Entry::CompactionStarted { .. }
        | Entry::Steered { .. }
        | Entry::NotesGiven { .. }
        | Entry::Rewound { .. }
        | Entry::ThinkingStripped { .. }
        | Entry::Forked(_)
        | Entry::UndoStarted(_)
        | Entry::UndoEnded(_)
        | Entry::RuleKept { .. }
        | Entry::JobStarted(_)
        | Entry::JobEnded(_)
        | Entry::JobSilent(_)
        | Entry::JobStopAsked { .. }
        | Entry::BackgroundAsked { .. }
        | Entry::TurnWoken { .. }
        | Entry::JobsTold { .. }
        | Entry::WakesSpent { .. } => {}
    }
    Ok(())
}

/// Adds a reply to what its day, session and model have used.
fn count(
    transaction: &Transaction<'_>,
    session: SessionId,
    row: &NewRow,
    model: &str,
    usage: &Usage,
) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "INSERT INTO usage (day, session, model, requests, input, cache_write, cache_read, output, cost)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (day, session, model) DO UPDATE SET
                 requests = requests + 1, input = input + excluded.input,
                 cache_write = cache_write + excluded.cache_write, cache_read = cache_read + excluded.cache_read,
                 output = output + excluded.output,
                 cost = CASE WHEN cost IS NULL THEN excluded.cost ELSE cost + coalesce(excluded.cost, 0) END",
        )?
        .execute(params![
            stored(row.at.day()),
            session.0.as_bytes(),
            model,
            stored(usage.input_tokens),
            stored(usage.cache_write_tokens),
            stored(usage.cache_read_tokens),
            stored(usage.output_tokens),
            usage.cost_nanousd.map(stored)
        ])?;
    Ok(())
}

/// The first line of a prompt, short enough for a list.
#[must_use]
pub fn title_of(text: &str) -> String {
    const TITLE_CHARS_MAX: usize = 80;
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("").chars().take(TITLE_CHARS_MAX).collect()
}

/// SQLite's integers are signed; our numbers stay far below 2^63.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
