//! The exit codes: the one place that names them. The help, the man page and the README's table are made from it.

use std::process::ExitCode;

use proto::policy::Decided;

/// How an `agentctl` ends, for scripts. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command did what it was asked.
    Done,
    /// Anything without a number of its own.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The model or its API failed, or there is no key.
    Model,
    /// The turn ended, but a call was not allowed.
    Denied,
    /// The turn was interrupted.
    Interrupted,
    /// The daemon cannot be reached or started, or it refused the connection.
    Unreachable,
    /// The model refused to answer.
    Refused,
    /// No such session or approval, or the selector fits several.
    NotFound,
    /// A check found something wrong.
    Unsound,
    /// `policy check`: a person would be asked.
    WouldAsk,
    /// `policy check`: it would not run.
    WouldDeny,
}

impl Exit {
    /// What a command comes to for `policy check`.
    #[must_use]
    pub fn of(decision: Decided) -> Self {
        match decision {
            Decided::Allow => Self::Done,
            Decided::Ask => Self::WouldAsk,
            Decided::Deny => Self::WouldDeny,
        }
    }

    /// All of them, by number.
    pub const ALL: [Self; 12] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::Model,
        Self::Denied,
        Self::Interrupted,
        Self::Unreachable,
        Self::Refused,
        Self::NotFound,
        Self::Unsound,
        Self::WouldAsk,
        Self::WouldDeny,
    ];

    /// The number the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Model => 3,
            Self::Denied => 4,
            Self::Interrupted => 5,
            Self::Unreachable => 6,
            Self::Refused => 7,
            Self::NotFound => 8,
            Self::Unsound => 9,
            Self::WouldAsk => 10,
            Self::WouldDeny => 11,
        }
    }

    /// What the number means, for the help.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "any other failure",
            Self::Usage => "the command line is wrong",
            Self::Model => "the model or its API failed, or there is no key",
            Self::Denied => "the turn ended, but a call in it was not allowed",
            Self::Interrupted => "the turn was interrupted",
            Self::Unreachable => "agentd cannot be reached or started, or refused the connection",
            Self::Refused => "the model refused to answer",
            Self::NotFound => "no such session or approval, or several fit",
            Self::Unsound => "a check found something wrong: an input line, a rule file, the audit's chain",
            Self::WouldAsk => "policy check: a person would be asked",
            Self::WouldDeny => "policy check: it would be denied",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The table for the foot of the help and the man page.
#[must_use]
pub fn help() -> String {
    let rows: Vec<String> = Exit::ALL.iter().map(|exit| format!("  {}  {}", exit.code(), exit.meaning())).collect();
    format!("Exit codes:\n{}", rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_every_code_with_its_meaning() {
        let readme = include_str!("../README.md");
        for exit in Exit::ALL {
            let row = format!("| {} | {} |", exit.code(), exit.meaning());
            assert!(readme.contains(&row), "README.md lacks {row:?}");
        }
    }
}
