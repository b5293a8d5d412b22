//! People at terminals: the question in place, the answer of one seen by the other, a hostile output that stays text.

use std::thread;
use std::time::Duration;

use harness::model_server::Reply;
use harness::pty::Pty;
use harness::scene::Scene;
use proto::event::TurnOutcome;
use proto::request::ApproveMode;

/// Longer than agentctl drops keys after it drew a question.
const AFTER_THE_DRAWING: Duration = Duration::from_millis(400);

/// Presses a key as a person does: after the question was read. A key that comes sooner is dropped on purpose.
fn press_when_read(terminal: &mut Pty, key: &str) {
    thread::sleep(AFTER_THE_DRAWING);
    terminal.type_text(key);
}

#[test]
fn a_question_is_answered_in_one_terminal_and_closed_in_the_other_with_the_name() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("echo made > made.txt"));
    scene.server.script(Reply::text("It is made."));
    let session = scene.session.to_string();
    let mut first = scene.machine.ctl_in_terminal(&["attach", &session]);
    let mut second = scene.machine.ctl_in_terminal(&["attach", &session]);
    // Both are attached before anything is asked.
    harness::wait::until("both terminals to be attached", || {
        (scene.client.show(scene.session).clients.len() >= 3).then_some(())
    });
    scene.prompt("make it", ApproveMode::Ask);
    first.wait_for("echo made > made.txt");
    second.wait_for("echo made > made.txt");
    second.wait_for("[y]");
    first.wait_for("[y]");
    press_when_read(&mut second, "y");
    second.wait_for("you answered");
    first.wait_for("answered by agentctl on pts/");
    first.wait_for("It is made.");
    second.wait_for("It is made.");
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
    assert!(scene.machine.work().join("made.txt").exists());
}

#[test]
fn ask_in_a_terminal_asks_there_and_says_no_for_the_person() {
    let scene = Scene::new();
    scene.server.script(Reply::bash("touch never.txt"));
    scene.server.script(Reply::text("Then not."));
    let mut terminal = scene.machine.ctl_in_terminal(&["ask", "--new", "make something"]);
    terminal.wait_for("touch never.txt");
    terminal.wait_for("[y]");
    press_when_read(&mut terminal, "n");
    terminal.wait_for("Then not.");
    let (status, shown) = terminal.finish();
    assert_eq!(status.code(), Some(harness::ctl::code::DENIED), "{shown}");
    assert!(!scene.machine.work().join("never.txt").exists());
}

#[test]
fn control_sequences_of_a_command_do_not_reach_the_terminal() {
    let scene = Scene::new();
    scene.server.script(Reply::bash("printf 'a\\033]0;owned\\007b\\033[2Jc\\n'"));
    scene.server.script(Reply::text("text with \u{1b}]0;owned too\u{7} inside"));
    let mut terminal = scene.machine.ctl_in_terminal(&["ask", "--new", "be nasty", "--approve", "all"]);
    terminal.wait_for("inside");
    let raw = terminal.raw();
    let (status, _) = terminal.finish();
    assert!(status.success());
    assert!(!raw.contains("\u{1b}]0;owned") && !raw.contains("\u{1b}[2J"), "{raw:?}");
}

#[test]
fn a_closed_terminal_leaves_the_turn_running() {
    let mut scene = Scene::new();
    let gate = harness::model_server::Gate::new();
    scene.server.script(Reply::text("on and on").hold_after_events(4, &gate));
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_terminal(&["ask", "-s", &session, "tell me"]);
    scene.server.wait_for(1);
    drop(terminal);
    gate.open();
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {});
}
