//! One file per verb, or per family of verbs that differ in a word.

mod approvals;
mod ask;
mod attach;
mod audit;
mod change;
mod doctor;
mod export;
mod generate;
mod jobs;
mod keeping;
mod list;
mod log;
mod mode;
mod model;
mod offline;
mod policy;
mod run;
mod send;
mod session;
mod undo;

use proto::handshake::Role;

use crate::cli::Command;
use crate::connect::Connection;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::screen::Screen;
use crate::start;

/// Runs a command to its exit code.
///
/// # Errors
/// Why it failed, as a sentence for the user.
pub async fn run(command: Command, context: &Context) -> Result<Exit, CtlError> {
    match command {
        Command::Ask(args) => Box::pin(ask::run(args, context)).await,
        Command::Attach(args) => Box::pin(attach::run(args, context)).await,
        Command::Ls(args) => list::sessions(&args, context).await,
        Command::Show(args) => list::show(&args, context).await,
        Command::Log(args) => log::run(&args, context).await,
        Command::Undo(args) => undo::undo(args, context).await,
        Command::Diff(args) => undo::diff(args, context).await,
        Command::Approvals(args) => approvals::list(args, context).await,
        Command::Approve(args) => approvals::approve(args, context).await,
        Command::Deny(args) => approvals::deny(args, context).await,
        Command::Policy(command) => policy::run(command, context).await,
        Command::Audit(args) => audit::run(args, context).await,
        Command::Mode(args) => mode::run(args, context).await,
        Command::Interrupt(args) => change::interrupt(args, context).await,
        Command::Retry(args) => change::retry(args, context).await,
        Command::Steer(args) => model::steer(args, context).await,
        Command::Rerun(args) => model::rerun(args, context).await,
        Command::Compact(args) => model::compact(args, context).await,
        Command::Set(args) => model::set(args, context).await,
        Command::Usage(args) => model::usage(args, context).await,
        Command::Jobs(args) => jobs::list(args, context).await,
        Command::Job(args) => jobs::output(args, context).await,
        Command::Kill(args) => jobs::kill(args, context).await,
        Command::Background(args) => jobs::background(args, context).await,
        Command::Run(args) => run::run(args, context).await,
        Command::Env(args) => jobs::env(args, context).await,
        Command::Send(args) => send::run(args, context).await,
        Command::Rename(args) => change::rename(args, context).await,
        Command::Archive(args) => change::archive(args, context).await,
        Command::Rm(args) => change::remove(args, context).await,
        Command::Prune(args) => keeping::prune(args, context).await,
        Command::Search(args) => keeping::search(args, context).await,
        Command::Fork(args) => keeping::fork(args, context).await,
        Command::Export(args) => export::run(args, context).await,
        Command::Status(args) => list::status(&args, context).await,
        Command::Doctor(args) => doctor::run(&args, context).await,
        Command::Restart(args) => change::restart(&args, context).await,
        Command::Shutdown(args) => change::shutdown(&args, context).await,
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::man(&args),
    }
}

/// A connection that may do everything, and the screen: what most commands start with.
async fn open(context: &Context) -> Result<(Connection, Screen), CtlError> {
    Ok((start::connect(context, Role::Driver).await?, Screen::standard(context.tty)))
}
