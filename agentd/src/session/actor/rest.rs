//! When the shell of an idle session is put to rest.

use proto::ids::Timestamp;
use uuid::Uuid;

use super::super::machine::Phase;
use super::Actor;

impl Actor {
    /// When it is to be looked whether the shell may rest; none while it is in use or may not rest at all.
    pub(super) fn rest_at(&self) -> Option<Timestamp> {
        let wait = self.context.config().shell.idle_rest.ms();
        (wait > 0 && self.is_unused()).then(|| self.active_at.max(self.used_at).plus_ms(wait))
    }

    fn is_unused(&self) -> bool {
        self.stale.is_none()
            && self.deeds.has_shell()
            && matches!(self.machine.phase(), Phase::Idle)
            && self.machine.queued().next().is_none()
            && self.machine.jobs().running().next().is_none()
            && self.fanout.clients().is_empty()
    }

    /// The shim is asked, and what it says is news: nothing is waited for here.
    pub(super) fn look_for_rest(&mut self) {
        self.used_at = Timestamp::now();
        self.deeds.keep_for_rest();
    }

    /// Nothing runs in the shell: it ends, unless it is in use again.
    pub(super) async fn rest(&mut self, instance: Uuid) {
        // Whatever happened since the look may have changed what was kept.
        if self.is_unused() && self.active_at <= self.used_at && self.deeds.is_up(instance) {
            self.deeds.rest().await;
            tracing::info!(session = %self.id, "idle shell put to rest");
            crate::memory::give_back();
        }
    }
}
