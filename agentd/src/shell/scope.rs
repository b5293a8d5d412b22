//! A shim's place in systemd: a transient scope of its own under `agentd.slice`, so that the end of the daemon's unit,
//! however it ends, leaves shells alone, and an ordinary user gets a control group that the shim may divide.
//!
//! Made by `systemd-run --scope`: it asks the manager, waits for the scope and becomes the shim, in 10 to 15 ms. Talking
//! D-Bus ourselves would save half of that once a session, for some forty more crates in the process that has the key.
//!
//! Only for a daemon that itself lives in the user manager: a scope ends with its manager, a daemon started from a login
//! does not have to. Where no scope can be made, the shim is started without one.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use proto::ids::SessionId;
use tokio::process::Command;
use uuid::Uuid;

use crate::systemd::place;

/// How the scopes' names begin; `systemd::manager` stops them by it.
pub const PREFIX: &str = "agentd-shim-";

/// The slice of all of them: one place for limits on everything that agents run.
const SLICE: &str = "agentd.slice";

/// File in the session's directory with the control group of its shim's scope.
const RECORD: &str = "scope";

/// How processes in a scope that is stopped are ended: TERM, then KILL after this. A session's shell is told by the
/// daemon before; this is for the end of the whole manager.
const STOP_TIMEOUT: &str = "--property=TimeoutStopSec=10";

/// Digits of the session's id in a scope's name: its random part, as in the socket's path.
const NAME_DIGITS: usize = 12;

/// A way to start a shim in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A command that is killed for its memory does not take the session's shell along.
    OomContinues,
    /// For managers that know no such setting for scopes.
    Plain,
}

/// The ways worth trying from where this daemon is, the best first.
pub(super) fn ways() -> &'static [Way] {
    let uid = nix::unistd::getuid().as_raw();
    let managed = place::own().is_some_and(|group| place::in_user_manager(&group, uid));
    if managed { &[Way::OomContinues, Way::Plain] } else { &[] }
}

/// The command that becomes the shim inside a new scope. The descriptor must be open until it is spawned.
pub(super) fn command(program: &Path, session: SessionId, way: Way) -> std::io::Result<(Command, OwnedFd)> {
    // Not by its path: that is `/proc/self/exe`, which would be systemd-run itself there, and the file it stands for may
    // have been replaced by an upgrade. A duplicate is inherited; every child of ours may read our own program.
    let file = fs::File::open(program)?;
    let inherited = nix::unistd::dup(&file)?;
    let mut command = Command::new("systemd-run");
    command
        .args(["--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes", STOP_TIMEOUT])
        // At the end of the manager the daemon is stopped first: it can then tell what became of the commands.
        .arg("--property=Before=agentd.service")
        .arg(format!("--slice={SLICE}"))
        .arg(format!("--unit={}", unit_name(session)))
        .arg(format!("--description=agentd: shell of session {}", session.short()));
    match way {
        Way::OomContinues => {
            command.arg("--property=OOMPolicy=continue");
        }
        Way::Plain => {}
    }
    command.arg("--").arg(format!("/proc/self/fd/{}", inherited.as_raw_fd()));
    Ok((command, inherited))
}

/// Unlike any earlier one of the session: the scope of a dead shim may still be there.
fn unit_name(session: SessionId) -> String {
    let again = Uuid::new_v4().simple().to_string();
    format!("{}{}.scope", of_session(session), &again[..4])
}

fn of_session(session: SessionId) -> String {
    let name = session.0.simple().to_string();
    format!("{PREFIX}{}-", &name[name.len() - NAME_DIGITS..])
}

/// Notes where the shim is, for [`sweep`]. Without the note its processes are still found by their mark.
pub(super) fn record(session: SessionId, shim: u32, state: &Path) {
    let group = place::of(&shim.to_string()).filter(|group| is_scope(group, session));
    let file = state.join(RECORD);
    let done = match group {
        Some(group) => fs::write(&file, group),
        None => match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        },
    };
    if let Err(error) = done {
        tracing::warn!(%session, %error, file = %file.display(), "the shell's scope cannot be noted");
    }
}

/// Ends everything in the scope of a dead shim of the session; the manager then removes the scope.
pub(super) fn sweep(session: SessionId, state: &Path) {
    let Ok(group) = fs::read_to_string(state.join(RECORD)) else { return };
    if !is_scope(&group, session) {
        return;
    }
    let Some(root) = mount() else { return };
    let kill = root.join(group.trim_start_matches('/')).join("cgroup.kill");
    match fs::write(&kill, "1") {
        Ok(()) => {}
        // It went with its last process.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%session, %error, file = %kill.display(), "the dead shell's scope is not emptied"),
    }
}

/// Whether a group is a scope of this very session: nothing else is ever swept.
fn is_scope(group: &str, session: SessionId) -> bool {
    let unit = group.rsplit('/').next().unwrap_or_default();
    unit.starts_with(&of_session(session)) && unit.ends_with(".scope") && !group.split('/').any(|part| part == "..")
}

/// Whether a process is in the scope of some shim.
#[must_use]
pub fn is_inside(pid: i32) -> bool {
    place::of(&pid.to_string()).is_some_and(|group| group.split('/').any(|part| part.starts_with(PREFIX)))
}

/// Where the version 2 hierarchy is mounted.
fn mount() -> Option<PathBuf> {
    let group = shim::cgroup::own_group().ok()?;
    let own = place::own()?;
    let depth = Path::new(&own).components().filter(|part| matches!(part, std::path::Component::Normal(_))).count();
    group.ancestors().nth(depth).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_scope_of_the_very_session_is_swept() {
        let (session, other) = (SessionId::new(), SessionId::new());
        let group = format!("/user.slice/user@7.service/agentd.slice/{}", unit_name(session));
        assert!(is_scope(&group, session));
        assert!(!is_scope(&group, other));
        assert!(!is_scope("/user.slice/user@7.service/app.slice/agentd.service", session));
        assert!(!is_scope(&format!("/a/../{}", unit_name(session)), session));
        assert!(!is_scope("", session));
    }

    #[test]
    fn the_shim_is_what_runs_in_the_scope_and_the_program_is_kept_open_for_it() {
        let (command, program) = command(Path::new("/proc/self/exe"), SessionId::new(), Way::Plain).unwrap();
        let arguments: Vec<_> = command.as_std().get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(arguments.last().unwrap(), &format!("/proc/self/fd/{}", program.as_raw_fd()));
        assert!(arguments.contains(&"--slice=agentd.slice".to_owned()), "{arguments:?}");
    }
}
