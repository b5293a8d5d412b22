//! Arguments of the commands about the model's work.

use clap::Args;

use crate::candidates::sessions;

use super::ApproveArg;

/// `steer`.
#[derive(Debug, Args)]
pub struct SteerArgs {
    /// Its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: String,
    /// The note; "-" reads it from standard input
    pub text: String,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `rerun`.
#[derive(Debug, Args)]
pub struct RerunArgs {
    /// Its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: String,
    /// The new words; "-" reads them from standard input [default: the same]
    pub prompt: Option<String>,
    /// Calls that need an approval [default: ask at a terminal, else none]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub approve: Option<ApproveArg>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: String,
    /// model=ID, effort=low|medium|high|xhigh|max|default, max_tokens=N
    #[arg(required = true, value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `usage`.
#[derive(Debug, Args)]
pub struct UsageArgs {
    /// Only this session's, with its turns: its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// Of so many days, today included
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub days: u32,
    /// One JSON object: all of it
    #[arg(long)]
    pub json: bool,
}
