//! Background commands over all sessions.

use proto::ids::JobId;
use proto::job::Job;
use proto::response::{ErrorCode, WireError};

use super::SessionHandle;
use super::registry::Registry;
use super::select::{id_fits, not_found};

impl Registry {
    /// The session whose background command this is, by the job's id or its last digits.
    ///
    /// # Errors
    /// None fits, or several do.
    pub async fn find_job(&self, selector: &str) -> Result<(SessionHandle, JobId), WireError> {
        let mut found = Vec::new();
        for handle in self.all_running().await {
            let ids = handle.job_ids().await;
            found
                .extend(ids.into_iter().filter(|id| id_fits(&id.to_string(), selector)).map(|id| (handle.clone(), id)));
        }
        match found.len() {
            0 => Err(not_found(&format!("no job `{selector}`"), "`agentctl jobs` lists them")),
            1 => Ok(found.remove(0)),
            many => Err(WireError {
                code: ErrorCode::Ambiguous,
                message: format!("`{selector}` fits {many} jobs"),
                hint: "give more digits of the id".into(),
            }),
        }
    }

    /// The background commands of every session that is served at the moment; those that run have their session served.
    pub async fn jobs(&self) -> Vec<Job> {
        let mut all = Vec::new();
        for handle in self.all_running().await {
            // A session that is going away has none.
            all.extend(handle.jobs().await.unwrap_or_default());
        }
        all
    }
}
