//! One input through the parser and the decision, for the fuzzer and for the replay of what it found: no panic, no hang,
//! and rules that forbid never loosen anything.
//!
//! The first byte chooses the world (rules, mode, what earlier commands did), the rest is the command.

use std::path::Path;
use std::time::Duration;

use crate::policy::{Call, Context, Mode, Repository, Rules, ShellFacts, Verdict, decide, explain, narrowest_rule};

/// Bytes of the longest text the time bar speaks of.
const BYTES_MAX: usize = 64 * 1024;

/// This thread's time on a processor: other load on the machine is not the decision's.
fn spent() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on Linux, and the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn words(rules: &[&str]) -> Vec<Vec<String>> {
    rules.iter().map(|rule| rule.split(' ').map(str::to_owned).collect()).collect()
}

/// Checks one input; returns what the decision cost.
pub fn one(data: &[u8], longest: Duration) -> Duration {
    let Some((world, text)) = data.split_first() else { return Duration::ZERO };
    let command = String::from_utf8_lossy(&text[..text.len().min(BYTES_MAX)]);
    let allow = if world & 1 == 0 { vec![] } else { words(&["npm test", "git commit", "make"]) };
    let free = Rules::from_words(&allow, &[], &[]);
    let bound = Rules::from_words(&allow, &words(&["git push"]), &words(&["rm -rf", "curl", "touch"]));
    let mode = [Mode::Ask, Mode::AcceptEdits, Mode::Plan, Mode::Bypass][usize::from(world >> 1 & 3)];
    let prior = ["", "cd sub", "f() { ls; }", "x=1"][usize::from(world >> 3 & 3)];
    let shell = ShellFacts::default().after(prior);
    let place = Path::new("/home/user/project");
    let context = Context {
        mode,
        rules: &free,
        workspace: place,
        cwd: place,
        shell: &shell,
        repository: &Repository::Ordinary,
        trust_reads: world & 32 == 0,
    };
    let call = Call::Bash { command: &command };
    let before = spent();
    let loose = decide(&call, &context);
    let took = spent() - before;
    assert!(took < longest, "{took:?} for {} bytes", command.len());
    let tight = decide(&call, &Context { rules: &bound, ..context });
    assert!(tight.verdict >= loose.verdict, "rules that forbid loosened {:?} to {:?}", loose.verdict, tight.verdict);
    let parts = explain(&command, &context);
    if loose.verdict == Verdict::Allow && mode == Mode::Ask {
        assert!(parts.iter().all(|part| part.verdict == Verdict::Allow), "allowed with a part that is not");
    }
    if let Some(rule) = narrowest_rule(&command, &context) {
        assert!(!rule.toml.is_empty());
    }
    let _ = shell.after(&command);
    took
}
