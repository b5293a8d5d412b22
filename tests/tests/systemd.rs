//! Under systemd, as far as that needs no service manager: the socket handed over, what is told, the units' text. The
//! claims that need one are in `service.rs`.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use harness::client::Client;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::{binaries, processes, wait};
use nix::sys::signal::Signal;
use proto::request::{Request, Shutdown, Status};

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn the_first_client_starts_the_daemon_through_an_activated_socket() {
    if !has("systemd-socket-activate") {
        println!("skipped: systemd-socket-activate is not installed");
        return;
    }
    let machine = Machine::new();
    std::fs::create_dir(machine.socket().parent().unwrap()).unwrap();
    let mut command = machine.command("systemd-socket-activate".as_ref());
    for variable in ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HARNESS_MARK"] {
        command.arg("-E").arg(variable);
    }
    command.arg("-l").arg(machine.socket()).arg("--fdname=agentd").arg(binaries::agentd());
    let mut activator = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait::until("the socket", || machine.socket().exists().then_some(()));
    assert!(processes::alive(i32::try_from(activator.id()).unwrap()));
    let mut client = wait::until("the activated daemon", || Client::connect(&machine.socket()).ok());
    assert!(client.call(Request::Status(Status {})).is_ok());
    // The activator became the daemon: it ends when the daemon does. The socket is systemd's, so it stays.
    let _ = client.try_call(Request::Shutdown(Shutdown { stop_shells: true }));
    let status = wait::until("the daemon to stop", || activator.try_wait().unwrap());
    assert!(status.success(), "{status}");
    assert!(machine.socket().exists(), "an activated socket is not the daemon's to remove");
    std::fs::remove_file(machine.socket()).unwrap();
}

#[test]
fn the_units_are_what_systemd_expects() {
    if !has("systemd-analyze") {
        println!("skipped: systemd-analyze is not installed");
        return;
    }
    let machine = Machine::new();
    // As `make install` leaves them for the systemd of this machine.
    let programs = binaries::agentd().parent().unwrap().display().to_string();
    let mut make = machine.command("make".as_ref());
    let prefix = machine.root().join("data/installed");
    make.args(["-s", "-C"]).arg(binaries::repository()).arg("install");
    let made = make.arg(format!("BUILT={programs}")).arg(format!("PREFIX={}", prefix.display())).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let mut command = machine.command("systemd-analyze".as_ref());
    command.current_dir(prefix.join("share/systemd/user")).args(["--user", "verify"]);
    let output = command.args(["./agentd.service", "./agentd.socket", "./agentd.slice"]).output().unwrap();
    // The man page is there once it is installed for good. An unknown key is told on standard error only.
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = stderr.lines().filter(|line| !line.contains("Command 'man ")).collect();
    assert!(said.is_empty(), "{output:?}");
    // The repository's own file is for systemd 253 and newer, which knows the type.
    let unit = std::fs::read_to_string(binaries::repository().join("systemd/agentd.service")).unwrap();
    assert!(unit.contains("\nType=notify-reload\n") && !unit.contains("\nExecReload="), "{unit}");
    for page in ["agentctl.1", "agentctl-ask.1", "agentctl-doctor.1"] {
        assert!(prefix.join("share/man/man1").join(page).exists(), "{page}");
    }
}

/// Reads messages of sd_notify(3) until one holds `wanted`; all lines up to it.
fn told(manager: &UnixDatagram, wanted: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    while !lines.iter().any(|line| line.starts_with(wanted)) {
        let mut buffer = [0; 4096];
        let count = manager.recv(&mut buffer).unwrap_or_else(|error| panic!("{error} after {lines:?}"));
        lines.extend(String::from_utf8_lossy(&buffer[..count]).lines().map(str::to_owned));
    }
    lines
}

#[test]
fn a_service_manager_is_told_of_readiness_reload_life_and_end_in_its_own_words() {
    let mut machine = Machine::new();
    let socket = machine.root().join("run/notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(wait::PATIENCE)).unwrap();
    machine.set_env("NOTIFY_SOCKET", &socket.display().to_string());
    machine.set_env("WATCHDOG_USEC", "200000");
    let daemon = Daemon::start(&machine);
    assert_eq!(told(&manager, "READY"), ["READY=1"]);
    assert!(told(&manager, "WATCHDOG=1").iter().all(|line| line == "WATCHDOG=1"));
    daemon.signal(Signal::SIGHUP);
    // Type=notify-reload takes the answer by its time, and waits for READY after it.
    let lines = told(&manager, "STATUS=");
    let others: Vec<&String> = lines.iter().filter(|line| *line != "WATCHDOG=1").collect();
    assert_eq!(others[0], "RELOADING=1");
    assert!(others[1].strip_prefix("MONOTONIC_USEC=").is_some_and(|time| time.parse::<u64>().is_ok()), "{others:?}");
    assert_eq!(others[2], "READY=1");
    assert_eq!(others[3], "STATUS=configuration read again");
    machine.write_config("[model]\nnmae = 1\n");
    daemon.signal(Signal::SIGHUP);
    let lines = told(&manager, "STATUS=");
    let status = lines.last().unwrap();
    assert!(status.contains("nmae") && status.ends_with("the old configuration stays in force"), "{status}");
    assert!(daemon.terminate().success());
    told(&manager, "STOPPING=1");
    std::fs::remove_file(socket).unwrap();
}
