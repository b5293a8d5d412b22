//! What must hold when everybody has finished what was open.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;

use proto::approval::Verdict;
use proto::event::{Block, Event, EventBody, Outcome, TurnOutcome};
use proto::ids::{CallId, SessionId};
use serde_json::Value;

use super::driver::Driver;
use super::model::{RAN, mark_of};
use super::shims;
use crate::machine::Machine;
use crate::wait;

/// Compares what the client was told, what the log says and what ran. Returns the number of calls and of those whose
/// outcome is unknown.
pub(super) fn session(driver: &Driver, log: &[Event], machine: &Machine) -> (usize, usize) {
    assert_eq!(&log[..driver.events.len()], driver.events, "what a client saw is what the log says");
    for prompt in &driver.accepted {
        let is_it =
            |body: &EventBody| matches!(body, EventBody::PromptAccepted(accepted) if accepted.prompt == *prompt);
        let begins = |body: &EventBody| matches!(body, EventBody::TurnStarted(started) if started.prompt == *prompt);
        assert_eq!(count(log, is_it), 1, "an acknowledged prompt is in the log once: {prompt}");
        assert_eq!(count(log, begins), 1, "an acknowledged prompt has one turn: {prompt}");
    }
    let turns = count(log, |body| matches!(body, EventBody::TurnStarted(_)));
    let done = |body: &EventBody| matches!(body, EventBody::TurnEnded(ended) if ended.outcome == TurnOutcome::Done {});
    let ends: Vec<&EventBody> =
        log.iter().map(|event| &event.body).filter(|body| matches!(body, EventBody::TurnEnded(_))).collect();
    assert_eq!((count(log, done), ends.len()), (turns, turns), "every turn ended well: {:?}", ends.last());
    for (approval, verdict) in &driver.answered {
        let is_it = |body: &EventBody| matches!(body, EventBody::ApprovalClosed(closed) if closed.approval == *approval && closed.verdict == *verdict);
        assert_eq!(count(log, is_it), 1, "an acknowledged answer is in the log once: {approval}");
    }
    calls(log, machine)
}

fn count(log: &[Event], is_it: impl Fn(&EventBody) -> bool) -> usize {
    log.iter().filter(|event| is_it(&event.body)).count()
}

fn calls(log: &[Event], machine: &Machine) -> (usize, usize) {
    let ran = fs::read_to_string(machine.work().join(RAN)).unwrap_or_default();
    let mut marks: HashMap<&str, usize> = HashMap::new();
    ran.lines().for_each(|line| *marks.entry(line).or_default() += 1);
    let mut asked: HashMap<CallId, String> = HashMap::new();
    let mut finished: HashMap<CallId, Outcome> = HashMap::new();
    let mut denied = 0;
    for event in log {
        match &event.body {
            EventBody::ReplyReceived(reply) => {
                for block in &reply.blocks {
                    if let Block::Call(call) = block {
                        let input: Value = serde_json::from_str(call.input.as_str()).expect("JSON");
                        asked.insert(call.call, input["command"].as_str().expect("a command").to_owned());
                    }
                }
            }
            EventBody::CallFinished(result) => {
                let before = finished.insert(result.call, result.outcome.clone());
                assert_eq!(before, None, "a call has one result");
                if let Outcome::Exited { .. } = result.outcome {
                    let mark = mark_of(&asked[&result.call]).expect("a mark");
                    assert!(result.text.contains(&format!("out {mark}")), "the whole output: {:?}", result.text);
                }
            }
            EventBody::ApprovalClosed(closed) if matches!(closed.verdict, Verdict::Deny { .. }) => denied += 1,
            _ => {}
        }
    }
    assert_eq!(asked.len(), finished.len(), "every call has a result");
    let mut unknown = 0;
    for (call, command) in &asked {
        let runs = marks.get(mark_of(command).expect("a mark")).copied().unwrap_or(0);
        match &finished[call] {
            Outcome::Exited { status } => assert_eq!((*status, runs), (0, 1), "it ran once: {command}"),
            Outcome::Denied {} | Outcome::NotRun {} => assert_eq!(runs, 0, "it did not run: {command}"),
            Outcome::Unknown {} => {
                assert!(runs <= 1, "it did not run twice: {command}");
                unknown += 1;
            }
            other => assert!(runs <= 1, "it did not run twice: {command} {other:?}"),
        }
    }
    let told = finished.values().filter(|outcome| matches!(outcome, Outcome::Denied {})).count();
    assert_eq!(told, denied, "what was denied did not run");
    (asked.len(), unknown)
}

/// The database is sound, as an independent reader sees it.
///
/// # Panics
/// When it is not.
pub(super) fn database(machine: &Machine) {
    let check = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); print(c.execute('pragma integrity_check').fetchone()[0], \
                 len(c.execute('pragma foreign_key_check').fetchall()))";
    let output = Command::new("python3").args(["-c", check]).arg(machine.database()).output().expect("python3 runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok 0", "{output:?}");
}

/// One shim for each session at most, one socket for each shim, and nothing that belongs to none; no temporary file.
pub(super) fn processes(machine: &Machine, sessions: &[SessionId]) {
    let orphans = || {
        let all = machine.processes();
        let roots: Vec<i32> = shims(machine).iter().map(|shim| shim.pid).collect();
        let own = i32::try_from(std::process::id()).expect("a pid");
        let is_orphan = |pid: i32| {
            let mut pid = pid;
            while pid > 1 {
                if roots.contains(&pid) || pid == own {
                    return false;
                }
                pid = parent(pid);
            }
            true
        };
        all.into_iter()
            .filter(|process| is_orphan(process.pid) && crate::processes::alive(process.pid))
            .collect::<Vec<_>>()
    };
    if wait::within(wait::PATIENCE, || orphans().is_empty().then_some(())).is_none() {
        panic!("processes that belong to no shim: {:#?}", orphans());
    }
    let shims = shims(machine).len();
    assert!(shims <= sessions.len(), "{shims} shims for {} sessions", sessions.len());
    let folders = fs::read_dir(machine.root().join("run/agentd/shims")).expect("the shims' folder").flatten();
    let is_socket = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    let sockets = folders.filter(|folder| is_socket(&folder.path().join("s"))).count();
    assert_eq!(sockets, shims, "a socket for each shim and no other");
    let strays = fs::read_dir(machine.root().join("tmp")).expect("the temporary folder").count();
    assert_eq!(strays, 0, "no temporary file");
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// What a watcher saw until it was killed: rows without a gap. Its last line may be cut.
pub(super) fn watched(file: &Path) {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut last = 0;
    for line in whole.lines() {
        let frame: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        if let Some(seq) = frame["event"]["event"]["seq"].as_u64() {
            assert_eq!(seq, last + 1, "a watcher missed or saw twice");
            last = seq;
        }
    }
    let _ = fs::remove_file(file);
}
