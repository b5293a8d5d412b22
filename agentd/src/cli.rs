//! Arguments of `agentd`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::offline::{AuditArgs, PolicyVerb};

/// The coding agent's daemon: owns the model conversation, the shells and the edits; `agentctl` talks to it.
#[derive(Debug, Parser)]
#[command(name = "agentd", version, about, long_about = None, after_help = EXIT_CODES)]
pub struct Cli {
    /// Listen on this Unix socket instead of $XDG_RUNTIME_DIR/agentd/agentd.sock
    #[arg(long, env = "AGENTD_SOCKET", value_name = "PATH")]
    pub socket: Option<PathBuf>,

    /// Read this configuration instead of $XDG_CONFIG_HOME/agentd/agentd.toml
    #[arg(long, env = "AGENTD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Write one line to this descriptor: READY when clients can connect, or ERROR and why not
    #[arg(long, value_name = "FD", hide = true)]
    pub ready_fd: Option<i32>,

    /// Serve on this open descriptor: the program before this one handed it over
    #[arg(long, value_name = "FD", hide = true)]
    pub inherited_fd: Option<i32>,

    /// The inherited socket is this daemon's to remove, not systemd's
    #[arg(long, hide = true)]
    pub owns_socket: bool,

    /// What to do instead of serving
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What else the program does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every setting
    Config {
        /// Also where each value comes from
        #[arg(long)]
        explain: bool,
    },
    /// Say whether this program could serve here: configuration and database
    #[command(hide = true)]
    Check,
    /// End the shells if the unit was stopped for good; the unit's ExecStopPost=
    #[command(hide = true)]
    AfterStop,
    /// Ask the policy, without running anything (`agentctl policy` shows it to people)
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// Read the audit (`agentctl audit` shows it to people)
    Audit(AuditArgs),
}

const EXIT_CODES: &str = "Exit codes: 0 stopped as asked; 1 failed; 2 wrong arguments; 3 wrong configuration; \
4 another agentd serves this socket; 5 the database cannot be used; \
8 no such session in the audit; 9 a line, a rule file or the audit's chain is wrong.";
