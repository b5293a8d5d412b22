//! `audit`: the rows that fit a filter, or whether the chain holds.

use std::collections::VecDeque;
use std::io::Write;

use proto::audit::AuditRow;
use proto::audit::Verified;
use proto::ids::SessionId;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::{AuditArgs, EXIT_WRONG, OfflineError, Out, RangeArgs, line, output, settings};
use crate::cli::Cli;
use crate::store::audit::{AuditRange, each, verify};
use crate::store::{Store, StoreError};

pub(super) fn run(cli: &Cli, args: &AuditArgs) -> Result<u8, OfflineError> {
    let (paths, _) = settings(cli)?;
    let connection = Store::look(&paths.database())?;
    let mut out = output();
    let code = match (&connection, args.verify) {
        (Some(connection), true) => verified(&mut out, &verify(connection)?)?,
        (None, true) => verified(&mut out, &Verified { rows: 0, broken: None, head: None })?,
        (Some(connection), false) => {
            rows(connection, args, &mut out)?;
            0
        }
        (None, false) => 0,
    };
    out.flush()?;
    Ok(code)
}

fn verified(out: &mut Out, verified: &Verified) -> Result<u8, OfflineError> {
    line(out, verified)?;
    Ok(if verified.broken.is_some() { EXIT_WRONG } else { 0 })
}

fn rows(connection: &Connection, args: &AuditArgs, out: &mut Out) -> Result<(), OfflineError> {
    let chosen = chosen(connection, &args.range)?;
    let text = args.text.as_ref().map(|text| text.to_lowercase());
    let fits = |row: &AuditRow| {
        chosen(row.audited.session)
            && args.decision.is_none_or(|decision| decision.fits(&row.audited))
            && text.as_ref().is_none_or(|text| row.audited.command.to_lowercase().contains(text))
    };
    let range = AuditRange { since: args.range.since, until: args.range.until };
    let mut kept = VecDeque::new();
    let mut written = Ok(());
    each(connection, &range, |row| {
        if fits(&row) {
            match args.last {
                Some(last) => {
                    kept.push_back(row);
                    if kept.len() > last {
                        kept.pop_front();
                    }
                }
                None => written = line(out, &row),
            }
        }
        written.is_ok()
    })?;
    written?;
    kept.iter().try_for_each(|row| line(out, row))?;
    Ok(())
}

/// Which sessions are meant: one by its name, else those whose id ends with the text; also sessions that were removed.
pub(super) fn chosen(
    connection: &Connection,
    range: &RangeArgs,
) -> Result<Box<dyn Fn(SessionId) -> bool>, OfflineError> {
    let Some(text) = range.session.clone() else { return Ok(Box::new(|_| true)) };
    let named: Option<[u8; 16]> = connection
        .query_row("SELECT id FROM sessions WHERE name = ?1 ORDER BY archived, active_at DESC", [&text], |row| {
            row.get(0)
        })
        .optional()
        .map_err(StoreError::from)?;
    if let Some(id) = named {
        let id = SessionId(Uuid::from_bytes(id));
        return Ok(Box::new(move |session| session == id));
    }
    let digits = text.replace('-', "").to_lowercase();
    let fits = move |session: SessionId| session.0.simple().to_string().ends_with(&digits);
    let sql = "SELECT DISTINCT session FROM audit";
    let mut known = connection.prepare(sql).map_err(StoreError::from)?;
    let ids = known.query_map([], |row| row.get::<_, String>(0)).map_err(StoreError::from)?;
    let count = ids.flatten().filter_map(|id| id.parse().ok()).filter(|id| fits(*id)).count();
    match count {
        1 => Ok(Box::new(fits)),
        0 => {
            Err(OfflineError::Session(format!("the audit has no session `{text}`; `agentctl ls --all` lists sessions")))
        }
        _ => Err(OfflineError::Session(format!("several sessions of the audit end with `{text}`; give more digits"))),
    }
}
