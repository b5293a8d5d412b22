//! The policy from the command line: the behaviour corpus through the real binaries, rule files, decisions again.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::binaries::repository;
use harness::ctl::code;
use harness::machine::Machine;
use harness::model_server::Reply;
use harness::scene::Scene;
use proto::request::ApproveMode;
use serde_json::{Value, json};

/// Least share of the safe cases that run without a question, in percent.
const LEAST_ALLOWED_PERCENT: usize = 98;

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", directory);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The working directory of a case that names files: a repository with them in it.
fn fixture(machine: &Machine, case: &Value) -> Option<String> {
    let files = case["files"].as_object()?;
    let directory = machine.root().join("work").join(case["id"].as_str().unwrap());
    fs::create_dir_all(&directory).unwrap();
    git(&directory, &["init", "-q"]);
    for (name, content) in files {
        let file = directory.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        match (content.as_str(), content["symlink"].as_str()) {
            (Some(text), _) if name == ".git/config" => {
                let config = fs::read_to_string(&file).unwrap();
                fs::write(file, config + text).unwrap();
            }
            (Some(text), _) => fs::write(file, text).unwrap(),
            (None, Some(target)) => std::os::unix::fs::symlink(target, file).unwrap(),
            (None, None) => panic!("{case}"),
        }
    }
    Some(directory.to_str().unwrap().to_owned())
}

#[test]
fn the_corpus_has_no_unsafe_allow_and_safe_cases_run_without_a_question() {
    let machine = Machine::new();
    git(&machine.work(), &["init", "-q"]);
    let text = fs::read_to_string(repository().join("tests/data/policy.jsonl")).unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines = cases.iter().map(|case| {
        let mut line = json!({ "id": case["id"], "command": case["command"] });
        for key in ["prior", "rules"] {
            if case.get(key).is_some() {
                line[key] = case[key].clone();
            }
        }
        if let Some(cwd) = fixture(&machine, case) {
            line["cwd"] = Value::String(cwd);
        }
        format!("{line}\n")
    });
    let output = machine.ctl(&["policy", "check", "--json"]).stdin(lines.collect::<String>()).run().expect(code::DONE);
    let answers = output.json_lines();
    assert_eq!(answers.len(), cases.len());
    let (mut wrong, mut safe, mut needless) = (Vec::new(), 0, Vec::new());
    for (case, answer) in cases.iter().zip(&answers) {
        assert_eq!(case["id"], answer["id"]);
        let accepted = match case["accept"].as_array() {
            Some(accepted) => accepted.clone(),
            None => vec![case["expect"].clone()],
        };
        let line = || format!("{} {}: {} [{}]", case["id"], case["command"], answer["decision"], answer["reason"]);
        let must_allow = accepted == ["allow"];
        safe += usize::from(must_allow);
        if !accepted.contains(&answer["decision"]) {
            if must_allow { needless.push(line()) } else { wrong.push(line()) }
        }
    }
    println!("{} cases, {safe} safe, {} needless questions", cases.len(), needless.len());
    assert!(wrong.is_empty(), "allowed, or not denied, against the corpus:\n{}", wrong.join("\n"));
    let allowed = safe - needless.len();
    assert!(allowed * 100 >= safe * LEAST_ALLOWED_PERCENT, "needless questions:\n{}", needless.join("\n"));
}

#[test]
fn lines_are_answered_in_order_and_a_bad_one_costs_only_itself_and_the_exit_code() {
    let machine = Machine::new();
    let lines = "{\"id\": \"a\", \"command\": \"ls | wc -l\"}\nnonsense\n{\"id\": 7, \"command\": 5}\n\n{\"id\": \"b\", \"command\": \"ls; rm x\", \
                 \"rules\": {\"deny\": [\"rm\"]}, \"group\": \"unknown keys are the reader's\"}";
    let answers = machine.ctl(&["policy", "check", "--json"]).stdin(lines).run().expect(code::WRONG).json_lines();
    assert_eq!(answers[0]["decision"], "allow");
    assert_eq!((&answers[1]["line"], &answers[1]["id"]), (&json!(2), &Value::Null));
    assert_eq!((&answers[2]["id"], answers[2]["error"].is_string()), (&json!(7), true));
    assert_eq!((&answers[3]["decision"], &answers[3]["rule"]), (&json!("deny"), &json!("deny rm (user)")));
    assert_eq!(answers[3]["parts"][1]["command"], "rm x");
    assert_eq!(
        (&answers[3]["parts"][0]["decision"], &answers[3]["parts"][1]["decision"]),
        (&json!("allow"), &json!("deny"))
    );
    assert_eq!(answers.len(), 4);
}

#[test]
fn one_command_is_decided_by_exit_code_and_explained_part_by_part() {
    let machine = Machine::new();
    let check = |command: &str| machine.ctl(&["policy", "check", command]).run().code();
    assert_eq!([check("ls"), check("ls && make"), check("ls; 'x")], [code::DONE, code::WOULD_ASK, code::WOULD_ASK]);
    let explained = machine.ctl(&["policy", "explain", "ls | wc -l && touch x"]).run().expect(code::DONE).stdout;
    for line in ["ask    touch is not known to only read", "  allow  wc -l", "  ask    touch x"] {
        assert!(explained.contains(line), "{line:?} in {explained}");
    }
    assert_eq!(machine.ctl(&["policy", "check", "--mode", "plan", "touch x"]).run().code(), code::WOULD_DENY);
    // Nothing was started for any of it.
    assert!(machine.daemons().is_empty());
}

#[test]
fn a_rule_file_is_tested_with_the_place_of_every_problem() {
    let machine = Machine::new();
    let file = machine.root().join("work/rules.toml");
    let test = || machine.ctl(&["policy", "test", file.to_str().unwrap()]).run();
    fs::write(&file, "[[rule]]\ndecision = 'deny'\ncommand = 'rm'\nmatch = ['rm x']\nnot_match = ['ls']\n").unwrap();
    assert!(test().expect(code::DONE).stdout.contains("1 rule, 2 examples"));
    let text = "[[rule]]\ndecision = 'deny'\ncommand = 'rm'\nmatch = ['ls']\n\n[[rule]]\ndecision = 'allow'\ncommand = '* x'\n";
    fs::write(&file, text).unwrap();
    let said = test().expect(code::WRONG).stdout;
    for part in [
        "line 1: rule 1 does not match its own example `ls`",
        "line 6: rule 2 allows a command whose name has a wildcard",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    fs::write(&file, "[[rule]]\ndecision = 'deny'\ncomand = 'rm'\n").unwrap();
    let said = test().expect(code::WRONG).stdout;
    assert!(said.contains("line 3") && said.contains("comand"), "{said}");
}

#[test]
fn other_rules_are_replayed_over_what_ran() {
    let mut scene = Scene::new();
    for command in ["ls -l", "touch made", "f() { :; }"] {
        scene.server.script(Reply::bash(command));
        scene.server.script(Reply::text("done"));
        scene.prompt("go on", ApproveMode::All);
        scene.client.until_turn_ended();
    }
    let file = scene.machine.root().join("work/other.toml");
    fs::write(
        &file,
        "[[rule]]\ndecision = 'allow'\ncommand = 'touch'\n\n[[rule]]\ndecision = 'deny'\ncommand = 'ls'\n",
    )
    .unwrap();
    let replay = ["policy", "replay", "--rules", file.to_str().unwrap(), "--json"];
    let lines = scene.machine.ctl(&replay).run().expect(code::DONE).json_lines();
    let differs: Vec<_> = lines.iter().filter_map(|line| line.get("differs")).collect();
    assert_eq!(differs.len(), 2, "{lines:?}");
    assert_eq!((&differs[0]["was"], &differs[0]["now"]), (&json!("allow"), &json!("deny")));
    assert_eq!(
        (&differs[1]["command"], &differs[1]["was"], &differs[1]["now"]),
        (&json!("touch made"), &json!("ask"), &json!("allow"))
    );
    assert_eq!(lines.last().unwrap()["sum"]["commands"], 3);
}
