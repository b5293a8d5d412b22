//! Sessions: one actor each around a pure state machine.

pub mod machine;
