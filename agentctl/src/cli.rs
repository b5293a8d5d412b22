//! The command line. Help, man pages and completions are all made from this file.

mod answers;
mod document;
mod edits;
mod examples;
mod inquiry;
mod jobs;
pub mod keeping;
mod model;
mod sending;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::candidates::sessions;
use crate::exit;
use examples::{ASK_EXAMPLES, COMPLETIONS_EXAMPLES, EXAMPLES, EXPORT_EXAMPLES, RUN_EXAMPLES, UNDO_EXAMPLES};
use inquiry::AUDIT_EXAMPLES;
use keeping::{ForkArgs, PruneArgs, SearchArgs};

pub use answers::{ApprovalsArgs, ApproveArgs, DenyArgs, ModeArgs};
pub use document::{CompletionsArgs, ExportArgs, ManArgs, ShellArg};
pub use edits::{DiffArgs, UndoArgs};
pub use inquiry::{
    AuditArgs, AuditCommand, AuditDecisionArg, ModeArg, PolicyCheckArgs, PolicyCommand, PolicyExplainArgs,
    PolicyReplayArgs, PolicyTestArgs,
};
pub use jobs::{JobArgs, JobsArgs, KillArgs, RunArgs};
pub use model::{RerunArgs, SetArgs, SteerArgs, UsageArgs};
pub use sending::{ApproveArg, AskArgs, SendArgs};

/// Talk to agentd, the coding agent that lives on this machine as a service.
#[derive(Debug, Parser)]
#[command(name = "agentctl", version, after_help = after_help(), max_term_width = 100, propagate_version = true,
    disable_help_subcommand = false, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// Where the daemon is.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
pub struct GlobalArgs {
    /// The daemon's socket [default: $XDG_RUNTIME_DIR/agentd/agentd.sock]
    #[arg(
        long,
        global = true,
        env = "AGENTD_SOCKET",
        hide_env_values = true,
        value_name = "PATH",
        help_heading = "Global options"
    )]
    pub socket: Option<PathBuf>,
    /// Do not start a daemon when none runs
    #[arg(long, global = true, help_heading = "Global options")]
    pub no_start: bool,
    /// Write plain lines from top to bottom: no colours, nothing painted over, no spinner
    #[arg(long, global = true, env = "AGENTD_SCREEN_READER", hide_env_values = true,
        value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue,
        help_heading = "Global options")]
    pub screen_reader: bool,
    /// How to tell that something waits or is done, when it took long [default: auto]
    #[arg(
        long,
        global = true,
        env = "AGENTD_NOTIFY",
        hide_env_values = true,
        value_enum,
        value_name = "HOW",
        hide_possible_values = false,
        help_heading = "Global options"
    )]
    pub notify: Option<crate::notify::How>,
    /// When to tell it [default: away]
    #[arg(
        long,
        global = true,
        env = "AGENTD_NOTIFY_WHEN",
        hide_env_values = true,
        value_enum,
        value_name = "WHEN",
        hide_possible_values = false,
        help_heading = "Global options"
    )]
    pub notify_when: Option<crate::notify::When>,
}

/// Examples, then exit codes.
fn after_help() -> String {
    format!("{EXAMPLES}\n\n{}", exit::help())
}

/// What the modes mean, under the help of `mode`.
const MODE_HELP: &str = "\
Modes:
  ask           what only reads and what rules allow runs, everything else asks (the first mode of a session)
  accept-edits  edits of files inside the workspace run as well
  plan          only what reads runs; everything else is denied, and the model is told why
  bypass        everything runs that no rule denies";

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give the agent a job and watch it; what is piped in becomes context
    ///
    /// Without --session or --new, the newest idle session of the current directory is continued. The answer goes to
    /// standard output, everything else to standard error.
    #[command(after_help = ASK_EXAMPLES)]
    Ask(AskArgs),
    /// Watch a session live, type prompts, answer its questions
    Attach(AttachArgs),
    /// List sessions
    Ls(LsArgs),
    /// Show one session's present state
    Show(SessionJsonArgs),
    /// Show a session's log
    Log(LogArgs),
    /// Write a session's transcript as one document
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Take the agent's last edits back, after showing what that changes
    #[command(after_help = UNDO_EXAMPLES)]
    Undo(UndoArgs),
    /// Show what the agent's edits changed in a session
    Diff(DiffArgs),
    /// List what waits for your answer
    Approvals(ApprovalsArgs),
    /// Allow what an approval asks for
    Approve(ApproveArgs),
    /// Do not allow what an approval asks for
    Deny(DenyArgs),
    /// What would be allowed, asked or denied, and why; runs nothing
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// What ran and what was refused, and who or what decided
    #[command(after_help = AUDIT_EXAMPLES)]
    Audit(AuditArgs),
    /// Show or switch how much a session may do without asking
    #[command(after_help = MODE_HELP)]
    Mode(ModeArgs),
    /// End a session's running turn
    Interrupt(SessionJsonArgs),
    /// Send a waiting or parked request to the model again at once
    Retry(SessionJsonArgs),
    /// Hand the running turn a note; the model gets it before its next request
    Steer(SteerArgs),
    /// Ask the last prompt again, in the same or other words, as if it had not been asked
    Rerun(RerunArgs),
    /// Replace the conversation that the model sees by a summary; the log keeps all of it
    Compact(SessionJsonArgs),
    /// Change model, effort or max_tokens of a session, between turns
    Set(SetArgs),
    /// Show what was used, in tokens and money
    Usage(UsageArgs),
    /// List background commands: those that run, and the last ones that ran
    Jobs(JobsArgs),
    /// Show what a background command printed
    Job(JobArgs),
    /// End a background command and all its processes
    Kill(KillArgs),
    /// Move a session's running command to the background; its turn goes on
    Background(SessionJsonArgs),
    /// Run a command in a session's shell as yourself; the model reads it with its next prompt
    ///
    /// The words are joined by spaces and read by the session's bash, as ssh does it. Refused while the shell is at work.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Show the environment of a session's shell, without secrets
    Env(SessionJsonArgs),
    /// Send a prompt and return at once
    Send(SendArgs),
    /// Give a session another name
    Rename(RenameArgs),
    /// End a session's shell and take it off the list; its log stays
    Archive(RequiredSessionArgs),
    /// End a session's shell and delete its log
    Rm(RequiredSessionArgs),
    /// Remove sessions that were not used for a while; lists them first
    Prune(PruneArgs),
    /// Find words in all sessions: prompts, answers, commands, output
    Search(SearchArgs),
    /// Start a session that goes on from a point of another
    Fork(ForkArgs),
    /// Show the daemon's state
    Status(JsonArgs),
    /// Look for what keeps agentd from working, and say how to mend it
    Doctor(JsonArgs),
    /// Start the daemon's program anew in its place, after an upgrade; what runs goes on
    Restart(JsonArgs),
    /// Stop the daemon; the sessions' commands go on unless told otherwise
    Shutdown(ShutdownArgs),
    /// Print what makes a shell complete commands, sessions and approvals
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
}

impl Command {
    /// Whether errors are wanted as JSON too.
    #[must_use]
    pub fn wants_json(&self) -> bool {
        match self {
            Self::Ask(args) => args.json,
            Self::Attach(args) => args.json,
            Self::Ls(args) => args.json,
            Self::Show(args) | Self::Interrupt(args) | Self::Retry(args) | Self::Compact(args) => args.json,
            Self::Background(args) | Self::Env(args) => args.json,
            Self::Run(args) => args.json,
            Self::Jobs(args) => args.json,
            Self::Job(args) => args.json,
            Self::Kill(args) => args.json,
            Self::Log(args) => args.json,
            Self::Export(args) => args.json,
            Self::Undo(args) => args.json,
            Self::Diff(args) => args.json,
            Self::Approvals(args) => args.json,
            Self::Approve(args) => args.json,
            Self::Deny(args) => args.json,
            Self::Policy(command) => command.wants_json(),
            Self::Audit(args) => args.json || matches!(args.command, Some(AuditCommand::Verify { json: true })),
            Self::Mode(args) => args.json,
            Self::Send(args) => args.json,
            Self::Steer(args) => args.json,
            Self::Rerun(args) => args.json,
            Self::Set(args) => args.json,
            Self::Usage(args) => args.json,
            Self::Rename(args) => args.json,
            Self::Archive(args) | Self::Rm(args) => args.json,
            Self::Prune(args) => args.json,
            Self::Search(args) => args.json,
            Self::Fork(args) => args.json,
            Self::Status(args) | Self::Doctor(args) | Self::Restart(args) => args.json,
            Self::Shutdown(args) => args.json,
            Self::Completions(_) | Self::Man(_) => false,
        }
    }
}

/// `attach`.
#[derive(Debug, Default, Args)]
pub struct AttachArgs {
    /// Its id, the id's last digits, or its name [default: the newest of this directory]
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// Watch only
    #[arg(short, long)]
    pub read_only: bool,
    /// Show everything after this row first [default: the last turns]
    #[arg(long, value_name = "SEQ")]
    pub since: Option<u64>,
    /// Print every frame as a JSON line; lines on standard input are still prompts
    #[arg(long)]
    pub json: bool,
}

/// `ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// Also archived sessions
    #[arg(short, long)]
    pub all: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// A session that may be left out.
#[derive(Debug, Args)]
pub struct SessionJsonArgs {
    /// Its id, the id's last digits, or its name [default: the newest of this directory]
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// A session that must be named.
#[derive(Debug, Args)]
pub struct RequiredSessionArgs {
    /// Its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: String,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `log`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Its id, the id's last digits, or its name [default: the newest of this directory]
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// Only rows after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub since: u64,
    /// Go on with new rows as they come
    #[arg(short, long)]
    pub follow: bool,
    /// One JSON object a line: {"event": {"session": …, "event": …}}
    #[arg(long)]
    pub json: bool,
}

/// `rename`.
#[derive(Debug, Args)]
pub struct RenameArgs {
    /// Its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: String,
    /// The new name, unique among sessions that are not archived
    pub name: String,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Commands with nothing but `--json`.
#[derive(Debug, Args)]
pub struct JsonArgs {
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `shutdown`.
#[derive(Debug, Args)]
pub struct ShutdownArgs {
    /// End the sessions' shells too; else their commands go on and the next daemon finds them
    #[arg(long)]
    pub stop_shells: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}
