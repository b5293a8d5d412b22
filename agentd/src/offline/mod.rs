//! What the program answers without serving: questions to the policy and to the audit, for `agentctl` and scripts.
//!
//! JSON lines in, JSON lines out, no daemon, no session, no runtime: the pure decision with the facts of the disk, and
//! the database beside a daemon that may be writing it. `agentctl` draws the lines for people.
//!
//! Invariant: nothing here runs a command or changes a file.

mod audit;
mod check;
mod replay;
mod rules;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use proto::audit::AuditDecision;
use proto::policy::Decided;
use thiserror::Error;

use crate::cli::Cli;
use crate::config::Config;
use crate::config::paths::Paths;
use crate::daemon::{self, StartError};
use crate::policy::{Mode, Verdict};
use crate::store::StoreError;

/// Exit code when what was checked is wrong: a line, a rule file, the chain. Apart from 1, a failure of ours.
pub const EXIT_WRONG: u8 = 9;

/// `agentd policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Decide about JSON lines from standard input
    Check(CheckArgs),
    /// Check rule files and their examples
    Test {
        /// The files [default: those in force here]
        files: Vec<PathBuf>,
    },
    /// Decide about the audit's commands again, by another rule file
    Replay {
        /// The rule file, in place of the user's
        #[arg(long, value_name = "FILE")]
        rules: PathBuf,
        /// Which rows
        #[command(flatten)]
        range: RangeArgs,
    },
}

/// `agentd policy check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A rule file in place of the user's, for lines without `rules`
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The session's mode
    #[arg(long, value_enum, default_value_t = ModeArg::Ask)]
    pub mode: ModeArg,
}

/// A mode as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Only what reads, and what rules allow.
    Ask,
    /// Edits inside the workspace as well.
    AcceptEdits,
    /// Nothing that changes anything.
    Plan,
    /// Everything that no rule denies.
    Bypass,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Ask => Self::Ask,
            ModeArg::AcceptEdits => Self::AcceptEdits,
            ModeArg::Plan => Self::Plan,
            ModeArg::Bypass => Self::Bypass,
        }
    }
}

/// `agentd audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Check the chain instead
    #[arg(long)]
    pub verify: bool,
    /// Which rows
    #[command(flatten)]
    pub range: RangeArgs,
    /// Only rows of this kind: allow, ask or deny
    #[arg(long, value_parser = audit_decision)]
    pub decision: Option<AuditDecision>,
    /// Only rows whose command has this text, capitals or not
    #[arg(long)]
    pub text: Option<String>,
    /// Only the last rows
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
}

/// Rows of the audit.
#[derive(Debug, Default, Args)]
pub struct RangeArgs {
    /// Only this session's: its id, the id's last digits, or its name
    #[arg(long)]
    pub session: Option<String>,
    /// From this moment on, in milliseconds since 1970
    #[arg(long, value_name = "MS")]
    pub since: Option<u64>,
    /// Before this moment
    #[arg(long, value_name = "MS")]
    pub until: Option<u64>,
}

fn audit_decision(text: &str) -> Result<AuditDecision, String> {
    match text {
        "allow" => Ok(AuditDecision::Allow),
        "ask" => Ok(AuditDecision::Ask),
        "deny" => Ok(AuditDecision::Deny),
        _ => Err("say allow, ask or deny".to_owned()),
    }
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum OfflineError {
    /// No place for files, or a broken configuration.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No such session, or several.
    #[error("{0}")]
    Session(String),
    /// A rule file that was named cannot be used.
    #[error("the rules in {} cannot be used: {reason}", .file.display())]
    Rules {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Standard input or output.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl OfflineError {
    /// The process's exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Start(error) => error.exit_code(),
            Self::Store(_) => 5,
            Self::Rules { .. } => EXIT_WRONG,
            Self::Session(_) => 8,
            Self::Io(_) => 1,
        }
    }
}

/// The answers' way out; a reader that went away has seen enough.
type Out = BufWriter<io::StdoutLock<'static>>;

fn output() -> Out {
    BufWriter::new(io::stdout().lock())
}

fn line<T: serde::Serialize>(out: &mut Out, value: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

fn settings(cli: &Cli) -> Result<(Paths, Config), OfflineError> {
    let paths = daemon::paths(cli)?;
    let loaded = daemon::configuration(cli, &paths).map_err(StartError::from)?;
    Ok((paths, loaded.config))
}

fn decided(verdict: Verdict) -> Decided {
    match verdict {
        Verdict::Allow => Decided::Allow,
        Verdict::Ask => Decided::Ask,
        Verdict::Deny => Decided::Deny,
    }
}

/// Serves `agentd policy`.
///
/// # Errors
/// Why there is no answer.
pub fn policy(cli: &Cli, verb: &PolicyVerb) -> Result<u8, OfflineError> {
    silent(match verb {
        PolicyVerb::Check(args) => check::run(cli, args),
        PolicyVerb::Test { files } => rules::run(cli, files),
        PolicyVerb::Replay { rules, range } => replay::run(cli, rules, range),
    })
}

/// Serves `agentd audit`.
///
/// # Errors
/// Why there is no answer.
pub fn audit(cli: &Cli, args: &AuditArgs) -> Result<u8, OfflineError> {
    silent(audit::run(cli, args))
}

fn silent(result: Result<u8, OfflineError>) -> Result<u8, OfflineError> {
    match result {
        Err(OfflineError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        other => other,
    }
}
