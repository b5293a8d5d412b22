//! Single commands in a fresh shell: `ask.txt` and `allow.txt`, by kind. The public findings against other agents are among
//! them. In the files `⏎` stands for a new line.

use super::*;

const ASK: &str = include_str!("ask.txt");
const ALLOW: &str = include_str!("allow.txt");

/// Every command under one heading of a file gets this verdict.
fn section(file: &str, heading: &str, expected: Verdict) {
    let world = World::default();
    let file = format!("\n{file}");
    let text = file.split("\n== ").find_map(|section| section.strip_prefix(heading)).expect(heading);
    let commands: Vec<String> =
        text.lines().filter(|line| !line.is_empty()).map(|line| line.replace('⏎', "\n")).collect();
    assert!(!commands.is_empty(), "{heading}");
    let decided = commands.iter().map(|command| (command, world.decide(command)));
    let wrong = decided.filter(|(_, decision)| decision.verdict != expected);
    let wrong: Vec<String> =
        wrong.map(|(command, decision)| format!("{command:?} → {:?}: {}", decision.verdict, decision.reason)).collect();
    assert!(wrong.is_empty(), "expected {expected:?}:\n{}", wrong.join("\n"));
}

#[test]
fn expansions_that_run_commands_are_asked_about() {
    section(ASK, "expansions that run commands are asked about", Verdict::Ask);
}

#[test]
fn names_that_are_not_visible_are_asked_about() {
    section(ASK, "names that are not visible are asked about", Verdict::Ask);
}

#[test]
fn line_continuations_and_comments_hide_nothing() {
    section(ASK, "line continuations and comments hide nothing", Verdict::Ask);
}

#[test]
fn nested_quotes_are_read_as_bash_reads_them() {
    section(ASK, "nested quotes are read as bash reads them", Verdict::Ask);
}

#[test]
fn redirections_write_nowhere_but_dev_null() {
    section(ASK, "redirections write nowhere but dev null", Verdict::Ask);
    section(ALLOW, "redirections write nowhere but dev null", Verdict::Allow);
}

#[test]
fn options_that_write_or_run_are_asked_about() {
    section(ASK, "options that write or run are asked about", Verdict::Ask);
}

#[test]
fn sed_and_awk_scripts_that_write_or_run_are_asked_about() {
    section(ASK, "sed and awk scripts that write or run are asked about", Verdict::Ask);
}

#[test]
fn git_is_read_only_by_its_options_and_only_here() {
    section(ASK, "git is read only by its options and only here", Verdict::Ask);
    section(ALLOW, "git is read only by its options and only here", Verdict::Allow);
}

#[test]
fn everyday_reading_runs_without_a_question() {
    section(ALLOW, "everyday reading runs without a question", Verdict::Allow);
}

#[test]
fn secrets_and_devices_are_asked_about() {
    section(ASK, "secrets and devices are asked about", Verdict::Ask);
    section(ALLOW, "secrets and devices are asked about", Verdict::Allow);
}

#[test]
fn what_is_shown_is_what_would_run() {
    let decision = World::default().decide("ls; touch 'a\nb' && echo $(date)");
    assert_eq!(decision.parts, ["ls", "touch 'a\nb'", "echo $(date)", "date"]);
    for hidden in ["ls \u{202e}x", "ls\u{200b}", "ls \u{1b}[2K", "ls\r", "ls\0", "ls \u{7f}", "ls \u{feff}"] {
        assert_eq!(World::default().verdict(hidden), Verdict::Ask, "{hidden:?}");
    }
}

#[test]
fn limits_end_in_a_question_with_deny_still_checked() {
    let world = World { rules: Rules::from_words(&[], &[], &[vec!["rm".into()]]), ..World::default() };
    let long = format!("echo {}", "x".repeat(200_000));
    assert_eq!(world.verdict(&long), Verdict::Ask);
    assert_eq!(world.verdict(&format!("{long}; rm f")), Verdict::Deny);
    let deep = format!("{}rm f{}", "echo $(".repeat(60), ")".repeat(60));
    assert_eq!(world.verdict(&deep), Verdict::Deny);
    let many = format!("{}rm f", "true; ".repeat(5_000));
    assert_eq!(world.verdict(&many), Verdict::Deny);
    assert_eq!(world.verdict(&"true; ".repeat(5_000)), Verdict::Allow);
}
