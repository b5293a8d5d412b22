//! Search over transcripts: what of a row is text, the index, and finding in it.

use proto::ids::{Seq, SessionId, Timestamp};
use rusqlite::{Connection, Transaction, params};
use uuid::Uuid;

use super::entry::{Entry, StoredInput, StoredKind};
use super::read::loaded;
use super::{LogRow, StoreError};
use crate::content::Part;

/// Bytes of one row that are searched: the whole of what people and the model write, the beginning of long output.
const ROW_BYTES_MAX: usize = 16 * 1024;

/// Rows put into the index in one transaction: others wait that long for the writer, some ten milliseconds.
pub(super) const INDEX_PAGE: u32 = 500;

/// Characters shown before and after what was found.
const AROUND: usize = 60;

/// Texts of one session's rows for the index.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// The session.
    pub(super) session: SessionId,
    /// Rows up to this one are in the index already; when they are not, or more are, this page is left out.
    pub(super) after: Seq,
    /// Rows up to this one are in it afterwards.
    pub(super) upto: Seq,
    /// The texts, by row.
    pub(super) texts: Vec<(Seq, String)>,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: Option<String>,
    /// Its title.
    pub title: String,
    /// The row.
    pub seq: Seq,
    /// When it was committed.
    pub at: Timestamp,
    /// The row's kind.
    pub kind: String,
    /// The words around the first match.
    pub excerpt: String,
}

/// What of a row is searched.
fn text_of(entry: &Entry) -> Option<String> {
    let mut text = match entry {
        Entry::PromptAccepted(prompt) => prompt.text.clone(),
        Entry::ReplyReceived(reply) => {
            let texts = reply.blocks.iter().filter_map(|block| match &block.kind {
                StoredKind::Text { text } => Some(text.clone()),
                StoredKind::Call(call) => Some(match &call.input {
                    StoredInput::Valid(input) => strings(input.as_str()),
                    StoredInput::Broken(text) => text.clone(),
                }),
                StoredKind::Thinking { .. } | StoredKind::Other { .. } => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Entry::CallFinished(result) => {
            let texts = result.content.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Image { .. } => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Entry::Compacted(summary) => summary.summary.clone()?,
        Entry::Steered { text, .. } => text.clone(),
        Entry::CommandEntered(entered) => entered.command.clone(),
        Entry::JobEnded(end) => end.text.clone(),
        Entry::Created(_)
        | Entry::PromptWithdrawn { .. }
        | Entry::TurnStarted { .. }
        | Entry::RequestSent { .. }
        | Entry::RequestFailed { .. }
        | Entry::Nudged { .. }
        | Entry::ApprovalAsked { .. }
        | Entry::ApprovalClosed { .. }
        | Entry::CallStarted { .. }
        | Entry::InterruptRequested { .. }
        | Entry::TurnEnded { .. }
        | Entry::Notice { .. }
        | Entry::Renamed { .. }
        | Entry::Archived { .. }
        | Entry::ThinkingStripped { .. }
        | Entry::Forked(_)
        | Entry::UndoStarted(_)
        | Entry::UndoEnded(_)
        | Entry::PauseAsked { .. }
        | Entry::PauseClosed { .. }
        | Entry::SettingsChanged { .. }
        | Entry::CompactionStarted { .. }
        | Entry::NotesGiven { .. }
        | Entry::Rewound { .. }
        | Entry::JobStarted(_)
        | Entry::JobSilent(_)
        | Entry::JobStopAsked { .. }
        | Entry::BackgroundAsked { .. }
        | Entry::TurnWoken { .. }
        | Entry::JobsTold { .. }
        | Entry::WakesSpent { .. }
        | Entry::ModeChanged { .. }
        | Entry::RuleKept { .. } => return None,
    };
    text.truncate(text.floor_char_boundary(ROW_BYTES_MAX));
    (!text.trim().is_empty()).then_some(text)
}

/// The strings of a call's input, as they read.
fn strings(json: &str) -> String {
    fn collect(value: &serde_json::Value, out: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => out.push(text.clone()),
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
            serde_json::Value::Object(fields) => fields.values().for_each(|item| collect(item, out)),
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }
    let mut out = Vec::new();
    if let Ok(value) = serde_json::from_str(json) {
        collect(&value, &mut out);
    }
    out.join("\n")
}

/// Sessions with rows that are not in the index, oldest activity first, so that the newest are found first.
pub(super) fn behind(connection: &Connection) -> Result<Vec<(SessionId, Seq)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, indexed FROM sessions
         WHERE indexed < (SELECT max(seq) FROM events WHERE session = sessions.id) ORDER BY active_at",
    )?;
    let rows = statement.query_map([], |row| {
        let id: [u8; 16] = row.get(0)?;
        Ok((SessionId(Uuid::from_bytes(id)), Seq(loaded(row.get(1)?))))
    })?;
    rows.collect::<Result<_, _>>().map_err(StoreError::from)
}

/// What of these rows goes into the index; `None` when there are none.
pub(super) fn page(session: SessionId, after: Seq, rows: &[LogRow]) -> Option<Page> {
    let upto = rows.last()?.seq;
    let texts = rows.iter().filter_map(|row| Some((row.seq, text_of(&row.entry)?))).collect();
    Some(Page { session, after, upto, texts })
}

/// Puts a page into the index, unless another search did so first.
pub(super) fn index(transaction: &Transaction<'_>, page: &Page) -> Result<(), StoreError> {
    let id = page.session.0.as_bytes();
    let number = |seq: Seq| i64::try_from(seq.0).unwrap_or(i64::MAX);
    let moved = transaction
        .prepare_cached("UPDATE sessions SET indexed = ?3 WHERE id = ?1 AND indexed = ?2")?
        .execute(params![id, number(page.after), number(page.upto)])?;
    if moved == 0 {
        return Ok(());
    }
    for (seq, text) in &page.texts {
        transaction
            .prepare_cached("INSERT INTO texts (session, seq) VALUES (?1, ?2)")?
            .execute(params![id, number(*seq)])?;
        let row = transaction.last_insert_rowid();
        transaction.prepare_cached("INSERT INTO search (rowid, text) VALUES (?1, ?2)")?.execute(params![row, text])?;
    }
    Ok(())
}

/// Takes a session out of the index.
pub(super) fn forget(transaction: &Transaction<'_>, session: SessionId) -> Result<(), StoreError> {
    let id = session.0.as_bytes();
    transaction
        .prepare_cached("DELETE FROM search WHERE rowid IN (SELECT id FROM texts WHERE session = ?1)")?
        .execute([id])?;
    transaction.prepare_cached("DELETE FROM texts WHERE session = ?1")?.execute([id])?;
    Ok(())
}

/// Rows with all of these words, newest first; a word also stands for longer ones that begin with it.
pub(super) fn find(connection: &Connection, words: &[String], limit: u32) -> Result<Vec<Found>, StoreError> {
    // Quoted, so that nothing a person types is an operator.
    let query: Vec<String> = words.iter().map(|word| format!("\"{}\"*", word.replace('"', "\"\""))).collect();
    let mut statement = connection.prepare_cached(
        "SELECT sessions.id, name, title, events.seq, events.at, events.kind, body
         FROM search JOIN texts ON texts.id = search.rowid
         JOIN events ON events.session = texts.session AND events.seq = texts.seq
         JOIN sessions ON sessions.id = texts.session
         WHERE search MATCH ?1 ORDER BY search.rowid DESC LIMIT ?2",
    )?;
    let mut rows = statement.query(params![query.join(" "), limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id: [u8; 16] = row.get(0)?;
        let body: String = row.get(6)?;
        let entry: Option<Entry> = serde_json::from_str(&body).ok();
        found.push(Found {
            session: SessionId(Uuid::from_bytes(id)),
            name: row.get(1)?,
            title: row.get(2)?,
            seq: Seq(loaded(row.get(3)?)),
            at: Timestamp(loaded(row.get(4)?)),
            kind: row.get(5)?,
            excerpt: entry.as_ref().and_then(text_of).map(|text| excerpt(&text, words)).unwrap_or_default(),
        });
    }
    Ok(found)
}

/// One line around the first of the words.
fn excerpt(text: &str, words: &[String]) -> String {
    let characters: Vec<char> = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let lower = |c: &char| c.to_lowercase().next().unwrap_or(*c);
    let folded: Vec<char> = characters.iter().map(lower).collect();
    let first = words.iter().filter_map(|word| {
        let word: Vec<char> = word.chars().map(|c| lower(&c)).collect();
        (!word.is_empty()).then(|| folded.windows(word.len()).position(|window| window == word))?
    });
    let at = first.min().unwrap_or(0);
    let from = at.saturating_sub(AROUND);
    let to = (at + AROUND).min(characters.len());
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    let middle: String = characters[from..to].iter().collect();
    format!("{}{}{}", cut(from > 0), middle.trim(), cut(to < characters.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line_around_the_first_match_whatever_its_case() {
        let text = format!("{}\nthe Needle\nis here{}", "x ".repeat(100), " y".repeat(100));
        let shown = excerpt(&text, &["needle".into()]);
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains("the Needle is here"), "{shown}");
        assert_eq!(excerpt("short", &["nothing".into()]), "short");
    }
}
