//! The systemd user service, as `doctor` sees it: unit, socket, linger, control groups, journal. On a machine without a
//! user manager there is nothing to check: agentctl starts the program itself.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::unistd::{Uid, User};
use tokio::process::Command;
use tokio::time::timeout;

use super::{Check, advice, bad, good};
use crate::context::Context;
use crate::start;

/// How long a service manager may take for an answer before it counts as absent.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Where logind keeps who lingers.
const LINGER: &str = "/var/lib/systemd/linger";

/// Where journald listens.
const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// Where journald keeps what outlives a reboot.
const JOURNAL_ON_DISK: &str = "/var/log/journal";

/// Controllers that limits on commands need.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// What was found out.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Whether a user manager runs.
    manager: bool,
    /// systemd's version.
    version: Option<u32>,
    /// The installed unit.
    unit: Option<PathBuf>,
    service: Properties,
    socket: Properties,
    linger: bool,
    /// Controllers that the user manager may pass on.
    controllers: Option<String>,
    journal: bool,
    journal_on_disk: bool,
}

/// Properties of a unit, as `systemctl show` prints them.
#[derive(Debug, Default)]
struct Properties(HashMap<String, String>);

impl Properties {
    fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == value
    }
}

pub(super) async fn gather(context: &Context) -> Facts {
    let manager = start::user_manager(context);
    if !manager {
        return Facts::default();
    }
    let show = |unit: &'static str| async move {
        let wanted = "--property=LoadState,ActiveState,SubState,Result,UnitFileState,NeedDaemonReload,MainPID";
        systemctl(&["show", unit, wanted]).await.map(|text| Properties::parse(&text)).unwrap_or_default()
    };
    let version = systemctl(&["--version"]).await.and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
    let user = User::from_uid(Uid::from_raw(context.uid)).ok().flatten().map(|user| user.name);
    let group = systemctl(&["show", "--property=ControlGroup", "--value"]).await;
    Facts {
        manager,
        version,
        unit: start::unit_file(context),
        service: show("agentd.service").await,
        socket: show("agentd.socket").await,
        linger: user.is_some_and(|name| Path::new(LINGER).join(name).exists()),
        controllers: group.and_then(|group| controllers(group.trim())),
        journal: Path::new(JOURNAL_SOCKET).exists(),
        journal_on_disk: Path::new(JOURNAL_ON_DISK).exists(),
    }
}

fn controllers(group: &str) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mut fields = mounts.lines().map(|line| line.split(' '));
    let mount = fields.find_map(|mut line| {
        let place = line.nth(1)?;
        (line.next() == Some("cgroup2")).then(|| place.to_owned())
    })?;
    let file = Path::new(&mount).join(group.trim_start_matches('/')).join("cgroup.controllers");
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

async fn systemctl(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(ANSWER_WAIT, command.output()).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What the facts mean; `serving` is the process that answers on the socket.
pub(super) fn judge(facts: &Facts, serving: Option<u32>) -> Vec<Check> {
    if !facts.manager {
        return vec![good("systemd", "no user manager: agentctl starts the program itself".to_owned())];
    }
    let Some(unit) = &facts.unit else {
        let found = "a user manager runs, the unit is not installed: agentctl starts the program itself".to_owned();
        return vec![advice("systemd", found, "`make install` installs it: the work then survives a logout")];
    };
    vec![unit_check(facts, unit, serving), socket_check(facts), linger(facts), groups(facts), journal(facts)]
}

fn unit_check(facts: &Facts, unit: &Path, serving: Option<u32>) -> Check {
    let service = &facts.service;
    let version = facts.version.map(|version| format!(", systemd {version}")).unwrap_or_default();
    let found = format!("{} is {}{version}", unit.display(), service.get("ActiveState"));
    if service.is("NeedDaemonReload", "yes") || facts.socket.is("NeedDaemonReload", "yes") {
        let mend = "`systemctl --user daemon-reload`, then `systemctl --user restart agentd`; commands go on";
        return bad("systemd", format!("{} has changed on disk", unit.display()), mend);
    }
    if !service.is("LoadState", "loaded") {
        let found = format!("{} is {}", unit.display(), service.get("LoadState"));
        return bad(
            "systemd",
            found,
            "`systemctl --user daemon-reload`; `systemd-analyze --user verify agentd.service` says more",
        );
    }
    if service.is("ActiveState", "failed") {
        let mend =
            "`journalctl --user -u agentd` says why; then `systemctl --user reset-failed 'agentd.*'` and start it";
        return bad("systemd", format!("{found} ({})", service.get("Result")), mend);
    }
    let main: u32 = service.get("MainPID").parse().unwrap_or(0);
    match serving {
        Some(pid) if pid != main => {
            let found = format!("process {pid} serves, which the unit did not start");
            advice("systemd", found, "`systemctl --user restart agentd` hands over to the unit; commands go on")
        }
        Some(_) | None => good("systemd", found),
    }
}

fn socket_check(facts: &Facts) -> Check {
    if facts.socket.is("ActiveState", "active") {
        return good("socket unit", format!("agentd.socket is {}", facts.socket.get("SubState")));
    }
    let found = format!("agentd.socket is {} ({})", facts.socket.get("ActiveState"), facts.socket.get("Result"));
    let mend = "`systemctl --user reset-failed 'agentd.*'; systemctl --user enable --now agentd.socket`";
    if facts.socket.is("ActiveState", "failed") {
        return bad("socket unit", found, mend);
    }
    advice("socket unit", found, mend)
}

fn linger(facts: &Facts) -> Check {
    if facts.linger {
        return good("linger", "sessions go on when you log out".to_owned());
    }
    let found = "your user manager, and with it every session, ends when you log out".to_owned();
    advice("linger", found, "`loginctl enable-linger` keeps it")
}

fn groups(facts: &Facts) -> Check {
    let have = facts.controllers.clone().unwrap_or_default();
    let missing: Vec<&str> =
        CONTROLLERS.into_iter().filter(|name| !have.split(' ').any(|controller| controller == *name)).collect();
    if missing.is_empty() {
        return good("cgroups", format!("delegated to you: {have}"));
    }
    let found = format!("without {}: limits in agentd.slice do not hold", missing.join(" and "));
    let mend = "`sudo systemctl edit user@.service` with [Service] Delegate=cpu memory pids, on a version 2 hierarchy";
    advice("cgroups", found, mend)
}

fn journal(facts: &Facts) -> Check {
    match (facts.journal, facts.journal_on_disk) {
        (true, true) => good("journal", "`journalctl --user -u agentd`".to_owned()),
        (true, false) => advice(
            "journal",
            "`journalctl --user -u agentd`, kept in memory until the next boot".to_owned(),
            "`sudo mkdir -p /var/log/journal && sudo systemctl restart systemd-journald` keeps it on disk",
        ),
        (false, _) => bad("journal", "journald does not run".to_owned(), "`sudo systemctl start systemd-journald`"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn facts(service: &str) -> Facts {
        Facts {
            manager: true,
            version: Some(257),
            unit: Some("/home/me/.local/share/systemd/user/agentd.service".into()),
            service: Properties::parse(service),
            socket: Properties::parse("ActiveState=active\nSubState=running"),
            linger: true,
            controllers: Some("cpu memory pids".to_owned()),
            journal: true,
            journal_on_disk: true,
        }
    }

    fn said(checks: &[Check]) -> String {
        checks.iter().flat_map(super::super::lines).map(|line| line.paint(false) + "\n").collect()
    }

    #[test]
    fn a_service_as_it_should_be_needs_nothing() {
        let facts = facts("LoadState=loaded\nActiveState=active\nMainPID=7\nNeedDaemonReload=no");
        expect![[r"
            ✓ systemd       /home/me/.local/share/systemd/user/agentd.service is active, systemd 257
            ✓ socket unit   agentd.socket is running
            ✓ linger        sessions go on when you log out
            ✓ cgroups       delegated to you: cpu memory pids
            ✓ journal       `journalctl --user -u agentd`
        "]]
        .assert_eq(&said(&judge(&facts, Some(7))));
    }

    #[test]
    fn what_is_wrong_or_could_be_better_has_its_cure() {
        let failed = Facts {
            socket: Properties::parse("ActiveState=failed\nResult=service-start-limit-hit"),
            linger: false,
            controllers: Some("cpu".to_owned()),
            journal_on_disk: false,
            ..facts("LoadState=loaded\nActiveState=failed\nResult=exit-code\nMainPID=0")
        };
        expect![[r"
            ✗ systemd       /home/me/.local/share/systemd/user/agentd.service is failed, systemd 257 (exit-code)
                            → `journalctl --user -u agentd` says why; then `systemctl --user reset-failed 'agentd.*'` and start it
            ✗ socket unit   agentd.socket is failed (service-start-limit-hit)
                            → `systemctl --user reset-failed 'agentd.*'; systemctl --user enable --now agentd.socket`
            ! linger        your user manager, and with it every session, ends when you log out
                            → `loginctl enable-linger` keeps it
            ! cgroups       without memory and pids: limits in agentd.slice do not hold
                            → `sudo systemctl edit user@.service` with [Service] Delegate=cpu memory pids, on a version 2 hierarchy
            ! journal       `journalctl --user -u agentd`, kept in memory until the next boot
                            → `sudo mkdir -p /var/log/journal && sudo systemctl restart systemd-journald` keeps it on disk
        "]]
        .assert_eq(&said(&judge(&failed, None)));
        let changed = facts("LoadState=loaded\nActiveState=active\nMainPID=7\nNeedDaemonReload=yes");
        assert!(
            said(&judge(&changed, Some(7)))
                .starts_with("✗ systemd       /home/me/.local/share/systemd/user/agentd.service has changed")
        );
        let other = facts("LoadState=loaded\nActiveState=inactive\nMainPID=0");
        assert!(
            said(&judge(&other, Some(7))).starts_with("! systemd       process 7 serves, which the unit did not start")
        );
    }

    #[test]
    fn without_a_manager_there_is_nothing_to_mend() {
        assert_eq!(judge(&Facts::default(), Some(7)).len(), 1);
        assert!(judge(&Facts { unit: None, ..facts("") }, None)[0].ok);
    }
}
