//! Requests about background commands.

use proto::ids::JobId;
use proto::job::{Job, Jobs, ReadJob};
use proto::response::{ErrorCode, Response, WireError};

use crate::session::SessionHandle;
use crate::session::registry::Registry;

pub(super) async fn list(registry: &Registry, session: Option<&str>) -> Result<Response, WireError> {
    let mut jobs = match session {
        Some(selector) => registry.find(selector).await?.jobs().await?,
        None => registry.jobs().await,
    };
    jobs.sort_by_key(|job| (job.outcome.is_some(), job.started_at));
    Ok(Response::Jobs(Jobs { jobs }))
}

pub(super) async fn read(registry: &Registry, read: &ReadJob) -> Result<Response, WireError> {
    let (session, job) = registry.find_job(&read.job).await?;
    session.read_job(job, read.since, read.max, read.wait_ms).await.map(Response::JobOutput)
}

pub(super) async fn stop(registry: &Registry, selector: &str, by: String) -> Result<Response, WireError> {
    let (session, job) = registry.find_job(selector).await?;
    session.stop_job(job, by).await?;
    view(&session, job).await.map(Response::Job)
}

async fn view(session: &SessionHandle, job: JobId) -> Result<Job, WireError> {
    session.jobs().await?.into_iter().find(|view| view.job == job).ok_or_else(|| WireError {
        code: ErrorCode::NotFound,
        message: format!("no job {}", job.short()),
        hint: "`agentctl jobs` lists them".into(),
    })
}
