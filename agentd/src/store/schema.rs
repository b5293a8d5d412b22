//! The database's schema: numbered migrations, never edited once released.

use rusqlite::Connection;

use super::StoreError;

/// Every migration, in order; the database's `user_version` is the number applied.
const MIGRATIONS: [&str; 3] =
    [include_str!("migrations/0001.sql"), include_str!("migrations/0002.sql"), include_str!("migrations/0003.sql")];

/// Durability and limits of a connection. `FULL`: an acknowledged commit survives a power cut.
const PRAGMAS: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA busy_timeout = 5000;
";

/// Sets a connection up and applies what is missing.
///
/// # Errors
/// [`StoreError::Newer`] when a later release wrote the file; [`StoreError::Sqlite`].
pub(super) fn prepare(connection: &mut Connection, path: &std::path::Path) -> Result<(), StoreError> {
    connection.execute_batch(PRAGMAS)?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if version > known {
        return Err(StoreError::Newer { path: path.to_owned(), version, known });
    }
    let applied = usize::try_from(version).unwrap_or(0);
    for (index, sql) in MIGRATIONS.iter().enumerate().skip(applied) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", i64::try_from(index + 1).unwrap_or(i64::MAX))?;
        transaction.commit()?;
    }
    Ok(())
}
