//! The hands of agentd: one process per session that owns bash, its children, the output spool and the files.
//!
//! In reading order: [`start`] turns a frame on standard input into a process that listens; [`host`] is the one loop,
//! [`waiting`] what it waits for; [`link`] is a controller's connection, [`serve`] answers its requests; [`script`] and [`bash`] hand commands to the
//! shell and learn of their end; [`state`] keeps what a new shell needs, [`renewing`] starts one; [`tree`] with [`cgroup`] and [`marks`] knows
//! which processes a command started; [`jobs`] runs commands in the background; [`pipe`], [`spool`] and [`journal`] keep output and results.
//!
//! Invariant: one thread owns everything, no runtime. Nothing blocks but the one wait of the loop, and an idle shim does
//! not wake up. Only a search ([`searching`]) has threads of its own, which share nothing with the loop and end with it.
//! Invariant: memory does not grow with what commands print.

mod bash;
mod calls;
pub mod cgroup;
mod ending;
mod environment;
mod facts;
pub mod files;
mod forks;
mod haste;
mod host;
mod jobs;
pub mod journal;
mod link;
mod marks;
mod pipe;
mod renewing;
mod running;
mod script;
mod searching;
mod serve;
mod spool;
mod start;
mod state;
mod sys;
mod tree;
mod waiting;

use std::process::ExitCode;

pub use marks::VARIABLE as MARK;
use proto::shim::start::Started;
pub use start::is_secret;

/// Runs a shim: the whole life of the process. Must be called before any thread is started.
#[must_use]
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            start::answer(&Started::Failed { message: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), start::StartError> {
    sys::close_inherited();
    let order = start::read_start(std::io::stdin().lock())?;
    if sys::detach()?.is_some() {
        // The daemon's child ends here; the shim itself is nobody's child.
        return Ok(());
    }
    nix::sys::prctl::set_child_subreaper(true).map_err(std::io::Error::from)?;
    // It was started through a descriptor, by whose number process lists would name it.
    nix::sys::prctl::set_name(c"agentd-shim").map_err(std::io::Error::from)?;
    let setup = start::set_up(order)?;
    let (instance, state_dir) = (setup.instance, setup.state_dir.clone());
    let mut host = host::Host::new(setup)?;
    start::answer(&Started::Ready { pid: std::process::id(), instance });
    start::let_go(&state_dir)?;
    host.serve();
    Ok(())
}
