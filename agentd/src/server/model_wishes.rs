//! Requests about the model's work: what it used, what it is made with, its history, notes for it.

use proto::ids::Timestamp;
use proto::request::{Compact, Configure, PROMPT_BYTES_MAX, Rerun, Steer, UsageQuery};
use proto::response::{ErrorCode, Response, WireError};
use proto::usage::{DayUsage, TurnUsage, UsageReport};

use super::dispatch::{done, error};
use crate::model::Effort;
use crate::session::registry::Registry;
use crate::session::{Wish, storage_error};
use crate::store::LogRow;
use crate::store::entry::{Entry, Prompt};

/// Turns in one report: more than anybody reads, and well under a frame.
const TURNS_MAX: u32 = 1_000;

/// Longest model id; the API's have about thirty characters.
const MODEL_BYTES_MAX: usize = 256;

pub(super) async fn usage(registry: &Registry, query: UsageQuery) -> Result<Response, WireError> {
    let store = &registry.context().store;
    let session = match &query.session {
        Some(selector) => Some(registry.find(selector).await?.id()),
        None => None,
    };
    let since = Timestamp::now().day().saturating_sub(u64::from(query.days.max(1)) - 1);
    let rows = store.usage(since, session).await.map_err(|error| storage_error(&error))?;
    let days = rows.into_iter().map(|row| DayUsage {
        day: date(row.day),
        session: row.session,
        model: row.model,
        requests: row.requests,
        usage: row.usage,
    });
    let turns = match session {
        Some(session) => store.turns(session, TURNS_MAX).await.map_err(|error| storage_error(&error))?,
        None => Vec::new(),
    };
    let turns = turns.iter().filter(|row| row.at.day() >= since).filter_map(turn).collect();
    Ok(Response::Usage(UsageReport { days: days.collect(), turns }))
}

fn turn(row: &LogRow) -> Option<TurnUsage> {
    if let Entry::TurnEnded { turn, requests, usage, .. } = &row.entry {
        return Some(TurnUsage { turn: *turn, at: row.at, requests: *requests, usage: *usage });
    }
    None
}

/// A day since 1970 as `2026-12-01`.
fn date(day: u64) -> String {
    // Howard Hinnant's civil_from_days, for days after 1970.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

pub(super) async fn configure(registry: &Registry, wish: Configure, by: String) -> Result<Response, WireError> {
    let bad = |message: &str, hint: &str| error(ErrorCode::BadRequest, message, hint);
    let effort = match wish.effort.as_deref() {
        None => None,
        Some("default") => Some(None),
        Some(word) => Some(Some(Effort::named(word).ok_or_else(|| {
            bad(&format!("there is no effort `{word}`"), "give low, medium, high, xhigh, max or default")
        })?)),
    };
    if wish.max_tokens == Some(0) {
        return Err(bad("max_tokens is 0", "give the longest reply in tokens, for example 32000"));
    }
    if wish.model.as_ref().is_some_and(|model| model.trim().is_empty() || model.len() > MODEL_BYTES_MAX) {
        return Err(bad("the model's name is empty or too long", "give the model's id"));
    }
    if wish.model.is_none() && effort.is_none() && wish.max_tokens.is_none() {
        return Err(bad("nothing is to be changed", "give model, effort or max_tokens"));
    }
    let session = registry.find(&wish.session).await?;
    session.configure(Wish { model: wish.model, effort, max_tokens: wish.max_tokens }, by).await?;
    Ok(Response::Session(session.info().await?))
}

pub(super) async fn compact(registry: &Registry, compact: Compact, by: String) -> Result<Response, WireError> {
    registry.offer(&compact.endpoint);
    registry.find(&compact.session).await?.compact(by).await.map(|()| done())
}

pub(super) async fn steer(registry: &Registry, steer: Steer, by: String) -> Result<Response, WireError> {
    check_text(&steer.text)?;
    registry.find(&steer.session).await?.steer(steer.text, by).await.map(|()| done())
}

pub(super) async fn rerun(registry: &Registry, rerun: Rerun, by: String) -> Result<Response, WireError> {
    registry.offer(&rerun.endpoint);
    if let Some(text) = &rerun.text {
        check_text(text)?;
    }
    let prompt = Prompt { prompt: rerun.prompt, text: rerun.text.unwrap_or_default(), approve: rerun.approve, by };
    registry.find(&rerun.session).await?.rerun(prompt).await.map(Response::Accepted)
}

fn check_text(text: &str) -> Result<(), WireError> {
    if text.trim().is_empty() {
        return Err(error(ErrorCode::BadRequest, "the text is empty", "say what to do"));
    }
    if text.len() > PROMPT_BYTES_MAX {
        let message = format!("the text is {} bytes long, the limit is {PROMPT_BYTES_MAX}", text.len());
        return Err(error(ErrorCode::Limit, &message, "put the text in a file and name the file"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (day, expected) in [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_788, "2026-12-01")] {
            assert_eq!(date(day), expected);
        }
    }
}
