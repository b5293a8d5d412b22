//! The scripted provider: a model played from a file, for trying the whole product with no key and no network.
//!
//! A scenario is TOML: one `[[reply]]` after another. The reply is chosen by the number of assistant messages in the
//! conversation, so that the same request gets the same reply, also from another process after a crash.
//!
//! ```toml
//! repeat = false                  # true: start again after the last reply
//!
//! [[reply]]
//! thinking = "Look first."        # optional, shown as thinking
//! text = "I look around."         # optional; {prompt} and {result} stand for the newest prompt and tool result
//! delay_ms = 300                  # before the first piece
//! piece = 12                      # characters a piece
//! piece_delay_ms = 20             # between pieces
//! stop = "end_turn"               # default: tool_use with calls, else end_turn
//! usage = { input = 10, cache_write = 0, cache_read = 0, output = 20 }
//!
//! [[reply.call]]                  # any number, in order
//! name = "bash"
//! input = { command = "ls" }      # or raw_input = '{"command": "l', as it stands
//!
//! [[reply.fault]]                 # any number, one after another, before the reply succeeds
//! kind = "overloaded"             # rate_limited, spend_limit, server, authentication, invalid_request,
//!                                 # prompt_too_long, signature_invalid, network, cut, silence, refusal
//! tries = 2                       # on this many tries
//! after_pieces = 3                # when this much of the reply was sent
//! retry_after_ms = 1500           # what the server asks to wait
//! ```
//!
//! Tries are counted for each conversation as it stands, in memory: a restart of the daemon begins again.
//! The pieces go through the same assembler as a real stream's.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc;

use super::assemble::Assembler;
use super::error::{ErrorKind, ModelError, Target};
use super::progress::Outbox;
use super::scenario::{Fault, FaultKind, Scenario};
use super::script::{Step, steps};
use super::sse::Event;
use super::stream::StreamEvent;
use super::{Conversation, Progress, Reply, Role};

/// Conversations whose tries are remembered. A scenario with faults in more of them at once does not exist; the limit
/// keeps a daemon that plays one for weeks from growing.
const REMEMBERED: usize = 4096;

/// What errors name as the host.
const HOST: &str = "the scenario";

/// A scenario that cannot be played.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// Not TOML, or not of the form above.
    #[error("the scenario cannot be read: {0}")]
    Syntax(#[from] toml::de::Error),
    /// Nothing to play.
    #[error("the scenario has no reply")]
    Empty,
}

/// Plays one scenario, for any number of sessions.
#[derive(Debug)]
pub struct Player {
    scenario: Scenario,
    tries: Mutex<HashMap<u64, u32>>,
}

impl Player {
    /// Reads a scenario.
    ///
    /// # Errors
    /// See [`ScenarioError`]; the text names the line.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Scenario = toml::from_str(text)?;
        if scenario.replies.is_empty() {
            return Err(ScenarioError::Empty);
        }
        Ok(Self { scenario, tries: Mutex::new(HashMap::new()) })
    }

    /// One try, like [`super::anthropic::Client::send`].
    ///
    /// # Errors
    /// The fault that the scenario wants, or a protocol error when it has no reply for this position.
    pub async fn send(
        &self,
        conversation: &Conversation,
        progress: mpsc::Sender<Progress>,
    ) -> Result<Reply, ModelError> {
        let target = Target { host: HOST.to_owned(), model: conversation.model.clone() };
        let position = conversation.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let length = self.scenario.replies.len();
        let at = if self.scenario.repeat { position % length } else { position };
        let Some(reply) = self.scenario.replies.get(at) else {
            let message = format!("it has {length} replies, and this is request number {}", position + 1);
            return Err(ModelError::new(ErrorKind::Protocol(message), target));
        };
        let attempt = if reply.faults.is_empty() { 0 } else { self.count_try(conversation) };
        let fault = fault_of(&reply.faults, attempt);
        let refuses = fault.is_some_and(|fault| fault.kind == FaultKind::Refusal);
        let fails_after = fault.filter(|_| !refuses).map(|fault| fault.after_pieces);
        if fails_after != Some(0) {
            tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
        }
        let script = steps(reply, position, conversation, refuses);
        let pace = Duration::from_millis(reply.piece_delay_ms);
        let finished = play(script, pace, fails_after, progress).await;
        match (finished, fault) {
            (Some(mut reply), _) => {
                // Nobody is paid for it, whatever model it plays.
                reply.usage.cost_nanousd = None;
                Ok(reply)
            }
            (None, Some(fault)) if fault.kind == FaultKind::Silence => std::future::pending().await,
            (None, fault) => Err(error_of(fault, target)),
        }
    }

    /// The number of earlier tries of this very request.
    fn count_try(&self, conversation: &Conversation) -> u32 {
        let mut hasher = DefaultHasher::new();
        for message in &conversation.messages {
            message.content.iter().for_each(|block| block.as_str().hash(&mut hasher));
        }
        // Only numbers are behind the lock: whatever panicked elsewhere left them usable.
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        if tries.len() >= REMEMBERED {
            tries.clear();
        }
        let count = tries.entry(hasher.finish()).or_insert(0);
        let earlier = *count;
        *count += 1;
        drop(tries);
        earlier
    }
}

/// Sends a script's steps; `None` when it was to fail on the way.
async fn play(
    script: Vec<Step>,
    pace: Duration,
    fails_after: Option<usize>,
    progress: mpsc::Sender<Progress>,
) -> Option<Reply> {
    let mut assembler = Assembler::default();
    let mut outbox = Outbox::new(progress);
    let mut pieces = 0;
    for step in script {
        if step.is_piece {
            if fails_after.is_some_and(|limit| pieces >= limit) {
                return None;
            }
            pieces += 1;
            if !pace.is_zero() {
                tokio::time::sleep(pace).await;
            }
        }
        let event = Event { name: String::new(), data: step.event.to_string() };
        let shown = StreamEvent::read(&event).ok().and_then(|event| assembler.apply(event).ok().flatten());
        if let Some(shown) = shown {
            outbox.push(shown);
        }
        outbox.flush();
    }
    if fails_after.is_some() { None } else { assembler.finish(None) }
}

fn fault_of(faults: &[Fault], attempt: u32) -> Option<&Fault> {
    let mut before = 0;
    faults.iter().find(|fault| {
        before += fault.tries;
        attempt < before
    })
}

fn error_of(fault: Option<&Fault>, target: Target) -> ModelError {
    let Some(fault) = fault else {
        return ModelError::new(ErrorKind::Cut, target);
    };
    let (kind, status) = match fault.kind {
        FaultKind::Overloaded => (ErrorKind::Overloaded, Some(529)),
        FaultKind::RateLimited => (ErrorKind::RateLimited, Some(429)),
        FaultKind::SpendLimit => (ErrorKind::SpendLimit, Some(429)),
        FaultKind::Server => (ErrorKind::Server, Some(500)),
        FaultKind::Authentication => (ErrorKind::Authentication, Some(401)),
        FaultKind::InvalidRequest => (ErrorKind::InvalidRequest, Some(400)),
        FaultKind::PromptTooLong => (ErrorKind::PromptTooLong, Some(400)),
        FaultKind::SignatureInvalid => (ErrorKind::SignatureInvalid, Some(400)),
        FaultKind::Network => (ErrorKind::Network("the scenario says so".to_owned()), None),
        FaultKind::Cut | FaultKind::Silence | FaultKind::Refusal => (ErrorKind::Cut, None),
    };
    ModelError {
        status,
        retry_after: fault.retry_after_ms.map(Duration::from_millis),
        message: "the scenario says so".to_owned(),
        ..ModelError::new(kind, target)
    }
}

/// A scenario that is compiled in.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static str> {
    match name {
        "demo" => Some(include_str!("demo.toml")),
        _ => None,
    }
}

/// The files that the workspace of the `demo` scenario holds, by name and content.
#[must_use]
pub fn demo_files() -> &'static [(&'static str, &'static str)] {
    &[("README.md", include_str!("demo/README.md")), ("hello.py", include_str!("demo/hello.py"))]
}

#[cfg(test)]
mod tests;
