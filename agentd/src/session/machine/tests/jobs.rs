//! Claims about background commands in the machine.

use super::*;
use crate::store::job::Tell;

/// A machine whose only turn is over.
fn idle() -> Bench {
    let mut bench = Bench::new();
    bench.prompt(ApproveMode::Ask);
    bench.reply(StopReason::EndTurn, vec![text("hi")]);
    bench
}

fn tells(bench: &Bench) -> Vec<Tell> {
    let tell = |entry: &Entry| match entry {
        Entry::JobEnded(end) => Some(end.tell),
        _ => None,
    };
    bench.log.iter().filter_map(tell).collect()
}

#[test]
fn an_end_is_on_disk_before_the_turn_that_it_begins() {
    let mut bench = idle();
    assert!(matches!(bench.job_start().as_slice(), [Effect::SyncJobs]));
    let effects = bench.job_end(1);
    assert_eq!(bench.kinds()[bench.kinds().len() - 4..], ["job_started", "job_ended", "turn_woken", "request_sent"]);
    assert!(matches!(effects.as_slice(), [Effect::SendRequest { .. }, Effect::ForgetJob { .. }]), "{effects:?}");
    // The shim tells it again when it was not heard: it is forgotten once more, and nothing else.
    let before = bench.log.len();
    assert!(matches!(bench.job_end(1).as_slice(), [Effect::ForgetJob { .. }]));
    assert_eq!(bench.log.len(), before);
}

#[test]
fn who_stopped_a_job_is_not_woken_for_it() {
    let mut bench = idle();
    bench.job_start();
    // The model's own `job_stop`: its result says so.
    assert!(matches!(bench.job_end(0).as_slice(), [Effect::ForgetJob { .. }]));
    // The user's `kill`: told with the next prompt.
    bench.job_start();
    let job = bench.jobs[1];
    assert!(matches!(bench.step(Input::JobStopAsked { job, by: "t".into() }).as_slice(), [Effect::StopJob { .. }]));
    bench.jobs = vec![job];
    bench.job_end(0);
    assert_eq!(tells(&bench), [Tell::Never, Tell::Later]);
    assert!(matches!(bench.machine.phase(), Phase::Idle));
    bench.prompt(ApproveMode::Ask);
    assert_eq!(bench.history().last().map(String::as_str), Some("user: text text"));
}

#[test]
fn a_job_of_an_approved_turn_wakes_one_that_asks_again() {
    for (said, holds) in [
        (ApproveMode::All, ApproveMode::Ask),
        (ApproveMode::Ask, ApproveMode::Ask),
        (ApproveMode::Deny, ApproveMode::Deny),
    ] {
        let mut bench = Bench::new();
        bench.prompt(said);
        bench.job_start();
        bench.reply(StopReason::EndTurn, vec![text("it runs")]);
        bench.job_end(1);
        assert_eq!(bench.machine.turn().map(|turn| turn.approve), Some(holds), "{said:?}");
    }
}
