//! `agentd`: the daemon, and (hidden) `agentd shim`, which is served before any runtime, database or key is loaded.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentd::program::run()
}
