//! The arguments of `ask` and `send`.

use clap::{Args, ValueEnum};
use proto::mode::Mode;

use crate::candidates::sessions;

/// What happens to calls that need an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ApproveArg {
    /// Nothing that would ask is run
    None,
    /// What the rules allow runs, what would ask is denied (today the same as none)
    Rules,
    /// Everything runs that no rule denies
    All,
}

/// `ask`.
#[derive(Debug, Default, Args)]
pub struct AskArgs {
    /// What to do; without it, what is piped in is the prompt
    pub prompt: Option<String>,
    /// Continue this session: its id, the id's last digits, or its name
    #[arg(short, long, value_name = "SESSION", conflicts_with_all = ["new", "name", "model", "scenario"], add = sessions())]
    pub session: Option<String>,
    /// Start a new session
    #[arg(long)]
    pub new: bool,
    /// Return as soon as the prompt is safely with the daemon
    #[arg(short, long)]
    pub detach: bool,
    /// Calls that need an approval [default: ask at a terminal, else none]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub approve: Option<ApproveArg>,
    /// The session's mode from now on: ask, accept-edits, plan or bypass
    #[arg(long)]
    pub mode: Option<Mode>,
    /// The model of a new session
    #[arg(long)]
    pub model: Option<String>,
    /// Play a scenario instead of asking a model: a built-in name or a file (starts a new session)
    #[arg(long, value_name = "NAME|FILE")]
    pub scenario: Option<String>,
    /// The name of a new session (starts one)
    #[arg(long)]
    pub name: Option<String>,
    /// Print JSON lines: every frame as it comes, then {"result": …}
    #[arg(long)]
    pub json: bool,
    /// Print only the final answer
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// Its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: String,
    /// The prompt; "-" reads it from standard input
    pub prompt: String,
    /// Calls that need an approval [default: ask at a terminal, else none]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub approve: Option<ApproveArg>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}
