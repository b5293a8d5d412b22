//! Parse, run, exit. Everything else is in the library, where tests reach it.

use std::process::ExitCode;

use agentctl::cli::Cli;
use agentctl::context::Context;
use agentctl::error::CtlError;
use agentctl::{commands, render};
use clap::{CommandFactory, Parser};

fn main() -> ExitCode {
    // A shell that completes asks by an environment variable and wants nothing else.
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    let cli = Cli::parse();
    let json = cli.command.wants_json();
    let run = || {
        let context = Context::from_process(&cli.global)?;
        // One thread: a client waits far more than it works, and a second one costs start-up time.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CtlError::Setup)?;
        let result = runtime.block_on(commands::run(cli.command, &context));
        // A blocked read of a child's pipe must not keep a finished command from ending.
        runtime.shutdown_background();
        result
    };
    match run() {
        Ok(exit) => exit.into(),
        Err(CtlError::OutputClosed) => CtlError::OutputClosed.exit().into(),
        Err(error) => {
            render::report(&error, json);
            error.exit().into()
        }
    }
}
