//! The bash corpus: each case is a session in an empty directory, or several that run beside each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::expect::Expect;
use super::play::{Stage, Taken};
use super::{Verdict, missing};
use crate::model_server::Block;
use crate::processes;
use crate::wait::within;

/// The session of steps that name none.
const ONLY: &str = "only";

/// How long the processes of a case may take to go when its session ends.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Counts plays, so that each has a directory and a prompt of its own.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub id: String,
    #[serde(rename = "group")]
    _group: String,
    steps: Vec<Step>,
    /// The deadline of each call, in seconds: a daemon's configuration.
    pub timeout_s: f64,
    expect: Vec<Expect>,
    #[serde(default)]
    strict: bool,
    #[serde(rename = "verified")]
    _verified: String,
    #[serde(default)]
    requires: Vec<String>,
    /// All choices of design in the corpus are the product's, too.
    #[serde(default, rename = "assumes")]
    _assumes: Vec<String>,
    #[serde(default, rename = "note")]
    _note: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    command: Option<String>,
    #[serde(default)]
    restart: bool,
    call: Option<Box<RawValue>>,
    wait_ms: Option<u64>,
    #[serde(default)]
    parallel: Vec<Step>,
    session: Option<String>,
    #[serde(default, rename = "sessions")]
    _sessions: Vec<String>,
}

impl Step {
    fn session(&self) -> &str {
        self.session.as_deref().unwrap_or(ONLY)
    }

    /// The call as the model makes it; nothing for a pause.
    fn block(&self) -> Option<Block> {
        if let Some(call) = &self.call {
            return Some(Block::tool("bash", call.get()));
        }
        if self.restart {
            return Some(Block::tool("bash", r#"{"restart":true}"#));
        }
        self.command.as_deref().map(Block::bash)
    }
}

/// One session's part of a case.
#[derive(Debug, Default)]
struct Script {
    calls: Vec<Vec<Block>>,
    /// Which expectation each step of this session answers, with the call's place in it.
    expects: Vec<Expect>,
    pauses: Vec<Duration>,
}

impl Case {
    /// Plays the case on a stage whose deadline is this case's.
    #[must_use]
    pub fn play(&self, stage: &Stage) -> Verdict {
        if let Some(reason) = missing(&self.requires) {
            return Verdict::Skipped(reason);
        }
        let names: BTreeSet<&str> = self
            .steps
            .iter()
            .flat_map(|step| {
                if step.parallel.is_empty() {
                    vec![step.session()]
                } else {
                    step.parallel.iter().map(Step::session).collect()
                }
            })
            .collect();
        let mut findings = Vec::new();
        thread::scope(|scope| {
            let sessions: Vec<_> = names.iter().map(|name| scope.spawn(|| self.play_session(stage, name))).collect();
            for session in sessions {
                match session.join() {
                    Ok(wrong) => findings.extend(wrong),
                    Err(panic) => findings.push(super::message(&*panic)),
                }
            }
        });
        findings.extend(self.leftovers());
        if findings.is_empty() { Verdict::Passed } else { Verdict::Failed(findings) }
    }

    fn play_session(&self, stage: &Stage, name: &str) -> Vec<String> {
        let script = self.script(name);
        // A case may be played several times.
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let cwd = stage.machine.work().join(format!("{}-{name}-{run}", self.id));
        fs::create_dir(&cwd).expect("a new directory");
        let wrong = Arc::new(Mutex::new(Vec::new()));
        let found = Arc::clone(&wrong);
        let (expects, strict) = (script.expects, self.strict);
        let pauses = script.pauses;
        let between = move |step: usize, taken: &Taken| {
            let expect = &expects[step];
            let mut now = expect.check_step(taken, strict);
            now.extend(expect.survivors.iter().filter_map(super::expect::Survivors::check));
            found
                .lock()
                .expect("one step at a time")
                .extend(now.into_iter().map(|wrong| format!("step {step}: {wrong}")));
            // The only wait for its own sake: the corpus asks for the time to pass.
            thread::sleep(pauses[step]);
        };
        stage.play(&format!("{} {name} {run}", self.id), &cwd, script.calls, Box::new(between));
        remove(&cwd);
        let found = wrong.lock().expect("the turn is over");
        found.clone()
    }

    fn script(&self, name: &str) -> Script {
        let mut script = Script::default();
        for (step, expect) in self.steps.iter().zip(&self.expect) {
            if let Some(wait) = step.wait_ms {
                if let Some(last) = script.pauses.last_mut() {
                    *last += Duration::from_millis(wait);
                }
                continue;
            }
            let (calls, expect): (Vec<Block>, Expect) = if step.parallel.is_empty() {
                if step.session() != name {
                    continue;
                }
                (step.block().into_iter().collect(), expect.clone())
            } else {
                let mut mine = expect.clone();
                let members = step.parallel.iter().enumerate().filter(|(_, member)| member.session() == name);
                let (places, calls): (Vec<usize>, Vec<Block>) =
                    members.filter_map(|(place, member)| Some((place, member.block()?))).unzip();
                mine.parallel =
                    places.iter().map(|place| expect.parallel.get(*place).cloned().unwrap_or_default()).collect();
                (calls, mine)
            };
            script.calls.push(calls);
            script.expects.push(expect);
            script.pauses.push(Duration::ZERO);
        }
        script
    }

    /// Processes of the case that outlived its sessions.
    fn leftovers(&self) -> Vec<String> {
        let tokens: BTreeSet<&str> =
            self.expect.iter().flat_map(|expect| &expect.survivors).map(|survivors| survivors.token.as_str()).collect();
        let left =
            |token: &&str| within(END_PATIENCE, || processes::with_argument(token).is_empty().then_some(())).is_none();
        tokens.into_iter().filter(left).map(|token| format!("a process with {token} outlived its session")).collect()
    }
}

/// Removes a case's directory, whatever the commands made of it.
fn remove(directory: &Path) {
    // What cannot be removed goes with the machine's directory.
    let _ = fs::remove_dir_all(directory);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::load;

    #[test]
    fn every_case_reads_and_has_an_expectation_a_step() {
        let cases: Vec<Case> = load("bash.jsonl");
        assert_eq!(cases.len(), 179);
        for case in &cases {
            assert_eq!(case.steps.len(), case.expect.len(), "{}", case.id);
        }
    }

    #[test]
    fn a_case_of_two_sessions_becomes_two_scripts() {
        let cases: Vec<Case> = load("bash.jsonl");
        let case = cases.iter().find(|case| case.id == "bash-concurrency-04").expect("it is there");
        let script = case.script("s1");
        assert_eq!(script.calls.len(), 2);
        assert_eq!(script.expects.len(), 2);
        let both = cases.iter().find(|case| case.id == "bash-concurrency-02").expect("it is there").script(ONLY);
        assert_eq!((both.calls[0].len(), both.expects[0].parallel.len()), (2, 2));
    }
}
