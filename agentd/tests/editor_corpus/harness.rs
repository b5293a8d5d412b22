//! Runs one case: its ground, its calls, and the kinds of calls that need a harness of their own.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use agentd::tools::editor::{self, EditorInput};
use agentd::tools::{Part, ToolResult};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use proto::event::Outcome;
use proto::ids::CallId;
use proto::json::JsonText;
use proto::shim::files::{Apply, FileReply, Mode};
use serde::Deserialize;
use serde_json::Value;
use shim::files::Files;

use crate::LONE_SURROGATE;
use crate::check::{self, Answer};
use crate::fixture::{Ground, bytes, make, picture, set_immutable};

/// One line of the corpus.
#[derive(Clone, Deserialize)]
pub(crate) struct Case(Value);

impl Case {
    pub(crate) fn id(&self) -> &str {
        self.0["id"].as_str().expect("id")
    }
}

/// Who runs the case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Myself,
    /// A user without rights of its own, from a process of root's.
    Ordinary,
}

/// How a case went.
pub(crate) enum Verdict {
    Passed,
    Skipped,
    Failed(String),
}

/// The user id without rights on every Linux.
const NOBODY: u32 = 65534;

pub(crate) fn run(case: &Case, actor: Actor) -> Verdict {
    let is_root = actor == Actor::Myself && nix::unistd::geteuid().is_root();
    let needs = |name: &str| case.0["requires"].as_array().is_some_and(|list| list.iter().any(|need| need == name));
    if (needs("root") && !is_root) || (needs("non_root") && is_root) {
        return Verdict::Skipped;
    }
    // A thread of its own, so that it may become another user.
    let case = case.clone();
    let thread = std::thread::spawn(move || {
        if actor == Actor::Ordinary {
            become_ordinary();
        }
        on_ground(&case)
    });
    match thread.join() {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(why)) => Verdict::Failed(why),
        Err(_) => Verdict::Failed("panicked".to_owned()),
    }
}

/// Gives this thread, and it alone, another user: the system calls themselves act on one thread, the library's
/// functions on all.
fn become_ordinary() {
    // SAFETY: plain system calls with integers and a null list of no groups.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()), 0);
        assert_eq!(libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY), 0);
        assert_eq!(libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY), 0);
    }
}

/// The directories of a case; what was mounted or locked is released when it ends.
struct Site {
    ground: Ground,
    store: tempfile::TempDir,
    _base: tempfile::TempDir,
    mounted: bool,
    immutable: Vec<String>,
}

impl Drop for Site {
    fn drop(&mut self) {
        for name in &self.immutable {
            set_immutable(&self.ground.path(name), false);
        }
        if self.mounted {
            let _ = Command::new("umount").arg(&self.ground.root).status();
        }
        for (path, standing) in picture(&self.ground.root) {
            if standing.kind == 'd' {
                let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
            }
        }
    }
}

fn site(case: &Value) -> Site {
    // A race has thousands of rounds; in memory they do not wait for the disk.
    let memory = Path::new("/dev/shm");
    let many = case["call"]["race"].is_object() && memory.is_dir();
    let temp = || if many { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let base = temp().expect("base");
    let path = base.path().canonicalize().expect("canonical");
    let ground = Ground { root: path.join("root"), base: path };
    fs::create_dir(&ground.root).expect("root");
    let setup = &case["setup"];
    if let Some(size) = setup["tmpfs_kib"].as_u64() {
        let options = format!("size={size}k");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&ground.root).status();
        assert!(mounted.expect("mount").success());
    }
    let files = case["files"].as_object().expect("files");
    for (name, value) in files {
        make(&ground, &ground.path(name), value);
    }
    if setup["fill"].as_bool() == Some(true) {
        let _ = fs::write(ground.root.join("filler"), vec![0_u8; 1024 * 1024]);
    }
    let immutable = files.iter().filter(|(_, value)| value["immutable"].as_bool() == Some(true));
    Site {
        immutable: immutable.map(|(name, _)| name.clone()).collect(),
        mounted: setup["tmpfs_kib"].is_u64(),
        store: temp().expect("store"),
        _base: base,
        ground,
    }
}

fn on_ground(case: &Case) -> Result<(), String> {
    let site = site(&case.0);
    let ground = &site.ground;
    let mut files = Files::open(&ground.root, &[], site.store.path()).map_err(|error| error.to_string())?;
    let (calls, expects) = match case.0["calls"].as_array() {
        Some(calls) => (calls.clone(), case.0["expects"].as_array().expect("expects").clone()),
        None => (vec![case.0["call"].clone()], vec![case.0["expect"].clone()]),
    };
    for (number, (step, expect)) in calls.iter().zip(&expects).enumerate() {
        let done = if let Some(changes) = step["external"].as_object() {
            changes.iter().for_each(|(name, value)| external(ground, name, value));
            Ok(())
        } else if let Some(members) = step["parallel"].as_array() {
            parallel(&mut files, ground, members, expect)
        } else if step["race"].is_object() {
            race(&mut files, ground, step, expect)
        } else if step["kill_during"].is_object() {
            killed(&site, &step["kill_during"], expect)
        } else {
            plain(&mut files, ground, step, expect)
        };
        done.map_err(|why| format!("step {number}: {why}"))?;
    }
    Ok(())
}

fn external(ground: &Ground, name: &str, value: &Value) {
    let path = ground.path(name);
    if value.is_null() {
        fs::remove_file(path).expect("remove");
    } else {
        make(ground, &path, value);
    }
}

/// Long strings written out, places filled in.
fn expand(ground: &Ground, value: &Value) -> Value {
    match value {
        Value::Object(map) if map.contains_key("$repeat") => {
            let text = map["$repeat"][0].as_str().expect("text");
            let times = usize::try_from(map["$repeat"][1].as_u64().expect("times")).expect("fits");
            Value::String(text.repeat(times))
        }
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), expand(ground, value))).collect(),
        Value::String(text) => Value::String(ground.fill(text)),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The input of a call as the model sends it.
fn input(ground: &Ground, step: &Value) -> Result<EditorInput, String> {
    let text = expand(ground, step).to_string().replace(LONE_SURROGATE.1, LONE_SURROGATE.0);
    editor::parse(&JsonText::parse(&text).expect("JSON"))
}

/// One call, as the daemon makes it: an edit is previewed first, as for an approval, and applied on that ground.
fn call(files: &mut Files, ground: &Ground, step: &Value) -> Answer {
    let started = Instant::now();
    let result = match input(ground, step) {
        Err(text) => {
            ToolResult { content: vec![Part::Text(text)], is_error: true, outcome: Outcome::Failed {}, diff: None }
        }
        Ok(input) => {
            let expect = match files.handle(&editor::op(&input, Mode::Preview {}), &ground.root) {
                FileReply::Edited(edited) => Some(edited.basis),
                _ => None,
            };
            let mode = Mode::Apply(Apply { call: Some(CallId::new()), expect });
            let reply = files.handle(&editor::op(&input, mode), &ground.root);
            // What crosses the wire to the daemon.
            let text = serde_json::to_string(&reply).expect("serializes");
            editor::render(&input, &serde_json::from_str(&text).expect("reads back"))
        }
    };
    Answer { result, took: started.elapsed() }
}

fn plain(files: &mut Files, ground: &Ground, step: &Value, expect: &Value) -> Result<(), String> {
    let before = picture(&ground.base);
    let answer = call(files, ground, step);
    check::answer(expect, &answer)?;
    check::files(ground, expect, &before, &picture(&ground.base))
}

/// Calls sent at the same moment: a shim does one after the other, in either order.
fn parallel(files: &mut Files, ground: &Ground, members: &[Value], expect: &Value) -> Result<(), String> {
    let answers: Vec<Answer> = members.iter().map(|member| call(files, ground, member)).collect();
    let done = answers.iter().filter(|answer| !answer.result.is_error).count();
    if expect["successes"].as_u64().is_some_and(|wanted| wanted != done as u64) {
        return Err(format!("{done} calls succeeded"));
    }
    let all = &expect["one_of_files"][0];
    if done == members.len() && expect["lost_update"].as_bool() == Some(false) && !stands(ground, all) {
        return Err("an update was lost".to_owned());
    }
    one_of(ground, expect)
}

fn stands(ground: &Ground, files: &Value) -> bool {
    let mut files = files.as_object().into_iter().flatten();
    files.all(|(name, value)| fs::read(ground.path(name)).ok() == bytes(value))
}

fn one_of(ground: &Ground, expect: &Value) -> Result<(), String> {
    let choices = expect["one_of_files"].as_array().expect("choices");
    if choices.iter().any(|files| stands(ground, files)) { Ok(()) } else { Err("the file is mixed".to_owned()) }
}

/// A directory is swapped for a link to outside again and again while the tool works.
fn race(files: &mut Files, ground: &Ground, step: &Value, expect: &Value) -> Result<(), String> {
    let name = step["race"]["swap"].as_str().expect("swap");
    let target = step["race"]["with_symlink_to"].as_str().expect("target").to_owned();
    let rounds = step["race"]["rounds"].as_u64().expect("rounds");
    let dir = ground.path(name);
    let aside = ground.root.join("aside");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            symlink(&target, &aside).expect("link");
            while !over.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &dir, AT_FDCWD, &aside, RenameFlags::RENAME_EXCHANGE).expect("swap");
            }
        });
        for _ in 0..rounds {
            call(files, ground, &step["call"]);
            assert!(!ground.base.join("new.txt").exists(), "the race was lost");
            for place in [&dir, &aside] {
                // Which of the two is the directory changes by the moment; a link's target is checked above.
                let _ = fs::remove_file(place.join("new.txt"));
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    let forbidden = expect["files_after_must_not"].as_array().expect("forbidden");
    let mut forbidden = forbidden.iter().filter_map(Value::as_str);
    match forbidden.find(|name| ground.path(name).exists()) {
        Some(name) => Err(format!("{name} appeared outside")),
        None => Ok(()),
    }
}

/// The process that writes is killed while the temporary file is there.
fn killed(site: &Site, step: &Value, expect: &Value) -> Result<(), String> {
    let ground = &site.ground;
    let op = editor::op(&input(ground, step)?, Mode::Apply(Apply::default()));
    // SAFETY: the child makes one call and leaves without returning; it takes no lock of another thread's.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            if let Ok(mut files) = Files::open(&ground.root, &[], site.store.path()) {
                files.handle(&op, &ground.root);
            }
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            while !has_scratch(&ground.root) && !ended(child) {
                std::thread::yield_now();
            }
            let _ = kill(child, Signal::SIGKILL);
            let _ = waitpid(child, None);
        }
    }
    one_of(ground, expect)?;
    Files::open(&ground.root, &[], site.store.path()).map_err(|error| error.to_string())?;
    if has_scratch(&ground.root) { Err("a temporary file stayed".to_owned()) } else { one_of(ground, expect) }
}

fn has_scratch(dir: &Path) -> bool {
    let mut entries = fs::read_dir(dir).expect("read").flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with(".agentd-"))
}

fn ended(child: nix::unistd::Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    stat.is_empty() || stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}
