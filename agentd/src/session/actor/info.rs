//! The session as others see it at the moment: what a client is shown, what the machine is told of its surroundings.

use proto::ids::Timestamp;
use proto::response::SessionInfo;

use super::super::command::state_of;
use super::super::machine::{Phase, Surroundings};
use super::Actor;
use crate::store::entry::Settings;

impl Actor {
    /// What the requests are made with.
    pub(in crate::session) fn settings(&self) -> Settings {
        self.machine.settings().cloned().unwrap_or_else(|| self.spec.settings())
    }

    pub(super) fn surroundings(&self, now: Timestamp) -> Surroundings {
        Surroundings {
            day_nanousd: self.context.spent.today(now),
            window_tokens: self.context.window(&self.spec, &self.settings().model),
        }
    }

    pub(in crate::session) fn info(&self) -> SessionInfo {
        let settings = self.settings();
        SessionInfo {
            max_tokens: settings.max_tokens,
            effort: settings.effort.map(|effort| effort.as_str().to_owned()),
            usage: self.machine.account().usage,
            context_tokens: self.machine.account().context_tokens(),
            context_window: self.context.window(&self.spec, &settings.model),
            id: self.id,
            name: self.row.name.clone(),
            cwd: self.row.cwd.clone(),
            model: settings.model,
            provider: self.spec.provider().to_owned(),
            state: state_of(&self.machine),
            created_at: self.row.created_at,
            active_at: self.active_at,
            head: self.head,
            queued: self.machine.queued().collect(),
            approvals: self.machine.asking().cloned().into_iter().collect(),
            title: self.row.title.clone(),
            clients: self.fanout.clients(),
            archived: self.row.archived,
            shim_pid: self.deeds.shim_pid(),
            next_try: match self.machine.phase() {
                Phase::Backoff(_, _, pause) => Some(pause.until),
                Phase::Idle
                | Phase::Ready(_)
                | Phase::Requesting(..)
                | Phase::Paused(..)
                | Phase::Calling(..)
                | Phase::Undoing(_) => None,
            },
            mode: self.machine.mode(),
            jobs: u32::try_from(self.machine.jobs().running().count()).unwrap_or(u32::MAX),
        }
    }
}
