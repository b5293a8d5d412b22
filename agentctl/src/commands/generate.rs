//! `completions` and `man`: made from the command line's own definition.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::env::Shells;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::error::CtlError;
use crate::exit::Exit;

/// By this variable a shell asks for candidates; the one that [`clap_complete::CompleteEnv`] looks for.
const COMPLETE_VARIABLE: &str = "COMPLETE";

/// The program's name in the script.
const PROGRAM: &str = "agentctl";

pub(super) fn completions(args: &CompletionsArgs) -> Result<Exit, CtlError> {
    let mut script = Vec::new();
    // The script asks this program for its candidates, so that sessions are among them.
    if let Some(shell) = Shells::builtins().completer(args.shell.name()) {
        let written = shell.write_registration(COMPLETE_VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
        written.map_err(CtlError::Output)?;
    }
    print(&script)
}

pub(super) fn man(args: &ManArgs) -> Result<Exit, CtlError> {
    let mut command = Cli::command();
    command.build();
    let man = match &args.command {
        None => clap_mangen::Man::new(command),
        Some(name) => {
            let Some(found) = command.find_subcommand(name) else {
                return Err(CtlError::NoSuchCommand(name.clone()));
            };
            clap_mangen::Man::new(found.clone().after_help(crate::exit::help())).title(format!("agentctl-{name}"))
        }
    };
    let mut text = Vec::new();
    man.render(&mut text).map_err(CtlError::Output)?;
    print(&text)
}

fn print(bytes: &[u8]) -> Result<Exit, CtlError> {
    std::io::stdout().write_all(bytes).map_err(CtlError::output)?;
    Ok(Exit::Done)
}
