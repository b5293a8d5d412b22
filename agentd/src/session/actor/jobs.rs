//! The actor and the session's background commands: what clients want of them, and when the shell is asked about them.

use proto::ids::JobId;
use proto::job::{JobOutput, Moving};
use proto::response::{ErrorCode, WireError};
use uuid::Uuid;

use super::super::command::Reply;
use super::super::job_task::{Known, Look};
use super::super::machine::Input;
use super::Actor;
use super::wishes::conflict;

impl Actor {
    /// A shell answers, or none is there: jobs of another one are over, whatever became of them.
    pub(in crate::session) fn settle_jobs(&mut self, present: Option<Uuid>) {
        let gone: Vec<_> = self.machine.jobs().running().filter(|start| start.shim != present).cloned().collect();
        if !gone.is_empty() {
            self.deeds.settle_jobs(gone);
        }
        self.deeds.sync_jobs(&self.machine);
    }

    pub(in crate::session) fn look_at_jobs(&mut self, look: Look) {
        let known = self.known_jobs();
        self.deeds.look_at_jobs(look, known);
    }

    fn known_jobs(&self) -> Vec<Known> {
        let jobs = self.machine.jobs();
        let running = jobs.running().map(|start| Known { start: start.clone(), end: None });
        let ended = jobs.ended().map(|(start, end)| Known { start: start.clone(), end: Some(end.clone()) });
        running.chain(ended).collect()
    }

    pub(in crate::session) fn read_job(
        &mut self,
        job: JobId,
        since: u64,
        max: u64,
        wait_ms: u64,
        reply: Reply<JobOutput>,
    ) {
        match self.known_jobs().into_iter().find(|known| known.start.job == job) {
            Some(known) => self.look_at_jobs(Look::Read { known: Box::new(known), since, max, wait_ms, reply }),
            None => {
                let _ = reply.send(Err(no_job(job)));
            }
        }
    }

    pub(in crate::session) async fn stop_job(&mut self, job: JobId, by: String) -> Result<(), WireError> {
        if self.machine.jobs().running().any(|start| start.job == job) {
            self.take(Input::JobStopAsked { job, by }).await;
            return self.stored(());
        }
        if self.machine.jobs().has_ended(job) {
            // What it left behind is ended; nothing of the session changes.
            self.deeds.stop_job(job);
            return Ok(());
        }
        Err(no_job(job))
    }

    pub(in crate::session) async fn background(&mut self, by: String) -> Result<Moving, WireError> {
        let Some(call) = self.machine.running_command() else {
            return Err(conflict(
                "no command runs in this session that could be moved",
                "`agentctl show` tells what it does",
            ));
        };
        let job = JobId::new();
        self.take(Input::BackgroundAsked { job, by }).await;
        self.stored(Moving { session: self.id, call, job })
    }
}

fn no_job(job: JobId) -> WireError {
    WireError {
        code: ErrorCode::NotFound,
        message: format!("no job {}", job.short()),
        hint: "`agentctl jobs` lists them".into(),
    }
}
