//! The database's schema: numbered migrations, never edited once released.

use rusqlite::Connection;

use super::StoreError;

/// Every migration, in order; the database's `user_version` is the number applied.
const MIGRATIONS: [&str; 7] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
];

/// Durability and limits of a connection. `FULL`: an acknowledged commit survives a power cut. `auto_vacuum` must come
/// before the first table: it lets the file shrink in small steps. A log of writes that a long read made grow is cut to
/// its limit afterwards.
const PRAGMAS: &str = "
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA busy_timeout = 5000;
    PRAGMA journal_size_limit = 67108864;
";

/// Whether this release knows the database's schema.
///
/// # Errors
/// [`StoreError::Newer`] when a later release wrote the file; [`StoreError::Sqlite`].
pub(super) fn check(connection: &Connection, path: &std::path::Path) -> Result<(), StoreError> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if version > known {
        return Err(StoreError::Newer { path: path.to_owned(), version, known });
    }
    Ok(())
}

/// Sets a connection up and applies what is missing.
///
/// # Errors
/// [`StoreError::Newer`] when a later release wrote the file; [`StoreError::Sqlite`].
pub(super) fn prepare(connection: &mut Connection, path: &std::path::Path) -> Result<(), StoreError> {
    // First: a file that a later release wrote is left alone.
    check(connection, path)?;
    connection.execute_batch(PRAGMAS)?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let applied = usize::try_from(version).unwrap_or(0);
    for (index, sql) in MIGRATIONS.iter().enumerate().skip(applied) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", i64::try_from(index + 1).unwrap_or(i64::MAX))?;
        transaction.commit()?;
    }
    Ok(())
}
