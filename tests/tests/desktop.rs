//! The desktop tells a user who looks elsewhere, over a real message bus. Skipped where no `dbus-daemon` is installed.

use std::collections::HashMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use futures_util::StreamExt;
use harness::client::Client;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::model_server::{ModelServer, Reply};
use harness::wait::{self, PATIENCE};
use proto::approval::Verdict;
use proto::ids::{Seq, SessionId};
use proto::request::ApproveMode;
use zbus::{MessageStream, OwnedVariant};

/// What a desktop was asked to show.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Shown { replaces: u32, title: String, body: String },
    Closed(u32),
}

/// The number that this desktop gives to every notification.
const NUMBER: u32 = 7;

type Notification = (String, u32, String, String, String, Vec<String>, HashMap<String, OwnedVariant>, i32);

/// A message bus with a desktop on it.
struct Desktop {
    bus: Child,
    seen: Receiver<Seen>,
}

impl Desktop {
    /// `None` without a bus to start.
    fn start(machine: &mut Machine) -> Option<Self> {
        let socket = machine.root().join("bus");
        let address = format!("unix:path={}", socket.display());
        let config = machine.root().join("bus.conf");
        let policy = r#"<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy>"#;
        let text = format!("<busconfig><type>session</type><listen>{address}</listen>{policy}</busconfig>");
        fs::write(&config, text).unwrap();
        let mut command = Command::new("dbus-daemon");
        command.arg("--nofork").arg("--nopidfile").arg(format!("--config-file={}", config.display()));
        let Ok(bus) = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn() else {
            println!("skipped: dbus-daemon is not installed");
            return None;
        };
        wait::until("the bus", || socket.exists().then_some(()));
        machine.set_env("DBUS_SESSION_BUS_ADDRESS", &address);
        let (tell, seen) = channel();
        let (ready, is_ready) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let connection = zbus::connection::Builder::address(address.as_str()).build().await.unwrap();
                let mut messages = MessageStream::from(&connection);
                connection.request_name("org.freedesktop.Notifications").await.unwrap();
                ready.send(()).unwrap();
                // The stream ends with the bus.
                while let Some(Ok(message)) = messages.next().await {
                    let header = message.header();
                    let what = match header.member().map(|member| member.as_str()) {
                        Some("Notify") => {
                            let (_, replaces, _, title, body, _, _, _): Notification =
                                message.body().deserialize().unwrap();
                            connection.reply(&header, &NUMBER).await.unwrap();
                            Seen::Shown { replaces, title, body }
                        }
                        Some("CloseNotification") => {
                            connection.reply(&header, &()).await.unwrap();
                            Seen::Closed(message.body().deserialize().unwrap())
                        }
                        _ => continue,
                    };
                    if tell.send(what).is_err() {
                        return;
                    }
                }
            });
        });
        is_ready.recv_timeout(PATIENCE).expect("a desktop on the bus");
        Some(Self { bus, seen })
    }

    fn next(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).expect("the desktop is told")
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        let _ = self.bus.kill();
        let _ = self.bus.wait();
    }
}

fn session(client: &mut Client, machine: &Machine, name: &str) -> SessionId {
    let id = client.create(machine);
    assert_eq!(machine.ctl(&["rename", &id.to_string(), name]).run().code(), 0);
    id
}

/// Waits for a question of a session that nobody is attached to, and answers it.
fn answer(client: &mut Client, session: SessionId) {
    let asked = wait::until("a question", || client.show(session).approvals.first().cloned());
    assert!(client.answer(&asked, Verdict::Once {}).unwrap().yours);
}

fn shown(replaces: u32, title: &str, body: &str) -> Seen {
    Seen::Shown { replaces, title: title.to_owned(), body: body.to_owned() }
}

#[test]
fn the_desktop_tells_what_waits_and_what_is_over_while_nobody_is_attached() {
    let server = ModelServer::start();
    let mut machine = Machine::with_model(&server.url());
    let Some(desktop) = Desktop::start(&mut machine) else { return };
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    let alone = session(&mut client, &machine, "alone");
    server.script(Reply::bash("echo '<b>x</b>' > x"));
    server.script(Reply::text("done"));
    client.prompt(&machine, alone, "write x", ApproveMode::Ask);
    let asks = shown(0, "Session alone waits for your answer", "$ echo '&lt;b&gt;x&lt;/b&gt;' &gt; x");
    assert_eq!(desktop.next(), asks, "and its text is no markup");
    answer(&mut client, alone);
    assert_eq!(desktop.next(), Seen::Closed(NUMBER), "what was answered is not shown any more");
    assert_eq!(desktop.next(), shown(0, "Session alone is done", "write x"));

    // Where somebody is attached, the terminal tells.
    let watched = session(&mut client, &machine, "watched");
    let mut other = daemon.client(&machine);
    other.attach(&machine, watched, Seq(0));
    server.script(Reply::text("seen"));
    other.prompt(&machine, watched, "say it", ApproveMode::Ask);
    other.until_turn_ended();
    server.script(Reply::text("again"));
    client.prompt(&machine, alone, "once more", ApproveMode::Ask);
    assert_eq!(desktop.next(), shown(NUMBER, "Session alone is done", "write x"), "in the place of what was shown");
}

#[test]
fn a_desktop_that_hangs_or_is_gone_holds_nobody_up() {
    let server = ModelServer::start();
    let mut machine = Machine::with_model(&server.url());
    // A bus that takes connections and says nothing.
    let socket = machine.root().join("bus");
    let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    machine.set_env("DBUS_SESSION_BUS_ADDRESS", &format!("unix:path={}", socket.display()));
    machine.configure("notify.desktop", "always");
    let daemon = Daemon::start(&machine);
    let mut client = daemon.client(&machine);
    let session = client.create(&machine);
    client.attach(&machine, session, Seq(0));
    for number in 0..40 {
        server.script(Reply::text("a word"));
        client.prompt(&machine, session, &format!("say {number}"), ApproveMode::Ask);
        client.until_turn_ended();
    }
}
