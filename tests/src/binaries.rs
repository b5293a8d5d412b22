//! The real binaries, built before they are used.
//!
//! A workspace test of another package neither builds nor refreshes them, so an old build would silently be tested.
//! They are built once per test process, unless `AGENTD_TEST_BIN_DIR` names a directory where the caller has just built
//! them (the setup script of `.config/nextest.toml` does so for a whole run).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names a directory with fresh binaries.
const BIN_DIR: &str = "AGENTD_TEST_BIN_DIR";

/// The daemon.
#[must_use]
pub fn agentd() -> PathBuf {
    directory().join("agentd")
}

/// The client.
#[must_use]
pub fn agentctl() -> PathBuf {
    directory().join("agentctl")
}

/// The daemon with fault points; built when it is asked for, beside the other.
///
/// # Panics
/// When it does not build.
#[must_use]
pub fn agentd_faults() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "-p", "agentd", "--features", "faults", "--bin", "agentd-faults"]);
        let output = cargo.current_dir(repository()).output().expect("cargo runs");
        assert!(output.status.success(), "agentd-faults:\n{}", String::from_utf8_lossy(&output.stderr));
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from);
        target.join("debug/agentd-faults")
    };
    BUILT.get_or_init(make).clone()
}

/// The repository's root.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository")
}

fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| env::var_os(BIN_DIR).map_or_else(build, PathBuf::from))
}

/// Builds both in the profile of this very test binary and returns where they are.
fn build() -> PathBuf {
    // .../target/<profile>/deps/<test binary>
    let test = env::current_exe().expect("this binary has a path");
    let profile = test.parent().and_then(Path::parent).expect("a test binary lies in target/<profile>/deps");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "-p", "agentd", "-p", "agentctl"]).current_dir(repository());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "the binaries do not build:\n{}", String::from_utf8_lossy(&output.stderr));
    profile.to_owned()
}
