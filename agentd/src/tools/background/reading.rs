//! What `job_output` shows.

use std::fmt::Write as _;
use std::time::Duration;

use proto::ids::CallId;

use super::{done, failure, notice, span};
use crate::shell::jobs::{JobInfo, JobRead};
use crate::shell::{Shell, ShellError};
use crate::store::job::JobStart;
use crate::tools::{ToolResult, output};

/// Bytes read at once.
const PIECE_BYTES: u64 = 256 * 1024;

/// All jobs, a line each.
pub(super) fn list(jobs: &[JobInfo], known: &[JobStart]) -> String {
    if jobs.is_empty() {
        return "[no background commands in this session]".to_owned();
    }
    let line = |info: &JobInfo| {
        let what = known.iter().find(|start| start.job == info.job).map_or("", |start| {
            if start.description.is_empty() { start.command.lines().next().unwrap_or("") } else { &start.description }
        });
        format!("{}  {}; {} bytes of output  {what}", info.job.short(), state(info), info.output_bytes)
    };
    jobs.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn state(info: &JobInfo) -> String {
    let ran = span(Duration::from_millis(info.running_ms));
    match &info.end {
        Some(end) => {
            let left =
                if info.processes > 0 { format!(", {} processes left behind", info.processes) } else { String::new() };
            format!("{} after {ran}{left}", notice::briefly(end))
        }
        None if info.quiet_ms >= 10_000 => {
            format!("running for {ran}, quiet for {}", span(Duration::from_millis(info.quiet_ms)))
        }
        None => format!("running for {ran}"),
    }
}

/// A job's output and state, after a wait for its end.
///
/// # Errors
/// [`ShellError::Lost`].
pub(super) async fn output(
    call: CallId,
    info: &JobInfo,
    since: Option<u64>,
    wait: Duration,
    shell: &Shell,
) -> Result<ToolResult, ShellError> {
    let read = |offset, max, wait| JobRead { job: info.job, offset, max, wait, until_end: true, asker: Some(call) };
    let first = match shell.read_job(read(since.unwrap_or(0), 0, wait)).await {
        Ok(piece) => piece,
        Err(ShellError::Lost) => return Err(ShellError::Lost),
        Err(error) => return Ok(failure(&format!("The output cannot be read: {error}."))),
    };
    // The state of after the wait.
    let now = shell.jobs().await?.into_iter().find(|job| job.job == info.job).unwrap_or_else(|| info.clone());
    let total = first.total;
    let shown_max = u64::try_from(shell.limits().output_chars).unwrap_or(u64::MAX);
    let from = since.unwrap_or(0).min(total);
    let start = from.max(total.saturating_sub(shown_max));
    let (mut bytes, mut at) = (Vec::new(), start);
    while at < total {
        let piece = shell.read_job(read(at, (total - at).min(PIECE_BYTES), Duration::ZERO)).await?;
        if piece.bytes.is_empty() {
            break;
        }
        at = piece.offset + piece.bytes.len() as u64;
        bytes.extend_from_slice(&piece.bytes);
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    if start > from {
        let _ = write!(text, "[{} bytes before this are left out", start - from);
        if let Some(spool) = &now.spool {
            let _ = write!(text, "; all is in {spool}");
        }
        text.push_str("]\n");
    }
    let cut_start = if start > 0 { output::without_cut_start(&bytes) } else { &bytes };
    text.push_str(&output::clean(cut_start));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = write!(text, "[job {} {}", now.job.short(), state(&now));
    if now.end.is_none() {
        let _ = write!(text, "; since: {total} shows what comes after this");
    }
    text.push(']');
    Ok(done(text))
}
