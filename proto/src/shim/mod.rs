//! daemon ↔ shim: its own protocol with its own version, because a shim outlives upgrades of the daemon.
//!
//! A frame is `u32 BE total length | u32 BE header length | header | body`. The header is JSON (self-describing, so that
//! fields can be added and old peers skip them), the body is raw bytes (commands, output, file contents).

pub mod files;

/// The version this build speaks.
pub const VERSION: u32 = 1;

/// The oldest version this build still speaks.
pub const VERSION_MIN: u32 = 1;
