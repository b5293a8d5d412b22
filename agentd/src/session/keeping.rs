//! What is done with many sessions, or with one as a whole: search, fork, prune.

use std::sync::Arc;

use proto::ids::{Seq, SessionId, Timestamp};
use proto::request::{ForkSession, Prune};
use proto::response::{ErrorCode, Hit, Hits, Pruned, SessionInfo, SessionState, Speaker, WireError};

use super::finding::resting;
use super::machine::{Machine, Phase};
use super::registry::{Registry, internal};
use super::select::{check_name, check_workspace};
use super::spec::Spec;
use super::{SessionHandle, storage_error};
use crate::store::entry::{Entry, Forked};
use crate::store::{Found, NewRow, NewSession, SessionRow};

/// Most rows that one search answers with: more than a person reads.
const HITS_MAX: u32 = 1_000;

/// Most words of a search.
const WORDS_MAX: usize = 32;

/// Rows read at once when a log is folded.
const PAGE: u32 = 1_000;

impl Registry {
    /// Rows of all sessions with all words of a text, newest first.
    ///
    /// # Errors
    /// A text without words; storage failures.
    pub async fn search(&self, text: &str, limit: u32) -> Result<Hits, WireError> {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .take(WORDS_MAX)
            .map(str::to_owned)
            .collect();
        if words.is_empty() {
            return Err(WireError {
                code: ErrorCode::BadRequest,
                message: format!("there is no word in `{text}`"),
                hint: "search for words or beginnings of words".into(),
            });
        }
        let found = self.context.store.search(words, limit.clamp(1, HITS_MAX)).await;
        let found = found.map_err(|error| storage_error(&error))?;
        Ok(Hits { hits: found.into_iter().map(hit).collect() })
    }

    /// Makes a session that begins with another's rows.
    ///
    /// # Errors
    /// As for a new session; a row that the other does not have.
    pub async fn fork(&self, request: ForkSession, by: String) -> Result<SessionHandle, WireError> {
        let source = self.select(&request.session).await?;
        check_workspace(&source.cwd)?;
        if let Some(name) = &request.name {
            check_name(name)?;
        }
        let wanted = request.at.unwrap_or(source.head);
        if wanted > source.head || wanted == Seq(0) {
            let message = format!("the session has rows 1 to {}, not {wanted}", source.head);
            let hint = "`agentctl log` shows them with their numbers".into();
            return Err(WireError { code: ErrorCode::BadRequest, message, hint });
        }
        self.context.keys.offer(&request.endpoint);
        let at = self.last_rest(&source, wanted).await?;
        let (id, now) = (SessionId::new(), Timestamp::now());
        let note = format!(
            "This conversation was taken over from another session at this point. The shell is a new one in {}: \
             directories, variables and background jobs from before are gone, and files may have changed since.",
            source.cwd
        );
        let entry = Arc::new(Entry::Forked(Forked { from: source.id, at, by, note }));
        let first = NewRow { seq: at.next(), at: now, entry, audited: None };
        let (cwd, spec, name) = (source.cwd.clone(), source.spec.clone(), request.name);
        let new = NewSession { id, name: name.clone(), cwd, created_at: now, spec, first };
        self.context.store.fork(source.id, at, new).await.map_err(|error| storage_error(&error))?;
        let row = SessionRow { id, name, archived: false, created_at: now, active_at: now, head: at.next(), ..source };
        self.actor(row, Some(request.env)).await
    }

    /// The last row up to `wanted` after which nothing was under way and no prompt waited.
    async fn last_rest(&self, source: &SessionRow, wanted: Seq) -> Result<Seq, WireError> {
        let spec: Spec = serde_json::from_str(&source.spec)
            .map_err(|error| internal(&format!("the stored facts of the session do not read: {error}")))?;
        let mut machine = Machine::new(source.id, self.context.limits(&spec));
        let (mut read, mut rest) = (Seq(0), Seq(1));
        while read < wanted {
            let rows = self.context.store.rows(source.id, read, PAGE).await.map_err(|error| storage_error(&error))?;
            if rows.is_empty() {
                break;
            }
            for row in rows.into_iter().filter(|row| row.seq <= wanted) {
                machine.apply(&row.entry);
                if matches!(machine.phase(), Phase::Idle) && machine.queued().next().is_none() {
                    rest = row.seq;
                }
                read = row.seq;
            }
        }
        Ok(rest)
    }

    /// Removes sessions that were not used for a while, or tells which.
    ///
    /// # Errors
    /// Storage failures; what was removed until then is gone.
    pub async fn prune(&self, request: &Prune) -> Result<Pruned, WireError> {
        let store = &self.context.store;
        let before = Timestamp(Timestamp::now().0.saturating_sub(request.older_than_ms));
        let bytes_before = store.size().await.map_err(|error| storage_error(&error))?;
        let rows = store.sessions().await.map_err(|error| storage_error(&error))?;
        let mut unused = Vec::new();
        for row in rows.into_iter().filter(|row| row.active_at < before && (row.archived || !request.archived)) {
            let info = match self.running(row.id).await {
                Some(handle) => handle.info().await?,
                None => resting(&row),
            };
            if !in_use(&info) {
                unused.push((row, info));
            }
        }
        let mut bytes_after = bytes_before;
        if !request.dry_run && !unused.is_empty() {
            for (row, _) in &unused {
                self.remove(row).await?;
            }
            bytes_after = store.shrink().await.map_err(|error| storage_error(&error))?;
        }
        let sessions = unused.into_iter().map(|(_, info)| info).collect();
        Ok(Pruned { sessions, removed: !request.dry_run, bytes_before, bytes_after })
    }
}

fn in_use(info: &SessionInfo) -> bool {
    info.state != SessionState::Idle || !info.clients.is_empty() || !info.queued.is_empty() || info.jobs > 0
}

fn hit(found: Found) -> Hit {
    Hit {
        session: found.session,
        name: found.name,
        title: found.title,
        seq: found.seq,
        at: found.at,
        speaker: match found.kind.as_str() {
            "prompt_accepted" | "steered" => Speaker::User,
            "reply_received" | "compacted" => Speaker::Model,
            _ => Speaker::Tool,
        },
        excerpt: found.excerpt,
    }
}
