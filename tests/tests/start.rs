//! One daemon per user, however many clients start at once and whatever the last one left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::thread;

use harness::ctl::code;
use harness::daemon::Daemon;
use harness::machine::Machine;
use harness::wait;
use proto::request::{Request, Status};
use proto::response::Response;

/// Clients that find no daemon at the same moment.
const CROWD: usize = 20;

#[test]
fn twenty_clients_that_find_no_daemon_start_one() {
    let machine = Machine::new();
    let start = Barrier::new(CROWD);
    let outputs: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..CROWD)
            .map(|_| {
                scope.spawn(|| {
                    let ctl = machine.ctl(&["status", "--json"]);
                    start.wait();
                    ctl.run()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for output in outputs {
        let _ = output.expect(code::DONE);
    }
    // Losers of the race may still be on their way out.
    wait::until("one daemon to be left", || (machine.daemons().len() == 1).then_some(()));
}

#[test]
fn a_daemon_killed_before_is_no_obstacle_and_a_running_one_is_not_disturbed() {
    let machine = Machine::new();
    let daemon = Daemon::start(&machine);
    daemon.kill();
    assert!(fs::exists(machine.socket()).unwrap(), "the kill leaves the socket behind");
    let daemon = Daemon::start(&machine);
    let failure = Daemon::try_start(&machine).expect_err("a second daemon has no place");
    assert!(!failure.status.success());
    let said: Vec<&str> = failure.stderr.lines().filter(|line| !line.is_empty()).collect();
    assert!(said.iter().any(|line| line.contains("agentd.sock")), "it says where: {said:?}");
    let mut client = daemon.client(&machine);
    let Ok(Response::Status(status)) = client.call(Request::Status(Status {})) else { panic!("a status") };
    assert_eq!(i32::try_from(status.pid).unwrap(), daemon.pid());
}

#[test]
fn nobody_else_may_reach_the_socket_or_read_the_history() {
    let machine = Machine::new();
    let _daemon = Daemon::start(&machine);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(machine.socket().parent().unwrap()), 0o700);
    assert_eq!(mode(&machine.socket()), 0o600);
    assert_eq!(mode(&machine.database()), 0o600);
    assert_eq!(mode(machine.database().parent().unwrap()), 0o700);
}

#[test]
fn a_stopped_daemon_leaves_no_socket_and_ends_with_success() {
    let machine = Machine::new();
    let daemon = Daemon::start(&machine);
    assert!(daemon.terminate().success());
    assert!(!fs::exists(machine.socket()).unwrap());
    let _ = machine.ctl(&["status"]).run().expect(code::DONE);
    let _ = machine.ctl(&["shutdown"]).run().expect(code::DONE);
    wait::until("the daemon to end", || machine.daemons().is_empty().then_some(()));
    assert!(!fs::exists(machine.socket()).unwrap());
}

#[test]
fn a_session_has_the_environment_and_directory_of_its_creator_and_not_of_who_started_the_daemon() {
    let server = harness::model_server::ModelServer::start();
    let machine = Machine::with_model(&server.url());
    server.answer_with(|request| match request.results().first() {
        None => harness::model_server::Reply::bash("echo \"$WHO in $PWD\"; env | grep -c ANTHROPIC"),
        Some(result) => harness::model_server::Reply::text(&result.text),
    });
    let _ = machine.ctl(&["status"]).env("WHO", "starter").run().expect(code::DONE);
    for name in ["left", "right"] {
        let directory = machine.work().join(name);
        fs::create_dir(&directory).unwrap();
        let prompt = format!("who is {name}");
        let ctl = machine.ctl(&["ask", "--new", &prompt, "--approve", "all"]).env("WHO", name).current_dir(&directory);
        let output = ctl.run().expect(code::DONE);
        assert!(output.stdout.contains(&format!("{name} in {}", directory.display())), "{output:?}");
        assert!(output.stdout.contains("\n0"), "no key of the client is in the shell: {output:?}");
    }
}
