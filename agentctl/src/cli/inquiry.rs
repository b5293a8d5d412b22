//! The arguments of `policy` and `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use proto::ids::Timestamp;

use crate::candidates::sessions;

/// What `policy check` is used for, under its help.
const CHECK_EXAMPLES: &str = "\
Examples:
  agentctl policy check 'git status && rm x'
  agentctl policy check --json < commands.jsonl
Lines: {\"id\", \"command\", \"prior\"?, \"rules\"?: {\"allow\", \"ask\", \"deny\"}, \"cwd\"?}; an answer for each, in the same order.";

/// What `audit` is used for, under its help.
pub(super) const AUDIT_EXAMPLES: &str = "\
Examples:
  agentctl audit --last 20
  agentctl audit --decision deny --since 2026-12-01
  agentctl audit --session build --text 'git push' --json
  agentctl audit verify";

/// `policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Decide about a command, or about JSON lines from standard input
    ///
    /// The rules in force in the current directory count. For a command the exit code is the decision: 0, 10 or 11.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(PolicyCheckArgs),
    /// Decide about a command and show the verdict on each part of it
    Explain(PolicyExplainArgs),
    /// Check rule files and the examples in them
    Test(PolicyTestArgs),
    /// What another rule file would have decided about the commands of the audit
    Replay(PolicyReplayArgs),
}

impl PolicyCommand {
    /// Whether errors are wanted as JSON too.
    #[must_use]
    pub fn wants_json(&self) -> bool {
        match self {
            Self::Check(args) => args.json,
            Self::Explain(args) => args.json,
            Self::Test(args) => args.json,
            Self::Replay(args) => args.json,
        }
    }
}

/// A session's mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// What reads and what rules allow runs, the rest asks
    Ask,
    /// Edits inside the workspace run as well
    AcceptEdits,
    /// Nothing that changes anything
    Plan,
    /// Everything that no rule denies
    Bypass,
}

impl ModeArg {
    /// The word on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Bypass => "bypass",
        }
    }
}

/// `policy check`.
#[derive(Debug, Args)]
pub struct PolicyCheckArgs {
    /// The command; without it, JSON lines are read from standard input
    pub command: Option<String>,
    /// Decide by this rule file in place of the user's
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Decide as in this mode [default: ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// One JSON object a line: the decision, its reason and its parts
    #[arg(long)]
    pub json: bool,
}

/// `policy explain`.
#[derive(Debug, Args)]
pub struct PolicyExplainArgs {
    /// The command
    pub command: String,
    /// Decide by this rule file in place of the user's
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Decide as in this mode [default: ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `policy test`.
#[derive(Debug, Args)]
pub struct PolicyTestArgs {
    /// The files [default: those in force in the current directory]
    pub files: Vec<PathBuf>,
    /// One JSON object a file
    #[arg(long)]
    pub json: bool,
}

/// `policy replay`.
#[derive(Debug, Args)]
pub struct PolicyReplayArgs {
    /// The rule file, in place of the user's
    #[arg(long, value_name = "FILE")]
    pub rules: PathBuf,
    /// Only this session's commands: its id, the id's last digits, or its name
    #[arg(short, long, add = sessions())]
    pub session: Option<String>,
    /// Only from this moment on: 2026-12-01, 2026-12-01T14:00, 30min, 2h, 7d (ago)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub since: Option<u64>,
    /// Only before this moment
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub until: Option<u64>,
    /// One JSON object a line: {"differs": …} for each difference, then {"sum": …}
    #[arg(long)]
    pub json: bool,
}

/// `audit`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AuditArgs {
    /// What to do instead of listing rows
    #[command(subcommand)]
    pub command: Option<AuditCommand>,
    /// Only this session's: its id, the id's last digits, or its name
    #[arg(short, long, add = sessions())]
    pub session: Option<String>,
    /// Only from this moment on: 2026-12-01, 2026-12-01T14:00, 30min, 2h, 7d (ago)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub since: Option<u64>,
    /// Only before this moment
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub until: Option<u64>,
    /// Only what ran unasked, what was asked about, or what did not run
    #[arg(long, value_enum)]
    pub decision: Option<AuditDecisionArg>,
    /// Only commands with this text in them
    #[arg(long)]
    pub text: Option<String>,
    /// Only the last rows
    #[arg(short = 'n', long, value_name = "N")]
    pub last: Option<usize>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `audit verify`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that no row was changed or taken out
    Verify {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Rows of the audit by what was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditDecisionArg {
    /// Ran without a question
    Allow,
    /// Was asked about, however that ended
    Ask,
    /// Did not run
    Deny,
}

impl AuditDecisionArg {
    /// The word on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A moment as people type it, in milliseconds since 1970: a date, a date with a time, or how long ago.
fn moment(text: &str) -> Result<u64, String> {
    moment_at(text, Timestamp::now(), &TimeZone::system())
}

fn moment_at(text: &str, now: Timestamp, zone: &TimeZone) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "s" => Some(1_000),
        "min" | "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    if let (Ok(number), Some(unit)) = (number.parse::<u64>(), unit) {
        return Ok(now.0.saturating_sub(number.saturating_mul(unit)));
    }
    let civil: DateTime = text
        .parse()
        .map_err(|_| "say a date (2026-12-01), a date and time (2026-12-01T14:00) or how long ago (30min, 2h, 7d)")?;
    let moment = zone.to_timestamp(civil).map_err(|error| error.to_string())?;
    u64::try_from(moment.as_millisecond()).map_err(|_| "that is before 1970".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_or_how_long_ago() {
        let now = Timestamp(1_700_000_000_000);
        let at = |text: &str| moment_at(text, now, &TimeZone::UTC);
        assert_eq!(at("2h"), Ok(now.0 - 7_200_000));
        assert_eq!(at("30min"), Ok(now.0 - 1_800_000));
        assert_eq!(at("7d"), Ok(now.0 - 7 * 86_400_000));
        assert_eq!(at("2023-11-14"), Ok(1_699_920_000_000));
        assert_eq!(at("2023-11-14T22:13:20"), Ok(now.0));
        for wrong in ["", "yesterday", "5", "h", "2023-13-01"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}
