//! What a newcomer does first: `make run` on a fresh checkout, without a key, a network or a terminal.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use harness::binaries::{self, repository};

#[test]
fn make_run_without_a_terminal_plays_the_demo_to_its_end() {
    // The recipe builds, too: nothing must be left to build while the clock runs.
    let _ = binaries::agentd();
    let mut command = Command::new("make");
    command.args(["--no-print-directory", "run"]).current_dir(repository());
    command.env_remove("MAKEFLAGS").env_remove("AGENTD_TEST_BIN_DIR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: between fork and exec only setsid is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid().map_err(std::io::Error::from)?;
            Ok(())
        });
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for part in ["README.md", "hello.py", "sys.argv[1:]", "Ada", "greets both"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
}
