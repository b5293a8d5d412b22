//! Deeds for background commands: asking the shell about them, ending one, looking at one for a client.

use std::sync::Arc;

use proto::ids::JobId;

use super::super::job_task;
use super::super::machine::Machine;
use super::{Deeds, Slot, Waiting};
use crate::store::job::JobStart;

impl Deeds {
    /// Asks the shell what became of the jobs that run; without one there is nobody to ask, which is found out elsewhere.
    pub(in crate::session) fn sync_jobs(&mut self, machine: &Machine) {
        let running: Vec<_> = machine.jobs().running().cloned().collect();
        if let Slot::Up(shell) = &self.shell
            && !running.is_empty()
        {
            self.tasks.spawn(job_task::sync(running, shell.clone(), self.news.clone()));
        }
    }

    /// Finds out what is known of jobs whose shim is gone.
    pub(in crate::session) fn settle_jobs(&mut self, gone: Vec<JobStart>) {
        let (context, news) = (Arc::clone(&self.context), self.news.clone());
        self.tasks.spawn(job_task::settle(gone, self.session, context, news));
    }

    /// Begins to end a job.
    pub(in crate::session) fn stop_job(&mut self, job: JobId) {
        if let Slot::Up(shell) = &self.shell {
            self.tasks.spawn(job_task::stop(job, shell.clone()));
        }
    }

    /// Looks at jobs for a client, when it is known whether there is a shell.
    pub(in crate::session) fn look_at_jobs(&mut self, look: job_task::Look, known: Vec<job_task::Known>) {
        match &self.shell {
            Slot::Up(shell) => {
                self.tasks.spawn(job_task::look(look, self.session, known, Some(shell.clone())));
            }
            Slot::Coming { .. } => self.waiting.push(Waiting::Jobs(look, known)),
            Slot::None => {
                self.tasks.spawn(job_task::look(look, self.session, known, None));
            }
        }
    }
}
