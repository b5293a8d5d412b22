//! The shim as a program of its own, for places where the daemon has no business.

fn main() -> std::process::ExitCode {
    shim::main()
}
