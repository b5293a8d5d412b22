//! How much a session may do without asking. A mode is the user's to choose, for one session, at any time.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session's mode. Rules that deny hold in each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// What only reads and what rules allow runs; everything else asks.
    #[default]
    Ask,
    /// Edits of files inside the workspace run as well.
    AcceptEdits,
    /// What only reads runs; nothing that changes anything does.
    Plan,
    /// Everything runs that no rule denies.
    Bypass,
}

/// All of them, in the order of this file.
pub const MODES: [Mode; 4] = [Mode::Ask, Mode::AcceptEdits, Mode::Plan, Mode::Bypass];

impl Mode {
    /// Its name, as people type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Bypass => "bypass",
        }
    }

    /// What it means, for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ask => "what only reads and what rules allow runs, everything else asks",
            Self::AcceptEdits => "edits inside the workspace run as well, everything else asks",
            Self::Plan => "nothing that changes anything runs",
            Self::Bypass => "everything runs unasked that no rule denies",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is no mode's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no mode; the modes are ask, accept-edits, plan and bypass")]
pub struct NoSuchMode(pub String);

impl FromStr for Mode {
    type Err = NoSuchMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        MODES.into_iter().find(|mode| mode.name() == text).ok_or_else(|| NoSuchMode(text.to_owned()))
    }
}
