//! kill -9 at every system call of an edit: the file is old or new, what is left over is swept at the next start, and
//! the journal agrees with the file.
//!
//! The process that edits runs under ptrace, which stops it at each entry to and exit from a system call; one run for
//! each of them is killed there.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use proto::ids::CallId;
use proto::shim::files::{Apply, Create, FileOp, FileReply, Mode, StrReplace, Undo};
use shim::files::Files;

/// An edit has some hundred and fifty stops; this many means that it does not end.
const STOPS_MAX: usize = 5000;

struct Ground {
    base: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("base");
        fs::create_dir(base.path().join("root")).expect("root");
        Self { base }
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    fn open(&self) -> Files {
        Files::open(&self.root(), &[], &self.base.path().join("store")).expect("open")
    }

    /// Everything in the workspace, by relative path; directories have no content.
    fn picture(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        let mut left = vec![self.root()];
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(dir).expect("read") {
                let path = entry.expect("entry").path();
                let name = path.strip_prefix(self.root()).expect("below").to_string_lossy().into_owned();
                if path.is_dir() {
                    all.push((name, None));
                    left.push(path);
                } else {
                    all.push((name, Some(fs::read(path).expect("read"))));
                }
            }
        }
        all.sort();
        all
    }
}

/// Runs `op` in a process that is killed at its stop number `stop`; false when it ended before.
fn killed_at(ground: &Ground, op: &FileOp, stop: usize) -> bool {
    let root = ground.root();
    let mut files = ground.open();
    // SAFETY: the child does one operation and leaves without returning; it takes no lock of another thread's.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            if ptrace::traceme().is_ok() && raise(Signal::SIGSTOP).is_ok() {
                files.handle(op, &root);
            }
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => step_and_kill(child, stop),
    }
}

fn step_and_kill(child: Pid, stop: usize) -> bool {
    waitpid(child, None).expect("the first stop");
    for _ in 0..stop {
        ptrace::syscall(child, None).expect("go on");
        if let WaitStatus::Exited(..) = waitpid(child, None).expect("a stop") {
            return false;
        }
    }
    kill(child, Signal::SIGKILL).expect("kill");
    while !matches!(waitpid(child, None), Ok(WaitStatus::Signaled(..) | WaitStatus::Exited(..)) | Err(_)) {}
    true
}

/// Kills at every stop of `op(call)` and checks what stands afterwards.
fn everywhere(prepare: impl Fn(&Ground), op: impl Fn(CallId) -> FileOp) {
    let (mut old_seen, mut new_seen) = (0, 0);
    for stop in 1..STOPS_MAX {
        let ground = Ground::new();
        prepare(&ground);
        let old = ground.picture();
        let call = CallId::new();
        let was_killed = killed_at(&ground, &op(call), stop);

        let mut files = ground.open();
        let now = ground.picture();
        // Again with the same call id: whatever had happened, it has happened once now.
        let reply = files.handle(&op(call), &ground.root());
        assert!(!matches!(reply, FileReply::Error(_)), "stop {stop}: {reply:?}");
        let new = ground.picture();
        assert_ne!(old, new);
        assert!(now == old || now == new, "stop {stop}: neither old nor new: {:?}", names(&now));
        old_seen += usize::from(now == old);
        new_seen += usize::from(now == new);
        if !was_killed {
            println!("{stop} stops: {old_seen} left the old file, {new_seen} the new one");
            assert!(old_seen > 0 && new_seen > 1, "both outcomes must have been seen");
            return;
        }
    }
    panic!("the edit did not end within {STOPS_MAX} stops");
}

fn names(picture: &[(String, Option<Vec<u8>>)]) -> Vec<&str> {
    picture.iter().map(|(name, _)| name.as_str()).collect()
}

fn apply(call: CallId) -> Mode {
    Mode::Apply(Apply { call: Some(call), expect: None })
}

fn replace(old: &str, new: &str, call: CallId) -> FileOp {
    FileOp::StrReplace(StrReplace { path: "d/f".into(), old: old.into(), new: new.into(), mode: apply(call) })
}

fn put(ground: &Ground) {
    fs::create_dir(ground.root().join("d")).expect("directory");
    fs::write(ground.root().join("d/f"), "one\ntwo\n".repeat(1000) + "end\n").expect("write");
}

#[test]
fn a_kill_at_any_point_of_a_replacement_leaves_the_old_or_the_new_file() {
    everywhere(put, |call| replace("end\n", "END\n", call));
}

#[test]
fn a_kill_at_any_point_of_a_create_leaves_nothing_or_the_whole_file() {
    everywhere(put, |call| {
        FileOp::Create(Create { path: "d/new/deep/n".into(), text: "text\n".repeat(1000), mode: apply(call) })
    });
}

#[test]
fn a_kill_at_any_point_of_an_undo_leaves_whole_files_and_the_rest_is_done_by_the_next_try() {
    let prepare = |ground: &Ground| {
        put(ground);
        let mut files = ground.open();
        files.handle(&replace("end\n", "END\n", CallId::new()), &ground.root());
    };
    everywhere(prepare, |call| FileOp::Undo(Undo { steps: 1, newest: None, mode: apply(call) }));
}
