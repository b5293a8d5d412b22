//! Under systemd: the socket handed over, readiness told. Only the parts that need no service manager; those that do are
//! in systemd/README.md.

use std::process::{Command, Stdio};

use harness::client::Client;
use harness::machine::Machine;
use harness::{binaries, processes, wait};
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
    for unit in ["agentd.service", "agentd.socket"] {
        let text = std::fs::read_to_string(binaries::repository().join("systemd").join(unit)).unwrap();
        let place = binaries::agentd().parent().unwrap().to_string_lossy().into_owned();
        std::fs::write(machine.work().join(unit), text.replace("@BIN@", &place)).unwrap();
    }
    let mut command = machine.command("systemd-analyze".as_ref());
    let output = command.args(["--user", "verify", "./agentd.service", "./agentd.socket"]).output().unwrap();
    // The man page is there once it is installed. An unknown key is told on standard error only.
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = stderr.lines().filter(|line| !line.contains("Command 'man ")).collect();
    assert!(said.is_empty(), "{output:?}");
}
