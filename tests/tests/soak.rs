//! kill -9 of daemon, shims, clients and pairs of them at random moments: nothing acknowledged is lost, nothing runs
//! twice, nothing is left behind. `make soak` kills 2,000 times; the usual run a few.

use harness::random::Random;
use harness::soak;

/// Kills of the usual run: a handful, to keep the claim alive; the count for a soak comes from the environment.
const KILLS: usize = 12;

#[test]
fn random_kills_lose_nothing_and_run_nothing_twice() {
    let kills = std::env::var("AGENTD_SOAK_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let seed = Random::seed_from("AGENTD_SOAK_SEED");
    println!("AGENTD_SOAK_SEED={seed}");
    eprintln!("AGENTD_SOAK_SEED={seed}");
    let tally = soak::run(kills, seed);
    println!("{tally:?}");
    assert_eq!(tally.kills, kills);
    assert!(tally.prompts > 0 && tally.calls > 0);
}
