//! The arguments of `undo` and `diff`.

use clap::Args;

use crate::candidates::sessions;

/// `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Its id, the id's last digits, or its name [default: the newest of this directory]
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// How many edits, the last first [default: 1]
    pub steps: Option<u32>,
    /// Do not ask; needed without a terminal
    #[arg(short, long)]
    pub yes: bool,
    /// One JSON object: what was taken back
    #[arg(long)]
    pub json: bool,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Its id, the id's last digits, or its name [default: the newest of this directory]
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// Only names and numbers of lines
    #[arg(long)]
    pub stat: bool,
    /// One JSON object: all changes
    #[arg(long)]
    pub json: bool,
}
