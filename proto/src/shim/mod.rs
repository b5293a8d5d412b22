//! daemon ↔ shim: its own protocol with its own version, because a shim outlives upgrades of the daemon.
//!
//! [`frame`] says how bytes become frames: `u32 BE total length | u32 BE header length | header | body`. The header is
//! JSON (self-describing, so that fields can be added and old peers skip them), the body is raw bytes (commands, output,
//! file contents). [`start`] is what the daemon writes to a new shim's standard input and what comes back; [`request`]
//! and [`reply`] are spoken on the socket afterwards; [`outcome`] says how a command ended, [`jobs`] what is known of those
//! in the background.
//!
//! Rules:
//!
//! * The first frame on a connection is [`request::Request::Hello`] with the token and the range of versions the daemon
//!   speaks; the shim answers with [`reply::Reply::Welcome`] or [`reply::Reply::Refused`] and closes.
//! * One controller at a time: a new one displaces the old one.
//! * Every request carries a number that its answer repeats; notifications carry none.
//! * Invariant: new fields have a default, and a request, reply or variant that a peer does not know is answered or
//!   skipped, never an error of the connection. The golden files under `proto/tests/golden/shim` hold the bytes.

pub mod files;
pub mod frame;
pub mod jobs;
pub mod outcome;
pub mod reply;
pub mod request;
pub mod start;

/// The version this build speaks.
pub const VERSION: u32 = 1;

/// The oldest version this build still speaks.
pub const VERSION_MIN: u32 = 1;
