//! The event log on disk: SQLite, written by one thread, read by another connection.
//!
//! Owns the database file and its durability; knows nothing of what rows mean beyond their JSON. Commits are grouped:
//! what waits when the writer is free goes into one transaction, and each waiter hears of it after the fsync.
//!
//! Invariant: rows are only ever added (or a whole session removed); a row acknowledged by [`Store::append`] is on disk.

pub mod audit;
pub mod entry;
pub mod job;
mod read;
mod schema;
mod search;
mod usage;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proto::ids::{Seq, SessionId, Timestamp};
use rusqlite::Connection;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use entry::Entry;
use proto::audit::{AuditRow, Audited};

pub use read::{LogRow, SessionRow};
pub use search::Found;
pub use usage::UsageRow;
pub use write::title_of;

/// Jobs that may wait for the writer: each session has at most a few under way, so this many means the disk has stopped.
const WRITER_QUEUE_MAX: usize = 1024;

/// Why the store cannot do what was asked.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error("cannot open the database {path}: {reason}")]
    Open {
        /// The file.
        path: PathBuf,
        /// SQLite's or the system's words.
        reason: String,
    },
    /// A later release wrote it.
    #[error(
        "the database {path} has schema {version}, this agentd knows {known}: start the newer agentd that wrote it, or move the file away"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
        /// Ours.
        known: i64,
    },
    /// The disk is full.
    #[error("the disk with the session log is full; nothing was accepted. Free some space and try again")]
    Full,
    /// A name is taken.
    #[error("a session with this name exists; choose another name or archive that session")]
    NameTaken,
    /// Anything else of SQLite's.
    #[error("the session log cannot be written: {0}")]
    Sqlite(String),
    /// The writer thread is gone.
    #[error("the session log is closed")]
    Closed,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};
        match &error {
            rusqlite::Error::SqliteFailure(failure, _) if failure.code == DiskFull => Self::Full,
            rusqlite::Error::SqliteFailure(failure, _) if failure.code == SystemIoFailure => {
                Self::Sqlite(format!("{error} (is the disk full?)"))
            }
            rusqlite::Error::SqliteFailure(_, Some(text)) if text.contains("sessions.name") => Self::NameTaken,
            _ => Self::Sqlite(error.to_string()),
        }
    }
}

/// A row to be appended.
#[derive(Clone, Debug)]
pub struct NewRow {
    /// Its position; the caller counts.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// What.
    pub entry: Arc<Entry>,
    /// What the audit says of it, in the same transaction.
    pub audited: Option<Box<Audited>>,
}

/// Hears of every audit row that is on disk, in order. Called by the writer's thread: it must not wait.
pub type AuditSink = Box<dyn FnMut(AuditRow) + Send>;

/// A new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: Option<String>,
    /// Its workspace.
    pub cwd: String,
    /// When it began.
    pub created_at: Timestamp,
    /// What is frozen with it, as JSON.
    pub spec: String,
    /// Its first row.
    pub first: NewRow,
}

/// A handle on the store; cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    writer: mpsc::Sender<write::Job>,
    reader: Arc<Mutex<Connection>>,
    path: Arc<PathBuf>,
}

impl Store {
    /// Opens or makes the database (mode 0600) and starts its writer thread, which ends when the last handle is gone.
    ///
    /// # Errors
    /// [`StoreError::Open`], [`StoreError::Newer`], or what SQLite says of the migrations.
    pub fn open(path: &Path, sink: AuditSink) -> Result<Self, StoreError> {
        let open_error = |reason: String| StoreError::Open { path: path.to_owned(), reason };
        make_private(path).map_err(|error| open_error(error.to_string()))?;
        let mut connection = Connection::open(path).map_err(|error| open_error(error.to_string()))?;
        schema::prepare(&mut connection, path).map_err(|error| match error {
            StoreError::Sqlite(reason) => open_error(reason),
            other => other,
        })?;
        let reader = Connection::open(path).map_err(|error| open_error(error.to_string()))?;
        reader.execute_batch("PRAGMA query_only = ON; PRAGMA busy_timeout = 5000;")?;
        let (writer, jobs) = mpsc::channel(WRITER_QUEUE_MAX);
        std::thread::Builder::new()
            .name("agentd-store".into())
            .spawn(move || write::run(connection, jobs, sink))
            .map_err(|error| open_error(error.to_string()))?;
        Ok(Self { writer, reader: Arc::new(Mutex::new(reader)), path: Arc::new(path.to_owned()) })
    }

    /// Whether this release could use the database; changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Newer`], or why it cannot be read.
    pub fn check(path: &Path) -> Result<(), StoreError> {
        if !path.exists() {
            return Ok(());
        }
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open_error = |reason: String| StoreError::Open { path: path.to_owned(), reason };
        let connection = Connection::open_with_flags(path, flags).map_err(|error| open_error(error.to_string()))?;
        schema::check(&connection, path)
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a session with its first row.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`], [`StoreError::Full`], …: nothing was stored.
    pub async fn create(&self, session: NewSession) -> Result<(), StoreError> {
        self.ask(|reply| write::Job::Create { session: Box::new(session), reply }).await
    }

    /// Queues rows and returns a receiver that hears when they are on disk. Rows of one caller are stored in the order
    /// of its calls.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub async fn append(
        &self,
        session: SessionId,
        rows: Vec<NewRow>,
    ) -> Result<oneshot::Receiver<Result<(), StoreError>>, StoreError> {
        let (reply, done) = oneshot::channel();
        self.writer.send(write::Job::Append { session, rows, reply }).await.map_err(|_| StoreError::Closed)?;
        Ok(done)
    }

    /// Stores a session that begins with another's rows up to `upto`; its first row of its own follows them.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn fork(&self, source: SessionId, upto: Seq, session: NewSession) -> Result<(), StoreError> {
        self.ask(|reply| write::Job::Fork { source, upto, session: Box::new(session), reply }).await
    }

    /// Rows with all of these words, newest first. Brings the index up to the logs first, in small steps.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn search(&self, words: Vec<String>, limit: u32) -> Result<Vec<Found>, StoreError> {
        for (session, mut after) in self.read(search::behind).await? {
            loop {
                let rows = self.rows(session, after, search::INDEX_PAGE).await?;
                let Some(page) = search::page(session, after, &rows) else { break };
                after = page.upto;
                self.ask(|reply| write::Job::Index { page: Box::new(page), reply }).await?;
            }
        }
        self.read(move |connection| search::find(connection, &words, limit)).await
    }

    /// Gives the file's free pages back to the disk, in small steps. Returns the file's size then, in bytes.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn shrink(&self) -> Result<u64, StoreError> {
        while self.read(read::free_pages).await? > 0 {
            self.ask(|reply| write::Job::Shrink { reply }).await?;
        }
        self.read(read::size).await
    }

    /// The file's size in bytes.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn size(&self) -> Result<u64, StoreError> {
        self.read(read::size).await
    }

    /// Deletes a session and its rows.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn remove(&self, session: SessionId) -> Result<(), StoreError> {
        self.ask(|reply| write::Job::Remove { session, reply }).await
    }

    /// Returns when everything queued before is on disk.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.ask(|reply| write::Job::Flush { reply }).await
    }

    async fn ask(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<(), StoreError>>) -> write::Job,
    ) -> Result<(), StoreError> {
        let (reply, done) = oneshot::channel();
        self.writer.send(job(reply)).await.map_err(|_| StoreError::Closed)?;
        done.await.map_err(|_| StoreError::Closed)?
    }

    /// One session.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn session(&self, session: SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.read(move |connection| read::session(connection, session)).await
    }

    /// All sessions, also archived ones.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.read(read::sessions).await
    }

    /// Sessions whose last row does not say that nothing is under way, oldest activity first.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn unsettled(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.read(read::unsettled).await
    }

    /// Rows of a session after `since`, at most `limit`, in order.
    ///
    /// # Errors
    /// What SQLite says, or a row that does not read.
    pub async fn rows(&self, session: SessionId, since: Seq, limit: u32) -> Result<Vec<LogRow>, StoreError> {
        self.read(move |connection| read::rows(connection, session, since, limit)).await
    }

    /// A connection for a program that only looks, while a daemon writes or none runs; `None` when nothing was ever
    /// stored.
    ///
    /// # Errors
    /// [`StoreError::Open`], or [`StoreError::Newer`].
    pub fn look(path: &Path) -> Result<Option<Connection>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let open_error = |error: rusqlite::Error| StoreError::Open { path: path.to_owned(), reason: error.to_string() };
        let mut connection = Connection::open(path).map_err(open_error)?;
        schema::prepare(&mut connection, path)?;
        connection.execute_batch("PRAGMA query_only = ON;").map_err(open_error)?;
        Ok(Some(connection))
    }

    /// What was used from a day (since 1970, UTC) on, newest day first.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn usage(&self, since_day: u64, session: Option<SessionId>) -> Result<Vec<UsageRow>, StoreError> {
        self.read(move |connection| usage::days(connection, since_day, session)).await
    }

    /// What a session's turns used, newest first, at most `limit`.
    ///
    /// # Errors
    /// What SQLite says, or a row that does not read.
    pub async fn turns(&self, session: SessionId, limit: u32) -> Result<Vec<LogRow>, StoreError> {
        self.read(move |connection| usage::turns(connection, session, limit)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let reader = Arc::clone(&self.reader);
        tokio::task::spawn_blocking(move || {
            let connection = reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            query(&connection)
        })
        .await
        .map_err(|_| StoreError::Closed)?
    }
}

/// Makes the file with mode 0600 before SQLite would make it by the umask; its `-wal` and `-shm` take the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(test)]
mod tests;
