//! Output of any size in constant memory: neither the shim nor the daemon grows with what a command prints.
//!
//! `OUTPUT_MB` says how much of each kind (32). The speed is measured by the shim's bench. What the two hold in all is the
//! builds' to say, and a debug build holds more; the claim is about what comes on top.

use std::time::Instant;

use harness::model_server::Reply;
use harness::scene::Scene;
use proto::event::TurnOutcome;
use proto::request::ApproveMode;

/// Output of a size that may be held, in MiB: what is loaded and kept for commands at all is there after it.
const WARM_UP_MB: u64 = 2;

/// What each of the two may hold beyond that, in KiB.
const GROWTH_MAX_KB: u64 = 8 * 1024;

/// The most memory that a process has held, in KiB.
fn peak_kb(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn huge_output_is_told_in_part_and_held_by_nobody() {
    let size: u64 = std::env::var("OUTPUT_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(32);
    let mut scene = Scene::new();
    scene.client.patience(std::time::Duration::from_secs(120));
    let commands = |size: u64| {
        [
            format!("yes | head -c {size}M"),
            format!("cat /dev/urandom | head -c {size}M"),
            format!("head -c {size}M /dev/zero | tr '\\0' x"),
        ]
    };
    let mut before = None;
    for (number, command) in commands(WARM_UP_MB).iter().chain(&commands(size)).enumerate() {
        scene.server.script(Reply::bash(command));
        scene.server.script(Reply::text("seen"));
        let begun = Instant::now();
        scene.prompt("much", ApproveMode::All);
        assert_eq!(scene.client.until_turn_ended().outcome, TurnOutcome::Done {}, "{command}");
        let took = begun.elapsed();
        let results = scene.server.wait_for(2 * (number + 1)).results();
        assert!(results[0].text.len() < 200_000, "{} bytes for the model", results[0].text.len());
        assert!(results[0].text.contains("left out"), "{command}: {:.300}", results[0].text);
        let shim = i32::try_from(scene.client.show(scene.session).shim_pid.unwrap()).unwrap();
        let held = [peak_kb(shim), peak_kb(scene.daemon().pid())];
        println!("{command}: {took:?}, shim {} KiB, daemon {} KiB", held[0], held[1]);
        if number < commands(WARM_UP_MB).len() {
            before = Some(held);
        } else if let Some(before) = before {
            let grown = [held[0] - before[0], held[1] - before[1]];
            assert!(grown.iter().all(|kb| *kb < GROWTH_MAX_KB), "{command}: from {before:?} to {held:?} KiB");
        }
    }
}
