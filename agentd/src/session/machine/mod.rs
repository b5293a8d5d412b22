//! The session as a pure state machine: `step(state, input) → entries and effects`. No clock, no I/O, no runtime: the
//! time and fresh ids come in with each step.
//!
//! ```text
//!            prompt                 reply without calls, or refused, or failed for good
//!   Idle ───────────▶ Ready ◀──────────────────────────────────────────────┐
//!    ▲                  │ request sent                                      │
//!    │                  ▼           failed, next try known                  │
//!    │             Requesting ──────────────────▶ Backoff ──▶ Requesting    │
//!    │                  │ reply with calls                                  │
//!    │                  ▼                                                   │
//!    ├── undo ended ◀── Undoing ◀── undo asked (only when Idle)                 │
//!    ├── a user's command: Calling, without requests (only when Idle)           │
//!    └── turn ended  Calling: waiting → assessing → (asking → approved) → running → done, one after the other
//! ```
//!
//! Invariants, each a property test in `tests.rs`:
//! * every tool call of a kept reply gets exactly one result, in the next message, before anything else is sent;
//! * no call runs whose start was not recorded with who or what allowed it;
//! * replaying the entries gives the state that lived through them;
//! * what happened to a background command is told once;
//! * the history is append-only but for a server compaction.

mod account;
mod apply;
mod approving;
mod call;
mod compacting;
mod decide;
mod effect;
mod entering;
mod failing;
mod input;
mod jobs;
mod pausing;
mod reply;
mod replying;
mod state;
mod steering;
#[cfg(test)]
mod tests;
mod turning;

pub use account::Account;
pub use call::{Approved, Asked, Call, CallState, Calling, Closed, Grant, Granted, Unwritten};
pub(in crate::session) use decide::name_of;
pub use effect::{Effect, Step};
pub use input::{Assessment, Cure, Input, Ruling, Runnable};
pub use jobs::Jobs;
pub use pausing::{Caps, PAUSE_TOOL};
pub use state::{Limits, Machine, Pause, Phase, Surroundings, Try, Turn};
