//! Starting the daemon: many clients at once, one daemon.

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::sync::Arc;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use support::{Fake, agentctl, err, listen, with_session};

/// A program in the daemon's place: the first one to take the lock waits until this process listens, the others say
/// what a daemon says that finds the lock taken.
const DAEMON: &str = r#"#!/bin/bash
exec 9>>"$DIR/lock"
if ! flock --nonblock 9; then
    echo "ERROR agentd is already running" >&"$2"
    exit 1
fi
echo "started $AGENTD_SOCKET $(ps -o sid= -p $$ | tr -d ' ') $$ $(pwd)" >> "$DIR/starts"
echo go > "$DIR/want"
read -r word < "$DIR/listens"
echo READY >&"$2"
eval "exec $2>&-"
read -r word < "$DIR/stop"
"#;

#[test]
fn twenty_clients_at_once_start_one_daemon_and_all_succeed() {
    let fake = Fake::start(|peer, _| peer.done());
    with_session(&fake, |_| {});
    let dir = fake.home.path().to_owned();
    let binary = dir.join("agentd");
    std::fs::write(&binary, DAEMON).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    for fifo in ["want", "listens", "stop"] {
        mkfifo(&dir.join(fifo), Mode::S_IRWXU).unwrap();
    }
    let socket = dir.join("other.sock");
    let clients: Vec<Child> = (0..20)
        .map(|_| {
            let mut command = fake.command(&["ls"]);
            command.env("AGENTD_SOCKET", &socket).env("AGENTD_BIN", &binary).env("DIR", &dir);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    // Only now, with the clients already racing, the daemon begins to listen.
    File::open(dir.join("want")).unwrap().read_to_string(&mut String::new()).unwrap();
    listen(socket.clone(), Arc::clone(&fake.record), Arc::new(|_, _| {}));
    File::options().write(true).open(dir.join("listens")).unwrap().write_all(b"yes\n").unwrap();
    for client in clients {
        let output = client.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", err(&output));
    }
    let starts = std::fs::read_to_string(dir.join("starts")).unwrap();
    let words: Vec<&str> = starts.split_whitespace().collect();
    assert_eq!(words.len(), 5, "one daemon: {starts}");
    assert_eq!(words[1], socket.to_str().unwrap(), "it listens where the clients look");
    assert_eq!(words[2], words[3], "it leads a session of its own: {starts}");
    assert_eq!(words[4], "/", "it holds no directory of ours");
    let log = dir.join(".local/state/agentd/agentd.log");
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    File::options().write(true).open(dir.join("stop")).unwrap().write_all(b"stop\n").unwrap();
}

/// With the unit installed and a user manager there, the daemon is systemd's: it gets the restarts and the limits.
#[test]
fn the_installed_unit_is_started_by_systemd_and_only_for_the_default_socket() {
    const SYSTEMCTL: &str =
        "#!/bin/bash\necho \"$@\" >> \"$HOME/calls\"\n: > \"$HOME/want\"\nread -r word < \"$HOME/listens\"\n";
    let fake = Fake::start(|_, _| {});
    with_session(&fake, |_| {});
    let home = fake.home.path().to_owned();
    let runtime = home.join("run");
    for dir in ["run/systemd", "run/agentd", ".config/systemd/user", "bin"] {
        std::fs::create_dir_all(home.join(dir)).unwrap();
    }
    std::fs::write(runtime.join("systemd/private"), "").unwrap();
    std::fs::write(home.join(".config/systemd/user/agentd.service"), "").unwrap();
    let systemctl = home.join("bin/systemctl");
    std::fs::write(&systemctl, SYSTEMCTL).unwrap();
    std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).unwrap();
    for fifo in ["want", "listens"] {
        mkfifo(&home.join(fifo), Mode::S_IRWXU).unwrap();
    }
    let run = |socket: Option<&str>| {
        let mut command = agentctl(&["ls"]);
        command.env("HOME", &home).env("XDG_RUNTIME_DIR", &runtime).env("AGENTD_BIN", "/nonexistent/agentd");
        command.env("PATH", format!("{}:/usr/bin:/bin", home.join("bin").display()));
        if let Some(socket) = socket {
            command.env("AGENTD_SOCKET", home.join(socket));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let other = run(Some("other.sock")).wait_with_output().unwrap();
    assert!(err(&other).contains("cannot start /nonexistent/agentd"), "{}", err(&other));
    let client = run(None);
    File::open(home.join("want")).unwrap().read_to_string(&mut String::new()).unwrap();
    listen(runtime.join("agentd/agentd.sock"), Arc::clone(&fake.record), Arc::new(|_, _| {}));
    File::options().write(true).open(home.join("listens")).unwrap().write_all(b"yes\n").unwrap();
    let output = client.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(std::fs::read_to_string(home.join("calls")).unwrap(), "--user start agentd\n");
}
