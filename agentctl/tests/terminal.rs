//! `ask` and `attach` in a real terminal: questions in place, keys, Ctrl-C, streamed text, hostile output.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use proto::approval::{Decider, Verdict};
use proto::event::{Block, Outcome, TurnOutcome};
use proto::live::{Live, LiveRestarted};
use proto::request::{ApproveMode, Request};
use proto::response::{Answered, Done, Response};
use support::terminal::Terminal;
use support::{Fake, Peer, rows, with_session};

const CHOICES: &str = "[y]";

/// Waits for the answer and closes the question with it.
fn takes_answer(peer: &mut Peer, approval: &proto::approval::Approval) -> Verdict {
    let (id, request) = peer.request().unwrap();
    let Request::AnswerApproval(answer) = request else { panic!("expected an answer, not {request:?}") };
    assert_eq!((answer.approval.as_str(), answer.digest.as_deref()), (&*approval.id.to_string(), Some("d1")));
    let by = peer.name();
    peer.closes(approval, answer.verdict.clone(), &by);
    let answered = Answered {
        approval: approval.id,
        verdict: answer.verdict.clone(),
        by: Decider::Client { name: by },
        yours: true,
    };
    peer.ok(id, Response::Answered(answered));
    answer.verdict
}

fn gate() -> (Sender<()>, Mutex<Receiver<()>>) {
    let (sender, receiver) = channel();
    (sender, Mutex::new(receiver))
}

#[test]
fn a_question_is_shown_whole_and_answered_with_one_key() {
    let fake = Fake::start(|peer, prompt| {
        assert_eq!(prompt.approve, ApproveMode::Ask);
        let call = peer.calls("$ make install");
        let approval = peer.asks(call, "make install &&\n  rm -rf build");
        assert_eq!(takes_answer(peer, &approval), Verdict::Once {});
        peer.starts(call);
        peer.finishes(call, Outcome::Exited { status: 0 }, "installed\n");
        peer.says("Installed.");
        peer.done();
    });
    let mut terminal = Terminal::run(&fake.command(&["ask", "install it"]));
    let seen = terminal.wait_for(CHOICES);
    for text in
        ["Run this command?", "make install &&", "rm -rf build", "/home/me/project", "it is not known to only read"]
    {
        assert!(seen.contains(text), "{text:?} is not in {seen}");
    }
    terminal.press("y");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("you answered: ") && seen.contains("Installed."), "{seen}");
}

/// A key meant for something else must never approve a command.
#[test]
fn keys_typed_before_the_question_do_not_answer_it() {
    let (typed, wait) = gate();
    let fake = Fake::start(move |peer, _| {
        peer.says("Working on it.");
        wait.lock().unwrap().recv().unwrap();
        let call = peer.calls("$ rm -rf /");
        let approval = peer.asks(call, "rm -rf /");
        assert_eq!(takes_answer(peer, &approval), Verdict::Deny { reason: Some("no y".into()) });
        peer.finishes(call, Outcome::Denied {}, "denied: no y");
        peer.done();
    });
    let mut terminal = Terminal::run(&fake.command(&["ask", "x"]));
    terminal.wait_for("Working on it.");
    terminal.press("yyyy\ry");
    typed.send(()).unwrap();
    terminal.wait_for(CHOICES);
    terminal.press("r");
    terminal.wait_for("reason (Enter");
    terminal.press("no yy\x7f\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 4, "{seen}");
}

/// Somebody types a sentence with a `y` in it when the question comes: the sentence stays, the question waits.
#[test]
fn a_sentence_that_is_being_typed_does_not_answer_a_question() {
    let fake = Fake::start(move |peer, prompt| {
        if prompt.text != "go" {
            return peer.done();
        }
        let call = peer.calls("$ make");
        let approval = peer.asks(call, "make");
        assert_eq!(takes_answer(peer, &approval), Verdict::Deny { reason: None });
        peer.finishes(call, Outcome::Denied {}, "denied");
        peer.says("Not made.");
        peer.done();
    });
    with_session(&fake, |_| {});
    let mut terminal = Terminal::run(&fake.command(&["attach"]));
    terminal.wait_for("› ");
    terminal.press("go\r");
    terminal.wait_for(CHOICES);
    terminal.press("typing away");
    terminal.wait_for("typing away");
    terminal.wait_for_count(CHOICES, 2);
    terminal.press("n");
    terminal.wait_for("Not made.");
    terminal.press("\r");
    terminal.wait_for_count("› \u{1b}[0m\u{1b}[1mtyping away", 1);
    terminal.press("\x04");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(fake.prompts().last().unwrap().text, "typing away");
}

#[test]
fn a_question_answered_elsewhere_disappears_here_and_says_by_whom() {
    let (drawn, wait) = gate();
    let fake = Fake::start(move |peer, _| {
        let call = peer.calls("$ make");
        let approval = peer.asks(call, "make");
        wait.lock().unwrap().recv().unwrap();
        peer.closes(&approval, Verdict::Once {}, "agentctl on pts/3");
        peer.finishes(call, Outcome::Exited { status: 0 }, "");
        peer.done();
    });
    let terminal = Terminal::run(&fake.command(&["ask", "x"]));
    terminal.wait_for(CHOICES);
    drawn.send(()).unwrap();
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    let choices = seen.rfind(CHOICES).unwrap();
    let after = &seen[choices..];
    assert!(after.contains("\r\x1b[J"), "the choices are erased: {after:?}");
    assert!(after.contains("answered by agentctl on pts/3: ") && after.contains("yes"), "{after:?}");
}

#[test]
fn ctrl_c_interrupts_the_turn_and_the_exit_code_says_so() {
    let fake = Fake::start(|peer, _| {
        let call = peer.calls("$ sleep 100");
        peer.starts(call);
        peer.output(call, 0, "sleeping\n");
        let (id, request) = peer.request().unwrap();
        assert!(matches!(request, Request::Interrupt(_)));
        peer.ok(id, Response::Done(Done {}));
        peer.finishes(call, Outcome::Interrupted {}, "sleeping\n");
        peer.ends(TurnOutcome::Interrupted {});
    });
    let mut terminal = Terminal::run(&fake.command(&["ask", "x"]));
    terminal.wait_for("sleeping");
    terminal.press("\x03");
    let (code, seen) = terminal.end();
    assert_eq!(code, 5, "{seen}");
    assert!(seen.contains("interrupting (Ctrl-C again leaves at once)"), "{seen}");
}

#[test]
fn a_second_ctrl_c_leaves_at_once() {
    let fake = Fake::start(|peer, _| {
        peer.says("Working.");
        while peer.request().is_some() {}
    });
    let mut terminal = Terminal::run(&fake.command(&["ask", "x"]));
    terminal.wait_for("Working.");
    terminal.press("\x03");
    terminal.wait_for("interrupting");
    terminal.press("\x03");
    assert_eq!(terminal.end().0, 5);
}

#[test]
fn text_appears_as_it_is_written_and_the_finished_row_completes_it() {
    let (go, wait) = gate();
    let fake = Fake::start(move |peer, _| {
        let request = peer.request_sent();
        peer.text(request, 0, "alpha ");
        wait.lock().unwrap().recv().unwrap();
        peer.text(request, 6, "beta ");
        // A doubled piece, then one after a gap: neither may show twice or be missing in the end.
        peer.text(request, 6, "beta ");
        peer.text(request, 17, "delta");
        peer.reply(request, vec![Block::Text { text: "alpha beta gamma delta".into() }]);
        peer.done();
    });
    let terminal = Terminal::run(&fake.command(&["ask", "x"]));
    terminal.wait_for("alpha");
    go.send(()).unwrap();
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    assert_eq!(seen.matches("alpha beta gamma delta\r\n").count(), 1, "{seen:?}");
    assert!(!seen.contains("beta beta"), "{seen:?}");
}

#[test]
fn a_reply_that_broke_off_is_marked_void() {
    let fake = Fake::start(|peer, _| {
        let request = peer.request_sent();
        peer.text(request, 0, "Half a sent");
        let session = peer.session().id;
        peer.live(Live::Restarted(LiveRestarted { session, request }));
        peer.text(request, 0, "A whole ");
        peer.reply(request, vec![Block::Text { text: "A whole sentence.".into() }]);
        peer.done();
    });
    let (_, seen) = Terminal::run(&fake.command(&["ask", "x"])).end();
    assert!(seen.contains("is void, it is asked for again"), "{seen:?}");
    assert!(seen.contains("A whole sentence.\r\n"), "{seen:?}");
}

/// Control sequences in everything foreign: output, titles, commands, replies, names.
#[test]
fn nothing_foreign_reaches_the_terminal_raw() {
    const HOSTILE: &str = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b]52;c;ZXZpbA==\x07\u{9b}5n\u{202e}txt.exe\x08\x7f";
    let fake = Fake::start(|peer, _| {
        let call = peer.calls(&format!("$ cat {HOSTILE}"));
        let approval = peer.asks(call, HOSTILE);
        takes_answer(peer, &approval);
        peer.starts(call);
        peer.output(call, 0, &format!("{HOSTILE}\n"));
        peer.finishes(call, Outcome::Exited { status: 1 }, HOSTILE);
        let request = peer.request_sent();
        peer.text(request, 0, HOSTILE);
        let thinking = Block::Thinking { text: HOSTILE.into() };
        peer.reply(
            request,
            vec![Block::Text { text: HOSTILE.into() }, thinking, Block::Other { kind: HOSTILE.into() }],
        );
        let problem = rows::problem("x", HOSTILE, HOSTILE);
        peer.ends(TurnOutcome::Failed { problem });
    });
    with_session(&fake, |info| info.name = Some(HOSTILE.into()));
    let mut terminal = Terminal::run(&fake.command(&["ask", "x"]));
    terminal.wait_for(CHOICES);
    terminal.press("y");
    let (_, seen) = terminal.end();
    assert!(seen.contains("␛]0;owned␇"), "{seen:?}");
    for raw in ["\x1b]", "\x1b[2J", "\x07", "\u{9b}", "\u{202e}", "\x08", "\x7f", "\x1b[31mred"] {
        assert!(!seen.contains(raw), "{raw:?} got through: {seen:?}");
    }
}

#[test]
fn no_color_and_dumb_terminals_get_no_escape_sequences() {
    let script = |peer: &mut Peer, _: &proto::request::SendPrompt| {
        let call = peer.calls("$ make");
        let approval = peer.asks(call, "make");
        takes_answer(peer, &approval);
        peer.starts(call);
        peer.output(call, 0, "working\n");
        peer.finishes(call, Outcome::Exited { status: 2 }, "working\n");
        peer.done();
    };
    let fake = Fake::start(script);
    let mut dumb = Terminal::run(fake.command(&["ask", "x"]).env("TERM", "dumb"));
    dumb.wait_for(CHOICES);
    dumb.press("y\r");
    let (code, seen) = dumb.end();
    assert_eq!(code, 0);
    assert!(!seen.contains('\x1b'), "{seen:?}");
    let mut plain = Terminal::run(fake.command(&["ask", "x"]).env("NO_COLOR", "1").env("TERM", "xterm"));
    plain.wait_for(CHOICES);
    plain.press("y");
    let (_, seen) = plain.end();
    assert!(!seen.contains("\x1b[3") && !seen.contains("\x1b[1m"), "no colour: {seen:?}");
}

#[test]
fn attach_shows_the_last_turns_takes_prompts_and_leaves() {
    let fake = Fake::start(|peer, prompt| {
        peer.says(&format!("You said {}.", prompt.text));
        peer.done();
    });
    assert!(fake.run(&["ask", "first"]).status.success());
    let mut terminal = Terminal::run(&fake.command(&["attach"]));
    let seen = terminal.wait_for("You said first.");
    assert!(seen.contains("session ab12cd34"), "{seen}");
    terminal.wait_for("› ");
    terminal.press("secnd\x1b[D\x1b[Do\r");
    terminal.wait_for("You said second.");
    terminal.press("\x1b[200~third\rline\x1b[201~\r");
    terminal.wait_for("You said third");
    terminal.press("/help\r");
    terminal.wait_for("/interrupt");
    terminal.press("/nope\r");
    terminal.wait_for("there is no command /nope");
    terminal.press("/quit\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("\x1b[?2004h") && seen.contains("\x1b[?2004l"), "pastes are marked while it runs: {seen}");
    let texts: Vec<String> = fake.prompts().into_iter().map(|prompt| prompt.text).collect();
    assert_eq!(texts, ["first", "second", "third\nline"]);
}

#[test]
fn attach_read_only_watches_and_shows_how_to_answer() {
    let fake = Fake::start(|peer, _| {
        let call = peer.calls("$ make");
        peer.asks(call, "make");
        while peer.request().is_some() {}
    });
    assert!(fake.run(&["ask", "-d", "x"]).status.success());
    // The rows are there once the script asked.
    while fake.record.lock().unwrap().rows.len() < 5 {
        std::thread::yield_now();
    }
    let mut terminal = Terminal::run(&fake.command(&["attach", "--read-only"]));
    let seen = terminal.wait_for("agentctl approve");
    assert!(!seen.contains(CHOICES), "{seen}");
    terminal.press("\x03");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    assert!(!seen.contains("interrupting"), "who only watches ends nothing: {seen}");
}

#[test]
fn two_terminals_see_the_same_and_an_answer_in_one_closes_the_question_in_the_other() {
    let fake = Fake::start(|peer, _| {
        let call = peer.calls("$ make");
        assert_eq!(peer.asks_everybody(call, "make"), Verdict::Session {});
        peer.starts(call);
        peer.finishes(call, Outcome::Exited { status: 0 }, "made\n");
        peer.says("Made it.");
        peer.done();
    });
    with_session(&fake, |_| {});
    let mut first = Terminal::run(&fake.command(&["attach"]));
    let second = Terminal::run(&fake.command(&["attach"]));
    first.wait_for("› ");
    second.wait_for("› ");
    assert!(fake.run(&["send", "ab12cd34", "build"]).status.success());
    first.wait_for(CHOICES);
    second.wait_for(CHOICES);
    first.press("s");
    let here = first.wait_for("Made it.");
    let there = second.wait_for("Made it.");
    assert!(here.contains("you answered: "), "{here}");
    assert!(there.contains("answered by agentctl on pts/"), "{there}");
    for seen in [here, there] {
        let order = ["build", "Run this command?", "yes, for this session", "exit 0", "made", "Made it."];
        let at: Vec<usize> =
            order.iter().map(|text| seen.find(text).unwrap_or_else(|| panic!("{text}: {seen}"))).collect();
        assert!(at.is_sorted(), "{at:?}: {seen}");
    }
}

/// What is typed while text streams stands below it and loses nothing; the text goes on by whole lines above it.
#[test]
fn typing_while_text_streams_disturbs_neither() {
    let (go, wait) = gate();
    let fake = Fake::start(move |peer, prompt| {
        if prompt.text == "second" {
            peer.says("Second answer.");
            return peer.done();
        }
        let request = peer.request_sent();
        peer.text(request, 0, "line one\\\nline ");
        wait.lock().unwrap().recv().unwrap();
        peer.text(request, 15, "two\\\nline ");
        wait.lock().unwrap().recv().unwrap();
        peer.reply(request, vec![Block::Text { text: "line one\\\nline two\\\nline three".into() }]);
        peer.done();
    });
    with_session(&fake, |_| {});
    let mut terminal = Terminal::run(&fake.command(&["attach"]));
    terminal.wait_for("› ");
    terminal.press("first\r");
    terminal.wait_for("line one");
    terminal.press("seco");
    terminal.wait_for("› \u{1b}[0mseco");
    go.send(()).unwrap();
    terminal.wait_for("line two");
    terminal.press("nd");
    terminal.wait_for("› \u{1b}[0msecond");
    go.send(()).unwrap();
    terminal.wait_for("line three");
    terminal.press("\r");
    terminal.wait_for("Second answer.");
    terminal.press("\x04");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(fake.prompts().iter().map(|prompt| prompt.text.as_str()).collect::<Vec<_>>(), ["first", "second"]);
}

#[test]
fn undo_shows_the_change_asks_and_takes_back_what_was_shown() {
    let fake = Fake::start(|_, _| {});
    with_session(&fake, |_| {});
    let wishes = || -> Vec<(bool, u32, Option<u64>)> {
        let wish = |request| match request {
            Request::Undo(undo) => Some((undo.preview, undo.steps, undo.newest)),
            _ => None,
        };
        fake.requests().into_iter().filter_map(wish).collect()
    };
    let mut terminal = Terminal::run(&fake.command(&["undo", "2"]));
    let seen = terminal.wait_for("[y/N]");
    assert!(seen.contains("src/a.rs") && seen.contains("fn a() {"), "{seen}");
    terminal.press("\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 1);
    assert!(seen.contains("nothing was taken back"), "{seen}");
    assert_eq!(wishes(), [(true, 2, None)]);
    let mut terminal = Terminal::run(&fake.command(&["undo", "2"]));
    terminal.wait_for("[y/N]");
    terminal.press("y\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    assert!(seen.contains("took back the last edit of src/a.rs"), "{seen}");
    assert_eq!(wishes()[1..], [(true, 2, None), (false, 2, Some(7))]);
}
