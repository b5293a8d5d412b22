//! Questions to the user manager, through its own `systemctl`: is this unit being stopped for good?
//!
//! A restart and a stop send the same signal. They are told apart by the job that the manager runs for the unit at that
//! moment: `restart` (or none: a crash, a plain `kill`) keeps the shells, `stop` ends them. Also the end of the whole
//! manager (logout without linger, shutdown) is a `stop`.

use std::time::Duration;

use tokio::process::Command;

use super::place;

/// How long the manager may take to answer. It is asked while it stops us, so it is there; one that is stuck must not
/// keep us.
const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// Names of the scopes that shims live in, as a pattern for `systemctl`.
const SHIM_SCOPES: &str = "agentd-shim-*.scope";

/// The unit of the user manager that this process is the service of, if it is one.
#[must_use]
pub fn own_unit() -> Option<String> {
    let group = place::own()?;
    let uid = nix::unistd::getuid().as_raw();
    let unit = place::unit(&group).filter(|unit| unit.ends_with(".service") && !unit.starts_with("user@"))?;
    place::in_user_manager(&group, uid).then(|| unit.to_owned())
}

/// Whether the manager is stopping our unit for good. In doubt it is not: shells that live on can be ended later.
pub async fn stops_for_good() -> bool {
    let Some(unit) = own_unit() else { return false };
    let jobs = systemctl(&["list-jobs", "--no-legend", "--plain", "--no-pager"]).await;
    jobs.is_some_and(|jobs| is_stop(&jobs, &unit))
}

/// What `ExecStopPost=` does: after a stop for good, ends the shells that the daemon could not end any more because it
/// hung or had died. They are asked with TERM; the scope's `TimeoutStopSec=` is their grace.
pub async fn after_stop() {
    if stops_for_good().await {
        // Not waited for: a scope is stopped after the daemon's unit, which is still being stopped while we run.
        systemctl(&["stop", "--no-block", SHIM_SCOPES]).await;
    }
}

async fn systemctl(arguments: &[&str]) -> Option<String> {
    let run = Command::new("systemctl")
        .arg("--user")
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(ANSWER_WAIT, run).await {
        Ok(Ok(output)) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            tracing::warn!(said = said.trim(), "systemctl failed; shells are kept");
            None
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "systemctl cannot be run; shells are kept");
            None
        }
        Err(_) => {
            tracing::warn!("systemctl did not answer; shells are kept");
            None
        }
    }
}

/// Whether a list of jobs (`ID UNIT TYPE STATE` a line) has a stop for the unit.
fn is_stop(jobs: &str, unit: &str) -> bool {
    jobs.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(unit) && words.next() == Some("stop")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_told_apart_from_a_restart_and_from_other_units() {
        assert!(is_stop("  7 app.slice stop waiting\n 12 agentd.service stop running\n", "agentd.service"));
        assert!(!is_stop(" 12 agentd.service restart running\n", "agentd.service"));
        assert!(!is_stop(" 12 other.service stop running\n", "agentd.service"));
        assert!(!is_stop("", "agentd.service"));
    }
}
