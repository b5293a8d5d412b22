//! The signals a follower lives with instead of dying from.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CtlError;

/// What can come from outside while a session is followed.
#[derive(Debug)]
pub(super) struct Signals {
    pub(super) interrupt: Signal,
    pub(super) terminate: Signal,
    pub(super) hangup: Signal,
    pub(super) stop: Signal,
    pub(super) go_on: Signal,
    pub(super) resize: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self, CtlError> {
        let listen = |kind| signal(kind).map_err(CtlError::Setup);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            stop: listen(SignalKind::from_raw(nix::sys::signal::Signal::SIGTSTP as i32))?,
            go_on: listen(SignalKind::from_raw(nix::sys::signal::Signal::SIGCONT as i32))?,
            resize: listen(SignalKind::window_change())?,
        })
    }
}
