//! The program: arguments to a verb, a verb's result to an exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::offline::{self, OfflineError};
use crate::{config, daemon, memory, systemd};

/// Threads of the runtime: the daemon mostly waits, and each thread has a stack and caches of its own.
const WORKERS_MAX: usize = 4;

/// Runs it.
#[must_use]
pub fn run() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == "shim") {
        return shim::main();
    }
    let mut cli = Cli::parse();
    match cli.command.take() {
        Some(Command::Config { explain }) => show_config(&cli, explain),
        Some(Command::AfterStop) => in_runtime(async {
            systemd::manager::after_stop().await;
            Ok(())
        }),
        Some(Command::Policy(verb)) => answered(offline::policy(&cli, &verb)),
        Some(Command::Audit(args)) => answered(offline::audit(&cli, &args)),
        Some(Command::Check) => match daemon::check(&cli) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string(), error.exit_code()),
        },
        None => in_runtime(daemon::run(cli)),
    }
}

fn answered(result: Result<u8, OfflineError>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error.to_string(), error.exit_code()),
    }
}

fn in_runtime(work: impl Future<Output = Result<(), daemon::StartError>>) -> ExitCode {
    memory::limit();
    let workers = std::thread::available_parallelism().map_or(WORKERS_MAX, |cores| cores.get().min(WORKERS_MAX));
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("agentd cannot start: {error}"), 1),
    };
    match runtime.block_on(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string(), error.exit_code()),
    }
}

fn show_config(cli: &Cli, explain: bool) -> ExitCode {
    let loaded = daemon::paths(cli).and_then(|paths| daemon::configuration(cli, &paths).map_err(Into::into));
    match loaded {
        Ok(loaded) => {
            let mut out = std::io::stdout().lock();
            for (key, value) in config::load::settings(&loaded.config) {
                let origin = loaded.origins.get(&key).map_or("default", String::as_str);
                let line = if explain { format!("{key} = {value}    # {origin}") } else { format!("{key} = {value}") };
                // A reader that closed the pipe has seen enough.
                if writeln!(out, "{line}").is_err() {
                    break;
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error.to_string(), error.exit_code()),
    }
}

fn fail(message: &str, code: u8) -> ExitCode {
    // Standard error may be closed; the exit code still says it.
    let _ = writeln!(std::io::stderr(), "agentd: {message}");
    ExitCode::from(code)
}
