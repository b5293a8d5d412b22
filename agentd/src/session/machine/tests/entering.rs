//! Claims about commands that users run.

use super::*;

impl Bench {
    /// A user runs a command that no other is like.
    pub(super) fn enter(&mut self) -> Vec<Effect> {
        self.made += 1;
        let call = CallId(Uuid::from_u128(self.made));
        let command = format!("make {}.", self.made);
        self.step(Input::CommandEntered { call, command, by: "t".into() })
    }

    fn told(&self) -> Vec<String> {
        let blocks = self.machine.history().iter().flat_map(|message| &message.content);
        blocks.filter_map(|block| block.to_value()["text"].as_str().map(str::to_owned)).collect()
    }
}

#[test]
fn a_users_command_asks_nobody_and_is_told_in_front_of_the_next_prompt() {
    let mut bench = Bench::new();
    let effects = bench.enter();
    assert!(matches!(effects[..], [Effect::RunCall { again: false, .. }]), "{effects:?}");
    assert!(bench.enter().is_empty(), "one at a time");
    assert_eq!(bench.machine.turn().map(|turn| turn.requests), Some(0));
    let effects = bench.finish("built");
    assert!(matches!(effects[..], [Effect::ForgetCall { .. }]), "{effects:?}");
    assert!(matches!(bench.machine.phase(), Phase::Idle) && bench.told().is_empty());
    bench.prompt(ApproveMode::Ask);
    let told = bench.told();
    assert!(told[0].ends_with("$ make 1.\nbuilt") && told[1] == "do it", "{told:?}");
    bench.reply(StopReason::EndTurn, vec![text("done")]);
    bench.rerun("other words");
    assert_eq!(bench.told()[..], [told[0].clone(), "other words".into()], "asking again leaves it in place");
}

#[test]
fn a_prompt_waits_for_a_users_command_and_an_interrupt_ends_that() {
    let mut bench = Bench::new();
    bench.enter();
    assert!(bench.prompt(ApproveMode::Ask).is_empty());
    let effects = bench.step(Input::InterruptAsked { by: "t".into() });
    assert!(matches!(effects[..], [Effect::CancelCall { .. }]), "{effects:?}");
    let effects = bench.finish("half");
    assert!(matches!(effects[..], [Effect::ForgetCall { .. }, Effect::SendRequest { .. }]), "{effects:?}");
    let ended = bench.log.iter().find_map(|entry| match entry {
        Entry::TurnEnded { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    assert_eq!(ended, Some(TurnOutcome::Interrupted {}));
}

#[test]
fn a_users_command_is_looked_for_after_a_crash() {
    let mut bench = Bench::new();
    bench.enter();
    let effects = bench.step(Input::Resumed);
    assert!(matches!(effects[..], [Effect::RunCall { again: true, .. }]), "{effects:?}");
}
