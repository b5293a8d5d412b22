//! Claims about what the model is given and may spend: limits that ask, circles, compaction, notes, the last prompt again.

use super::*;

fn limited(change: impl FnOnce(&mut Limits)) -> Bench {
    let mut limits = Limits {
        requests_max: 20,
        approval_expiry_ms: 60_000,
        max_tokens: 100,
        caps: Caps::default(),
        compact_at: 80,
        server_compaction: false,
    };
    change(&mut limits);
    let mut bench = Bench::new();
    bench.machine = Machine::new(SessionId(Uuid::nil()), limits);
    bench
}

impl Bench {
    /// A reply that costs a dollar, fills the window so far, and calls.
    fn dear_call(&mut self, id: &str, context_tokens: u64) -> Vec<Effect> {
        let request = self.request();
        let usage = Usage { input_tokens: 10, output_tokens: 5, cost_nanousd: Some(1_000_000_000), ..Usage::default() };
        let mut reply = reply(StopReason::ToolUse, vec![call(id)]);
        reply.usage = usage;
        reply.context_tokens = context_tokens;
        self.step(Input::ReplyArrived { request, reply: Box::new(reply) });
        self.assess(allow());
        self.finish("done")
    }

    fn answer(&mut self, verdict: Verdict) -> Vec<Effect> {
        let approval = self.machine.asking().expect("a question").id;
        self.step(Input::ApprovalAnswered { approval, verdict, by: client() })
    }

    fn summarise(&mut self, text_of_it: &str) -> Vec<Effect> {
        self.reply(StopReason::EndTurn, vec![text(text_of_it)])
    }

    fn crash(&mut self, limits: impl FnOnce(&mut Limits)) {
        let mut fresh = limited(limits);
        self.log.iter().for_each(|entry| fresh.machine.apply(entry));
        self.machine = fresh.machine;
    }

    fn texts(&self) -> String {
        let blocks = self.machine.history().iter().flat_map(|message| &message.content);
        blocks.filter_map(|block| block.to_value()["text"].as_str().map(str::to_owned)).collect::<Vec<_>>().join("|")
    }
}

#[test]
fn a_limit_of_money_asks_and_each_yes_is_worth_as_much_again() {
    let cap = |limits: &mut Limits| limits.caps.turn_nanousd = 2_000_000_000;
    let mut bench = limited(cap);
    bench.prompt(ApproveMode::Ask);
    assert!(matches!(bench.dear_call("a", 0).last(), Some(Effect::SendRequest { .. })));
    assert!(!matches!(bench.dear_call("b", 0).last(), Some(Effect::SendRequest { .. })), "two dollars are spent");
    let asked = bench.machine.asking().unwrap();
    assert!(asked.reason.contains("2.00 USD") && asked.tool == PAUSE_TOOL, "{asked:?}");
    bench.crash(cap);
    assert!(bench.step(Input::Resumed).is_empty(), "the question outlives the daemon");
    assert!(matches!(bench.answer(Verdict::Once {}).as_slice(), [Effect::SendRequest { .. }]));
    bench.dear_call("c", 0);
    bench.dear_call("d", 0);
    bench.answer(Verdict::Deny { reason: None });
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { problem } if problem.code == "money_limit"));
    // The next turn begins anew, and "for the session" never asks again.
    bench.prompt(ApproveMode::Ask);
    bench.dear_call("e", 0);
    bench.dear_call("f", 0);
    bench.answer(Verdict::Session {});
    for id in ["g", "h", "i", "j", "k"] {
        assert!(matches!(bench.dear_call(id, 0).last(), Some(Effect::SendRequest { .. })));
    }
}

#[test]
fn tokens_time_day_and_session_have_limits_too() {
    type Change = fn(&mut Limits);
    let table: [(Change, &str); 3] = [
        (|limits| limits.caps.turn_tokens = 15, "budget.turn_tokens"),
        (|limits| limits.caps.turn_ms = 5_000, "budget.turn_time"),
        (|limits| limits.caps.session_nanousd = 1_000_000_000, "budget.session_usd"),
    ];
    for (cap, word) in table {
        let mut bench = limited(cap);
        bench.prompt(ApproveMode::Ask);
        bench.now += 5_000;
        bench.dear_call("a", 0);
        assert!(bench.machine.asking().is_some_and(|asked| asked.reason.contains(word)), "{word}");
        assert!(matches!(bench.step(Input::InterruptAsked { by: "t".into() }).as_slice(), []));
        assert_eq!(bench.last_turn(), TurnOutcome::Interrupted {});
    }
    let mut bench = limited(|limits| limits.caps.day_nanousd = 9);
    bench.machine.surround(Surroundings { day_nanousd: 9, window_tokens: 0 });
    bench.prompt(ApproveMode::Deny);
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { problem } if problem.message.contains("budget.day_usd")));
}

#[test]
fn a_model_that_goes_in_circles_is_asked_about_and_one_that_moves_is_not() {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::All);
    for round in 1..=5 {
        assert!(bench.machine.asking().is_none(), "round {round}");
        bench.dear_call("a", 0);
    }
    assert!(bench.machine.asking().unwrap().reason.contains("circles"));
    assert!(matches!(bench.answer(Verdict::Once {}).as_slice(), [Effect::SendRequest { .. }]));
    for id in ["a", "b", "c", "a", "b", "c", "d", "a"] {
        bench.dear_call(id, 0);
    }
    assert!(bench.machine.asking().is_none());
}

#[test]
fn a_nearly_full_window_is_compacted_between_results_and_the_next_request() {
    let mut bench = Bench::new();
    bench.machine.surround(Surroundings { day_nanousd: 0, window_tokens: 1_000 });
    bench.prompt(ApproveMode::All);
    bench.dear_call("a", 500);
    assert!(!bench.machine.is_compacting());
    bench.dear_call("b", 790);
    assert!(bench.machine.is_compacting(), "790 and the result are more than 80 percent");
    let asked = bench.machine.messages();
    assert_eq!(asked.len(), bench.machine.history().len() + 1, "the history as it stands, and the wish");
    // One that calls a tool instead is asked again.
    let effects = bench.reply(StopReason::ToolUse, vec![call("x")]);
    assert!(matches!(effects.as_slice(), [Effect::SendRequest { .. }]) && bench.machine.is_compacting());
    bench.summarise("all that happened");
    assert_eq!(bench.history(), ["user: text"]);
    assert!(bench.texts().contains("all that happened") && bench.texts().contains("do it"), "{}", bench.texts());
    bench.dear_call("c", 100);
    bench.reply(StopReason::EndTurn, vec![text("done")]);
    assert_eq!(bench.last_turn(), TurnOutcome::Done {});
    let before = bench.machine.history().to_vec();
    bench.crash(|_| {});
    assert_eq!(bench.machine.history(), before);
}

#[test]
fn a_history_that_does_not_fit_any_more_is_summarised_from_ever_shorter_transcripts() {
    let mut bench = Bench::new();
    bench.machine.surround(Surroundings { day_nanousd: 0, window_tokens: 10_000 });
    bench.prompt(ApproveMode::All);
    bench.dear_call("a", 100);
    let problem = Problem { code: "prompt_too_long".into(), message: "m".into(), hint: "h".into(), request_id: None };
    let too_long = |bench: &mut Bench| {
        let (request, problem) = (bench.request(), problem.clone());
        bench.step(Input::RequestFailed { request, problem, cure: Cure::Shorter })
    };
    too_long(&mut bench);
    let sizes = |bench: &Bench| bench.machine.messages().iter().map(|m| m.content[0].as_str().len()).sum::<usize>();
    assert_eq!(bench.machine.messages().len(), 1, "a transcript");
    let first = sizes(&bench);
    too_long(&mut bench);
    assert!(sizes(&bench) <= first);
    bench.summarise("short");
    assert_eq!(bench.history(), ["user: text"]);
    // When nothing helps, the turn ends with a sentence instead of going round.
    for _ in 0..50 {
        if bench.machine.turn().is_none() {
            break;
        }
        too_long(&mut bench);
    }
    assert!(matches!(bench.last_turn(), TurnOutcome::Failed { .. }));
}

#[test]
fn a_compaction_that_a_client_asks_for_is_a_turn_of_its_own() {
    let mut bench = Bench::new();
    assert!(bench.step(Input::CompactionAsked { by: "t".into() }).is_empty(), "nothing to compact");
    bench.prompt(ApproveMode::All);
    assert!(bench.step(Input::CompactionAsked { by: "t".into() }).is_empty(), "a turn runs");
    bench.reply(StopReason::EndTurn, vec![text("a")]);
    assert!(matches!(bench.step(Input::CompactionAsked { by: "t".into() }).as_slice(), [Effect::SendRequest { .. }]));
    assert!(bench.prompt(ApproveMode::All).is_empty(), "a prompt waits");
    let effects = bench.summarise("sum");
    assert!(matches!(effects.as_slice(), [Effect::SendRequest { .. }]), "the prompt's turn");
    assert_eq!(bench.history(), ["user: text text"]);
}

#[test]
fn the_servers_own_compaction_takes_the_historys_place() {
    let mut bench = limited(|limits| limits.server_compaction = true);
    bench.machine.surround(Surroundings { day_nanousd: 0, window_tokens: 1_000 });
    bench.prompt(ApproveMode::All);
    bench.dear_call("a", 900);
    assert!(bench.machine.compacts_on_server());
    assert_eq!(&*bench.machine.messages(), bench.machine.history());
    let block = raw(&serde_json::json!({"type": "compaction", "content": "sum", "signature": "s"}));
    let kind = BlockKind::Other("compaction".into());
    let effects = bench.reply(StopReason::Compaction, vec![ReplyBlock { raw: block, kind }]);
    assert!(matches!(effects.as_slice(), [Effect::SendRequest { .. }]));
    assert_eq!(bench.history(), ["assistant: compaction", "user: text"]);
    assert!(!bench.machine.is_compacting());
}

#[test]
fn a_note_is_given_at_the_next_boundary_and_never_between_a_call_and_its_result() {
    let mut bench = Bench::new();
    let note = || Input::SteerAsked { text: "use tabs".into(), by: "t".into() };
    bench.step(note());
    assert!(bench.log.is_empty(), "nothing runs");
    bench.prompt(ApproveMode::All);
    bench.reply(StopReason::ToolUse, vec![call("a"), call("b")]);
    bench.assess(allow());
    bench.step(note());
    bench.finish("1");
    bench.assess(allow());
    bench.finish("2");
    let expected = ["user: text", "assistant: tool_use tool_use", "user: tool_result tool_result", "system: text"];
    assert_eq!(bench.history(), expected);
    // One that comes with the last words is answered in the same turn.
    bench.step(note());
    let effects = bench.reply(StopReason::EndTurn, vec![text("done")]);
    assert!(matches!(effects.as_slice(), [Effect::SendRequest { .. }]));
    bench.reply(StopReason::EndTurn, vec![text("with tabs")]);
    assert_eq!(bench.last_turn(), TurnOutcome::Done {});
}

#[test]
fn the_last_prompt_is_asked_again_as_if_it_had_not_been() {
    let mut bench = Bench::new();
    assert!(bench.rerun("x").is_empty(), "there is none");
    bench.prompt(ApproveMode::All);
    bench.dear_call("a", 0);
    bench.step(Input::InterruptAsked { by: "t".into() });
    let before = bench.machine.history().to_vec();
    bench.prompt(ApproveMode::All);
    assert!(bench.rerun("x").is_empty(), "a turn runs");
    bench.dear_call("b", 0);
    bench.reply(StopReason::EndTurn, vec![text("wrong")]);
    assert!(matches!(bench.rerun("in other words").as_slice(), [Effect::SendRequest { .. }]));
    assert!(bench.texts().ends_with("in other words") && !bench.texts().contains("wrong"), "{}", bench.texts());
    assert_eq!(bench.machine.history().len(), before.len());
    bench.reply(StopReason::EndTurn, vec![text("right")]);
    bench.rerun("");
    assert!(bench.texts().ends_with("in other words"), "the same words");
}

#[test]
fn a_cache_that_was_not_read_is_explained() {
    let cached = |read, written| Usage { cache_read_tokens: read, cache_write_tokens: written, ..Usage::default() };
    let mut bench = Bench::new();
    let turn = |bench: &mut Bench, usage, model: &str, server: Option<&str>| {
        bench.prompt(ApproveMode::All);
        let request = bench.request();
        let mut reply = reply(StopReason::EndTurn, vec![text("a")]);
        reply.usage = usage;
        reply.model = model.into();
        reply.cache_miss = server.map(str::to_owned);
        bench.step(Input::ReplyArrived { request, reply: Box::new(reply) });
        bench.log.iter().rev().find_map(|entry| match entry {
            Entry::ReplyReceived(reply) => Some(reply.cache_miss.clone()),
            _ => None,
        })
    };
    let missed = |found: Option<Option<String>>| found.flatten().unwrap_or_default();
    assert_eq!(missed(turn(&mut bench, cached(0, 900), "m", None)), "", "the first cannot read");
    assert_eq!(missed(turn(&mut bench, cached(900, 10), "m", None)), "");
    assert_eq!(missed(turn(&mut bench, cached(0, 910), "m", Some("tools_changed"))), "the server says tools_changed");
    assert!(missed(turn(&mut bench, cached(0, 910), "n", None)).contains("from m to n"));
    bench.now += 600_000;
    assert!(missed(turn(&mut bench, cached(0, 910), "n", None)).contains("expired 10 minutes"));
}
