//! Named moments at which a test kills the daemon (`tests/tests/faults.rs`). Without the feature `faults` each is nothing.
//!
//! `AGENTD_FAULT=NAME:COUNT` kills the process, as kill -9 does, when the moment comes for the COUNTth time.

/// A moment after which a promise could be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Rows are in the transaction, not yet on disk.
    Inserted,
    /// Rows are on disk, nobody knows.
    Committed,
    /// A session is on disk and has no actor.
    SessionMade,
    /// A call is being looked at, the reply that asks for it is not on disk.
    Held,
    /// Deeds that need not wait for the disk have begun, it is not known whether their row is on it.
    BegunEarly,
    /// Clients may have seen the rows, the deeds that follow from them have not begun.
    Published,
    /// The deeds have begun.
    Begun,
    /// A reply of the model is whole, the session has not heard of it.
    ReplyWhole,
    /// A shell was started, the session has not heard of it.
    ShellStarted,
    /// The shim is about to be told to run a call.
    CallToRun,
    /// A call is over, the session has not heard of it.
    CallOver,
    /// A call's result is on disk, the shim has not been told to forget it.
    ToForget,
    /// A request was served, its client has not been answered.
    Served,
}

impl Point {
    /// Its name in the environment.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inserted => "inserted",
            Self::Committed => "committed",
            Self::SessionMade => "session_made",
            Self::Held => "held",
            Self::BegunEarly => "begun_early",
            Self::Published => "published",
            Self::Begun => "begun",
            Self::ReplyWhole => "reply_whole",
            Self::ShellStarted => "shell_started",
            Self::CallToRun => "call_to_run",
            Self::CallOver => "call_over",
            Self::ToForget => "to_forget",
            Self::Served => "served",
        }
    }
}

/// The moment has come.
#[inline]
pub fn reach(point: Point) {
    #[cfg(feature = "faults")]
    armed::reach(point);
    #[cfg(not(feature = "faults"))]
    let _ = point;
}

#[cfg(feature = "faults")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    struct Armed {
        name: String,
        left: AtomicU64,
    }

    fn armed() -> Option<&'static Armed> {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        let read = || {
            let wish = std::env::var("AGENTD_FAULT").ok()?;
            let (name, count) = wish.split_once(':')?;
            Some(Armed { name: name.to_owned(), left: AtomicU64::new(count.parse().ok()?) })
        };
        ARMED.get_or_init(read).as_ref()
    }

    pub(super) fn reach(point: super::Point) {
        let Some(armed) = armed().filter(|armed| armed.name == point.name()) else { return };
        if armed.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _ = kill(Pid::this(), Signal::SIGKILL);
            // The signal may reach another thread first: nothing more is done by this one.
            loop {
                std::thread::park();
            }
        }
    }
}
