//! Claims about the view.

use expect_test::{Expect, expect};
use proto::approval::Verdict;
use proto::event::{
    ApprovalAsked, ApprovalClosed, CallBlock, CallFinished, CallStarted, Outcome, PromptAccepted, RequestSent,
    TurnEnded, TurnOutcome, TurnStarted, Usage,
};
use proto::ids::SessionId;
use proto::json::JsonText;
use proto::live::{LiveOutput, LiveRestarted};
use proto::request::ApproveMode;

use proto::event::{Block, ReplyReceived};
use proto::live::{LiveKind, LiveText};

use super::*;

fn ended(turn: TurnId, outcome: TurnOutcome) -> TurnEnded {
    TurnEnded { turn, outcome, requests: 1, usage: Usage::default() }
}

/// A view and what it gave so far, as a reader would see it: text as it is, lines in brackets.
struct Bench {
    view: View,
    request: RequestId,
    turn: TurnId,
    shown: String,
}

impl Bench {
    fn new(stream: bool) -> Self {
        let me = "agentctl on pts/1".to_owned();
        let view = View::new(Options { stream, own_prompts: true, me, zone: TimeZone::UTC });
        Self { view, request: RequestId::new(), turn: TurnId::new(), shown: String::new() }
    }

    fn take(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.shown.push_str(&text),
                Piece::EndText => self.shown.push_str("⏎\n"),
                Piece::Line(line) => self.shown.push_str(&format!("[{}]\n", line.paint(false))),
            }
        }
    }

    fn row(&mut self, body: EventBody) {
        let seq = self.view.last.next();
        let pieces = self.view.event(&Event { seq, at: Timestamp(1_700_000_000_000), body }, 80);
        self.take(pieces);
    }

    fn live(&mut self, kind: LiveKind, index: u32, offset: u64, text: &str) {
        let (session, request, text) = (SessionId::new(), self.request, text.to_owned());
        let pieces = self.view.live(&Live::Text(LiveText { session, request, index, kind, offset, text }));
        self.take(pieces);
    }

    fn text(&mut self, offset: u64, text: &str) {
        self.live(LiveKind::Text, 0, offset, text);
    }

    fn reply(&mut self, blocks: Vec<Block>) {
        let (turn, request, stop_reason, usage) = (self.turn, self.request, "end_turn".into(), Usage::default());
        self.row(EventBody::ReplyReceived(ReplyReceived {
            turn,
            request,
            blocks,
            stop_reason,
            usage,
            model: String::new(),
            cache_miss: None,
        }));
    }

    fn call(&mut self, title: &str) -> CallId {
        let call = CallId::new();
        let (tool_use_id, tool, title) = ("t".into(), "bash".into(), title.into());
        let input = JsonText::parse("{}").unwrap();
        self.reply(vec![Block::Call(CallBlock { call, tool_use_id, tool, title, input })]);
        let allowed_by = Decider::Expiry {};
        self.row(EventBody::CallStarted(CallStarted { turn: self.turn, call, allowed_by }));
        call
    }

    fn output(&mut self, call: CallId, offset: u64, text: &str) {
        let bytes = u64::try_from(text.len()).unwrap();
        let output = LiveOutput { session: SessionId::new(), call, offset, bytes, text: text.into() };
        let pieces = self.view.live(&Live::Output(output));
        self.take(pieces);
    }

    fn status(&self, now: u64) -> String {
        let lines = self.view.status(Timestamp(1_700_000_000_000 + now), 40);
        lines.iter().map(|line| line.paint(false) + "\n").collect()
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

#[track_caller]
fn check(bench: &Bench, expected: &Expect) {
    expected.assert_eq(&bench.shown);
}

#[test]
fn doubled_pieces_gaps_and_the_finished_row_give_each_byte_once() {
    let mut bench = Bench::new(true);
    bench.text(0, "one ");
    bench.text(0, "one ");
    bench.text(2, "e two ");
    bench.text(20, "lost its predecessor");
    bench.reply(vec![text("one two three")]);
    check(
        &bench,
        &expect![[r#"
        one two three⏎
    "#]],
    );
}

/// Property over every way to cut a text into pieces of which some are lost and some come twice.
#[test]
fn any_mixture_of_pieces_ends_in_the_finished_text() {
    let whole = "aé日👩‍💻z\nnext line";
    for seed in 0_u64..2_000 {
        let mut bench = Bench::new(true);
        let mut random = seed;
        let mut at = 0;
        while at < whole.len() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let step = usize::try_from(random >> 61).unwrap() + 1;
            let end = (at + step..=whole.len()).find(|&end| whole.is_char_boundary(end)).unwrap_or(whole.len());
            for _ in 0..(random >> 40) % 3 {
                bench.text(u64::try_from(at).unwrap(), &whole[at..end]);
            }
            at = end;
        }
        bench.reply(vec![text(whole)]);
        assert_eq!(bench.shown, format!("{whole}⏎\n"), "seed {seed}");
    }
}

#[test]
fn a_row_that_differs_from_the_pieces_replaces_them_and_says_so() {
    let mut bench = Bench::new(true);
    bench.text(0, "one two");
    bench.reply(vec![text("something else")]);
    check(
        &bench,
        &expect![[r#"
        one two⏎
        [· that text is void; the reply is:]
        something else⏎
    "#]],
    );
}

#[test]
fn a_restart_voids_what_was_shown_only_when_something_was() {
    let mut bench = Bench::new(true);
    let restarted = Live::Restarted(LiveRestarted { session: SessionId::new(), request: bench.request });
    let pieces = bench.view.live(&restarted);
    bench.take(pieces);
    bench.text(0, "half");
    let pieces = bench.view.live(&restarted);
    bench.take(pieces);
    bench.text(0, "who");
    bench.reply(vec![text("whole")]);
    check(
        &bench,
        &expect![[r#"
        half⏎
        [! the reply broke off; what was shown of it is void, it is asked for again]
        whole⏎
    "#]],
    );
}

#[test]
fn without_streaming_a_reply_comes_whole() {
    let mut bench = Bench::new(false);
    bench.text(0, "half");
    assert_eq!(bench.shown, "");
    bench.reply(vec![text("half and half"), text("second block")]);
    check(
        &bench,
        &expect![[r#"
        half and half⏎
        second block⏎
    "#]],
    );
}

#[test]
fn thinking_comes_by_lines_and_is_not_doubled_by_the_row() {
    let mut bench = Bench::new(true);
    bench.live(LiveKind::Thinking, 0, 0, "first li");
    bench.live(LiveKind::Thinking, 0, 8, "ne\nsecond");
    bench.live(LiveKind::Thinking, 0, 17, " line");
    bench.live(LiveKind::Text, 1, 0, "answer");
    bench.reply(vec![Block::Thinking { text: "first line\nsecond line".into() }, text("answer!")]);
    check(
        &bench,
        &expect![[r#"
        [┊ first line]
        [┊ second line]
        answer!⏎
    "#]],
    );
}

#[test]
fn rows_that_come_again_change_nothing() {
    let mut bench = Bench::new(true);
    let body = || EventBody::Notice(proto::event::Notice { text: "disk nearly full".into() });
    bench.row(body());
    let again = Event { seq: Seq(1), at: Timestamp(0), body: body() };
    assert_eq!(bench.view.event(&again, 80), []);
    check(
        &bench,
        &expect![[r#"
        [! disk nearly full]
    "#]],
    );
}

#[test]
fn a_running_command_shows_its_time_and_last_lines_in_place() {
    let mut bench = Bench::new(true);
    let call = bench.call("$ make -j2 all && make install PREFIX=/opt");
    bench.output(call, 0, "1\n2\n3\n4\n5\n6\n");
    bench.output(call, 0, "1\n2\n3\n4\n5\n6\n");
    bench.output(call, 12, "10%\r50%\r99%\x1b[K");
    expect![[r#"
        ⠋ $ make -j2 all && make install… · 12 s
          2
          3
          4
          5
          6
          99%
    "#]]
    .assert_eq(&bench.status(12_345).replace(['⠙', '⠸', '⠴', '⠦', '⠇', '⠏'], "⠋"));
    assert!(bench.view.ticks());
}

#[test]
fn waiting_for_the_model_and_for_the_next_try_is_shown() {
    let mut bench = Bench::new(true);
    bench.row(EventBody::RequestSent(RequestSent { turn: bench.turn, request: bench.request, attempt: 1 }));
    assert!(bench.status(3_000).ends_with("thinking · 3 s\n"));
    bench.live(LiveKind::Call, 0, 0, "bash");
    assert!(bench.status(3_000).ends_with("writing a call of bash · 3 s\n"));
    let problem = proto::event::Problem {
        code: "overloaded".into(),
        message: "the API is overloaded".into(),
        hint: String::new(),
        request_id: None,
    };
    let next_try = Some(Timestamp(1_700_000_010_000));
    let failed =
        RequestFailed { turn: bench.turn, request: bench.request, attempt: 1, problem, next_try, parked: false };
    bench.row(EventBody::RequestFailed(failed));
    assert!(bench.status(3_000).ends_with("next try in 7 s\n"));
    bench.row(EventBody::TurnEnded(ended(bench.turn, TurnOutcome::Done {})));
    assert_eq!(bench.status(3_000), "");
    check(
        &bench,
        &expect![[r#"
        [! the API is overloaded · tries again at 22:13:30]
    "#]],
    );
}

#[test]
fn questions_open_and_close_and_a_diff_seen_in_one_is_not_repeated() {
    let mut bench = Bench::new(true);
    let mut approval = crate::render::approval::tests::command("make");
    let call = bench.call("edit src/lib.rs");
    approval.call = call;
    bench.row(EventBody::ApprovalAsked(ApprovalAsked { approval: approval.clone() }));
    assert_eq!(bench.view.open.len(), 1);
    bench.view.drew(&approval);
    bench.view.answers(approval.id);
    let by = Decider::Client { name: "agentctl on pts/1".into() };
    let closed = ApprovalClosed { approval: approval.id, call, verdict: Verdict::Once {}, by };
    bench.row(EventBody::ApprovalClosed(closed));
    assert!(bench.view.open.is_empty());
    let diff = Some(crate::render::diff::tests::sample());
    let (turn, outcome, text) = (bench.turn, Outcome::Done {}, "ok".into());
    bench.row(EventBody::CallFinished(CallFinished {
        turn,
        call,
        outcome,
        text,
        is_error: false,
        duration_ms: 3,
        diff,
    }));
    check(
        &bench,
        &expect![[r#"
        [  you answered: yes]
        [● edit src/lib.rs +2 −1]
    "#]],
    );
}

#[test]
fn prompts_are_shown_when_their_turn_comes_with_the_names_of_others() {
    let mut bench = Bench::new(true);
    let own = PromptId::new();
    bench.view.sent(own);
    for (prompt, by) in [(own, "agentctl on pts/1"), (PromptId::new(), "agentctl on pts/2")] {
        let (text, by) = ("do\nthis".to_owned(), by.to_owned());
        bench.row(EventBody::PromptAccepted(PromptAccepted { prompt, text, approve: ApproveMode::Ask, by }));
    }
    assert!(!bench.view.is_idle());
    let other = bench.view.queued[1].prompt;
    bench.row(EventBody::TurnStarted(TurnStarted { turn: bench.turn, prompt: own }));
    bench.row(EventBody::TurnEnded(ended(bench.turn, TurnOutcome::Interrupted {})));
    assert!(bench.view.is_idle());
    bench.row(EventBody::TurnStarted(TurnStarted { turn: bench.turn, prompt: other }));
    check(
        &bench,
        &expect![[r#"
        [› do]
        [  this]
        [! interrupted]
        [› do  agentctl on pts/2]
        [  this]
    "#]],
    );
}

/// The bar is 0.3 s of a client's time for 20,000 pieces; in a test build, folding alone must stay far below it.
#[test]
fn twenty_thousand_pieces_are_folded_in_little_time() {
    let mut bench = Bench::new(true);
    let begin = std::time::Instant::now();
    for at in 0..20_000 {
        bench.text(at * 5, "word ");
    }
    let spent = begin.elapsed();
    assert_eq!(bench.shown.len(), 100_000);
    assert!(spent.as_millis() < 1_000, "{spent:?}");
}
