//! The terminal client of agentd: thin, comes and goes, holds no state of its own.
//!
//! The tour in reading order:
//!
//! * [`cli`] parses ([`candidates`] completes it in shells); [`context`] is the one snapshot of environment and terminals; [`exit`] and [`error`] say how it ends.
//! * [`socket`], [`connect`], [`start`]: find the daemon, speak to it, start it when there is none.
//! * [`render`] turns data into [`render::Line`]s: pure, and the only way text reaches a terminal, because it sanitises.
//! * [`view`] folds events and live frames into what is to be shown: pure.
//! * [`screen`] and [`terminal`] are the edge: writing to and reading from real terminals.
//! * [`notify`] tells a user who looks elsewhere.
//! * [`follow`] is the loop behind `ask` and `attach`; [`commands`] has one file per verb.
//!
//! Invariant: nothing that a tool, a model, a file or the daemon wrote reaches a terminal without
//! [`render::sanitize`].

pub mod branch;
pub mod candidates;
pub mod cli;
pub mod commands;
pub mod connect;
pub mod context;
pub mod error;
pub mod exit;
pub mod follow;
pub mod input;
pub mod notify;
pub mod render;
pub mod screen;
pub mod socket;
pub mod start;
pub mod terminal;
pub mod view;
