//! Random lives of a session, through crashes: what is promised holds after every step.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::store::job::Tell;

/// What a random life of a session is made of.
#[derive(Clone, Debug)]
enum Move {
    Prompt(ApproveMode),
    Reply(u8, u8),
    Fail(u8),
    Retry,
    Assess(u8),
    Answer(u8),
    Finish,
    Interrupt,
    Later,
    Crash,
    Undo,
    Undone(bool),
    Compact,
    Steer,
    Rerun(bool),
    Settings,
    TooLong,
    JobStart,
    JobEnd(u8),
    JobSilent(u8),
    JobStop(u8),
    Archive,
    Mode(Mode),
    Enter,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        2 => prop_oneof![Just(ApproveMode::Ask), Just(ApproveMode::Deny), Just(ApproveMode::All)].prop_map(Move::Prompt),
        6 => (0_u8..9, 0_u8..5).prop_map(|(stop, calls)| Move::Reply(stop, calls)),
        1 => (0_u8..4).prop_map(Move::Fail),
        1 => Just(Move::Retry),
        6 => (0_u8..4).prop_map(Move::Assess),
        3 => (0_u8..4).prop_map(Move::Answer),
        6 => Just(Move::Finish),
        1 => Just(Move::Interrupt),
        1 => Just(Move::Later),
        2 => Just(Move::Crash),
        1 => Just(Move::Compact),
        2 => Just(Move::Steer),
        2 => any::<bool>().prop_map(Move::Rerun),
        1 => Just(Move::Settings),
        1 => Just(Move::TooLong),
        2 => Just(Move::Undo),
        3 => any::<bool>().prop_map(Move::Undone),
        3 => Just(Move::JobStart),
        4 => any::<u8>().prop_map(Move::JobEnd),
        1 => any::<u8>().prop_map(Move::JobSilent),
        1 => any::<u8>().prop_map(Move::JobStop),
        1 => Just(Move::Archive),
        1 => prop_oneof![Just(Mode::Ask), Just(Mode::Plan), Just(Mode::Bypass)].prop_map(Move::Mode),
        2 => Just(Move::Enter),
    ];
    proptest::collection::vec(one, 1..80)
}

/// Plays a move if it fits the present state; the world only reports what was asked of it.
fn play(bench: &mut Bench, step: &Move, serial: &mut u32) {
    match step {
        Move::Prompt(approve) => {
            bench.prompt(*approve);
        }
        Move::Reply(stop, calls) if matches!(bench.machine.phase(), Phase::Requesting(..)) => {
            let stop = match stop {
                0 => StopReason::EndTurn,
                1 => StopReason::MaxTokens,
                2 => StopReason::PauseTurn,
                3 => StopReason::Refusal { category: None, explanation: None },
                4 => StopReason::ContextWindowExceeded,
                5 => StopReason::Unknown("x".into()),
                _ => StopReason::ToolUse,
            };
            let mut blocks = vec![text("t")];
            for _ in 0..*calls {
                *serial += 1;
                let id = format!("toolu_{serial}");
                blocks.push(if serial.is_multiple_of(7) { broken(&id) } else { call(&id) });
            }
            bench.reply(stop, blocks);
        }
        Move::Fail(cure) if matches!(bench.machine.phase(), Phase::Requesting(..)) => {
            let request = bench.request();
            let problem = Problem { code: "x".into(), message: "m".into(), hint: String::new(), request_id: None };
            let cure = match cure {
                0 => Cure::None,
                1 => Cure::WithoutThinking,
                kind => Cure::Again { at: Timestamp(bench.now + 10), parked: *kind == 2 },
            };
            bench.step(Input::RequestFailed { request, problem, cure });
        }
        Move::Assess(kind) => {
            let assessing = match bench.machine.phase() {
                Phase::Calling(_, calling) => calling
                    .calls
                    .iter()
                    .any(|c| matches!(c.state, CallState::Assessing | CallState::Approved(_) | CallState::Asking(_))),
                _ => false,
            };
            if assessing {
                match kind {
                    0 => drop(bench.assess(allow())),
                    1 => drop(bench.assess(ask())),
                    2 => drop(bench.assess(Ruling::Deny { reason: "r".into() })),
                    _ => {
                        let call = bench.open_call();
                        let settled = Box::new(Assessment::Settled(crate::tools::failure("no")));
                        bench.step(Input::CallAssessed { call, assessment: settled });
                    }
                }
            }
        }
        Move::Answer(kind) => {
            if let Some(approval) = bench.machine.asking().map(|asked| asked.id) {
                let verdict = match kind {
                    0 => Verdict::Once {},
                    1 => Verdict::Session {},
                    2 => Verdict::Edit { command: "other".into() },
                    _ => Verdict::Deny { reason: None },
                };
                bench.step(Input::ApprovalAnswered { approval, verdict, by: client() });
            }
        }
        Move::Finish => {
            let running = match bench.machine.phase() {
                Phase::Calling(_, calling) => {
                    calling.calls.iter().any(|c| matches!(c.state, CallState::Running { .. }))
                }
                _ => false,
            };
            if running {
                bench.finish("r");
            }
        }
        Move::Interrupt => drop(bench.step(Input::InterruptAsked { by: "t".into() })),
        Move::Later => {
            bench.now += 100_000;
            bench.step(Input::TimerFired);
        }
        Move::Crash => {
            let mut replayed = machine();
            bench.log.iter().for_each(|entry| replayed.apply(entry));
            assert_eq!(replayed.history(), bench.machine.history(), "a replayed log gives the history that was lived");
            bench.machine = replayed;
            bench.step(Input::Resumed);
        }
        Move::Compact => drop(bench.step(Input::CompactionAsked { by: "t".into() })),
        Move::Steer => drop(bench.step(Input::SteerAsked { text: "n".into(), by: "t".into() })),
        Move::Rerun(same) => drop(bench.rerun(if *same { "" } else { "other words" })),
        Move::Settings => {
            let settings = Settings { model: "m2".into(), effort: None, max_tokens: 7 };
            bench.step(Input::SettingsAsked { settings, by: "t".into() });
        }
        Move::TooLong if matches!(bench.machine.phase(), Phase::Requesting(..)) => {
            let request = bench.request();
            let problem = Problem { code: "x".into(), message: "m".into(), hint: String::new(), request_id: None };
            bench.step(Input::RequestFailed { request, problem, cure: Cure::Shorter });
        }
        Move::Retry => drop(bench.step(Input::RetryAsked { by: "t".into() })),
        Move::Undo => drop(bench.undo()),
        Move::Undone(fits) => drop(bench.undone(*fits)),
        Move::Mode(mode) => drop(bench.step(Input::ModeAsked { mode: *mode, by: "t".into() })),
        Move::JobStart => drop(bench.job_start()),
        Move::JobEnd(pick) => drop(bench.job_end(*pick)),
        Move::JobSilent(pick) => {
            let job = bench.some_job(*pick);
            bench.step(Input::JobSilent { job, output_bytes: 3 });
        }
        Move::JobStop(pick) => {
            let job = bench.some_job(*pick);
            bench.step(Input::JobStopAsked { job, by: "t".into() });
        }
        Move::Enter => drop(bench.enter()),
        // Seldom: most lives are to go on.
        Move::Archive if bench.now.is_multiple_of(3) => drop(bench.step(Input::ArchiveAsked { by: "t".into() })),
        Move::Reply(..) | Move::Fail(_) | Move::TooLong | Move::Archive => {}
    }
}

/// Each kept call has exactly one result, in the very next message, results first; nothing ran that was not started.
fn check(bench: &Bench) {
    let history = bench.machine.history();
    for (at, message) in history.iter().enumerate() {
        if at > 0 {
            assert_ne!((message.role, history[at - 1].role), (Role::User, Role::User), "neighbours are merged");
        }
        let of = |message: &crate::model::Message, kind: &str, field: &str| -> Vec<String> {
            let blocks = message.content.iter().map(JsonText::to_value);
            blocks.filter(|b| b["type"] == kind).filter_map(|b| b[field].as_str().map(str::to_owned)).collect()
        };
        let calls = of(message, "tool_use", "id");
        if calls.is_empty() {
            continue;
        }
        match history.get(at + 1) {
            Some(next) => {
                assert_eq!(of(next, "tool_result", "tool_use_id"), calls, "one result each, in order");
                let first_text = next.content.iter().position(|b| b.to_value()["type"] == "text");
                assert!(first_text.is_none_or(|first| first >= calls.len()), "results stand first");
            }
            None => {
                assert!(matches!(bench.machine.phase(), Phase::Calling(..)), "unanswered calls are being worked off")
            }
        }
    }
    let told = |message: &crate::model::Message| {
        message.content.iter().filter(|block| block.to_value()["text"] == "note").count()
    };
    let undone = bench.log.iter().filter(|entry| matches!(entry, Entry::UndoEnded(_))).count();
    // A summary and a rerun take what they replace along.
    let cut = |entry: &Entry| matches!(entry, Entry::Compacted(_) | Entry::Rewound { .. });
    if !bench.log.iter().any(cut) {
        assert_eq!(history.iter().map(|message| told(message)).sum::<usize>(), undone, "each undo is told once");
    }
    check_jobs(bench);
    check_entered(bench);
    let mut state: HashMap<CallId, u32> = HashMap::new();
    for entry in &bench.log {
        match entry {
            Entry::CallStarted { call, .. } => assert!(state.insert(*call, 0).is_none(), "started twice"),
            Entry::CallFinished(result) => {
                let ran = state.contains_key(&result.call);
                let needs_start = matches!(result.outcome, Outcome::Exited { .. });
                assert!(!needs_start || ran, "a result without a start");
                *state.entry(result.call).or_default() += 1;
            }
            _ => {}
        }
    }
    assert!(state.values().all(|results| *results <= 1), "two results for one call");
}

/// Each job ends once; what the model is to be told of it, it is told once at most, and at once when nothing else runs; and
/// it is not woken without end.
fn check_jobs(bench: &Bench) {
    let all: String =
        bench.machine.history().iter().flat_map(|message| &message.content).map(JsonText::as_str).collect();
    let (mut ended, mut wakes) = (Vec::new(), 0);
    for entry in &bench.log {
        match entry {
            Entry::JobEnded(end) => {
                assert!(!ended.contains(&end.job), "ended twice");
                ended.push(end.job);
                let told = all.matches(&end.text).count();
                assert!(told <= usize::from(end.tell != Tell::Never), "{} was told {told} times", end.text);
            }
            Entry::TurnStarted { .. } => wakes = 0,
            Entry::TurnWoken { .. } => {
                wakes += 1;
                assert!(wakes <= 10, "woken without end");
            }
            _ => {}
        }
    }
    let archived = bench.log.iter().any(|entry| matches!(entry, Entry::Archived { .. }));
    let summed_up = bench.log.iter().any(|entry| matches!(entry, Entry::Compacted(_)));
    if matches!(bench.machine.phase(), Phase::Idle) && !archived && !summed_up && wakes < 10 {
        let waking = bench.log.iter().filter_map(|entry| match entry {
            Entry::JobEnded(end) if end.tell == Tell::Wake => Some(&end.text),
            _ => None,
        });
        for text in waking {
            assert_eq!(all.matches(text.as_str()).count(), 1, "{text} was not told though nothing runs");
        }
    }
}

/// What users ran is told once at most, and to the model alone: it stands in no turn of the model's.
fn check_entered(bench: &Bench) {
    let all: String =
        bench.machine.history().iter().flat_map(|message| &message.content).map(JsonText::as_str).collect();
    let commands = bench.log.iter().filter_map(|entry| match entry {
        Entry::CommandEntered(entered) => Some(&entered.command),
        _ => None,
    });
    let cut = |entry: &Entry| matches!(entry, Entry::Compacted(_));
    let summed_up = bench.log.iter().any(cut);
    let requesting = matches!(bench.machine.phase(), Phase::Requesting(..));
    for command in commands {
        let told = all.matches(&format!("$ {command}")).count();
        assert!(told <= 1, "{command} was told {told} times");
        assert!(told == 1 || !requesting || summed_up || bench.machine.is_compacting(), "{command} is not told of");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_life_of_a_session_keeps_its_promises(moves in moves()) {
        let mut bench = Bench::new();
        let mut serial = 0;
        for step in &moves {
            play(&mut bench, step, &mut serial);
            check(&bench);
        }
        let mut replayed = machine();
        bench.log.iter().for_each(|entry| replayed.apply(entry));
        prop_assert_eq!(replayed.history(), bench.machine.history());
        prop_assert_eq!(replayed.queued().collect::<Vec<_>>(), bench.machine.queued().collect::<Vec<_>>());
    }
}
