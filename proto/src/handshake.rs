//! The first line of a connection, in both directions. Frozen for ever: it must be readable between any two releases.
//!
//! ```text
//! client:  agentd/1 bincode driver\n         at most 128 bytes
//! daemon:  agentd/1 ok 0.1.0\n               or:  agentd/1 refused <code> <one sentence>\n    at most 512 bytes
//! ```

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the client protocol. Changes with every change of the bincode bytes.
pub const PROTOCOL: u32 = 1;

/// Longest preface accepted, line feed included: room for any version number, codec and role, and nothing else.
pub const PREFACE_BYTES_MAX: usize = 128;

/// Longest answer line accepted, line feed included: one sentence in one terminal line or three.
pub const ANSWER_BYTES_MAX: usize = 512;

/// How frames are written after the preface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// u32 big-endian length and a bincode payload; exact version match.
    Bincode,
    /// One JSON object a line; additive.
    Json,
}

/// What a connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything.
    Driver,
    /// Watch and answer approvals.
    Approver,
    /// Watch only.
    Observer,
}

/// The client's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preface {
    /// The client's [`PROTOCOL`].
    pub version: u32,
    /// The codec it asks for.
    pub codec: Codec,
    /// The role it asks for.
    pub role: Role,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The line is not a preface.
    Malformed,
    /// Client and daemon speak different versions.
    Version,
    /// The peer runs as another user.
    Peer,
    /// The peer is a process started by one of the agent's own shells.
    Inside,
    /// The daemon has no room for another connection.
    Busy,
}

/// The daemon's first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Frames may follow.
    Welcome {
        /// The daemon's [`PROTOCOL`].
        version: u32,
        /// The daemon's release, for people.
        release: String,
    },
    /// The connection is closed after this line.
    Refused {
        /// The daemon's [`PROTOCOL`].
        version: u32,
        /// The kind of refusal.
        refusal: Refusal,
        /// What failed and what to do next.
        sentence: String,
    },
}

impl Codec {
    fn word(self) -> &'static str {
        match self {
            Self::Bincode => "bincode",
            Self::Json => "json",
        }
    }
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Approver => "approver",
            Self::Observer => "observer",
        }
    }
}

impl Refusal {
    fn word(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Version => "version",
            Self::Peer => "peer",
            Self::Inside => "inside",
            Self::Busy => "busy",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Malformed, Self::Version, Self::Peer, Self::Inside, Self::Busy].into_iter().find(|r| r.word() == word)
    }
}

impl fmt::Display for Preface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "agentd/{} {} {}", self.version, self.codec.word(), self.role.word())
    }
}

impl Preface {
    /// Reads a preface line, with or without its line feed. `None` when it is not one.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut words = line.strip_prefix("agentd/")?.split(' ');
        let version = words.next()?.parse().ok()?;
        let codec = words.next()?;
        let codec = [Codec::Bincode, Codec::Json].into_iter().find(|c| c.word() == codec)?;
        let role = words.next()?;
        let role = [Role::Driver, Role::Approver, Role::Observer].into_iter().find(|r| r.word() == role)?;
        words.next().is_none().then_some(Self { version, codec, role })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Welcome { version, release } => writeln!(f, "agentd/{version} ok {release}"),
            Self::Refused { version, refusal, sentence } => {
                writeln!(f, "agentd/{version} refused {} {}", refusal.word(), sentence.replace('\n', " "))
            }
        }
    }
}

impl Answer {
    /// Reads the daemon's answer line. `None` when it is not one.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let (version, rest) = line.strip_prefix("agentd/")?.split_once(' ')?;
        let version = version.parse().ok()?;
        let (word, rest) = rest.split_once(' ')?;
        match word {
            "ok" => Some(Self::Welcome { version, release: rest.to_owned() }),
            "refused" => {
                let (code, sentence) = rest.split_once(' ').unwrap_or((rest, ""));
                Some(Self::Refused { version, refusal: Refusal::from_word(code)?, sentence: sentence.to_owned() })
            }
            _ => None,
        }
    }
}

/// The sentence for two releases that do not speak the same bincode: it names the side that is behind.
#[must_use]
pub fn version_sentence(client: u32, daemon: u32) -> String {
    if client < daemon {
        format!(
            "agentctl speaks protocol {client}, the running agentd speaks {daemon}: upgrade agentctl to the daemon's release"
        )
    } else {
        format!(
            "agentctl speaks protocol {client}, the running agentd speaks {daemon}: restart the daemon with `agentctl shutdown` or `systemctl --user restart agentd` (running commands go on)"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preface_reads_back_as_written() {
        for codec in [Codec::Bincode, Codec::Json] {
            for role in [Role::Driver, Role::Approver, Role::Observer] {
                let preface = Preface { version: 7, codec, role };
                assert_eq!(Preface::parse(&preface.to_string()), Some(preface));
            }
        }
    }

    #[test]
    fn anything_else_is_no_preface() {
        for line in
            ["", "agentd/", "agentd/x json driver", "agentd/1 json", "agentd/1 json driver more", "GET / HTTP/1.1"]
        {
            assert_eq!(Preface::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn an_answer_reads_back_as_written() {
        let refused = Answer::Refused { version: 2, refusal: Refusal::Version, sentence: version_sentence(1, 2) };
        assert_eq!(Answer::parse(&refused.to_string()), Some(refused.clone()));
        assert!(refused.to_string().len() <= ANSWER_BYTES_MAX);
        let welcome = Answer::Welcome { version: 2, release: "0.1.0".into() };
        assert_eq!(Answer::parse(&welcome.to_string()), Some(welcome));
    }
}
