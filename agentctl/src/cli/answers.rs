//! The arguments of `approvals`, `approve` and `deny`.

use clap::Args;

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
