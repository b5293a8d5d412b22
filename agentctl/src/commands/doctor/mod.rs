//! `doctor`: what keeps agentd from working, and how to mend it. Facts are gathered here, judged in [`judge`], which is
//! pure; [`service`] does so for the systemd user service.

mod service;

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use proto::handshake::Role;
use proto::request::{Request, Status};
use proto::response::DaemonStatus;
use serde::Serialize;

use crate::cli::JsonArgs;
use crate::context::Context;
use crate::error::CtlError;
use crate::exit::Exit;
use crate::render::{Line, Style};
use crate::screen::Screen;
use crate::{socket, start};

/// Free space under which a session may soon fail to commit: a day of heavy logs.
const DISK_FREE_MIN: u64 = 256 * 1024 * 1024;

/// One finding. One that is fine and has a `mend` is advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    name: &'static str,
    ok: bool,
    found: String,
    mend: Option<String>,
}

/// What was found out.
#[derive(Debug)]
struct Facts {
    binary: Option<PathBuf>,
    socket: PathBuf,
    socket_problem: Option<String>,
    daemon: Result<DaemonStatus, String>,
    state_dir: PathBuf,
    free: Option<u64>,
    bash: bool,
    service: service::Facts,
    key_here: bool,
}

pub(super) async fn run(args: &JsonArgs, context: &Context) -> Result<Exit, CtlError> {
    let facts = gather(context).await;
    let checks = judge(&facts);
    let mut screen = Screen::standard(context.tty);
    for check in &checks {
        if args.json {
            screen.json(check)?;
        } else {
            lines(check).iter().try_for_each(|line| screen.out_line(line))?;
        }
    }
    Ok(if checks.iter().all(|check| check.ok) { Exit::Done } else { Exit::Failed })
}

async fn gather(context: &Context) -> Facts {
    let daemon = async {
        let mut connection = start::connect(context, Role::Observer).await?;
        crate::answer!(connection, Request::Status(Status {}), Status)
    };
    let state_dir = context.state_dir();
    Facts {
        daemon: daemon.await.map_err(|error| error.to_string()),
        binary: start::daemon_binary(context),
        socket: context.socket.path.clone(),
        socket_problem: socket::check(&context.socket, context.uid).err().map(|error| error.to_string()),
        free: free_space(&state_dir),
        state_dir,
        bash: Path::new("/bin/bash").exists(),
        service: service::gather(context).await,
        key_here: context.var("ANTHROPIC_API_KEY").or_else(|| context.var("ANTHROPIC_AUTH_TOKEN")).is_some(),
    }
}

/// Free bytes where the directory is or will be.
fn free_space(dir: &Path) -> Option<u64> {
    let place = dir.ancestors().find(|place| place.exists())?;
    let disk = statvfs(place).ok()?;
    Some(disk.blocks_available().saturating_mul(disk.fragment_size()))
}

fn judge(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![binary(facts), socket_check(facts), daemon(facts)];
    if let Ok(status) = &facts.daemon {
        checks.push(release(status));
        checks.push(key(status, facts.key_here));
        checks.push(accounting(status));
        checks.extend(status.warnings.iter().map(|warning| {
            let mend = Some("see the sentence itself; then restart agentd or send it SIGHUP".to_owned());
            Check { name: "configuration", ok: false, found: warning.clone(), mend }
        }));
        if status.warnings.is_empty() {
            let files = &status.config_files;
            let found = if files.is_empty() { "defaults, no file".to_owned() } else { files.join(", ") };
            checks.push(good("configuration", found));
        }
    }
    checks.extend([disk(facts), bash(facts)]);
    checks.extend(service::judge(&facts.service, facts.daemon.as_ref().ok().map(|status| status.pid)));
    checks
}

fn good(name: &'static str, found: String) -> Check {
    Check { name, ok: true, found, mend: None }
}

fn advice(name: &'static str, found: String, mend: &str) -> Check {
    Check { name, ok: true, found, mend: Some(mend.to_owned()) }
}

fn bad(name: &'static str, found: String, mend: &str) -> Check {
    Check { name, ok: false, found, mend: Some(mend.to_owned()) }
}

fn binary(facts: &Facts) -> Check {
    match &facts.binary {
        Some(path) => good("program", format!("{} would be started", path.display())),
        None => bad(
            "program",
            "no agentd beside agentctl or in PATH".to_owned(),
            "install agentd, or name it with AGENTD_BIN",
        ),
    }
}

fn socket_check(facts: &Facts) -> Check {
    let path = facts.socket.display().to_string();
    match &facts.socket_problem {
        None => good("socket", path),
        Some(problem) => bad("socket", problem.clone(), "mend the owner or mode, or name another socket with --socket"),
    }
}

fn daemon(facts: &Facts) -> Check {
    match &facts.daemon {
        Ok(status) => good("daemon", format!("agentd {} answers, process {}", status.release, status.pid)),
        Err(problem) => {
            bad("daemon", problem.clone(), "read agentd.log in the state directory, or `journalctl --user -u agentd`")
        }
    }
}

fn release(status: &DaemonStatus) -> Check {
    let mine = env!("CARGO_PKG_VERSION");
    if status.release == mine {
        good("versions", format!("agentctl and agentd are both {mine}"))
    } else {
        let found = format!("agentctl is {mine}, agentd is {}", status.release);
        bad("versions", found, "restart agentd: `agentctl shutdown`, then any command; running commands go on")
    }
}

fn key(status: &DaemonStatus, here: bool) -> Check {
    match (status.key_source.as_str(), here) {
        ("none", false) => bad(
            "key",
            "neither the daemon nor this shell has a key".to_owned(),
            "set ANTHROPIC_API_KEY, or put the key into the daemon's configuration; local servers need none",
        ),
        ("none", true) => good("key", "from this shell's environment".to_owned()),
        ("not needed", _) => good("key", "not needed by the configured server".to_owned()),
        (source, _) => good("key", format!("from {source}")),
    }
}

fn accounting(status: &DaemonStatus) -> Check {
    if status.accounting == "cgroup" {
        return good("accounting", "each command has a control group of its own".to_owned());
    }
    advice(
        "accounting",
        format!("commands are told apart by {}; one that hides well may outlive its deadline", status.accounting),
        "run agentd as a systemd user service: it has control groups then (systemd/README.md)",
    )
}

fn disk(facts: &Facts) -> Check {
    let place = facts.state_dir.display();
    match facts.free {
        Some(free) if free < DISK_FREE_MIN => bad(
            "disk",
            format!("{} MiB free at {place}", free / 1024 / 1024),
            "free some space, or move XDG_STATE_HOME: a full disk stops every session",
        ),
        Some(free) => good("disk", format!("{} MiB free at {place}", free / 1024 / 1024)),
        None => {
            bad("disk", format!("the free space at {place} cannot be read"), "check XDG_STATE_HOME and its permissions")
        }
    }
}

fn bash(facts: &Facts) -> Check {
    if facts.bash {
        good("shell", "/bin/bash".to_owned())
    } else {
        bad("shell", "there is no /bin/bash".to_owned(), "install bash: it is the shell of every session")
    }
}

fn lines(check: &Check) -> Vec<Line> {
    let mark = match (check.ok, &check.mend) {
        (true, None) => Line::new().lit(Style::Good, "✓ "),
        (true, Some(_)) => Line::new().lit(Style::Warn, "! "),
        (false, _) => Line::new().lit(Style::Bad, "✗ "),
    };
    let name = format!("{:<14}", check.name);
    let mut lines = vec![mark.text(Style::Bold, &name).text(Style::Plain, &check.found).prose_below(16)];
    if let Some(mend) = &check.mend {
        lines.push(Line::new().lit(Style::Plain, "                → ").text(Style::Warn, mend).prose_below(18));
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_failing_line_says_how_to_mend_it() {
        let facts = Facts {
            binary: None,
            socket: "/run/user/7/agentd/agentd.sock".into(),
            socket_problem: Some("it belongs to user 8".into()),
            daemon: Err("agentd did not start: the config is broken".into()),
            state_dir: "/home/me/.local/state/agentd".into(),
            free: Some(1024),
            bash: false,
            service: service::Facts::default(),
            key_here: false,
        };
        let checks = judge(&facts);
        assert!(checks.iter().all(|check| check.ok || check.mend.is_some()));
        let text: String = checks.iter().flat_map(lines).map(|line| line.paint(false) + "\n").collect();
        expect![[r#"
            ✗ program       no agentd beside agentctl or in PATH
                            → install agentd, or name it with AGENTD_BIN
            ✗ socket        it belongs to user 8
                            → mend the owner or mode, or name another socket with --socket
            ✗ daemon        agentd did not start: the config is broken
                            → read agentd.log in the state directory, or `journalctl --user -u agentd`
            ✗ disk          0 MiB free at /home/me/.local/state/agentd
                            → free some space, or move XDG_STATE_HOME: a full disk stops every session
            ✗ shell         there is no /bin/bash
                            → install bash: it is the shell of every session
            ✓ systemd       no user manager: agentctl starts the program itself
        "#]]
        .assert_eq(&text);
    }
}
