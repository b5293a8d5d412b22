//! `agentd` with fault points (feature `faults`), a program of its own so that a test never takes it for the other.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentd::program::run()
}
