//! Arguments of the commands that make a document: transcripts, completion scripts, manual pages.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::candidates::sessions;

/// `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Its id, the id's last digits, or its name [default: the newest of this directory]
    #[arg(add = sessions())]
    pub session: Option<String>,
    /// One page for a browser that needs nothing else
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub html: bool,
    /// Markdown; this is the default
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// The session and its rows, one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Into this file, which only you can read [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Shells that complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShellArg {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// The friendly interactive shell
    Fish,
    /// Elvish
    Elvish,
}

impl ShellArg {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Elvish => "elvish",
        }
    }
}

/// `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell
    pub shell: ShellArg,
}

/// `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The page of one command, for example `ask` [default: the overview]
    pub command: Option<String>,
}
