//! One tool call from the model's input to its result: parse, assess (what would it do, may it), run.
//!
//! Invariant: the same parse serves assessment and run, so that what was shown is what runs; the digest of the
//! assessment is compared again at the run.

use std::time::{Duration, Instant};

use proto::approval::{CommandSubject, EditSubject, OtherSubject, Subject};
use proto::event::Outcome;
use proto::ids::CallId;
use proto::json::JsonText;
use proto::shim::files::{Apply, Basis, Digest as FileDigest, FileReply, Mode};
use proto::shim::reply::{Facts, ShellState};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::background::{self, BACKGROUND, BackgroundInput, JobInput, NewJob};
use super::{ToolResult, bash, diff, editor, failure, search};
use crate::shell::{End, OutputChunk, RunResult, Shell, ShellError};
use crate::store::entry::Expect;
use crate::store::job::JobStart;

/// Name of the shell tool.
pub const BASH: &str = "bash";

/// Name of the editor tool.
pub const EDITOR: &str = "str_replace_based_edit_tool";

/// Name of the tool that searches file contents.
pub const GREP: &str = "grep";

/// Name of the tool that finds files by name.
pub const GLOB: &str = "glob";

/// A call whose input is understood.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// A shell command.
    Command(String),
    /// A fresh shell.
    Restart,
    /// A view or an edit.
    Editor(editor::EditorInput),
    /// A search.
    Search(search::SearchInput),
    /// A command for the background.
    Background(BackgroundInput),
    /// Something about background commands.
    Job(JobInput),
}

/// Understands a call.
///
/// # Errors
/// The result for the model when it cannot be understood.
pub fn parse(tool: &str, input: &JsonText) -> Result<Parsed, ToolResult> {
    match tool {
        BASH => bash::parse(input)
            .map(|input| match input {
                bash::BashInput::Run { command } => Parsed::Command(command),
                bash::BashInput::Restart => Parsed::Restart,
            })
            .map_err(|text| failure(&text)),
        EDITOR => editor::parse(input).map(Parsed::Editor).map_err(|text| failure(&text)),
        GREP => search::parse_grep(input).map(Parsed::Search).map_err(|text| failure(&text)),
        GLOB => search::parse_glob(input).map(Parsed::Search).map_err(|text| failure(&text)),
        BACKGROUND => background::parse_background(input).map(Parsed::Background).map_err(|text| failure(&text)),
        background::OUTPUT => background::parse_output(input).map(Parsed::Job).map_err(|text| failure(&text)),
        background::STOP => background::parse_stop(input).map(Parsed::Job).map_err(|text| failure(&text)),
        other => Err(failure(&format!(
            "There is no tool named `{other}`. The tools are `{BASH}`, `{BACKGROUND}`, `{}`, `{}`, `{EDITOR}`, `{GREP}` and \
             `{GLOB}`.",
            background::OUTPUT,
            background::STOP
        ))),
    }
}

/// One line for people.
#[must_use]
pub fn title(tool: &str, input: &JsonText) -> String {
    match parse(tool, input) {
        Ok(Parsed::Command(command)) => format!("$ {}", command.trim()),
        Ok(Parsed::Restart) => "restart the shell".to_owned(),
        Ok(Parsed::Editor(input)) => editor::title(&input),
        Ok(Parsed::Search(input)) => search::title(&input),
        Ok(Parsed::Background(input)) => format!("$ {} &", input.command.trim()),
        Ok(Parsed::Job(input)) => background::title(&input),
        Err(_) => tool.to_owned(),
    }
}

/// What a call would do.
#[derive(Clone, Debug)]
pub struct Prospect {
    /// For people.
    pub subject: Subject,
    /// SHA-256 over exactly what would run, in hex.
    pub digest: String,
    /// What must still hold when it runs.
    pub expect: Expect,
    /// Whether the very same call may come again.
    pub repeatable: bool,
    /// What the shell tells of itself, for a command; `None` when it has not told since the last one.
    pub facts: Option<Facts>,
}

/// A digest that is bound to the state of the shell as well.
#[must_use]
pub fn bound_digest(digest: &str, shell: &str) -> String {
    hex_digest(&[digest, shell])
}

/// Finds out what a call would do, without doing it.
///
/// # Errors
/// The result for the model when it could not be done anyway (no such file, text not found, …).
pub async fn prospect(call: CallId, parsed: &Parsed, shell: &Shell) -> Result<Prospect, ToolResult> {
    match parsed {
        // In the background or not, it is the same command: who allowed the one allowed the other.
        Parsed::Command(command) | Parsed::Background(BackgroundInput { command, .. }) => {
            let ShellState { cwd, facts, .. } = shell.state().await.map_err(|error| shell_failure(&error))?;
            let digest = hex_digest(&[BASH, command, &cwd]);
            let expect = Expect::Directory(cwd.clone());
            let subject = Subject::Command(CommandSubject { command: command.clone(), cwd, parts: Vec::new() });
            Ok(Prospect { subject, digest, expect, repeatable: true, facts })
        }
        Parsed::Restart => {
            let subject = Subject::Other(OtherSubject {
                title: "restart the shell: everything it runs is ended".to_owned(),
                input: JsonText::from_value(&serde_json::json!({ "restart": true })),
            });
            let digest = hex_digest(&["restart"]);
            Ok(Prospect { subject, digest, expect: Expect::Nothing, repeatable: true, facts: None })
        }
        Parsed::Editor(input) if editor::is_view(input) => Ok(look(editor::title(input), &format!("{input:?}"))),
        Parsed::Search(input) => Ok(look(search::title(input), &format!("{input:?}"))),
        Parsed::Job(input) => Ok(look(background::title(input), &format!("{input:?}"))),
        Parsed::Editor(input) => {
            let preview = editor::op(input, Mode::Preview {});
            let reply = shell.file(call, &preview).await.map_err(|error| shell_failure(&error))?;
            let FileReply::Edited(edited) = &reply else { return Err(editor::render(input, &reply)) };
            let Basis { path, content } = &edited.basis;
            let content = content.as_ref().map(|digest| digest.0.clone());
            // The input and what it starts from: together they are the change.
            let whole = format!("{input:?}");
            let digest = hex_digest(&[EDITOR, &whole, path, content.as_deref().unwrap_or("none")]);
            let subject = Subject::Edit(EditSubject { diff: diff::file_diff(&edited.change) });
            let expect = Expect::File { path: path.clone(), content };
            Ok(Prospect { subject, digest, expect, repeatable: false, facts: None })
        }
    }
}

/// The prospect of a call that only looks.
fn look(title: String, whole: &str) -> Prospect {
    let subject = Subject::Other(OtherSubject { title, input: JsonText::from_value(&serde_json::Value::Null) });
    let digest = hex_digest(&["look", whole]);
    Prospect { subject, digest, expect: Expect::Nothing, repeatable: true, facts: None }
}

/// How a run ended, and how long it took.
#[derive(Debug)]
pub struct Ended {
    /// The result.
    pub result: ToolResult,
    /// A command's own time, as its shim measured it, whichever daemon asked; else from the request to the answer.
    pub duration: Duration,
    /// The background command that it began, or became.
    pub job: Option<NewJob>,
}

/// What a run needs to know.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The call.
    pub call: CallId,
    /// What must hold at the run.
    pub expect: Expect,
    /// Whether an earlier daemon may have started it: then the shim knows, and a started command may have moved.
    pub again: bool,
    /// The command's deadline.
    pub deadline: Duration,
    /// The session's background commands, for tools that speak of them.
    pub jobs: Vec<JobStart>,
}

/// Runs a call, or finds its result if this shim ran it before.
///
/// # Errors
/// [`ShellError`] when the shim was lost on the way: the outcome is unknown.
pub async fn run(
    spec: &RunSpec,
    parsed: &Parsed,
    shell: &Shell,
    output: mpsc::Sender<OutputChunk>,
) -> Result<Ended, ShellError> {
    let started = Instant::now();
    let (mut ran, mut job) = (None, None);
    let result = match parsed {
        Parsed::Command(command) => {
            if has_moved(spec, shell).await? {
                changed("the shell's directory is another one now")
            } else {
                let run = shell.run(spec.call, command, spec.deadline, output).await?;
                ran = Some(Duration::from_millis(run.end.duration_ms));
                job = moved(&run, command);
                bash::render(&run, shell.limits())
            }
        }
        Parsed::Background(input) => {
            if has_moved(spec, shell).await? {
                changed("the shell's directory is another one now")
            } else {
                let (result, new) = background::start(spec.call, input, shell).await?;
                job = new;
                result
            }
        }
        Parsed::Job(input) => background::run(spec.call, input, shell, &spec.jobs).await?,
        Parsed::Restart => bash::render_restart(&shell.restart(spec.call).await?),
        Parsed::Editor(input) => {
            let expect = match &spec.expect {
                Expect::File { path, content } => {
                    Some(Basis { path: path.clone(), content: content.clone().map(FileDigest) })
                }
                Expect::Nothing | Expect::Directory(_) => None,
            };
            let apply = Mode::Apply(Apply { call: Some(spec.call), expect });
            let reply = shell.file(spec.call, &editor::op(input, apply)).await?;
            editor::render(input, &reply)
        }
        Parsed::Search(input) => search::render(&shell.file(spec.call, &search::op(input)).await?),
    };
    Ok(Ended { result, duration: ran.unwrap_or_else(|| started.elapsed()), job })
}

/// Whether the shell is in another directory than the one that was approved.
async fn has_moved(spec: &RunSpec, shell: &Shell) -> Result<bool, ShellError> {
    match (&spec.expect, spec.again) {
        (Expect::Directory(approved), false) => Ok(*approved != cwd_of(shell).await?),
        (Expect::Directory(_), true) | (Expect::Nothing | Expect::File { .. }, _) => Ok(false),
    }
}

/// The job that a command became when the user moved it to the background.
fn moved(run: &RunResult, command: &str) -> Option<NewJob> {
    let End::Moved { job } = run.end.end else { return None };
    Some(NewJob {
        job,
        command: command.to_owned(),
        description: String::new(),
        // The new shell is where the old one was before the command.
        cwd: run.end.renewed.as_ref().map(|renewed| renewed.cwd.clone()).unwrap_or_default(),
        deadline: background::DEADLINE,
        silence: None,
        moved: true,
    })
}

fn changed(what: &str) -> ToolResult {
    failure(&format!("Not run: what was approved is no longer what would run ({what}). Make the call again."))
}

/// The result of a call that the shell could not take.
#[must_use]
pub fn shell_failure(error: &ShellError) -> ToolResult {
    failure(&format!("Not run: the session's shell is not there ({error})."))
}

/// The result of a call that was running when the process that knew died.
#[must_use]
pub fn unknown(captured: &str) -> ToolResult {
    let mut text = String::from(
        "Outcome unknown: the process that ran this call died while it ran. It may have done all, part or nothing of its \
         work; look before you run it again. The shell is a new one.",
    );
    if !captured.is_empty() {
        text.push_str("\nOutput captured until then:\n");
        text.push_str(captured);
    }
    ToolResult { outcome: Outcome::Unknown {}, ..failure(&text) }
}

/// The result of a call whose shim died before it began.
#[must_use]
pub fn not_begun() -> ToolResult {
    failure(
        "Not run: the session's shell process died before this call began. The shell is a new one; make the call again if \
         it is still wanted.",
    )
}

async fn cwd_of(shell: &Shell) -> Result<String, ShellError> {
    Ok(shell.state().await?.cwd)
}

/// SHA-256 over the parts, each with its length in front, so that no two lists of parts read the same.
fn hex_digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
