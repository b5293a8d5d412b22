//! The wire of agentd: types and codec, no runtime and no I/O.
//!
//! Two protocols with two promises live here and share nothing but ids:
//!
//! * **client ↔ daemon** ([`request`], [`response`], [`event`], [`live`], [`approval`], framed by [`frame`] after the
//!   [`handshake`]). bincode clients must match [`handshake::PROTOCOL`] exactly and are told which side to upgrade;
//!   JSON clients are served additively.
//! * **daemon ↔ shim** ([`shim`]). Shims outlive an upgrade of the daemon, so a daemon speaks every version from
//!   [`shim::VERSION_MIN`] to [`shim::VERSION`].
//!
//! Rules that keep the positional codec honest (bincode writes no field names):
//!
//! * Invariant: no `skip_serializing_if`, `flatten`, `untagged` or internally tagged enum on a client type; free JSON
//!   travels as [`json::JsonText`].
//! * Invariant: new enum variants and new struct fields go last, and change [`handshake::PROTOCOL`]. The golden files
//!   under `proto/tests/golden` fail the build when bytes change without it.
//! * Invariant: decoding has a byte limit and refuses bytes left over.
//!
//! `proto/PROTOCOL.md` describes the same for people who write a client; a test keeps both in step.

pub mod approval;
pub mod audit;
pub mod command;
pub mod diff;
pub mod event;
pub mod frame;
pub mod handshake;
pub mod ids;
pub mod job;
pub mod json;
pub mod live;
pub mod mode;
pub mod policy;
pub mod request;
pub mod response;
pub mod secret;
pub mod shim;
pub mod usage;
