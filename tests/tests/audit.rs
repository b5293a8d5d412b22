//! The audit: every call before it runs and after it, what was refused, who decided; and a past that cannot be changed
//! unseen.

use harness::ctl::code;
use harness::model_server::Reply;
use harness::scene::Scene;
use proto::approval::Verdict;
use proto::request::ApproveMode;
use serde_json::{Value, json};

fn audit(scene: &Scene, arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["audit", "--json"], arguments].concat();
    scene.machine.ctl(&arguments).run().expect(code::DONE).json_lines()
}

fn play(scene: &mut Scene, command: &str, approve: ApproveMode) {
    scene.server.script(Reply::bash(command));
    scene.server.script(Reply::text("so be it"));
    scene.prompt("go on", approve);
}

/// A session with a command of each fate.
fn lived() -> Scene {
    let mut scene = Scene::new();
    play(&mut scene, "ls -l", ApproveMode::Deny);
    scene.client.until_turn_ended();
    play(&mut scene, "touch one; exit 3", ApproveMode::All);
    scene.client.until_turn_ended();
    play(&mut scene, "touch two", ApproveMode::Deny);
    scene.client.until_turn_ended();
    play(&mut scene, "touch three", ApproveMode::Ask);
    let asked = scene.client.until_asked();
    scene.client.answer(&asked, Verdict::Deny { reason: Some("not now".into()) }).unwrap();
    scene.client.until_turn_ended();
    scene
}

#[test]
fn every_call_is_there_before_and_after_with_who_allowed_or_refused_it() {
    let scene = lived();
    let rows = audit(&scene, &[]);
    let told: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["event"].as_str().unwrap(), row["command"].as_str().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("started", "ls -l"),
            ("ended", "ls -l"),
            ("started", "touch one; exit 3"),
            ("ended", "touch one; exit 3"),
            ("refused", "touch two"),
            ("refused", "touch three"),
        ]
    );
    assert_eq!((&rows[0]["asked"], rows[0]["by"].get("policy").is_some()), (&json!(false), true));
    assert_eq!((&rows[2]["by"], &rows[2]["asked"]), (&json!({ "flag": { "value": "all" } }), &json!(true)));
    assert_eq!(rows[1]["exit_status"], 0);
    assert_eq!(rows[4]["by"], json!({ "flag": { "value": "none" } }));
    assert!(rows[5]["by"].get("client").is_some() && rows[5]["reason"].as_str().unwrap().contains("not now"));
    assert!(rows.iter().all(|row| row["session"] == scene.session.to_string() && row["cwd"] == rows[0]["cwd"]));
    let filtered = |arguments: &[&str]| audit(&scene, arguments).len();
    assert_eq!(
        [filtered(&["--decision", "allow"]), filtered(&["--decision", "ask"]), filtered(&["--decision", "deny"])],
        [2, 4, 2]
    );
    assert_eq!([filtered(&["--text", "TOUCH T"]), filtered(&["-n", "1"]), filtered(&["--since", "1h"])], [2, 1, 6]);
    assert_eq!([filtered(&["--until", "1h"]), filtered(&["--session", &scene.session.to_string()])], [0, 6]);
    assert_eq!(scene.machine.ctl(&["audit", "--session", "nobody"]).run().code(), code::NOT_FOUND);
}

#[test]
fn a_changed_past_is_found_also_without_a_daemon_and_after_its_crash() {
    let mut scene = lived();
    scene.kill_daemon();
    let verify = |scene: &Scene| scene.machine.ctl(&["audit", "verify", "--json"]).run();
    let sound = verify(&scene).expect(code::DONE).json_lines();
    assert_eq!((&sound[0]["rows"], &sound[0]["broken"]), (&json!(6), &Value::Null));
    let database = rusqlite::Connection::open(scene.machine.database()).unwrap();
    database.execute("UPDATE audit SET body = replace(body, 'touch one', 'touch 0ne') WHERE id = 3", []).unwrap();
    let broken = verify(&scene).expect(code::WRONG).json_lines();
    assert_eq!((&broken[0]["rows"], &broken[0]["broken"]["id"]), (&json!(2), &json!(3)));
    database.execute("UPDATE audit SET body = replace(body, 'touch 0ne', 'touch one') WHERE id = 3", []).unwrap();
    database.execute("DELETE FROM audit WHERE id = 6", []).unwrap();
    let cut = verify(&scene).expect(code::WRONG).json_lines();
    assert_eq!(cut[0]["broken"]["id"], 6);
    drop(database);
    scene.start_daemon();
}
