//! What the loop waits for: everything that can wake it, and until when.

use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use proto::ids::CallId;

use crate::ending::Restarting;
use crate::host::Host;
use crate::link::Link;

/// An answer for which nobody waits is held back for so long: a short command's end goes with it.
const HOLD_MS: u8 = 1;

/// What woke the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Listener,
    Signals,
    Link,
    Stranger(usize),
    Ctl,
    Said,
    Output,
    Late(CallId),
    JobSaid(CallId),
    JobOutput(CallId),
    Search,
}

impl Host {
    /// What is ready, at the latest when something is due.
    pub(crate) fn wait(&mut self) -> nix::Result<Vec<Source>> {
        while self.haste.looks() {
            let ready = self.look(PollTimeout::ZERO)?;
            if !ready.is_empty() {
                return Ok(ready);
            }
        }
        if self.link.as_ref().is_some_and(Link::holds) {
            let ready = self.look(PollTimeout::from(HOLD_MS))?;
            if !ready.is_empty() {
                return Ok(ready);
            }
            if self.link.as_mut().is_some_and(|link| !link.flush()) {
                self.link = None;
            }
        }
        let timeout = match self.next_time() {
            None => PollTimeout::NONE,
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                // Rounded up: waking a moment early would only mean to wait again.
                let ms = left.as_micros().div_ceil(1000).min(60_000);
                PollTimeout::from(u16::try_from(ms).unwrap_or(u16::MAX))
            }
        };
        self.look(timeout)
    }

    /// What is ready, at the latest after `timeout`.
    fn look(&self, timeout: PollTimeout) -> nix::Result<Vec<Source>> {
        let input = PollFlags::POLLIN;
        let mut fds = vec![
            (Source::Listener, PollFd::new(self.setup.listener.as_fd(), input)),
            (Source::Signals, PollFd::new(self.signals.as_fd(), input)),
            (Source::Ctl, PollFd::new(self.bash.ctl(), input)),
        ];
        // A socket that is closed on the other side is ready for ever; the shell's end is told by its signal.
        if self.deaf_until.is_none() && !self.bash.hung_up() {
            fds.push((Source::Said, PollFd::new(self.bash.socket(), input)));
        }
        if let Some(running) = &self.running {
            fds.push((Source::Output, PollFd::new(running.pipe.fd(), input)));
        }
        let flags = |link: &Link| if link.wants_room() { input | PollFlags::POLLOUT } else { input };
        if let Some(link) = &self.link {
            fds.push((Source::Link, PollFd::new(link.fd(), flags(link))));
        }
        for (index, link) in self.strangers.iter().enumerate() {
            fds.push((Source::Stranger(index), PollFd::new(link.fd(), flags(link))));
        }
        for (call, pipe) in self.calls.with_late_output() {
            fds.push((Source::Late(call), PollFd::new(pipe.fd(), input)));
        }
        for job in self.jobs.running() {
            fds.push((Source::JobOutput(job.call()), PollFd::new(job.pipe.fd(), input)));
            if !job.bash.hung_up() {
                fds.push((Source::JobSaid(job.call()), PollFd::new(job.bash.socket(), input)));
            }
        }
        fds.extend(self.searches.end().map(|fd| (Source::Search, PollFd::new(fd, input))));
        let (sources, mut polled): (Vec<Source>, Vec<PollFd<'_>>) = fds.into_iter().unzip();
        poll(&mut polled, timeout)?;
        let ready = polled.iter().map(|fd| fd.revents().is_some_and(|got| !got.is_empty()));
        let mut ready: Vec<Source> =
            sources.into_iter().zip(ready).filter_map(|(source, ready)| ready.then_some(source)).collect();
        // Strangers from the last to the first, because serving one may take it out of the list.
        ready.sort_by_key(|source| if let Source::Stranger(index) = source { usize::MAX - index } else { 0 });
        Ok(ready)
    }

    fn next_time(&self) -> Option<Instant> {
        let running = self.running.as_ref().map(|running| running.next_time());
        let restarting = self.restarting.as_ref().map(Restarting::next_time);
        let state = if self.running.is_none() { self.state_due } else { None };
        let stranger = self.strangers.iter().map(|link| link.since + crate::serve::HELLO_WAIT).min();
        let search = self.searches.next_time();
        let jobs = self.jobs.next_time();
        [running, restarting, state, stranger, search, jobs, self.deaf_until].into_iter().flatten().min()
    }
}
