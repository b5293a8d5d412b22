//! What a session's requests used, how full the model's window is, and whether the server's cache was read.

use proto::event::Usage;
use proto::ids::Timestamp;

use super::state::Machine;
use crate::model::Reply;
use crate::store::entry::{StoredReply, StoredSummary};

/// How long an entry of the cache lives after it was used.
const CACHE_LIFE_MS: u64 = 5 * 60 * 1000;

/// Bytes of JSON to a token, for what no server has counted yet. Rather too few: better a summary too early.
const BYTES_PER_TOKEN: u64 = 3;

/// A session's account.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// All requests so far.
    pub usage: Usage,
    /// The last reply, as long as the next one continues it.
    last: Option<Last>,
}

#[derive(Clone, Debug)]
struct Last {
    message: String,
    model: String,
    at: Timestamp,
    /// Tokens that the cache holds of its prompt.
    cached: u64,
    /// Tokens of the conversation with it.
    context: u64,
    /// Messages of the history with it.
    messages: usize,
}

impl Account {
    /// The id of the reply that the next request continues.
    #[must_use]
    pub fn previous(&self) -> Option<&str> {
        self.last.as_ref().map(|last| last.message.as_str()).filter(|id| !id.is_empty())
    }

    /// Tokens of the conversation at the last reply; 0 = not known.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.context)
    }

    pub(super) fn take_reply(&mut self, reply: &StoredReply, messages: usize) {
        self.usage = self.usage.plus(reply.usage);
        if reply.kept {
            self.last = Some(Last {
                message: reply.message.clone(),
                model: reply.model.clone(),
                at: reply.at,
                cached: reply.usage.cache_write_tokens + reply.usage.cache_read_tokens,
                context: reply.context_tokens,
                messages,
            });
        }
    }

    pub(super) fn take_summary(&mut self, summary: &StoredSummary) {
        self.usage = self.usage.plus(summary.usage);
    }

    /// What comes next does not continue the last reply: neither its cache nor its size say anything of it.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Why the cache was missed, when it was and should not have been.
    pub(super) fn cache_miss(&self, reply: &Reply, now: Timestamp) -> Option<String> {
        let last = self.last.as_ref().filter(|last| last.cached > 0)?;
        if reply.usage.cache_read_tokens > 0 || reply.usage.prompt_tokens() == 0 {
            return None;
        }
        let minutes = now.0.saturating_sub(last.at.0) / 60_000;
        let why = if last.model != reply.model {
            format!("the model changed from {} to {}", last.model, reply.model)
        } else if now.0.saturating_sub(last.at.0) > CACHE_LIFE_MS {
            format!("its entry had expired {minutes} minutes after the last reply")
        } else {
            match &reply.cache_miss {
                Some(reason) => format!("the server says {reason}"),
                None => "the server did not say why".to_owned(),
            }
        };
        Some(why)
    }
}

impl Machine {
    /// The session's account.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Tokens that the next request has, as far as can be told.
    pub(super) fn next_tokens(&self) -> u64 {
        let Some(last) = &self.account.last else { return 0 };
        let added = self.history.iter().skip(last.messages).flat_map(|message| &message.content);
        let bytes: usize = added.map(|block| block.as_str().len()).sum();
        last.context + u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_TOKEN
    }
}
