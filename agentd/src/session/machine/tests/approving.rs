//! Claims about questions: modes, the last look, "always", changed commands.

use proto::approval::{Choice, CommandSubject, Proposal};

use super::*;

/// A command as it is assessed.
fn command(cwd: &str, facts: &ShellFacts) -> Runnable {
    Runnable {
        subject: Subject::Command(CommandSubject { command: "one".into(), cwd: cwd.into(), parts: Vec::new() }),
        expect: Expect::Directory(cwd.into()),
        facts: facts.clone(),
        ..runnable(ask())
    }
}

fn asked() -> Bench {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    assessed(&mut bench, command("/w", &ShellFacts::restarted()));
    bench
}

fn assessed(bench: &mut Bench, found: Runnable) -> Vec<Effect> {
    let call = bench.open_call();
    let found = Runnable { mode: bench.machine.mode(), ..found };
    bench.step(Input::CallAssessed { call, assessment: Box::new(Assessment::Runnable(Box::new(found))) })
}

fn answer(bench: &mut Bench, verdict: Verdict) -> Vec<Effect> {
    let approval = bench.machine.asking().unwrap().id;
    bench.step(Input::ApprovalAnswered { approval, verdict, by: client() })
}

fn switch(bench: &mut Bench, mode: Mode) -> Vec<Effect> {
    bench.step(Input::ModeAsked { mode, by: "t".into() })
}

fn closed(bench: &Bench) -> Vec<(Verdict, Decider)> {
    let closed = |entry: &Entry| match entry {
        Entry::ApprovalClosed { verdict, by, .. } => Some((verdict.clone(), by.clone())),
        _ => None,
    };
    bench.log.iter().filter_map(closed).collect()
}

#[test]
fn a_change_between_the_question_and_the_run_asks_again_and_says_why() {
    let shadowed = ShellFacts::restarted().after("one() { x; }");
    let changes = [
        (command("/elsewhere", &ShellFacts::restarted()), "the shell moved from /w to /elsewhere"),
        (command("/w", &shadowed), "one is a function in this shell now"),
    ];
    for (found, why) in changes {
        let mut bench = asked();
        answer(&mut bench, Verdict::Once {});
        let first = bench.log.iter().filter(|entry| entry.kind() == "approval_asked").count();
        assert!(assessed(&mut bench, found.clone()).is_empty(), "nothing runs");
        let again = bench.machine.asking().expect("asked again").clone();
        assert!(again.reason.contains(why), "{}", again.reason);
        assert_eq!(bench.log.iter().filter(|entry| entry.kind() == "approval_asked").count(), first + 1);
        answer(&mut bench, Verdict::Once {});
        assert!(matches!(assessed(&mut bench, found).as_slice(), [Effect::RunCall { .. }]));
    }
}

#[test]
fn a_new_shell_between_the_question_and_the_run_asks_again() {
    let mut bench = Bench::new();
    bench.step(Input::ShellReady { instance: Uuid::from_u128(71) });
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    assessed(&mut bench, command("/w", &ShellFacts::restarted()));
    bench.step(Input::ShellReady { instance: Uuid::from_u128(72) });
    answer(&mut bench, Verdict::Once {});
    assert!(assessed(&mut bench, command("/w", &ShellFacts::restarted())).is_empty());
    assert!(bench.machine.asking().unwrap().reason.contains("new one"));
}

#[test]
fn an_answer_survives_a_crash_and_its_call_runs_after_the_last_look() {
    let mut bench = asked();
    answer(&mut bench, Verdict::Once {});
    let mut replayed = machine();
    bench.log.iter().for_each(|entry| replayed.apply(entry));
    bench.machine = replayed;
    assert!(matches!(bench.step(Input::Resumed).as_slice(), [Effect::AssessCall { .. }]));
    let effects = assessed(&mut bench, command("/w", &ShellFacts::restarted()));
    assert!(matches!(effects.as_slice(), [Effect::RunCall { .. }]));
}

#[test]
fn a_switched_mode_settles_the_open_question_or_leaves_it() {
    let mut bench = asked();
    assert!(matches!(switch(&mut bench, Mode::Bypass).as_slice(), [Effect::AssessCall { .. }]));
    let found = Runnable { ruling: allow(), ..command("/w", &ShellFacts::restarted()) };
    assert!(matches!(assessed(&mut bench, found).as_slice(), [Effect::RunCall { .. }]));
    assert_eq!(closed(&bench), [(Verdict::Once {}, Decider::Mode { mode: Mode::Bypass })]);

    let mut bench = asked();
    switch(&mut bench, Mode::Plan);
    let found = Runnable { ruling: Ruling::Deny { reason: "plan mode is on".into() }, ..runnable(ask()) };
    assert!(matches!(assessed(&mut bench, found).as_slice(), [Effect::SendRequest { .. }]));
    let reason = Some("plan mode is on".to_owned());
    assert_eq!(closed(&bench), [(Verdict::Deny { reason }, Decider::Mode { mode: Mode::Plan })]);

    let mut bench = asked();
    switch(&mut bench, Mode::AcceptEdits);
    assert!(assessed(&mut bench, command("/w", &ShellFacts::restarted())).is_empty());
    assert!(bench.machine.asking().is_some() && closed(&bench).is_empty(), "the mode does not decide it");
}

#[test]
fn what_was_found_in_another_mode_is_looked_at_again() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    let id = bench.open_call();
    assert!(switch(&mut bench, Mode::Plan).is_empty());
    let old = Box::new(Assessment::Runnable(Box::new(runnable(allow()))));
    let effects = bench.step(Input::CallAssessed { call: id, assessment: old });
    assert_eq!(effects, [Effect::AssessCall { call: id }]);
    assert!(!bench.kinds().contains(&"call_started"));
}

#[test]
fn a_mode_switched_just_before_a_crash_still_settles_the_question() {
    let mut bench = asked();
    switch(&mut bench, Mode::Bypass);
    let mut replayed = machine();
    bench.log.iter().for_each(|entry| replayed.apply(entry));
    bench.machine = replayed;
    assert_eq!(bench.machine.mode(), Mode::Bypass);
    assert!(matches!(bench.step(Input::Resumed).as_slice(), [Effect::AssessCall { .. }]));
}

#[test]
fn the_model_is_told_when_plan_mode_begins_and_ends() {
    let mut bench = Bench::new();
    switch(&mut bench, Mode::Plan);
    for (mode, blocks) in
        [(Mode::Plan, "user: text text"), (Mode::Bypass, "user: text text"), (Mode::Ask, "user: text")]
    {
        switch(&mut bench, mode);
        bench.prompt(ApproveMode::Ask);
        assert_eq!(bench.history().last().unwrap(), blocks);
        bench.reply(StopReason::EndTurn, vec![text("yes")]);
    }
}

#[test]
fn always_is_written_once_even_through_a_crash() {
    let proposal = Proposal { file: "f".into(), toml: "t".into(), rules: vec!["allow one (user)".into()] };
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::ToolUse, vec![call("one"), call("two")]);
    assessed(&mut bench, Runnable { proposal: Some(proposal), ..command("/w", &ShellFacts::restarted()) });
    let asked = bench.machine.asking().unwrap().clone();
    assert_eq!(asked.choices, [Choice::Once, Choice::Session, Choice::Always, Choice::Edit, Choice::Deny]);
    let keep = Effect::KeepRule { approval: asked.id, toml: "t".into() };
    assert_eq!(answer(&mut bench, Verdict::Always {}).first(), Some(&keep));
    let mut replayed = machine();
    bench.log.iter().for_each(|entry| replayed.apply(entry));
    bench.machine = replayed;
    assert!(bench.step(Input::Resumed).contains(&keep), "not known to be written");
    bench.step(Input::RuleKept { approval: asked.id, file: "f".into(), problem: Some("no room".into()) });
    assert!(!bench.step(Input::Resumed).contains(&keep));
    let effects = assessed(&mut bench, command("/w", &ShellFacts::restarted()));
    assert!(matches!(effects.as_slice(), [Effect::RunCall { .. }]), "the call runs once whatever became of the rule");
}

#[test]
fn a_changed_command_is_what_runs_and_the_model_is_told() {
    let mut bench = asked();
    answer(&mut bench, Verdict::Edit { command: "two".into() });
    let id = bench.open_call();
    let runs = bench.machine.call(id).unwrap().runs().unwrap().to_value();
    assert_eq!(runs["command"], "two");
    assessed(&mut bench, command("/w", &ShellFacts::restarted()));
    bench.finish("out");
    let told = bench.machine.history().last().unwrap().content[0].to_value()["content"].clone();
    let told = told.as_str().unwrap();
    assert!(told.contains("the user changed the command") && told.contains("two") && told.ends_with("out"), "{told}");

    let mut bench = asked();
    answer(&mut bench, Verdict::Edit { command: "two".into() });
    let found = Runnable { ruling: Ruling::Deny { reason: "a rule".into() }, ..runnable(ask()) };
    assert!(matches!(assessed(&mut bench, found).as_slice(), [Effect::SendRequest { .. }]), "deny rules hold");
}

#[test]
fn broken_rule_files_are_told_once_and_so_is_their_end() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    bench.reply(StopReason::ToolUse, vec![call("one"), call("two"), call("three"), call("four")]);
    for problems in [&["broken"][..], &["broken"], &[], &[]] {
        let problems = problems.iter().map(|&problem| problem.to_owned()).collect();
        assessed(&mut bench, Runnable { problems, ..runnable(ask()) });
        bench.finish("x");
    }
    let notices = bench.log.iter().filter(|entry| entry.kind() == "notice").count();
    assert_eq!(notices, 2);
}
