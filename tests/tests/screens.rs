//! What a person sees in a real terminal emulator (tmux), at three sizes.

use std::fs;

use expect_test::{Expect, expect};
use harness::model_server::{Block, Gate, Reply};
use harness::scene::Scene;
use harness::wait;
use proto::event::{EventBody, TurnOutcome};
use proto::request::ApproveMode;
use serde_json::json;

const ANSWER: &str = "\
# Plan

The **loop** begins at `argv[2]`; see [the manual](https://example.org/m). 日本語 and 👩‍💻 stay whole.

1. change it
2. run it

| part | state |
|------|------:|
| loop | wrong |

```py
for name in sys.argv[1:]:
    print(name)  # each
```
";

/// A turn with text, a command and an edit.
fn script(scene: &Scene) {
    fs::write(scene.machine.work().join("a.py"), "for x in y[2:]:\n    print(x)\n").unwrap();
    let path = scene.machine.work().join("a.py").display().to_string();
    scene.server.script(Reply::text(ANSWER).pieces(7));
    let view = json!({ "command": "view", "path": path });
    let edit = json!({ "command": "str_replace", "path": path, "old_str": "y[2:]", "new_str": "y[1:]" });
    scene.server.script(Reply::blocks(vec![Block::bash("printf 'one\\ntwo\\n'; (exit 3)"), Block::edit(&view)]));
    scene.server.script(Reply::blocks(vec![Block::Text("Now the change.".into()), Block::edit(&edit)]));
    scene.server.script(Reply::text("It is **done**."));
}

fn shows(size: (u16, u16), first: &Expect, second: &Expect) {
    let mut scene = Scene::new();
    script(&scene);
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_tmux(size, &["ask", "-s", &session, "--approve", "all", "fix it"]);
    assert_eq!(terminal.exit_code(), 0);
    first.assert_eq(&terminal.history());
    // Else the second finds the first still attached.
    wait::until("the first to be gone", || (scene.client.show(scene.session).clients.len() == 1).then_some(()));
    let terminal = scene.machine.ctl_in_tmux(size, &["ask", "-s", &session, "--approve", "all", "go on"]);
    assert_eq!(terminal.exit_code(), 0);
    second.assert_eq(&terminal.history());
}

#[test]
fn an_answer_and_a_turn_with_calls_at_80_columns() {
    shows(
        (80, 24),
        &expect![[r#"
            · session <id> (continued) · mode ask
            · harness is attached too

            Plan

            The loop begins at argv[2]; see the manual (https://example.org/m). 日本語 and
            👩‍💻 stay whole.

            1. change it
            2. run it

            part │ state
            ─────┼──────
            loop │ wrong

              for name in sys.argv[1:]:
                  print(name)  # each

            · <time> · 25 tokens in, 8 out, 0.0003 USD
        "#]],
        &expect![[r#"
            · session <id> (continued) · mode ask
            · harness is attached too
            ● $ printf 'one\ntwo\n'; (exit 3) · exit 3
              one
              two
            ● view <path>

            Now the change.

            ● edit <path> +1 −1
              1 - for x in y[2:]:
              1 + for x in y[1:]:
              2       print(x)

            It is done.

            · <time> · 75 tokens in, 38 out, 0.0011 USD
        "#]],
    );
}

#[test]
fn an_answer_and_a_turn_with_calls_at_120_columns() {
    shows(
        (120, 40),
        &expect![[r#"
            · session <id> (continued) · mode ask
            · harness is attached too

            Plan

            The loop begins at argv[2]; see the manual (https://example.org/m). 日本語 and 👩‍💻 stay whole.

            1. change it
            2. run it

            part │ state
            ─────┼──────
            loop │ wrong

              for name in sys.argv[1:]:
                  print(name)  # each

            · <time> · 25 tokens in, 8 out, 0.0003 USD
        "#]],
        &expect![[r#"
            · session <id> (continued) · mode ask
            · harness is attached too
            ● $ printf 'one\ntwo\n'; (exit 3) · exit 3
              one
              two
            ● view <path>

            Now the change.

            ● edit <path> +1 −1
              1 - for x in y[2:]:
              1 + for x in y[1:]:
              2       print(x)

            It is done.

            · <time> · 75 tokens in, 38 out, 0.0011 USD
        "#]],
    );
}

#[test]
fn an_answer_and_a_turn_with_calls_at_40_columns() {
    shows(
        (40, 20),
        &expect![[r#"
            · session <id> (continued) · mode
              ask
            · harness is attached too

            Plan

            The loop begins at argv[2]; see the
            manual (https://example.org/m). 日本語
            and 👩‍💻 stay whole.

            1. change it
            2. run it

            part │ state
            ─────┼──────
            loop │ wrong

              for name in sys.argv[1:]:
                  print(name)  # each

            · <time> · 25 tokens in, 8 out, 0.0003
              USD
        "#]],
        &expect![[r#"
            · session <id> (continued) · mode
              ask
            · harness is attached too
            ● $ printf 'one\ntwo\n'; (exit… · exit 3
              one
              two
            ● view <path>

            Now the change.

            ● edit <path> +1 −1
              1 - for x in y[2:]:
              1 + for x in y[1:]:
              2       print(x)

            It is done.

            · <time> · 75 tokens in, 38 out,
              0.0011 USD
        "#]],
    );
}

#[test]
fn a_question_stands_above_its_keys_and_an_interrupt_ends_the_turn() {
    let mut scene = Scene::new();
    scene.server.script(Reply::bash("touch x && rm x"));
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_tmux((80, 24), &["attach", &session]);
    terminal.wait_for("›");
    scene.prompt("do it", ApproveMode::Ask);
    terminal.wait_for("[y]");
    expect![[r#"
        · session <id> in <path> · claude-opus-5-5 · mode ask ·
          /help lists what can be typed
        · harness is attached too

        › do it  harness

        ? Run this command?  approval <id>
          $ touch x && rm x
          in <path>
          runs touch x · rm x
          asks because touch is not known to only read
          always adds decision = "allow", command = ["touch", "x"], exact = true
          always adds decision = "allow", command = ["rm", "x"], exact = true
          to <path>
        [y]es once  [s]ession  [a]lways  [e]dit  [n]o  [r]eason…  >
        mode ask · <id> · claude-opus-5-5 · context 0 % · 0.0003 USD · 2 attached
    "#]]
    .assert_eq(&terminal.screen());
    terminal.press(&["C-c"]);
    assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Interrupted {});
    terminal.wait_for("! interrupted");
    terminal.type_text("/detach");
    terminal.press(&["Enter"]);
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.screen().contains("[y]"), "the keys vanish with the question: {}", terminal.screen());
}

/// The window changes its size again and again while text streams: each line stands there once, in order.
#[test]
fn a_resize_while_text_streams_leaves_every_line_once() {
    let mut scene = Scene::new();
    let gate = Gate::new();
    let text: String = (0..40).map(|n| format!("- item {n} of the list that is streamed\n")).collect();
    scene.server.script(Reply::text(&text).pieces(11).hold_after_events(60, &gate));
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_tmux((80, 24), &["attach", &session]);
    terminal.wait_for("›");
    terminal.type_text("half a prompt");
    scene.prompt("list", ApproveMode::All);
    terminal.wait_for("item 10");
    for (columns, rows) in [(50, 24), (100, 30), (40, 20), (80, 24)] {
        terminal.resize(columns, rows);
        terminal.wait_for("› half a prompt");
    }
    gate.open();
    scene.client.until_turn_ended();
    terminal.wait_for("item 39 of the list that is streamed");
    let history = terminal.history();
    let seen: Vec<&str> = history.lines().filter(|line| line.contains("• item")).collect();
    let wanted: Vec<String> = (0..40).map(|n| format!("• item {n} of the list that is streamed")).collect();
    assert_eq!(seen, wanted, "{history}");
    assert_eq!(history.matches("half a prompt").count(), 1, "{history}");
}

#[test]
fn a_paste_of_ten_thousand_lines_is_one_prompt_and_detaching_leaves_the_turn() {
    let mut scene = Scene::new();
    let gate = Gate::new();
    scene.server.script(Reply::text("Read all of it.").hold_after_events(4, &gate));
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_tmux((80, 24), &["attach", &session]);
    terminal.wait_for("›");
    let text: String = (0..10_000).map(|n| format!("line {n} 日本\n")).collect();
    let file = scene.machine.work().join("paste.txt");
    fs::write(&file, &text).unwrap();
    terminal.paste(&file);
    terminal.wait_for("line 9999");
    terminal.press(&["Enter"]);
    let accepted = scene.client.until_event("the prompt", |body| match body {
        EventBody::PromptAccepted(it) => Some(it.text.clone()),
        _ => None,
    });
    assert_eq!(accepted.trim_end(), text.trim_end());
    scene.server.wait_for(1);
    terminal.press(&["C-d"]);
    assert_eq!(terminal.exit_code(), 0);
    gate.open();
    scene.client.until_turn_ended();
    let again = scene.machine.ctl_in_tmux((80, 24), &["attach", &session]);
    again.wait_for("Read all of it.");
}

/// Hostile output, in a real emulator: no title, no cleared screen, no colour of its own.
#[test]
fn hostile_output_acts_on_nothing() {
    let scene = Scene::new();
    scene.server.script(Reply::bash(r"printf '\033]0;owned\007\033[2J\033[31mred\033[0m\033[8mhid\n'"));
    scene.server.script(Reply::text("seen\u{1b}[2J \u{202e}evil `\u{9b}31m`"));
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_tmux((80, 24), &["ask", "-s", &session, "--approve", "all", "be nasty"]);
    assert_eq!(terminal.exit_code(), 0);
    expect![[r#"
        · session <id> (continued) · mode ask
        · harness is attached too
        ● $ printf '\033]0;owned\007\033[2J\033[31mred\033[0m\033[8mhid\n' · exit 0
          redhid

        seen␛[2J ‹202e›evil ‹9b›31m

        · <time> · 50 tokens in, 16 out, 0.0006 USD
    "#]]
    .assert_eq(&terminal.history());
}

/// While the model writes, its text stands there rendered, with what is going on below it; then all of it, once.
#[test]
fn text_is_shown_while_it_streams() {
    let mut scene = Scene::new();
    let gate = Gate::new();
    let text = format!("# Begun\n\nsome **words**\n\n{}", "and the rest of them. ".repeat(20));
    scene.server.script(Reply::text(&text).pieces(9).hold_after_events(8, &gate));
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_tmux((80, 24), &["ask", "-s", &session, "write"]);
    let early = terminal.wait_for("Begun");
    assert!(early.contains("writing · "), "{early}");
    let so_far = early.replace('\n', " ").matches("and the rest of them.").count();
    assert!(so_far < 20, "{early}");
    gate.open();
    assert_eq!(terminal.exit_code(), 0);
    let history = terminal.history();
    assert_eq!(history.matches("Begun").count(), 1, "{history}");
    assert_eq!(history.replace('\n', " ").matches("and the rest of them.").count(), 20, "{history}");
    assert!(!history.contains("writing"), "{history}");
    scene.client.until_turn_ended();
}

/// A question about an edit shows its diff; it appears in both terminals, the first answer wins, and the other one says whose
/// it was.
#[test]
fn two_terminals_see_one_question_and_one_answer() {
    let scene = Scene::new();
    let file = scene.machine.work().join("a.py");
    fs::write(&file, "for x in y[2:]:\n    print(x)\n").unwrap();
    let path = file.display().to_string();
    let view = json!({ "command": "view", "path": path });
    let edit = json!({ "command": "str_replace", "path": path, "old_str": "y[2:]", "new_str": "y[1:]" });
    scene.server.script(Reply::blocks(vec![Block::edit(&view), Block::edit(&edit)]));
    scene.server.script(Reply::text("It is done."));
    let session = scene.session.to_string();
    let first = scene.machine.ctl_in_tmux((80, 24), &["attach", &session]);
    first.wait_for("2 attached");
    let second = scene.machine.ctl_in_tmux((40, 20), &["attach", &session]);
    second.wait_for("›");
    first.wait_for("3 attached");
    first.type_text("fix it");
    first.press(&["Enter"]);
    for terminal in [&first, &second] {
        let shown = terminal.wait_for("[y]");
        assert!(shown.contains("- for x in y[2:]:") && shown.contains("+ for x in y[1:]:"), "{shown}");
    }
    second.press(&["y"]);
    for terminal in [&first, &second] {
        let shown = terminal.wait_for("It is done.");
        assert!(!shown.contains("[y]"), "the question is gone: {shown}");
        assert_eq!(shown.matches("fix it").count(), 1, "{shown}");
    }
    assert!(first.screen().contains("answered by agentctl on pts/"), "{}", first.screen());
    assert_eq!(fs::read_to_string(file).unwrap(), "for x in y[1:]:\n    print(x)\n");
}

#[test]
fn a_command_of_the_users_streams_and_its_output_stays() {
    let mut scene = Scene::new();
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_tmux((80, 24), &["attach", &session]);
    terminal.wait_for("2 attached");
    terminal.type_text("!echo early; until [ -e go ]; do read -t 0.05 <> <(:); done; printf '\\033[31mlate\\n'");
    terminal.press(&["Enter"]);
    terminal.wait_for("early");
    scene.client.until_event("the command", |body| matches!(body, EventBody::CommandEntered(_)).then_some(()));
    terminal.type_text("!echo refused");
    terminal.press(&["Enter"]);
    terminal.wait_for("at work");
    fs::write(scene.machine.work().join("go"), "").unwrap();
    scene.client.until_turn_ended();
    let shown = terminal.wait_for("exit 0");
    assert!(shown.contains("\n  early\n  late\n"), "{shown}");
}

/// What is known is offered, also for the arguments of commands; Enter alone never runs with what was only offered.
#[test]
fn commands_and_their_arguments_are_completed() {
    let mut scene = Scene::new();
    let session = scene.session.to_string();
    let terminal = scene.machine.ctl_in_tmux((80, 24), &["attach", &session]);
    terminal.wait_for("2 attached");
    terminal.type_text("/eff");
    terminal.wait_for("/effort");
    terminal.press(&["Tab"]);
    let offered = terminal.wait_for("xhigh");
    assert!(offered.contains("› low") && offered.contains("  max"), "{offered}");
    terminal.type_text("hi");
    terminal.wait_for("› /effort hi");
    terminal.press(&["Enter"]);
    terminal.wait_for("› /effort high");
    terminal.press(&["Enter"]);
    terminal.wait_for("effort high");
    let effort = scene.client.until_event("the setting", |body| match body {
        EventBody::SettingsChanged(it) => Some(it.effort.clone()),
        _ => None,
    });
    assert_eq!(effort.as_deref(), Some("high"));
    terminal.type_text("/who");
    terminal.press(&["Enter"]);
    terminal.wait_for("attached: agentctl on pts/");
}
