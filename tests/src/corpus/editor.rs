//! The editor corpus: each case is a session whose working directory holds the case's files.
//!
//! After each call every file below the case's base directory is compared with what the case expects; what it does not
//! name must be unchanged, and nothing new may be there.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, LazyLock, Mutex};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::expect::{contains, python_search, shorten};
use super::files::{Base, Entry, Snapshot, differences, mode_of};
use super::nature::{Mount, Swapper, fill};
use super::play::{Stage, Taken};
use super::{Verdict, missing};
use crate::model_server::{Block, ToolResult};

/// Cases that the product decides otherwise, and why.
const OVERRULED: [(&str, &str); 1] =
    [("edit-view-35", "the product shows images as image blocks; the reference refuses them")];

/// The tool.
const TOOL: &str = "str_replace_based_edit_tool";

/// Calls that one race makes: enough to meet each state of the swapped directory many times.
const RACING_CALLS: usize = 40;

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub id: String,
    #[serde(rename = "group")]
    _group: String,
    /// In order: a hard link comes after its target.
    files: serde_json::Map<String, Value>,
    call: Option<Box<RawValue>>,
    expect: Option<Expect>,
    #[serde(default)]
    calls: Vec<Box<RawValue>>,
    #[serde(default)]
    expects: Vec<Expect>,
    setup: Option<Setup>,
    #[serde(rename = "verified")]
    _verified: String,
    #[serde(default)]
    requires: Vec<String>,
    #[serde(default, rename = "assumes")]
    _assumes: Vec<String>,
    #[serde(default, rename = "note")]
    _note: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    /// The root is a file system of this size.
    tmpfs_kib: u32,
    /// And full.
    #[serde(default)]
    fill: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    #[serde(default)]
    is_error: Option<Value>,
    #[serde(default)]
    output_contains: Vec<String>,
    #[serde(default)]
    output_not_contains: Vec<String>,
    output_regex: Option<String>,
    max_output_bytes: Option<usize>,
    max_wall_s: Option<f64>,
    numbered: Option<Vec<(u64, String)>>,
    #[serde(default)]
    files_after: BTreeMap<String, Value>,
    #[serde(default)]
    files_after_must_not: Vec<String>,
    #[serde(default)]
    one_of_files: Vec<BTreeMap<String, Value>>,
    /// Always false here: two successes must both be in the file.
    lost_update: Option<bool>,
    successes: Option<usize>,
}

/// One entry of `calls`.
#[derive(Clone, Debug)]
enum Step {
    /// Calls made in one reply.
    Calls(Vec<String>),
    /// A change behind the tool's back.
    External(serde_json::Map<String, Value>),
    /// Calls while a directory is swapped for a link.
    Race { call: String, swap: String, link: String },
    /// Played by a claim of its own, which kills the writer.
    KillDuring,
}

impl Step {
    fn read(raw: &RawValue, base: &Base) -> Self {
        let text = base.fill(raw.get());
        // What is no JSON for us (a lone surrogate) is sent as it stands.
        let Ok(value) = serde_json::from_str::<Value>(&text) else { return Self::Calls(vec![text]) };
        if let Some(changes) = value["external"].as_object() {
            return Self::External(changes.clone());
        }
        if let Some(calls) = value["parallel"].as_array() {
            return Self::Calls(calls.iter().map(expand).collect());
        }
        if value.get("kill_during").is_some() {
            return Self::KillDuring;
        }
        if let Some(race) = value.get("race") {
            let text = |key: &str| race[key].as_str().expect("a path").to_owned();
            return Self::Race { call: expand(&value["call"]), swap: text("swap"), link: text("with_symlink_to") };
        }
        Self::Calls(vec![expand(&value)])
    }
}

/// The call's JSON with `{"$repeat": [text, n]}` written out.
fn expand(call: &Value) -> String {
    let mut call = call.clone();
    for value in call.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        if let Some([text, times]) = value["$repeat"].as_array().map(Vec::as_slice) {
            let times = usize::try_from(times.as_u64().expect("a number")).expect("a number");
            *value = text.as_str().expect("a text").repeat(times).into();
        }
    }
    call.to_string()
}

impl Case {
    /// Plays the case.
    #[must_use]
    pub fn play(&self, stage: &Stage) -> Verdict {
        if let Some(reason) = missing(&self.requires) {
            return Verdict::Skipped(reason);
        }
        if let Some((_, reason)) = OVERRULED.iter().find(|(id, _)| *id == self.id) {
            return Verdict::Skipped((*reason).into());
        }
        let base = Base::new(stage.machine.work().join(&self.id));
        let mount = match self.setup.as_ref().map(|setup| Mount::new(&base.root(), setup.tmpfs_kib)) {
            Some(Err(reason)) => return Verdict::Skipped(reason),
            Some(Ok(mount)) => Some(mount),
            None => None,
        };
        for (path, spec) in &self.files {
            base.put(path, spec);
        }
        if self.setup.as_ref().is_some_and(|setup| setup.fill) {
            fill(&base.root().join("filler"));
        }
        let verdict = self.play_in(stage, &base);
        base.release();
        drop(mount);
        // What cannot be removed goes with the machine's directory.
        let _ = fs::remove_dir_all(base.root().parent().expect("the base"));
        verdict
    }

    fn play_in(&self, stage: &Stage, base: &Base) -> Verdict {
        let steps: Vec<Step> = self.call.iter().chain(&self.calls).map(|raw| Step::read(raw, base)).collect();
        let expects: Vec<&Expect> = self.expect.iter().chain(&self.expects).collect();
        if steps.iter().any(|step| matches!(step, Step::KillDuring)) {
            return Verdict::Skipped("played by the claim about a killed writer".into());
        }
        for step in &steps {
            // Changes before the first call are part of what it finds.
            let Step::External(change) = step else { break };
            change.iter().for_each(|(path, spec)| base.put(path, spec));
        }
        let before = base.snapshot();
        let racing = steps.iter().find_map(|step| match step {
            Step::Race { swap, link, .. } => Some(Swapper::start(base.path(swap), link.clone())),
            Step::Calls(_) | Step::External(_) | Step::KillDuring => None,
        });
        let (blocks, after) = (steps.iter().filter_map(blocks).collect(), Arc::new(Mutex::new(Vec::new())));
        let between = watcher(&steps, base, &after);
        let taken = stage.play(&self.id, &base.root(), blocks, between);
        drop(racing);
        let after = after.lock().expect("the turn is over").clone();
        let mut wrong = Vec::new();
        let mut answers = taken.iter().zip(after.iter());
        let mut expected = before;
        for (number, (step, expect)) in steps.iter().zip(expects).enumerate() {
            let found = match step {
                Step::Calls(_) | Step::Race { .. } => {
                    let (taken, seen) = answers.next().expect("a step, an answer");
                    let found = expect.check(taken, base, expected, &seen.after);
                    expected = seen.settled.clone();
                    found
                }
                // Its change is part of what `settled` shows.
                Step::External(_) | Step::KillDuring => Vec::new(),
            };
            wrong.extend(found.into_iter().map(|wrong| format!("step {number}: {wrong}")));
        }
        if wrong.is_empty() { Verdict::Passed } else { Verdict::Failed(wrong) }
    }
}

fn blocks(step: &Step) -> Option<Vec<Block>> {
    match step {
        Step::Calls(calls) => Some(calls.iter().map(|call| Block::tool(TOOL, call)).collect()),
        Step::Race { call, .. } => {
            Some((0..RACING_CALLS).map(|number| Block::tool(TOOL, &varied(call, number))).collect())
        }
        Step::External(_) | Step::KillDuring => None,
    }
}

/// The call with another text: equal calls with equal results are a model that goes in circles, about which is asked.
fn varied(call: &str, number: usize) -> String {
    let mut call: Value = serde_json::from_str(call).expect("a race's call is JSON");
    call["file_text"] = format!("{number}\n").into();
    call.to_string()
}

/// The files after a step's calls, and after the changes behind the tool's back that follow it.
#[derive(Clone, Debug)]
struct Seen {
    after: Snapshot,
    settled: Snapshot,
}

fn watcher(steps: &[Step], base: &Base, seen: &Arc<Mutex<Vec<Seen>>>) -> super::play::Between {
    // For each step with calls: the external changes that follow it.
    let mut changes: Vec<Vec<serde_json::Map<String, Value>>> = Vec::new();
    for step in steps {
        match step {
            Step::Calls(_) | Step::Race { .. } | Step::KillDuring => changes.push(Vec::new()),
            // Those before the first call were made before the session began.
            Step::External(change) => changes.last_mut().into_iter().for_each(|after| after.push(change.clone())),
        }
    }
    let racing = steps.iter().any(|step| matches!(step, Step::Race { .. }));
    let base = Base::existing(&base.root());
    let seen = Arc::clone(seen);
    Box::new(move |step, _: &Taken| {
        // While a directory is being swapped there is nothing to compare but the outside, which the case does itself.
        let look = || if racing { Snapshot::new() } else { base.snapshot() };
        let after = look();
        for (path, spec) in changes[step].iter().flatten() {
            base.put(path, spec);
        }
        seen.lock().expect("one step at a time").push(Seen { after, settled: look() });
    })
}

/// A numbered line of a view: the number right-aligned, a tab, the text.
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^ *(\d+)\t(.*)$").expect("a valid pattern"));

impl Expect {
    fn check(&self, taken: &Taken, base: &Base, expected: Snapshot, after: &Snapshot) -> Vec<String> {
        let mut wrong = Vec::new();
        for result in &taken.results {
            wrong.extend(self.check_result(result));
        }
        if self.max_wall_s.is_some_and(|max| taken.wall.as_secs_f64() > max) {
            wrong.push(format!("took {:?}, at most {:?} s", taken.wall, self.max_wall_s));
        }
        let successes = taken.results.iter().filter(|result| !result.is_error).count();
        if self.successes.is_some_and(|count| count != successes) {
            wrong.push(format!("{successes} calls succeeded, expected {:?}", self.successes));
        }
        let escaped = self.files_after_must_not.iter().filter(|path| base.path(path).symlink_metadata().is_ok());
        wrong.extend(escaped.map(|path| format!("{path} appeared")));
        wrong.extend(self.check_files(base, expected, after, successes == taken.results.len()));
        if !wrong.is_empty() {
            let texts: Vec<String> = taken.results.iter().map(|result| shorten(&result.text)).collect();
            wrong.push(format!("the results were {texts:?}"));
        }
        wrong
    }

    fn check_result(&self, result: &ToolResult) -> Vec<String> {
        let mut wrong = Vec::new();
        match &self.is_error {
            Some(Value::String(any)) if any == "any" => {}
            expected => {
                let expected = expected.as_ref().and_then(Value::as_bool).unwrap_or(false);
                if result.is_error != expected {
                    wrong.push(format!("is_error is {}", result.is_error));
                }
            }
        }
        wrong.extend(contains(&result.text, &self.output_contains, &self.output_not_contains));
        if let Some(regex) = &self.output_regex
            && !python_search(regex, &result.text)
        {
            wrong.push(format!("the result does not match {regex:?}"));
        }
        if self.max_output_bytes.is_some_and(|max| result.text.len() > max) {
            wrong.push(format!("{} bytes of result, at most {:?}", result.text.len(), self.max_output_bytes));
        }
        if let Some(expected) = &self.numbered {
            let line = |line: &str| {
                let found = NUMBERED.captures(line)?;
                Some((found[1].parse().ok()?, found[2].to_owned()))
            };
            let got: Vec<(u64, String)> = result.text.split('\n').filter_map(line).collect();
            if got != *expected {
                wrong.push(format!("numbered lines {got:?}, expected {expected:?}"));
            }
        }
        wrong
    }

    fn check_files(&self, base: &Base, expected: Snapshot, after: &Snapshot, all_succeeded: bool) -> Vec<String> {
        if !self.files_after_must_not.is_empty() {
            return Vec::new();
        }
        if self.one_of_files.is_empty() {
            return differences(&applied(base, &expected, &self.files_after), after);
        }
        // Two successes: only the first alternative holds both changes.
        let both = self.lost_update == Some(false) && all_succeeded;
        let allowed = if both { &self.one_of_files[..1] } else { &self.one_of_files[..] };
        let each: Vec<_> = allowed.iter().map(|files| differences(&applied(base, &expected, files), after)).collect();
        if each.iter().any(Vec::is_empty) { Vec::new() } else { vec![format!("the files are none of those: {each:?}")] }
    }
}

/// What was there, with what a case says will be there. New directories on the way are part of it.
fn applied(base: &Base, before: &Snapshot, files: &BTreeMap<String, Value>) -> Snapshot {
    let mut after = before.clone();
    for (relative, spec) in files {
        let path = base.path(relative);
        if spec.is_null() {
            after.remove(&path);
            continue;
        }
        for parent in path.ancestors().skip(1).take_while(|parent| parent.starts_with(base.root())) {
            if parent != base.root() {
                after.entry(parent.to_owned()).or_insert(Entry::Directory(0o755));
            }
        }
        let entry = match spec["symlink"].as_str() {
            Some(target) => Entry::Link(base.fill(target).into()),
            None => {
                let old = match before.get(&path) {
                    Some(Entry::File(_, mode)) => *mode,
                    Some(Entry::Directory(_) | Entry::Link(_) | Entry::Special) | None => 0o644,
                };
                Entry::File(base.content(spec), mode_of(spec).unwrap_or(old))
            }
        };
        after.insert(path, entry);
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::load;

    #[test]
    fn every_case_reads_and_has_an_expectation_a_step() {
        let cases: Vec<Case> = load("editor.jsonl");
        assert_eq!(cases.len(), 183);
        for case in &cases {
            let steps = case.call.iter().count() + case.calls.len();
            let expects = case.expect.iter().count() + case.expects.len();
            assert_eq!(steps, expects, "{}", case.id);
        }
    }

    #[test]
    fn a_repeat_is_written_out_and_a_lone_surrogate_stays() {
        assert_eq!(expand(&serde_json::json!({ "a": { "$repeat": ["xy", 2] } })), r#"{"a":"xyxy"}"#);
        let directory = tempfile::tempdir().expect("a directory");
        let base = Base::new(directory.path().join("b"));
        let raw = RawValue::from_string(r#"{"new_str":"\ud800"}"#.into()).expect("raw");
        let Step::Calls(calls) = Step::read(&raw, &base) else { panic!("a call") };
        assert_eq!(calls, [r#"{"new_str":"\ud800"}"#]);
    }
}
