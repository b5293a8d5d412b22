//! The `bash` tool: what the model asked → a command; a result → what the model reads.
//!
//! The text is the output as `tools::output` shows it. Notes follow when there is something to say, each a line in
//! square brackets: `[exit status 3]`, `[timed out after 120 s; …]`, `[… a new shell was started …]`. One line feed that
//! is not part of the output stands between the output and the first note. A command that ended with status 0 and
//! printed something has no note, unless its last line could be taken for one.

use proto::event::Outcome;
use proto::json::JsonText;
use proto::shim::request::COMMAND_MAX;

use super::output::{self, Raw};
use super::{Part, ToolResult};
use crate::shell::{End, ExitStatus, LimitHit, Renewed, RestartResult, RunResult, ShellLimits, Why};

/// What the model asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BashInput {
    /// A command.
    Run {
        /// Its text.
        command: String,
    },
    /// A fresh shell.
    Restart,
}

/// Understands the tool's input. A restart wins over a command beside it.
///
/// # Errors
/// Text for the model that says how to call the tool.
pub fn parse(input: &JsonText) -> Result<BashInput, String> {
    let value = input.to_value();
    match value.get("restart") {
        None | Some(serde_json::Value::Null | serde_json::Value::Bool(false)) => {}
        Some(serde_json::Value::Bool(true)) => return Ok(BashInput::Restart),
        Some(other) => return Err(format!("`restart` must be true or false, not {other}.")),
    }
    let command = match value.get("command") {
        Some(serde_json::Value::String(command)) => command,
        Some(_) => return Err("`command` must be a string.".to_owned()),
        None => return Err("Nothing to run: give `command`, or `restart`: true for a fresh shell.".to_owned()),
    };
    check(command)?;
    Ok(BashInput::Run { command: command.clone() })
}

/// Whether a command can be handed to bash.
///
/// # Errors
/// A sentence that says why not.
pub fn check(command: &str) -> Result<(), String> {
    if command.contains('\0') {
        return Err("The command contains a NUL character, which bash cannot take. It was not run.".to_owned());
    }
    if command.len() > COMMAND_MAX {
        return Err(format!(
            "The command is {} bytes long; at most {COMMAND_MAX} can be run. Write long data to a file first.",
            command.len()
        ));
    }
    Ok(())
}

/// What the model reads of a command's result.
#[must_use]
pub fn render(result: &RunResult, limits: &ShellLimits) -> ToolResult {
    let end = &result.end;
    let raw = Raw {
        head: result.head(),
        tail: result.tail(),
        bytes: end.output_bytes,
        lines: end.output_lines,
        spool: end.spool.as_deref(),
        spool_gap_bytes: end.spool_gap_bytes,
    };
    let output = output::text(&raw, limits.output_chars);
    let notes = notes(result, &output);
    let (is_error, outcome) = match end.end {
        End::Exited { status } => (false, Outcome::Exited { status }),
        End::ShellEnded { status: ExitStatus::Code(status) } => (false, Outcome::Exited { status }),
        End::ShellEnded { status: status @ ExitStatus::Signal(_) } => {
            (true, Outcome::Exited { status: status.as_bash() })
        }
        End::TimedOut { limit_ms } => (true, Outcome::TimedOut { limit_ms }),
        End::Interrupted {} | End::Restarted {} => (true, Outcome::Interrupted {}),
        End::NotRun {} => (true, Outcome::Failed {}),
        End::Moved { job } => (false, Outcome::Background { job }),
    };
    let text = if notes.is_empty() {
        output
    } else if output.is_empty() {
        notes.join("\n")
    } else {
        format!("{output}\n{}", notes.join("\n"))
    };
    ToolResult { content: vec![Part::Text(text)], is_error, outcome, diff: None }
}

/// What the model reads of a restart.
#[must_use]
pub fn render_restart(result: &RestartResult) -> ToolResult {
    let killed = match result.killed {
        0 => String::new(),
        1 => " One process of the old one was ended.".to_owned(),
        count => format!(" {count} processes of the old one were ended."),
    };
    let text =
        format!("[a new shell was started in {}; nothing of the old shell's state is left.{killed}]", result.cwd);
    ToolResult { content: vec![Part::Text(text)], is_error: false, outcome: Outcome::Done {}, diff: None }
}

fn notes(result: &RunResult, output: &str) -> Vec<String> {
    let end = &result.end;
    let mut notes = Vec::new();
    match end.end {
        End::Exited { status } => {
            if status != 0 || output.is_empty() || ends_like_a_note(output) {
                notes.push(format!("[exit status {status}]"));
            }
        }
        End::ShellEnded { status } => notes.push(format!("[exit status {}]", status.as_bash())),
        End::TimedOut { limit_ms } => {
            notes.push(format!("[timed out after {} and was ended{}]", seconds(limit_ms), killed(end.killed)));
        }
        End::Interrupted {} => notes.push(format!("[interrupted by the user{}]", killed(end.killed))),
        End::Restarted {} => notes.push(format!("[ended by a restart of the shell{}]", killed(end.killed))),
        End::Moved { job } => notes.push(format!(
            "[the user moved the command to the background: it goes on as job {0}, this is its output so far; you are told \
             when it ends. job_output shows what it prints, job_stop ends it]",
            job.short()
        )),
        End::NotRun {} => notes.push("[the command could not be handed to the shell and was not run]".to_owned()),
    }
    for hit in &end.limits_hit {
        notes.push(match hit {
            LimitHit::Memory { bytes } => format!("[processes were killed: memory limit of {bytes} bytes]"),
            LimitHit::Processes { count } => format!("[forks were refused: limit of {count} processes]"),
        });
    }
    if end.builtin_freed {
        notes.push("[the shell function `builtin` was removed, because it hid the end of the command]".to_owned());
    }
    notes.extend(end.renewed.as_ref().map(renewed));
    notes
}

fn renewed(renewed: &Renewed) -> String {
    let why = match renewed.why {
        Why::Ended { status: ExitStatus::Code(status) } => format!("the shell exited with status {status}"),
        Why::Ended { status: ExitStatus::Signal(signal) } => format!("the shell was killed by signal {signal}"),
        Why::Stuck {} => "the shell did not come back and was killed".to_owned(),
        Why::Asked {} => "the shell was restarted".to_owned(),
        Why::Moved {} => "the shell went on with the command".to_owned(),
    };
    let kept = if renewed.restored && renewed.why == (Why::Moved {}) {
        "exported variables, options, functions and aliases were copied; other variables and shell jobs stayed with it"
    } else if renewed.restored {
        "exported variables, options, functions and aliases were restored; other variables and shell jobs are lost"
    } else {
        "nothing else of the old shell's state is left"
    };
    let errexit = if renewed.errexit_dropped { "; `set -e` was left off" } else { "" };
    format!("[{why}; a new shell was started in {}; {kept}{errexit}]", renewed.cwd)
}

fn killed(count: u32) -> String {
    match count {
        0 => String::new(),
        1 => "; 1 process was killed".to_owned(),
        count => format!("; {count} processes were killed"),
    }
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{}.{:03} s", ms / 1000, ms % 1000) }
}

/// Whether the last line could be taken for a note of ours.
fn ends_like_a_note(output: &str) -> bool {
    let last = output.lines().next_back().unwrap_or("");
    last.starts_with('[') && last.ends_with(']')
}
