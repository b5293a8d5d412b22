//! What the model is told of a job without having asked: its end, its silence, its loss.
//!
//! A notice is user text in the conversation, so each says at its start that it is not the user's.

use std::fmt::Write as _;

use proto::event::Outcome;

use super::span;
use crate::shell::{End, ExitStatus, LimitHit, RunEnd};
use crate::store::job::JobStart;
use crate::tools::output;

/// Bytes of the output's end that a notice shows: the last lines of a build or a trace; the rest is asked for.
pub const TAIL_BYTES: u64 = 2_000;

/// Characters of a command that a notice shows.
const COMMAND_CHARS: usize = 120;

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How.
    pub outcome: Outcome,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// All its output, in bytes.
    pub output_bytes: u64,
    /// The file with it.
    pub spool: Option<String>,
    /// Who or what ended it.
    pub cause: Cause,
    /// What the model is told.
    pub text: String,
}

/// Who or what ended a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Itself, its deadline, or the death of its shim.
    Own,
    /// Somebody asked for its end.
    Asked,
    /// The session's shell was ended on purpose, and all jobs with it.
    Shell,
}

/// The report of an end that is known; `tail` is the output's last part.
#[must_use]
pub fn report(start: &JobStart, end: &RunEnd, tail: &[u8]) -> Report {
    let mut text = format!("[agentd, not the user: {} ", named(start));
    // Writing to a string cannot fail.
    let _ = write!(text, "{} after {}", how(end), span(std::time::Duration::from_millis(end.duration_ms)));
    for hit in &end.limits_hit {
        let _ = match hit {
            LimitHit::Memory { bytes } => write!(text, "; processes were killed: memory limit of {bytes} bytes"),
            LimitHit::Processes { count } => write!(text, "; forks were refused: limit of {count} processes"),
        };
    }
    match end.background {
        0 => {}
        1 => text.push_str("; 1 process that it started goes on"),
        count => {
            let _ = write!(text, "; {count} processes that it started go on");
        }
    }
    printed(&mut text, end.output_bytes, end.spool.as_deref(), tail);
    Report {
        outcome: outcome(end.end),
        duration_ms: end.duration_ms,
        output_bytes: end.output_bytes,
        spool: end.spool.clone(),
        cause: match end.end {
            End::Interrupted {} => Cause::Asked,
            End::Restarted {} => Cause::Shell,
            End::Exited { .. } | End::ShellEnded { .. } | End::TimedOut { .. } | End::NotRun {} | End::Moved { .. } => {
                Cause::Own
            }
        },
        text,
    }
}

/// The report of a job whose shim died and left no record of its end.
#[must_use]
pub fn lost(start: &JobStart, spool: Option<String>, tail: &[u8]) -> Report {
    let mut text = format!(
        "[agentd, not the user: {} was running when the session's shell process died, and is gone with it; how far it came \
         is not known",
        named(start)
    );
    let output_bytes = tail.len() as u64;
    printed(&mut text, output_bytes, spool.as_deref(), tail);
    Report { outcome: Outcome::Unknown {}, duration_ms: 0, output_bytes, spool, cause: Cause::Own, text }
}

/// What the model is told of a silent job.
#[must_use]
pub fn silence_text(start: &JobStart, output_bytes: u64) -> String {
    format!(
        "[agentd, not the user: {} runs and has printed nothing for {}; its output so far is {output_bytes} bytes. It may be \
         stuck or just quiet: job_output shows what it printed, job_stop ends it.]",
        named(start),
        span(std::time::Duration::from_millis(start.silence_ms))
    )
}

fn named(start: &JobStart) -> String {
    let first = start.command.trim().lines().next().unwrap_or_default();
    let mut command: String = first.chars().take(COMMAND_CHARS).collect();
    if command.len() < start.command.trim().len() {
        command.push('…');
    }
    format!("background job {} (`{command}`)", start.job.short())
}

fn printed(text: &mut String, bytes: u64, spool: Option<&str>, tail: &[u8]) {
    match (bytes, bytes > tail.len() as u64) {
        (0, _) => text.push_str("; it printed nothing]"),
        (_, false) => {
            let _ = write!(text, ". Its output:]\n{}", output::clean(tail));
        }
        (_, true) => {
            let _ = write!(text, ". The end of its {bytes} bytes of output");
            if let Some(spool) = spool {
                let _ = write!(text, ", all of which is in {spool}");
            }
            let _ = write!(text, ":]\n{}", output::clean(output::without_cut_start(tail)));
        }
    }
}

fn how(end: &RunEnd) -> String {
    let killed = match end.killed {
        0 => String::new(),
        1 => "; 1 process had to be killed".to_owned(),
        count => format!("; {count} processes had to be killed"),
    };
    match end.end {
        End::Exited { status } | End::ShellEnded { status: ExitStatus::Code(status) } => {
            format!("ended with exit status {status}")
        }
        End::ShellEnded { status: ExitStatus::Signal(signal) } => format!("was killed by signal {signal}"),
        End::TimedOut { limit_ms } => {
            format!(
                "reached its deadline of {} and was ended{killed}",
                span(std::time::Duration::from_millis(limit_ms))
            )
        }
        End::Interrupted {} => format!("was stopped{killed}"),
        End::Restarted {} => "was ended with the session's shell".to_owned(),
        End::NotRun {} | End::Moved { .. } => "could not be started".to_owned(),
    }
}

/// How a job ended, in the words of the log.
#[must_use]
pub fn outcome(end: End) -> Outcome {
    match end {
        End::Exited { status } | End::ShellEnded { status: ExitStatus::Code(status) } => Outcome::Exited { status },
        End::ShellEnded { status: status @ ExitStatus::Signal(_) } => Outcome::Exited { status: status.as_bash() },
        End::TimedOut { limit_ms } => Outcome::TimedOut { limit_ms },
        End::Interrupted {} | End::Restarted {} => Outcome::Interrupted {},
        End::NotRun {} | End::Moved { .. } => Outcome::Failed {},
    }
}

/// A few words for a list.
pub(super) fn briefly(end: &RunEnd) -> String {
    how(end)
}
