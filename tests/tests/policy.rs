//! The user's rules count, whatever the model and the workspace say.

use std::fs;
use std::path::PathBuf;

use harness::model_server::Reply;
use harness::scene::Scene;
use proto::approval::{Decider, Subject, Verdict};
use proto::event::{EventBody, Outcome};
use proto::request::ApproveMode;

/// Writes the user's rules.
fn rules(scene: &Scene, text: &str) {
    let file = scene.machine.config_file().with_file_name("policy.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn rule(decision: &str, command: &str) -> String {
    format!("[[rule]]\ndecision = \"{decision}\"\ncommand = \"{command}\"\n")
}

fn script(scene: &Scene, command: &str) {
    scene.server.script(Reply::bash(command));
    scene.server.script(Reply::text("so be it"));
}

fn outcomes(scene: &mut Scene) -> Vec<Outcome> {
    scene.logged(|body| match body {
        EventBody::CallFinished(finished) => Some(finished.outcome.clone()),
        _ => None,
    })
}

fn allowed_by(scene: &mut Scene) -> Vec<Decider> {
    scene.logged(|body| match body {
        EventBody::CallStarted(started) => Some(started.allowed_by.clone()),
        _ => None,
    })
}

fn pwned(scene: &Scene) -> PathBuf {
    scene.machine.work().join("pwned")
}

#[test]
fn a_rule_that_denies_beats_approve_all_wherever_the_command_hides() {
    let mut scene = Scene::new();
    rules(&scene, &rule("deny", "touch"));
    for command in ["touch pwned", "true && touch pwned", "x=$(touch pwned)", "env touch pwned"] {
        script(&scene, command);
        scene.prompt("go on", ApproveMode::All);
        scene.client.until_turn_ended();
        assert!(!pwned(&scene).exists(), "{command}");
    }
    assert_eq!(outcomes(&mut scene), vec![Outcome::Denied {}; 4]);
}

#[test]
fn a_rule_that_allows_runs_its_command_unasked_and_nothing_beside_it() {
    let mut scene = Scene::new();
    rules(&scene, &rule("allow", "mkdir"));
    script(&scene, "mkdir made");
    scene.prompt("say it", ApproveMode::Deny);
    scene.client.until_turn_ended();
    script(&scene, "mkdir other > pwned");
    scene.prompt("write it", ApproveMode::Deny);
    scene.client.until_turn_ended();
    assert!(!pwned(&scene).exists());
    assert_eq!(outcomes(&mut scene), [Outcome::Exited { status: 0 }, Outcome::Denied {}]);
    assert!(matches!(allowed_by(&mut scene).as_slice(), [Decider::Policy { rule }] if rule.contains("mkdir")));
}

#[test]
fn a_workspace_cannot_allow_and_a_broken_file_of_it_stops_what_was_allowed() {
    let mut scene = Scene::new();
    rules(&scene, &rule("allow", "echo"));
    let folder = scene.machine.work().join(".agentd");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("policy.toml"), rule("allow", "touch")).unwrap();
    for command in ["touch pwned", "echo hello"] {
        script(&scene, command);
        scene.prompt("go on", ApproveMode::Deny);
        scene.client.until_turn_ended();
    }
    assert!(!pwned(&scene).exists());
    assert_eq!(outcomes(&mut scene), [Outcome::Denied {}, Outcome::Denied {}]);
}

#[test]
fn commands_that_only_read_run_until_their_names_mean_something_else_or_the_user_wants_to_be_asked() {
    let mut scene = Scene::with(&[("policy.read_only", "ask")]);
    script(&scene, "ls -l");
    scene.prompt("look", ApproveMode::Deny);
    scene.client.until_turn_ended();
    assert_eq!(outcomes(&mut scene), [Outcome::Denied {}]);

    let mut scene = Scene::new();
    script(&scene, "ls -l");
    scene.prompt("look", ApproveMode::Deny);
    scene.client.until_turn_ended();
    script(&scene, "ls() { touch pwned; }");
    scene.prompt("define it", ApproveMode::All);
    scene.client.until_turn_ended();
    script(&scene, "ls -l");
    scene.prompt("look", ApproveMode::Deny);
    scene.client.until_turn_ended();
    assert!(!pwned(&scene).exists());
    assert_eq!(
        outcomes(&mut scene),
        [Outcome::Exited { status: 0 }, Outcome::Exited { status: 0 }, Outcome::Denied {}]
    );
}

#[test]
fn a_question_shows_the_parts_of_the_command_and_why_it_is_asked() {
    let mut scene = Scene::new();
    script(&scene, "cd sub && rm -r build; ls | wc -l");
    scene.prompt("clean", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    let Subject::Command(subject) = &asked.subject else { panic!("a command is asked: {asked:?}") };
    assert_eq!(subject.parts, ["cd sub", "rm -r build", "ls", "wc -l"]);
    assert!(!asked.reason.is_empty());
    scene.client.answer(&asked, Verdict::Deny { reason: None }).unwrap();
    scene.client.until_turn_ended();
}
