//! The arguments of `jobs`, `job`, `kill` and `run`.

use clap::Args;

use crate::candidates::{jobs, sessions};

/// `jobs`.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Only this session's: its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `job`.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// The job: its id or the id's last digits
    #[arg(add = jobs())]
    pub id: String,
    /// Go on until it ends
    #[arg(short, long)]
    pub follow: bool,
    /// Only the output from this byte on
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    pub since: u64,
    /// One JSON object a line: the output in pieces
    #[arg(long)]
    pub json: bool,
}

/// `kill`.
#[derive(Debug, Args)]
pub struct KillArgs {
    /// The job: its id or the id's last digits
    #[arg(add = jobs())]
    pub id: String,
    /// One JSON object: the job as it ended
    #[arg(long)]
    pub json: bool,
}

/// `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Its id, the id's last digits, or its name [default: the newest of this directory]
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// The command
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
    /// Print rows and live output as JSON lines, then {"result": …}
    #[arg(long)]
    pub json: bool,
}
