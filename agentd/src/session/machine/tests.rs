//! Claims about the machine: tables for the named cases, a property for everything else.

use std::collections::HashMap;

use proptest::prelude::*;
use proto::approval::{Decider, OtherSubject, Subject, Verdict};
use proto::event::{Outcome, Problem, TurnOutcome, Usage};
use proto::ids::{CallId, PromptId, RequestId, SessionId, Timestamp};
use proto::json::JsonText;
use proto::request::ApproveMode;
use uuid::Uuid;

use super::*;
use crate::content::Part;
use crate::model::{BlockKind, Reply, ReplyBlock, Role, StopReason, ToolInput, ToolUse};
use crate::store::entry::{Entry, Expect, Prompt};
use crate::tools::ToolResult;

/// A machine under test: deterministic ids, a clock of its own, everything recorded.
struct Bench {
    machine: Machine,
    now: u64,
    made: u128,
    log: Vec<Entry>,
}

impl Bench {
    fn new() -> Self {
        Self { machine: machine(), now: 1_000, made: 0, log: Vec::new() }
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        let made = &mut self.made;
        let mut ids = || {
            *made += 1;
            Uuid::from_u128(*made)
        };
        let step = self.machine.step(Timestamp(self.now), &mut ids, input);
        self.log.extend(step.entries);
        step.effects
    }

    fn prompt(&mut self, approve: ApproveMode) -> Vec<Effect> {
        self.made += 1;
        let prompt = PromptId(Uuid::from_u128(self.made));
        self.step(Input::PromptSubmitted(Prompt { prompt, text: "do it".into(), approve, by: "t".into() }))
    }

    fn request(&self) -> RequestId {
        match self.machine.phase() {
            Phase::Requesting(_, this) | Phase::Backoff(_, this, _) => this.request,
            Phase::Idle | Phase::Ready(_) | Phase::Calling(..) => panic!("no request: {:?}", self.machine.phase()),
        }
    }

    fn reply(&mut self, stop: StopReason, blocks: Vec<ReplyBlock>) -> Vec<Effect> {
        let request = self.request();
        self.step(Input::ReplyArrived { request, reply: Box::new(reply(stop, blocks)) })
    }

    /// The first unfinished call.
    fn open_call(&self) -> CallId {
        let Phase::Calling(_, calling) = self.machine.phase() else { panic!("{:?}", self.machine.phase()) };
        calling.calls.iter().find(|call| !matches!(call.state, CallState::Done(_))).unwrap().id
    }

    fn assess(&mut self, ruling: Ruling) -> Vec<Effect> {
        let call = self.open_call();
        self.step(Input::CallAssessed { call, assessment: Box::new(Assessment::Runnable(runnable(ruling))) })
    }

    fn finish(&mut self, text: &str) -> Vec<Effect> {
        let call = self.open_call();
        self.step(Input::CallEnded { call, result: Box::new(done(text)), duration_ms: 5 })
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.log.iter().map(Entry::kind).collect()
    }

    fn last_turn(&self) -> TurnOutcome {
        let ended = |entry: &Entry| match entry {
            Entry::TurnEnded { outcome, .. } => Some(outcome.clone()),
            _ => None,
        };
        self.log.iter().rev().find_map(ended).expect("a turn ended")
    }

    /// The roles and block types of the history.
    fn history(&self) -> Vec<String> {
        let kind = |block: &JsonText| block.to_value()["type"].as_str().unwrap_or("?").to_owned();
        let line = |message: &crate::model::Message| {
            let kinds: Vec<String> = message.content.iter().map(kind).collect();
            format!("{:?}: {}", message.role, kinds.join(" ")).to_lowercase()
        };
        self.machine.history().iter().map(|message| line(message)).collect()
    }
}

fn machine() -> Machine {
    let limits = Limits { requests_max: 20, approval_expiry_ms: 60_000, max_tokens: 100 };
    Machine::new(SessionId(Uuid::nil()), limits)
}

fn reply(stop: StopReason, blocks: Vec<ReplyBlock>) -> Reply {
    Reply { id: "m".into(), model: "m".into(), blocks, stop, usage: Usage::default(), request_id: None }
}

fn raw(value: &serde_json::Value) -> JsonText {
    JsonText::from_value(value)
}

fn text(text: &str) -> ReplyBlock {
    ReplyBlock { raw: raw(&serde_json::json!({"type": "text", "text": text})), kind: BlockKind::Text(text.into()) }
}

fn call(id: &str) -> ReplyBlock {
    let input = serde_json::json!({"command": id});
    ReplyBlock {
        raw: raw(&serde_json::json!({"type": "tool_use", "id": id, "name": "bash", "input": input})),
        kind: BlockKind::ToolUse(ToolUse { id: id.into(), name: "bash".into(), input: ToolInput::Valid(raw(&input)) }),
    }
}

fn broken(id: &str) -> ReplyBlock {
    ReplyBlock {
        raw: raw(&serde_json::json!({"type": "tool_use", "id": id, "name": "bash", "input": {}})),
        kind: BlockKind::ToolUse(ToolUse {
            id: id.into(),
            name: "bash".into(),
            input: ToolInput::Broken("{\"comm".into()),
        }),
    }
}

fn runnable(ruling: Ruling) -> Runnable {
    let subject = Subject::Other(OtherSubject { title: "x".into(), input: raw(&serde_json::Value::Null) });
    Runnable { ruling, subject, digest: "d".into(), expect: Expect::Nothing, repeatable: true }
}

fn allow() -> Ruling {
    Ruling::Allow { rule: "r".into() }
}

fn ask() -> Ruling {
    Ruling::Ask { reason: "why".into() }
}

fn done(text: &str) -> ToolResult {
    ToolResult {
        content: vec![Part::Text(text.into())],
        is_error: false,
        outcome: Outcome::Exited { status: 0 },
        diff: None,
    }
}

fn client() -> Decider {
    Decider::Client { name: "t".into() }
}

#[test]
fn a_turn_with_two_calls_runs_them_in_order_and_answers_them_in_one_message() {
    let mut bench = Bench::new();
    assert!(matches!(bench.prompt(ApproveMode::Ask).as_slice(), [Effect::SendRequest { attempt: 1, .. }]));
    let effects = bench.reply(StopReason::ToolUse, vec![text("a"), call("one"), call("two")]);
    assert!(matches!(effects.as_slice(), [Effect::AssessCall { .. }]), "only the first is looked at");
    assert!(matches!(bench.assess(allow()).as_slice(), [Effect::RunCall { again: false, .. }]));
    assert!(matches!(bench.finish("1").as_slice(), [Effect::ForgetCall { .. }, Effect::AssessCall { .. }]));
    bench.assess(allow());
    assert!(matches!(bench.finish("2").as_slice(), [Effect::ForgetCall { .. }, Effect::SendRequest { .. }]));
    bench.reply(StopReason::EndTurn, vec![text("done")]);
    assert_eq!(bench.last_turn(), TurnOutcome::Done {});
    assert_eq!(
        bench.history(),
        ["user: text", "assistant: text tool_use tool_use", "user: tool_result tool_result", "assistant: text"]
    );
}

#[test]
fn a_question_waits_for_an_answer_and_the_first_answer_wins() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    assert!(bench.assess(ask()).is_empty(), "nothing runs while the user is asked");
    let approval = bench.machine.asking().unwrap().id;
    let answer = |verdict| Input::ApprovalAnswered { approval, verdict, by: client() };
    assert!(matches!(bench.step(answer(Verdict::Once {})).as_slice(), [Effect::RunCall { .. }]));
    assert!(bench.step(answer(Verdict::Deny { reason: None })).is_empty(), "the second answer changes nothing");
    assert_eq!(bench.machine.answer_of(approval).unwrap().verdict, Verdict::Once {});
}

#[test]
fn what_was_allowed_for_the_session_is_not_asked_again_but_the_next_command_is() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::ToolUse, vec![call("one"), call("one"), call("other")]);
    bench.assess(ask());
    let approval = bench.machine.asking().unwrap().id;
    bench.step(Input::ApprovalAnswered { approval, verdict: Verdict::Session {}, by: client() });
    bench.finish("1");
    assert!(matches!(bench.assess(ask()).as_slice(), [Effect::RunCall { .. }]), "same digest");
    bench.finish("2");
    let call = bench.open_call();
    let other = Runnable { digest: "e".into(), ..runnable(ask()) };
    bench.step(Input::CallAssessed { call, assessment: Box::new(Assessment::Runnable(other)) });
    assert!(bench.machine.asking().is_some());
}

#[test]
fn without_anybody_to_ask_the_model_is_told_and_goes_on() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Deny);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    assert!(matches!(bench.assess(ask()).as_slice(), [Effect::SendRequest { .. }]));
    assert!(bench.kinds().contains(&"call_finished") && !bench.kinds().contains(&"call_started"));
}

#[test]
fn a_rule_that_denies_beats_the_flag_that_allows_all() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    let effects = bench.assess(Ruling::Deny { reason: "a rule".into() });
    assert!(matches!(effects.as_slice(), [Effect::SendRequest { .. }]));
}

#[test]
fn silence_becomes_a_denial_when_the_question_expires() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    bench.assess(ask());
    let expiry = bench.machine.deadline().unwrap();
    bench.now = expiry.0 - 1;
    assert!(bench.step(Input::TimerFired).is_empty(), "too early");
    bench.now = expiry.0;
    assert!(matches!(bench.step(Input::TimerFired).as_slice(), [Effect::SendRequest { .. }]));
    assert!(bench.log.iter().any(|e| matches!(e, Entry::ApprovalClosed { by: Decider::Expiry {}, .. })));
}

#[test]
fn an_interrupt_while_a_command_runs_keeps_its_output_and_answers_every_call() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    bench.reply(StopReason::ToolUse, vec![call("one"), call("two")]);
    bench.assess(ask());
    assert!(matches!(bench.step(Input::InterruptAsked { by: "t".into() }).as_slice(), [Effect::CancelCall { .. }]));
    // The command ended by itself at the same moment: the turn ends all the same.
    assert!(matches!(bench.finish("half").as_slice(), [Effect::ForgetCall { .. }]));
    assert_eq!(bench.last_turn(), TurnOutcome::Interrupted {});
    assert_eq!(bench.history().last().unwrap(), "user: tool_result tool_result");
    // The next prompt stands behind the results in the same message.
    bench.prompt(ApproveMode::All);
    assert_eq!(bench.history().last().unwrap(), "user: tool_result tool_result text");
}

#[test]
fn an_interrupt_of_the_last_running_call_ends_the_turn_too() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    bench.assess(ask());
    bench.step(Input::InterruptAsked { by: "t".into() });
    bench.finish("all");
    assert_eq!(bench.last_turn(), TurnOutcome::Interrupted {});
}

#[test]
fn a_late_reply_to_an_interrupted_request_changes_nothing() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    let request = bench.request();
    bench.step(Input::InterruptAsked { by: "t".into() });
    let before = bench.log.len();
    bench.step(Input::ReplyArrived { request, reply: Box::new(reply(StopReason::EndTurn, vec![text("late")])) });
    assert_eq!(bench.log.len(), before);
    assert_eq!(bench.history(), ["user: text"]);
}

#[test]
fn a_refusal_is_told_to_the_user_and_never_stored_or_run() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    let stop = StopReason::Refusal { category: Some("cyber".into()), explanation: None };
    assert!(bench.reply(stop, vec![text("First,"), call("one")]).is_empty());
    assert!(matches!(bench.last_turn(), TurnOutcome::Refused { category: Some(_), .. }));
    assert_eq!(bench.history(), ["user: text"]);
}

#[test]
fn a_call_cut_by_the_output_limit_is_answered_and_not_run() {
    for last in [call("cut"), broken("cut")] {
        let mut bench = Bench::new();
        bench.prompt(ApproveMode::All);
        bench.reply(StopReason::MaxTokens, vec![call("whole"), last]);
        bench.assess(ask());
        let effects = bench.finish("1");
        assert!(matches!(effects.as_slice(), [Effect::ForgetCall { .. }, Effect::SendRequest { .. }]), "{effects:?}");
        assert_eq!(bench.history().last().unwrap(), "user: tool_result tool_result");
    }
}

#[test]
fn text_cut_by_the_output_limit_is_carried_on_a_few_times_and_then_given_up() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    let mut sent = 0;
    while matches!(bench.reply(StopReason::MaxTokens, vec![text("more")]).as_slice(), [Effect::SendRequest { .. }]) {
        sent += 1;
        assert!(sent < 50, "it never ends");
    }
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { .. }));
}

#[test]
fn a_paused_turn_is_sent_again_unchanged_with_a_limit() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    let effects = bench.reply(StopReason::PauseTurn, vec![text("searching")]);
    assert!(matches!(effects.as_slice(), [Effect::SendRequest { .. }]));
    assert_eq!(bench.history(), ["user: text", "assistant: text"]);
    for _ in 0..50 {
        if bench.machine.turn().is_none() {
            break;
        }
        bench.reply(StopReason::PauseTurn, vec![text("searching")]);
    }
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { .. }));
}

#[test]
fn an_empty_reply_after_results_is_not_stored_and_asked_once_more() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    bench.reply(StopReason::ToolUse, vec![call("one")]);
    bench.assess(ask());
    bench.finish("1");
    assert!(matches!(bench.reply(StopReason::EndTurn, vec![]).as_slice(), [Effect::SendRequest { .. }]));
    assert_eq!(bench.history().last().unwrap(), "user: tool_result text");
    bench.reply(StopReason::EndTurn, vec![]);
    assert_eq!(bench.last_turn(), TurnOutcome::Done {});
}

#[test]
fn other_stop_reasons_end_or_go_on_by_name() {
    let table = [
        (StopReason::StopSequence(Some("x".into())), vec![text("a")], TurnOutcome::Done {}),
        (StopReason::Unknown("new".into()), vec![text("a")], TurnOutcome::Done {}),
        (StopReason::EndTurn, vec![], TurnOutcome::Done {}),
    ];
    for (stop, blocks, outcome) in table {
        let mut bench = Bench::new();
        bench.prompt(ApproveMode::All);
        bench.reply(stop.clone(), blocks);
        assert_eq!(bench.last_turn(), outcome, "{stop:?}");
    }
    // Calls beside `end_turn`, as compatible servers send them, are run.
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    assert!(matches!(bench.reply(StopReason::EndTurn, vec![call("one")]).as_slice(), [Effect::AssessCall { .. }]));
    // A full window ends the turn; its calls are answered, not run.
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    bench.reply(StopReason::ContextWindowExceeded, vec![call("one"), call("two")]);
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { .. }));
    assert_eq!(bench.history().last().unwrap(), "user: tool_result tool_result");
}

#[test]
fn a_failed_request_is_tried_again_at_its_time_with_the_same_id() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    let request = bench.request();
    let problem = Problem { code: "overloaded".into(), message: "m".into(), hint: "h".into(), request_id: None };
    let next_try = Some(Timestamp(5_000));
    bench.step(Input::RequestFailed { request, problem: problem.clone(), next_try });
    assert_eq!(bench.machine.deadline(), next_try);
    bench.now = 5_000;
    let effects = bench.step(Input::TimerFired);
    assert_eq!(effects, [Effect::SendRequest { request, attempt: 2 }]);
    bench.step(Input::RequestFailed { request, problem, next_try: None });
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { .. }));
}

#[test]
fn a_turn_that_asks_the_model_too_often_ends() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    for _ in 0..100 {
        if bench.machine.turn().is_none() {
            break;
        }
        bench.reply(StopReason::ToolUse, vec![call("again")]);
        bench.assess(ask());
        bench.finish("same");
    }
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { problem } if problem.code == "request_limit"));
}

#[test]
fn queued_prompts_wait_their_turn_and_can_be_taken_back() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    bench.prompt(ApproveMode::All);
    bench.prompt(ApproveMode::All);
    let queued: Vec<PromptId> = bench.machine.queued().collect();
    assert_eq!(queued.len(), 2);
    bench.step(Input::PromptWithdrawn { prompt: queued[0], by: "t".into() });
    bench.reply(StopReason::EndTurn, vec![text("a")]);
    assert_eq!(bench.machine.queued().count(), 0);
    assert_eq!(bench.machine.turn().unwrap().prompt, queued[1]);
}

/// What a random life of a session is made of.
#[derive(Clone, Debug)]
enum Move {
    Prompt(ApproveMode),
    Reply(u8, u8),
    Fail(bool),
    Assess(u8),
    Answer(u8),
    Finish,
    Interrupt,
    Later,
    Crash,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        2 => prop_oneof![Just(ApproveMode::Ask), Just(ApproveMode::Deny), Just(ApproveMode::All)].prop_map(Move::Prompt),
        6 => (0_u8..9, 0_u8..5).prop_map(|(stop, calls)| Move::Reply(stop, calls)),
        1 => any::<bool>().prop_map(Move::Fail),
        6 => (0_u8..4).prop_map(Move::Assess),
        3 => (0_u8..3).prop_map(Move::Answer),
        6 => Just(Move::Finish),
        1 => Just(Move::Interrupt),
        1 => Just(Move::Later),
        2 => Just(Move::Crash),
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
        Move::Fail(again) if matches!(bench.machine.phase(), Phase::Requesting(..)) => {
            let request = bench.request();
            let problem = Problem { code: "x".into(), message: "m".into(), hint: String::new(), request_id: None };
            let next_try = again.then_some(Timestamp(bench.now + 10));
            bench.step(Input::RequestFailed { request, problem, next_try });
        }
        Move::Assess(kind) => {
            let assessing = match bench.machine.phase() {
                Phase::Calling(_, calling) => calling.calls.iter().any(|c| matches!(c.state, CallState::Assessing)),
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
        Move::Reply(..) | Move::Fail(_) => {}
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
