//! No text makes the decision panic, hang or cost more than its bars.
use std::path::Path;
use std::time::{Duration, Instant};

use agentd::policy::{Call, Context, Decision, Mode, Repository, Rules, ShellFacts, decide};
use proptest::prelude::*;

/// Longest time for any text of up to 64 KiB. Unoptimised, and beside other tests, only a hang is told from a slow step.
const LONGEST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 20_000 } else { 50 });

/// Median time for everyday commands.
const MEDIAN: Duration = Duration::from_micros(if cfg!(debug_assertions) { 5_000 } else { 100 });

/// The size the bar speaks of; unoptimised code is tried on less, to keep the test short.
const BYTES: usize = if cfg!(debug_assertions) { 16 } else { 64 } * 1024;

fn rules() -> Rules {
    let words = |texts: &[&str]| -> Vec<Vec<String>> {
        texts.iter().map(|text| text.split(' ').map(str::to_owned).collect()).collect()
    };
    Rules::from_words(
        &words(&["npm test", "git commit"]),
        &words(&["git push"]),
        &words(&["rm -rf", "curl", "shutdown"]),
    )
}

fn decided(command: &str) -> (Decision, Duration) {
    let rules = rules();
    let (shell, repository) = (ShellFacts::default(), Repository::Ordinary);
    let place = Path::new("/home/user/project");
    let context = Context {
        mode: Mode::Ask,
        rules: &rules,
        workspace: place,
        cwd: place,
        shell: &shell,
        repository: &repository,
        trust_reads: true,
    };
    let start = Instant::now();
    let decision = decide(&Call::Bash { command }, &context);
    (decision, start.elapsed())
}

/// The best of a few runs: other tests share the machine.
fn cost(command: &str) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        best = best.min(decided(command).1);
        if best < LONGEST / 2 {
            break;
        }
    }
    best
}

/// Pieces that steer a parser of bash.
fn piece() -> impl Strategy<Value = String> {
    let pieces = "echo|ls|cat|rm -rf|sh -c|env|xargs|nice|find . -exec|;|git -C|sed -n|awk|jq|read|cd|x=|a=(|[[|]]|[|]|((|))|$((|$(|${|}|{|(|)|`|'|\"|\\|$'|\
                  |<<E|<<-'E'|E|<<<|<(|>(|>|>>|>&|&>|2>&1|<|&|&&|\n|#|!|~|*|?|,|..|=|:-|:=|@|/|-|--|if|then|fi|for|in|do|done|while|case|esac|;;|function|coproc\
                  |select|time|é|\u{202e}|\0|\t| |0|x|$x|\"$x\"|-o|-exec|+|\\\n";
    let pieces: Vec<String> = pieces.split('|').map(str::to_owned).chain(["|".to_owned(), "||".to_owned()]).collect();
    prop_oneof![3 => prop::sample::select(pieces), 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics_or_hangs(pieces in prop::collection::vec((piece(), prop_oneof![Just(""), Just(" ")]), 0..40)) {
        let text: String = pieces.into_iter().flat_map(|(piece, blank)| [piece, blank.to_owned()]).collect();
        let took = cost(&text);
        prop_assert!(took < LONGEST, "{took:?}: {text:?}");
        let _ = ShellFacts::default().after(&text);
    }
}

#[test]
fn texts_of_64_kib_cost_less_than_the_bar() {
    let repeated = [
        "(",
        "$(",
        "`",
        "${x:-",
        "{ ",
        "<<E\n",
        "cat <<E\nE\n",
        "nice ",
        "xargs ",
        "sh -c '",
        "parallel ",
        "\"",
        "'",
        "\\",
        "[[ ",
        "a|",
        "a&&",
        "case x in ",
        "if a; then ",
        "for i in a; do ",
        "cd a && ",
        "cd a; ",
        "GIT_A=1;",
        "GIT_A=1; ls; ",
        "x=1 ",
        "{\\a",
        "*{,",
        "rm ",
        "find -exec ",
        "rm -rf ",
        "$x",
        "\"$x\"",
        "$((1+",
        "((",
        "a ",
        "echo $(ls);",
        "f() { ls; };",
        "ls() { ls; }; ls; ",
        "true;",
        "#\n",
        "\n",
        " ",
        "\\\n",
        "ls>/dev/null;",
        "export A=1;",
        "git log -p;",
        "awk '{print}';",
        "sed -n p;",
        "x",
        "é",
        "\u{0}",
        "!",
        "! ",
        "time ",
        "a=(",
        "${x/",
        "$'\\x41'",
        "~",
        "2>&1 ",
        "echo 'rm -rf x' | sh;",
        "bash <<< 'rm x';",
        "eval eval ",
        "sudo -u x ",
        "|",
    ];
    let mut worst = (Duration::ZERO, "");
    for piece in repeated {
        let text = piece.repeat(BYTES / piece.len());
        for text in [
            text.clone(),
            format!("echo {text}"),
            format!("{text} ls"),
            format!("awk '{text}'"),
            format!("sed -n '{text}'"),
            format!("echo \"{text}\""),
        ] {
            let took = cost(&text);
            worst = worst.max((took, piece));
            assert!(took < LONGEST, "{took:?} for {piece:?} in {:?}…", text.chars().take(30).collect::<String>());
        }
    }
    println!("longest decision over 64 KiB: {:?} for {:?}", worst.0, worst.1);
}

#[test]
fn everyday_commands_are_decided_within_the_bar() {
    let text = include_str!("../../tests/data/policy.jsonl");
    let cases = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a case parses"));
    let commands: Vec<String> =
        cases.filter_map(|case| case["command"].as_str().map(str::to_owned)).filter(|c| c.len() < 1024).collect();
    let mut times: Vec<Duration> = commands.iter().map(|command| decided(command).1).collect();
    times.sort_unstable();
    let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{} commands: median {median:?}, longest {last:?}", times.len());
    assert!(median < MEDIAN);
}
