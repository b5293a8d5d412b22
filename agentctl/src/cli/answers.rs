//! The arguments of `approvals`, `approve` and `deny`.

use clap::Args;
use proto::mode::Mode;

use crate::candidates::{approvals, sessions};

/// `approvals`.
#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    /// Only this session's: its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// The approval: its id or the id's last digits
    #[arg(add = approvals())]
    pub id: String,
    /// Also the very same call again in this session
    #[arg(short, long)]
    pub session: bool,
    /// Also such calls from now on: adds the rule that the question shows to policy.toml
    #[arg(short, long, conflicts_with = "session")]
    pub always: bool,
    /// Run this command instead; the model is told
    #[arg(short, long, value_name = "CMD", conflicts_with_all = ["session", "always"])]
    pub edit: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `deny`.
#[derive(Debug, Args)]
pub struct DenyArgs {
    /// The approval: its id or the id's last digits
    #[arg(add = approvals())]
    pub id: String,
    /// Told to the model
    #[arg(short, long)]
    pub reason: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `mode`.
#[derive(Debug, Args)]
pub struct ModeArgs {
    /// Its id, the id's last digits, or its name [default: the newest of this directory]
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// The new mode: ask, accept-edits, plan or bypass [default: only show it]
    pub mode: Option<Mode>,
    /// Needed for bypass: nothing is asked any more
    #[arg(long)]
    pub yes_really: bool,
    /// One JSON object: the session
    #[arg(long)]
    pub json: bool,
}
