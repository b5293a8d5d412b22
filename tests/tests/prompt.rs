//! What the model is told before it begins: small, frozen, and with what the user and the project wrote down for it.

use std::fs;

use harness::model_server::Reply;
use harness::scene::Scene;
use proto::event::EventBody;

/// The first request of a session, all tools included and no instruction files.
const FIRST_REQUEST_BYTES_MAX: usize = 8_000;

#[test]
fn the_first_request_of_a_session_is_small() {
    let mut scene = Scene::new();
    scene.server.script(Reply::text("hello"));
    scene.good_turn("Make the tests pass.");
    let request = scene.server.wait_for(1);
    let tools: Vec<&str> =
        request.json["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let wanted = ["bash", "str_replace_based_edit_tool", "grep", "glob", "bash_background", "job_output", "job_stop"];
    assert_eq!(tools, wanted);
    println!("the first request has {} bytes", request.body.len());
    assert!(request.body.len() < FIRST_REQUEST_BYTES_MAX, "{} bytes", request.body.len());
}

#[test]
fn the_instruction_files_of_user_and_project_are_told_once_and_frozen() {
    let mut scene = Scene::new();
    let work = scene.machine.work();
    let home = scene.machine.config_file().parent().unwrap().to_owned();
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("AGENTS.md"), "Prefer short words.").unwrap();
    fs::write(scene.machine.root().join("secret"), "the secret").unwrap();
    fs::write(work.join("AGENTS.md"), "Use tabs. @../secret @style.md").unwrap();
    fs::write(work.join("CLAUDE.md"), "@AGENTS.md").unwrap();
    fs::write(work.join("style.md"), "No emoji.").unwrap();
    fs::create_dir(work.join("part")).unwrap();
    fs::write(work.join("part/AGENTS.md"), "Parts are special.").unwrap();
    let client = &mut scene.client;
    scene.session = client.create(&scene.machine);
    client.attach(&scene.machine, scene.session, proto::ids::Seq(0));
    scene.server.script(Reply::text("hello"));
    scene.good_turn("Make the tests pass.");
    let system = |number| scene.server.wait_for(number).json["system"][0]["text"].as_str().unwrap().to_owned();
    let first = system(1);
    for told in ["Prefer short words.", "Use tabs.", "No emoji.", "part/AGENTS.md"] {
        assert_eq!(first.matches(told).count(), 1, "{told} in {first}");
    }
    assert!(!first.contains("the secret") && !first.contains("Parts are special"), "{first}");
    fs::write(work.join("AGENTS.md"), "Use spaces.").unwrap();
    scene.server.script(Reply::text("hello again"));
    scene.prompt("And now?", proto::request::ApproveMode::Ask);
    scene.client.until_turn_ended();
    assert_eq!(scene.server.wait_for(2).json["system"][0]["text"], first.as_str(), "what was told once stays");
    let notices = scene.logged(|body| match body {
        EventBody::Notice(notice) => Some(notice.text.clone()),
        _ => None,
    });
    assert!(notices.iter().any(|text| text.contains("secret") && text.contains("outside")), "{notices:?}");
}
