//! Arguments of the verbs that keep sessions: search, fork, prune.

use std::time::Duration;

use clap::Args;

use crate::candidates::sessions;

/// `search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Words, in any case; each also stands for longer ones that begin with it
    #[arg(required = true)]
    pub words: Vec<String>,
    /// At most so many rows
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 20)]
    pub limit: u32,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `fork`.
#[derive(Debug, Args)]
pub struct ForkArgs {
    /// The other session: its id, the id's last digits, or its name
    #[arg(add = sessions())]
    pub session: String,
    /// Take its rows up to this one, back to the last moment at which nothing was under way [default: all]
    #[arg(long, value_name = "SEQ")]
    pub at: Option<u64>,
    /// The new session's name
    #[arg(long)]
    pub name: Option<String>,
    /// One JSON object: the new session
    #[arg(long)]
    pub json: bool,
}

/// `prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Not used for so long: 30d, 12h, 90m
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub older_than: Duration,
    /// Only archived sessions
    #[arg(long)]
    pub archived: bool,
    /// Remove them; without it, they are only listed
    #[arg(short, long)]
    pub yes: bool,
    /// One JSON object: what was removed, or would be
    #[arg(long)]
    pub json: bool,
}

/// A number with one of the units a person counts sessions' ages in.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time such as 30d, 12h or 90m");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        'd' => 24 * 60 * 60,
        'h' => 60 * 60,
        'm' => 60,
        _ => return Err(wrong()),
    };
    let number: u64 = text.trim_end_matches(unit).parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}
