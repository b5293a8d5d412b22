//! Every case of `tests/data/bash.jsonl` through a real shim and the text that a model would read.
//!
//! The program is its own shim (first argument `shim`), so it has no test harness. Arguments are ids, or parts of ids, of
//! the cases to run; `--marks` runs them without control groups.

#![allow(
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test: a failure is to stop it"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd::shell::{LaunchSpec, Shell, ShellLimits, Wish};
use agentd::tools::bash::{BashInput, parse, render, render_restart};
use agentd::tools::{Part, ToolResult};
use proto::ids::{CallId, SessionId};
use proto::json::JsonText;
use proto::secret::EnvVars;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Cases that run at the same time: most wait for deadlines.
const AT_ONCE: usize = 4;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "shim") {
        return shim::main();
    }
    if args.iter().any(|arg| arg == "--list") {
        if !args.iter().any(|arg| arg == "--ignored") {
            println!("bash_corpus: test");
        }
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let failed = runtime.expect("a runtime").block_on(run_all(&args));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run_all(args: &[String]) -> usize {
    let marks = args.iter().any(|arg| arg == "--marks");
    let wanted: Vec<&String> = args.iter().filter(|arg| arg.starts_with("bash-")).collect();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/bash.jsonl");
    let text = std::fs::read_to_string(data).expect("the corpus");
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect();
    let cases = cases.into_iter().filter(|case| {
        let id = case["id"].as_str().unwrap_or("");
        wanted.is_empty() || wanted.iter().any(|part| id.contains(part.as_str()))
    });
    let (mut open, mut total, mut failed, mut skipped) = (JoinSet::new(), 0, 0, 0);
    for case in cases {
        if let Some(missing) = missing(&case) {
            println!("skip {} ({missing})", case["id"]);
            skipped += 1;
            continue;
        }
        total += 1;
        if open.len() >= AT_ONCE {
            failed += usize::from(report(open.join_next().await));
        }
        open.spawn(async move {
            let faults = Case::new(&case, marks).run(&case).await;
            (case, faults)
        });
    }
    while let Some(done) = open.join_next().await {
        failed += usize::from(report(Some(done)));
    }
    println!("{total} cases, {failed} failed, {skipped} skipped");
    failed
}

fn report(done: Option<Result<(Value, Vec<String>), tokio::task::JoinError>>) -> bool {
    let Some(done) = done else { return false };
    match done {
        Ok((case, faults)) => {
            for fault in &faults {
                println!("FAIL {}: {fault}", case["id"].as_str().unwrap_or("?"));
            }
            !faults.is_empty()
        }
        Err(error) => {
            println!("FAIL: {error}");
            true
        }
    }
}

/// A program or privilege that the case needs and this machine lacks.
fn missing(case: &Value) -> Option<String> {
    let root = nix::unistd::Uid::effective().is_root();
    let has = |need: &str| match need {
        "root" => root,
        "non_root" => !root,
        "x86_64" => cfg!(target_arch = "x86_64"),
        "tzdata" => Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists(),
        program => {
            let path = std::env::var("PATH").unwrap_or_default();
            path.split(':').any(|dir| Path::new(dir).join(program).exists())
        }
    };
    let needs = case["requires"].as_array().cloned().unwrap_or_default();
    needs.iter().filter_map(Value::as_str).find(|need| !has(need)).map(str::to_owned)
}

struct Case {
    dir: tempfile::TempDir,
    limits: ShellLimits,
}

/// What came of one call.
struct Seen {
    text: String,
    is_error: bool,
    wall: Duration,
}

impl Case {
    fn new(case: &Value, marks: bool) -> Self {
        let deadline = Duration::from_secs_f64(case["timeout_s"].as_f64().unwrap_or(10.0));
        let accounting = if marks { Wish::Marks } else { Wish::Auto };
        let dir = tempfile::tempdir().expect("a directory");
        Self { dir, limits: ShellLimits { deadline, accounting, ..ShellLimits::default() } }
    }

    async fn shell(&self, name: &str) -> Arc<Shell> {
        let cwd = self.dir.path().join("work").join(name);
        std::fs::create_dir_all(&cwd).expect("a directory");
        let env = std::env::vars().filter(|(name, _)| name != "OLDPWD" && name != "PWD" && !name.starts_with("LC_"));
        let mut env: Vec<(String, String)> = env.collect();
        env.push(("LANG".to_owned(), "C.UTF-8".to_owned()));
        let spec = LaunchSpec {
            extra_roots: Vec::new(),
            session: SessionId::new(),
            cwd,
            env: EnvVars(env),
            runtime_dir: self.dir.path().join("run"),
            state_dir: self.dir.path().join("state"),
            program: PathBuf::from("/proc/self/exe"),
            limits: self.limits,
            secret_names: Vec::new(),
        };
        Arc::new(Shell::launch(spec).await.expect("a shell"))
    }

    async fn run(&self, case: &Value) -> Vec<String> {
        let mut shells: HashMap<String, Arc<Shell>> = HashMap::new();
        let mut faults = Vec::new();
        let strict = case["strict"].as_bool().unwrap_or(false);
        let steps = case["steps"].as_array().expect("steps");
        for (number, (step, expect)) in steps.iter().zip(case["expect"].as_array().expect("expect")).enumerate() {
            let members: Vec<&Value> =
                step["parallel"].as_array().map_or_else(|| vec![step], |all| all.iter().collect());
            let mut open = Vec::new();
            for member in &members {
                let name = member["session"].as_str().unwrap_or("").to_owned();
                if !shells.contains_key(&name) {
                    shells.insert(name.clone(), self.shell(&name).await);
                }
                open.push(call(Arc::clone(&shells[&name]), (*member).clone(), self.limits));
            }
            let begun = Instant::now();
            let seen = futures_util::future::join_all(open).await;
            let wall = begun.elapsed();
            let mut found = Vec::new();
            if step["parallel"].is_array() {
                for (one, want) in seen.iter().zip(expect["parallel"].as_array().into_iter().flatten()) {
                    found.extend(check(one, want, strict));
                }
                if expect["max_wall_s"].as_f64().is_some_and(|max| wall.as_secs_f64() > max) {
                    found.push(format!("took {wall:?}"));
                }
            } else {
                found.extend(check(&seen[0], expect, strict));
            }
            found.extend(survivors(expect).await);
            faults.extend(found.into_iter().map(|fault| format!("step {}: {fault}", number + 1)));
        }
        for shell in shells.values() {
            shell.shutdown().await;
        }
        faults
    }
}

async fn call(shell: Arc<Shell>, step: Value, limits: ShellLimits) -> Seen {
    if let Some(ms) = step["wait_ms"].as_u64() {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        return Seen { text: String::new(), is_error: false, wall: Duration::ZERO };
    }
    let begun = Instant::now();
    let input = if step["call"].is_object() { &step["call"] } else { &step };
    let call = CallId::new();
    let result = match parse(&JsonText::from_value(input)) {
        Err(text) => failed(text),
        Ok(BashInput::Restart) => match shell.restart(call).await {
            Ok(result) => render_restart(&result),
            Err(error) => failed(error.to_string()),
        },
        Ok(BashInput::Run { command }) => {
            let (output, mut chunks) = mpsc::channel(64);
            let drain = async { while chunks.recv().await.is_some() {} };
            match futures_util::future::join(shell.run(call, &command, limits.deadline, output), drain).await.0 {
                Ok(result) => render(&result, &limits),
                Err(error) => failed(error.to_string()),
            }
        }
    };
    shell.forget(call).await;
    let text: Vec<String> = result
        .content
        .into_iter()
        .map(|part| match part {
            Part::Text(text) => text,
            Part::Image { .. } => String::new(),
        })
        .collect();
    Seen { text: text.concat(), is_error: result.is_error, wall: begun.elapsed() }
}

fn failed(text: String) -> ToolResult {
    let outcome = proto::event::Outcome::Failed {};
    ToolResult { content: vec![Part::Text(text)], is_error: true, outcome, diff: None }
}

/// The output without notes, and the notes.
fn parted(text: &str) -> (String, Vec<String>) {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let mut notes = Vec::new();
    while let Some(last) = lines.last().filter(|line| line.starts_with('[') && line.ends_with(']')) {
        notes.insert(0, (*last).to_owned());
        lines.pop();
    }
    (lines.join("\n"), notes)
}

/// What does not hold.
fn check(seen: &Seen, expect: &Value, strict: bool) -> Vec<String> {
    let (output, notes) = parted(&seen.text);
    let all_notes = notes.join("\n");
    let mut faults = Vec::new();
    let mut claim = |holds: bool, what: String| {
        if !holds {
            faults.push(format!("{what}; got {:?} {notes:?}", output.chars().take(300).collect::<String>()));
        }
    };
    if let Some(want) = expect["output"].as_str() {
        let same = if strict { want == output } else { want.trim_end_matches('\n') == output.trim_end_matches('\n') };
        claim(same, format!("output should be {want:?}"));
    }
    for want in texts(&expect["output_contains"]) {
        claim(output.contains(&want), format!("output should contain {want:?}"));
    }
    for want in texts(&expect["output_not_contains"]) {
        claim(!output.contains(&want), format!("output should not contain {want:?}"));
    }
    if let Some(want) = expect["output_regex"].as_str() {
        claim(matches(want, &output), format!("output should match {want:?}"));
    }
    let status = notes.iter().find_map(|note| note.strip_prefix("[exit status ")?.strip_suffix(']')?.parse().ok());
    let status: i64 = status.unwrap_or(0);
    let status_holds = match &expect["exit_code"] {
        Value::Null => true,
        Value::Array(all) => all.iter().any(|want| want.as_i64() == Some(status)),
        Value::String(_) => status != 0,
        want => want.as_i64() == Some(status),
    };
    claim(status_holds, format!("exit code should be {}", expect["exit_code"]));
    let flags = [
        ("timed_out", all_notes.contains("[timed out after")),
        ("session_restarted", all_notes.contains("a new shell was started")),
        ("truncated", output.contains(" left out here")),
        ("is_error", seen.is_error),
    ];
    for (name, is) in flags {
        claim(expect[name].as_bool().is_none_or(|want| want == is), format!("{name} should be {}", expect[name]));
    }
    let wall = seen.wall.as_secs_f64();
    claim(expect["max_wall_s"].as_f64().is_none_or(|max| wall <= max), format!("took {wall} s"));
    claim(expect["min_wall_s"].as_f64().is_none_or(|min| wall >= min), format!("took only {wall} s"));
    let bytes = seen.text.len() as u64;
    claim(expect["max_output_bytes"].as_u64().is_none_or(|max| bytes <= max), format!("{bytes} bytes"));
    if let Some(any) = expect["any_of"].as_array()
        && !any.iter().any(|one| check(seen, one, strict).is_empty())
    {
        faults.push(format!("none of the alternatives holds; got {output:?} {notes:?}"));
    }
    faults
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether Python's `re.search` with DOTALL finds it: the corpus is written for that.
fn matches(pattern: &str, text: &str) -> bool {
    let script = "import re,sys; sys.exit(re.search(sys.argv[1], sys.argv[2], re.S) is None)";
    let python =
        std::process::Command::new("python3").args(["-c", script, pattern, &text.replace('\0', "\\0")]).status();
    python.is_ok_and(|status| status.success())
}

/// Counts living processes that have a token as an argument, until the count is as wanted or a second has passed.
async fn survivors(expect: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for want in expect["survivors"].as_array().into_iter().flatten() {
        let token = want["token"].as_str().unwrap_or("");
        let holds = |count: u64| {
            want["min"].as_u64().is_none_or(|min| count >= min) && want["max"].as_u64().is_none_or(|max| count <= max)
        };
        let begun = Instant::now();
        while !holds(count(token)) && begun.elapsed() < Duration::from_secs(1) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let count = count(token);
        if !holds(count) {
            faults.push(format!("{count} processes with {token}, wanted {want}"));
        }
    }
    faults
}

fn count(token: &str) -> u64 {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let has = |dir: PathBuf| {
        let line = std::fs::read(dir.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == token.as_bytes())
    };
    processes.filter(|entry| has(entry.path())).count() as u64
}
