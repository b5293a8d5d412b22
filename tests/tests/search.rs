//! Searches: what the model finds with `grep` and `glob`, that nobody is asked for it, and that it hears of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use harness::model_server::{Block, Reply, ToolResult};
use harness::scene::Scene;
use proto::approval::Decider;
use proto::event::{EventBody, Outcome};
use proto::request::{ApproveMode, Interrupt, Request};
use serde_json::{Value, json};

fn search(tool: &str, input: &Value) -> Reply {
    Reply::blocks(vec![Block::tool(tool, &input.to_string())])
}

fn put(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// One turn whose calls are all made at once, by a user who would be asked for everything that asks.
fn results(scene: &mut Scene, calls: &[(&str, Value)]) -> Vec<ToolResult> {
    let blocks = calls.iter().map(|(tool, input)| Block::tool(tool, &input.to_string())).collect();
    scene.server.script(Reply::blocks(blocks));
    scene.server.script(Reply::text("found"));
    let seen = scene.server.requests().len();
    scene.prompt("search", ApproveMode::Deny);
    scene.client.until_turn_ended();
    scene.server.wait_for(seen + 2).results()
}

#[test]
fn contents_and_names_are_found_and_nobody_is_asked() {
    let mut scene = Scene::new();
    let work = scene.machine.work();
    put(&work, "src/a.rs", "fn one() {}\nfn two() {}\n// end\n");
    put(&work, "src/b.txt", "fn three\n");
    put(&work, "target/c.rs", "fn built() {}\n");
    put(&work, ".hidden.rs", "fn hidden() {}\n");
    put(&work, ".gitignore", "target/\n");
    put(&work, "blob.bin", b"fn \0 binary\n");
    let results = results(
        &mut scene,
        &[
            ("grep", json!({ "pattern": "^fn" })),
            ("grep", json!({ "pattern": "TWO", "ignore_case": true, "output_mode": "content", "context": 1 })),
            ("grep", json!({ "pattern": "fn", "glob": "*.rs", "output_mode": "count" })),
            ("grep", json!({ "pattern": "built" })),
            ("grep", json!({ "pattern": "fn", "all": true, "path": "target" })),
            ("glob", json!({ "pattern": "*.rs" })),
            ("glob", json!({ "pattern": "src/*" , "path": "."})),
        ],
    );
    let text = |index: usize| results[index].text.as_str();
    assert_eq!(text(0), "src/a.rs\nsrc/b.txt\n[1 binary file was not searched.]\n");
    assert_eq!(text(1), "src/a.rs\n1-fn one() {}\n2:fn two() {}\n3-// end\n[1 binary file was not searched.]\n");
    assert_eq!(text(2), "src/a.rs:2\n");
    assert!(
        text(3).starts_with("Nothing matches in . (3 files searched). Passed over: 1 ignored and 2 hidden"),
        "{}",
        text(3)
    );
    assert_eq!(text(4), "target/c.rs\n");
    assert_eq!(text(5), "src/a.rs\n");
    assert_eq!(text(6).lines().count(), 2);
    let allowed = scene.logged(|body| match body {
        EventBody::CallStarted(started) => Some(started.allowed_by.clone()),
        _ => None,
    });
    assert!(allowed.len() == 7 && allowed.iter().all(|by| matches!(by, Decider::Policy { .. })), "{allowed:?}");
}

#[test]
fn what_lies_outside_of_the_workspace_is_neither_searched_nor_named() {
    let mut scene = Scene::new();
    let work = scene.machine.work();
    let outside = work.parent().unwrap().join("outside");
    put(&outside, "secret.txt", "needle\n");
    put(&work, "inside.txt", "needle\n");
    symlink(&outside, work.join("way-out")).unwrap();
    symlink(outside.join("secret.txt"), work.join("one-file")).unwrap();
    let results = results(
        &mut scene,
        &[
            ("grep", json!({ "pattern": "needle", "all": true })),
            ("glob", json!({ "pattern": "**/*.txt", "all": true })),
            ("grep", json!({ "pattern": "needle", "path": "way-out" })),
            ("grep", json!({ "pattern": "needle", "path": "one-file" })),
            ("glob", json!({ "pattern": "*", "path": "../outside" })),
            ("grep", json!({ "pattern": "needle", "path": outside.to_str().unwrap() })),
        ],
    );
    assert_eq!(results[0].text, "inside.txt\n");
    assert_eq!(results[1].text, "inside.txt\n");
    for refused in &results[2..] {
        assert!(refused.is_error && refused.text.contains("outside of the workspace"), "{}", refused.text);
    }
    fs::remove_dir_all(outside).unwrap();
}

#[test]
fn a_wrong_call_says_what_would_be_right() {
    let mut scene = Scene::new();
    put(&scene.machine.work(), "src/main.rs", "x\n");
    let table = [
        ("grep", json!({}), "`pattern` is missing"),
        ("grep", json!({ "pattern": "" }), "`pattern` is empty"),
        ("grep", json!({ "pattern": 7 }), "`pattern` must be a string"),
        ("grep", json!({ "pattern": "foo(" }), "put a \\ before each"),
        ("grep", json!({ "pattern": "x", "glob": "a[" }), "The glob `a[` cannot be used"),
        ("grep", json!({ "pattern": "x", "output_mode": "lines" }), "`content`"),
        ("grep", json!({ "pattern": "x", "head_limit": -1 }), "`head_limit` must be an integer"),
        ("grep", json!({ "pattern": "x", "ignore_case": "yes" }), "`ignore_case` must be true or false"),
        ("grep", json!({ "pattern": "x", "path": "srcs" }), "Did you mean src"),
        ("glob", json!({ "pattern": "x", "path": "nowhere/at/all" }), "does not exist"),
    ];
    let calls: Vec<(&str, Value)> = table.iter().map(|(tool, input, _)| (*tool, input.clone())).collect();
    let results = results(&mut scene, &calls);
    for ((tool, input, expected), result) in table.iter().zip(&results) {
        assert!(result.is_error && result.text.contains(expected), "{tool} {input}: {}", result.text);
    }
}

#[test]
fn every_limit_that_is_reached_is_told_with_what_to_do() {
    let mut scene = Scene::new();
    let work = scene.machine.work();
    for number in 0..30 {
        put(
            &work,
            &format!("f{number:02}.txt"),
            format!("{}needle{}\n", "x".repeat(1000), "y".repeat(5000)).repeat(10),
        );
    }
    let results = results(
        &mut scene,
        &[
            ("grep", json!({ "pattern": "needle", "head_limit": 3 })),
            ("grep", json!({ "pattern": "needle", "head_limit": 12, "output_mode": "content" })),
            ("grep", json!({ "pattern": "needle", "head_limit": 0, "output_mode": "content" })),
            ("glob", json!({ "pattern": "*", "head_limit": 2 })),
        ],
    );
    let text = |index: usize| results[index].text.as_str();
    assert!(text(0).starts_with("f00.txt\nf01.txt\nf02.txt\n[Only 3 of 30 files that match are shown."), "{}", text(0));
    assert!(text(1).contains("[Only 12 of 300 lines that match, in 30 files, are shown. Narrow"), "{}", text(1));
    assert!(text(1).contains("needleyyy") && text(1).contains("y[… 4"), "{}", text(1));
    assert!(text(2).len() < 40_000 && text(2).contains("the limit of 30000 bytes was reached"), "{}", text(2).len());
    assert!(text(3).contains("[Only 2 of 30 files, the last changed, are shown."), "{}", text(3));
}

#[test]
fn a_search_is_ended_by_an_interrupt_and_the_shell_lives_on() {
    let mut scene = Scene::new();
    let work = scene.machine.work();
    // One file by many names: much to read, little on the disk. A word's bound beside letters beyond ASCII is what the
    // expression is slow at.
    put(&work, "f", "éa".repeat(300).as_bytes().repeat(4000));
    for number in 0..500 {
        fs::hard_link(work.join("f"), work.join(format!("f{number}"))).unwrap();
    }
    scene.server.script(search("grep", &json!({ "pattern": r"\b[a-zé]+[0-9]\b" })));
    scene.prompt("search long", ApproveMode::Ask);
    scene.client.until_event("the search to start", |body| matches!(body, EventBody::CallStarted(_)).then_some(()));
    scene.client.call(Request::Interrupt(Interrupt { session: scene.session.to_string() })).unwrap();
    scene.client.until_turn_ended();
    let outcomes = scene.logged(|body| match body {
        EventBody::CallFinished(finished) => Some(finished.outcome.clone()),
        _ => None,
    });
    assert_eq!(outcomes, [Outcome::Interrupted {}]);
    scene.server.script(Reply::bash("echo alive"));
    scene.server.script(Reply::text("done"));
    scene.good_turn("and now?");
}

#[test]
fn a_command_that_another_tool_does_better_is_told_so_once_in_a_session() {
    let mut scene = Scene::new();
    put(&scene.machine.work(), "a.txt", "needle\n");
    let run = |scene: &mut Scene, command: &str| {
        let seen = scene.server.requests().len();
        scene.server.script(Reply::bash(command));
        scene.server.script(Reply::text("done"));
        scene.good_turn("go on");
        scene.server.wait_for(seen + 2).results()[0].text.clone()
    };
    let hints = |text: &str| text.lines().filter(|line| line.starts_with("[hint: ") && line.ends_with(']')).count();
    assert_eq!(run(&mut scene, "cat a.txt").lines().collect::<Vec<_>>()[..2], ["needle", ""]);
    assert_eq!(hints(&run(&mut scene, "head -5 a.txt")), 0, "the same kind a second time");
    assert_eq!(hints(&run(&mut scene, "grep -rn needle .")), 1, "another kind");
    scene.kill_daemon();
    scene.start_daemon();
    assert_eq!(hints(&run(&mut scene, "cat a.txt")), 0, "also after a restart of the daemon");
    assert_eq!(hints(&run(&mut scene, "find . -name '*.txt'")), 1);
    assert_eq!(hints(&run(&mut scene, "find . -name '*.txt' | wc -l")), 0);
}
