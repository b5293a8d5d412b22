//! Claims about the machine: tables for the named cases, a property for everything else in [`lives`].
//!
//! | calls side by side, cancelled, cut by a crash | claim |
//! |---|---|
//! | several calls, one message, call order | `a_turn_with_two_calls_runs_them_in_order_and_answers_them_in_one_message` |
//! | interrupt while one runs | `an_interrupt_while_a_command_runs_keeps_its_output_and_answers_every_call`, `an_interrupt_of_the_last_running_call_ends_the_turn_too` |
//! | interrupt while the reply streams | `a_late_reply_to_an_interrupted_request_changes_nothing` |
//! | broken calls beside good ones | `broken_or_unknown_calls_are_answered_and_not_run` |
//! | a history that ends with open calls after a crash; exactly one result per call | `any_life_of_a_session_keeps_its_promises` |

mod approving;
mod entering;
mod jobs;
mod lives;
mod model_work;

use std::time::Duration;

use proto::approval::{Decider, OtherSubject, Subject, Verdict};
use proto::event::{Outcome, Problem, TurnOutcome, Usage};
use proto::ids::{CallId, JobId, PromptId, RequestId, SessionId, Timestamp, UndoId};
use proto::json::JsonText;
use proto::mode::Mode;
use proto::request::ApproveMode;
use uuid::Uuid;

use super::*;
use crate::content::Part;
use crate::model::{BlockKind, Reply, ReplyBlock, Role, StopReason, ToolInput, ToolUse};
use crate::policy::ShellFacts;
use crate::store::entry::{Entry, Expect, Prompt, Settings, UndoOrder, UndoResult};
use crate::tools::ToolResult;
use crate::tools::background::{Cause, NewJob, Report};

/// A machine under test: deterministic ids, a clock of its own, everything recorded.
struct Bench {
    machine: Machine,
    now: u64,
    made: u128,
    log: Vec<Entry>,
    jobs: Vec<JobId>,
}

impl Bench {
    fn new() -> Self {
        Self { machine: machine(), now: 1_000, made: 0, log: Vec::new(), jobs: Vec::new() }
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
            Phase::Idle | Phase::Ready(_) | Phase::Paused(..) | Phase::Calling(..) | Phase::Undoing(_) => {
                panic!("no request: {:?}", self.machine.phase())
            }
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
        self.step(Input::CallAssessed {
            call,
            assessment: Box::new(Assessment::Runnable(Box::new(Runnable {
                mode: self.machine.mode(),
                ..runnable(ruling)
            }))),
        })
    }

    fn finish(&mut self, text: &str) -> Vec<Effect> {
        let call = self.open_call();
        self.step(Input::CallEnded { call, result: Box::new(done(text)), duration_ms: 5 })
    }

    fn undo(&mut self) -> Vec<Effect> {
        self.made += 1;
        let undo = UndoId(Uuid::from_u128(self.made));
        self.step(Input::UndoAsked(UndoOrder { undo, steps: 1, newest: None, by: "t".into() }))
    }

    fn rerun(&mut self, text: &str) -> Vec<Effect> {
        self.made += 1;
        let prompt = PromptId(Uuid::from_u128(self.made));
        self.step(Input::RerunAsked(Prompt { prompt, text: text.into(), approve: ApproveMode::All, by: "t".into() }))
    }

    /// The running undo is over, or another one that nobody asked for.
    fn undone(&mut self, fits: bool) -> Vec<Effect> {
        let running = match self.machine.phase() {
            Phase::Undoing(order) => order.undo,
            _ => UndoId(Uuid::max()),
        };
        let undo = if fits { running } else { UndoId(Uuid::max()) };
        let note = Some("note".into());
        let (by, diffs) = ("t".into(), Vec::new());
        self.step(Input::UndoEnded(Box::new(UndoResult { undo, by, diffs, left: 0, newest: 0, problem: None, note })))
    }

    /// A job begins, in the call that runs if one does.
    fn job_start(&mut self) -> Vec<Effect> {
        self.made += 1;
        let (id, command) = (Uuid::from_u128(self.made), format!("make {}.", self.made));
        let (deadline, silence) = (Duration::from_secs(60), Some(Duration::from_secs(9)));
        let (description, cwd) = (String::new(), "/w".into());
        let new = NewJob { job: JobId(id), command, description, cwd, deadline, silence, moved: false };
        self.jobs.push(new.job);
        self.step(Input::JobStarted { call: CallId(id), new: Box::new(new) })
    }

    fn some_job(&self, pick: u8) -> JobId {
        let at = usize::from(pick) % self.jobs.len().max(1);
        self.jobs.get(at).copied().unwrap_or(JobId(Uuid::max()))
    }

    fn job_end(&mut self, pick: u8) -> Vec<Effect> {
        let job = self.some_job(pick);
        let stopped = pick.is_multiple_of(4);
        let outcome = if stopped { Outcome::Interrupted {} } else { Outcome::Exited { status: 0 } };
        let text = format!("job {job} ended.");
        let cause = if stopped { Cause::Asked } else { Cause::Own };
        let report = Report { outcome, duration_ms: 1, output_bytes: 2, spool: None, cause, text };
        self.step(Input::JobEnded { job, report: Box::new(report) })
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
    let limits = Limits {
        requests_max: 20,
        approval_expiry_ms: 60_000,
        max_tokens: 100,
        caps: Caps::default(),
        compact_at: 80,
        server_compaction: false,
    };
    Machine::new(SessionId(Uuid::nil()), limits)
}

fn reply(stop: StopReason, blocks: Vec<ReplyBlock>) -> Reply {
    Reply {
        id: "m".into(),
        model: "m".into(),
        blocks,
        stop,
        usage: Usage::default(),
        context_tokens: 0,
        cache_miss: None,
        request_id: None,
    }
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
    Runnable {
        ruling,
        mode: Mode::Ask,
        subject,
        digest: "d".into(),
        expect: Expect::Nothing,
        repeatable: true,
        facts: ShellFacts::restarted(),
        told: true,
        proposal: None,
        problems: Vec::new(),
    }
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
    assert!(matches!(bench.step(answer(Verdict::Once {})).as_slice(), [Effect::AssessCall { .. }]), "a last look");
    assert!(matches!(bench.assess(ask()).as_slice(), [Effect::RunCall { .. }]));
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
    bench.assess(ask());
    bench.finish("1");
    assert!(matches!(bench.assess(ask()).as_slice(), [Effect::RunCall { .. }]), "same digest");
    bench.finish("2");
    let call = bench.open_call();
    let other = Runnable { digest: "e".into(), ..runnable(ask()) };
    bench.step(Input::CallAssessed { call, assessment: Box::new(Assessment::Runnable(Box::new(other))) });
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
    // A full window: the whole call runs, the cut one is answered and not run.
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    bench.reply(StopReason::ContextWindowExceeded, vec![call("one"), call("two")]);
    bench.assess(allow());
    bench.finish("1");
    assert_eq!(bench.history().last().unwrap(), "user: tool_result tool_result");
}

#[test]
fn a_failed_request_is_tried_again_at_its_time_with_the_same_id() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    let request = bench.request();
    let problem = Problem { code: "overloaded".into(), message: "m".into(), hint: "h".into(), request_id: None };
    let cure = Cure::Again { at: Timestamp(5_000), parked: false };
    bench.step(Input::RequestFailed { request, problem: problem.clone(), cure });
    assert_eq!(bench.machine.deadline(), Some(Timestamp(5_000)));
    bench.now = 5_000;
    let effects = bench.step(Input::TimerFired);
    assert_eq!(effects, [Effect::SendRequest { request, attempt: 2 }]);
    bench.step(Input::RequestFailed { request, problem, cure: Cure::None });
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { .. }));
}

#[test]
fn a_turn_that_asks_the_model_too_often_ends() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Deny);
    for step in 0..100 {
        if bench.machine.turn().is_none() {
            break;
        }
        bench.reply(StopReason::ToolUse, vec![call(&format!("step {step}"))]);
        bench.assess(allow());
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
    assert_eq!(bench.machine.turn().unwrap().prompt, Some(queued[1]));
}

#[test]
fn an_undo_waits_for_rest_and_what_it_put_back_stands_before_the_next_prompt() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    assert!(bench.undo().is_empty(), "a turn runs");
    bench.reply(StopReason::EndTurn, vec![text("a")]);
    assert!(matches!(bench.undo().as_slice(), [Effect::RunUndo(_)]));
    assert!(bench.prompt(ApproveMode::All).is_empty(), "a prompt waits for the undo");
    assert!(bench.undone(false).is_empty(), "an end of another undo changes nothing");
    assert!(matches!(bench.undone(true).as_slice(), [Effect::SendRequest { .. }]));
    assert_eq!(bench.history(), ["user: text", "assistant: text", "user: text text"]);
    assert!(bench.undone(true).is_empty(), "it ends once");
}

#[test]
fn an_undo_that_a_crash_cut_is_asked_for_again_by_its_id() {
    let mut bench = Bench::new();
    let effects = bench.undo();
    let mut replayed = machine();
    bench.log.iter().for_each(|entry| replayed.apply(entry));
    bench.machine = replayed;
    assert_eq!(bench.step(Input::Resumed), effects);
}

fn thinking() -> ReplyBlock {
    let value = serde_json::json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    ReplyBlock { raw: raw(&value), kind: BlockKind::Thinking("hm".into()) }
}

#[test]
fn thinking_that_the_server_does_not_accept_is_left_out_once_and_stays_out() {
    let problem = Problem { code: "signature_invalid".into(), message: "m".into(), hint: "h".into(), request_id: None };
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::EndTurn, vec![thinking(), text("a")]);
    bench.prompt(ApproveMode::Ask);
    let request = bench.request();
    let cure = Cure::WithoutThinking;
    let effects = bench.step(Input::RequestFailed { request, problem: problem.clone(), cure });
    assert_eq!(effects, [Effect::SendRequest { request, attempt: 2 }]);
    assert_eq!(bench.history(), ["user: text", "assistant: text", "user: text"]);
    assert!(bench.step(Input::RequestFailed { request, problem, cure }).is_empty(), "not a second time");
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { .. }));
    let stored = bench.log.iter().any(|entry| match entry {
        Entry::ReplyReceived(reply) => reply.blocks.iter().any(|block| block.raw.contains("\"hm\"")),
        _ => false,
    });
    assert!(stored, "the log keeps what was thought");
}

#[test]
fn a_parked_turn_goes_on_when_a_client_asks_and_survives_a_restart() {
    let problem = Problem { code: "overloaded".into(), message: "m".into(), hint: "h".into(), request_id: None };
    let mut bench = Bench::new();
    assert!(bench.step(Input::RetryAsked { by: "t".into() }).is_empty(), "nothing waits");
    bench.prompt(ApproveMode::Ask);
    let request = bench.request();
    let cure = Cure::Again { at: Timestamp(900_000), parked: true };
    bench.step(Input::RequestFailed { request, problem, cure });
    let mut replayed = machine();
    bench.log.iter().for_each(|entry| replayed.apply(entry));
    bench.machine = replayed;
    assert!(bench.step(Input::Resumed).is_empty(), "its time has not come");
    assert!(matches!(bench.machine.phase(), Phase::Backoff(_, _, Pause { parked: true, until: Timestamp(900_000) })));
    let effects = bench.step(Input::RetryAsked { by: "t".into() });
    assert_eq!(effects, [Effect::SendRequest { request, attempt: 2 }]);
}
