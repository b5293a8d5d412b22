//! Identifiers. Each is a type of its own, so that a call can never be taken for a turn.
//!
//! All but [`Seq`] and [`Timestamp`] are version 7 UUIDs: they sort by the time they were made.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A fresh id, later than every id made before it in this process.
            #[must_use]
            #[allow(clippy::new_without_default, reason = "an id is made on purpose, never by default")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// The last eight hex digits: the random part, so that ids made in one second still differ.
            #[must_use]
            pub fn short(&self) -> String {
                let text = self.0.simple().to_string();
                text[text.len() - 8..].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

id! {
    /// A conversation with its shell, its log and its workspace.
    SessionId
}
id! {
    /// One prompt as the client sent it. The client makes it, so that sending again after a lost answer is harmless.
    PromptId
}
id! {
    /// From a prompt to the model's final answer.
    TurnId
}
id! {
    /// One request to the model; a retry of the same request keeps the id and counts `attempt` up.
    RequestId
}
id! {
    /// One tool call. The shim runs a call id at most once, ever.
    CallId
}
id! {
    /// One question to the user.
    ApprovalId
}

id! {
    /// One taking back of edits. The client makes it, so that asking again after a lost answer takes nothing more back.
    UndoId
}

id! {
    /// One background command. Started by a tool call it has that call's UUID; moved there by the user, one of its own.
    JobId
}

/// Position of an event in its session's log: 1, 2, 3 … without gaps. 0 means "before the first".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z by the daemon's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The daemon's clock now.
    #[must_use]
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Its day since 1970, in UTC.
    #[must_use]
    pub fn day(self) -> u64 {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        self.0 / DAY_MS
    }

    /// This moment plus a number of milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}
