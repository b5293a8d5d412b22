//! The daemon: owner of the model conversation, of sessions, approvals, policy and the event log.
//!
//! In reading order: [`daemon`] wires everything; [`server`] talks to clients; [`session`] holds one actor per session
//! around a pure state machine; [`model`] talks to the Messages API; [`tools`] turns what the model asked for into
//! requests to a shim and its answers into text; [`shell`] is the daemon's side of a shim; [`policy`] decides what may
//! run; [`store`] keeps the log; [`config`] and [`keys`] say how; [`desktop`] tells a user who looks elsewhere.
//!
//! Invariant: dependencies point one way: `server → session → {model, tools, policy, store}`, `tools → shell`,
//! `shell → proto::shim`.

pub mod cli;
pub mod config;
pub mod content;
pub mod daemon;
pub mod desktop;
pub mod effort;
pub mod faults;
pub mod journal;
pub mod keys;
pub mod logging;
pub mod memory;
pub mod model;
pub mod offline;
pub mod policy;
pub mod program;
pub mod server;
pub mod session;
pub mod shell;
pub mod signals;
pub mod store;
pub mod successor;
pub mod systemd;
pub mod tools;
