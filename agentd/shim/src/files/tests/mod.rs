//! The rules of the files, one claim a test, through [`Files::handle`] on a workspace of its own.

mod confine;
mod edits;
mod misses;
mod safety;
mod searches;
mod undo;
mod views;

use std::fs;
use std::path::{Path, PathBuf};

use proto::ids::CallId;
use proto::shim::files::{
    Apply, Create, Edited, Fault, FileOp, FileReply, Insert, LineRange, Mode, StrReplace, TextView, Undo, Undone, View,
};

use super::Files;

/// A workspace, a store and the files between them.
struct Bench {
    base: tempfile::TempDir,
    files: Files,
}

impl Bench {
    fn new() -> Self {
        Self::with_roots(&[])
    }

    /// With more roots, relative to the base.
    fn with_roots(extra: &[&str]) -> Self {
        let base = tempfile::tempdir().expect("base");
        let extra: Vec<PathBuf> = extra.iter().map(|name| base.path().join(name)).collect();
        for dir in extra.iter().chain([&base.path().join("root"), &base.path().join("store")]) {
            fs::create_dir_all(dir).expect("directory");
        }
        let files = Files::open(&base.path().join("root"), &extra, &base.path().join("store")).expect("open");
        Self { base, files }
    }

    /// The same workspace after the process was replaced.
    fn reopened(self) -> Self {
        let root = self.root();
        let files = Files::open(&root, &[], &self.base.path().join("store")).expect("open");
        Self { base: self.base, files }
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("parents");
        fs::write(path, content).expect("write");
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("read")
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("UTF-8")
    }

    fn names(&self) -> Vec<String> {
        names_in(&self.root())
    }

    fn op(&mut self, op: &FileOp) -> FileReply {
        let root = self.root();
        self.files.handle(op, &root)
    }

    fn view(&mut self, path: &str) -> TextView {
        match self.op(&view(path, None)) {
            FileReply::Text(view) => view,
            other => panic!("not a text: {other:?}"),
        }
    }

    fn edit(&mut self, op: &FileOp) -> Edited {
        match self.op(op) {
            FileReply::Edited(edited) => edited,
            other => panic!("not an edit: {other:?}"),
        }
    }

    fn fault(&mut self, op: &FileOp) -> Fault {
        match self.op(op) {
            FileReply::Error(error) => error.fault,
            other => panic!("not refused: {other:?}"),
        }
    }

    fn undo(&mut self, steps: u32) -> Undone {
        match self.op(&undo(steps)) {
            FileReply::Undone(undone) => undone,
            other => panic!("not undone: {other:?}"),
        }
    }
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("read").map(|entry| entry.expect("entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn apply() -> Mode {
    Mode::Apply(Apply::default())
}

fn apply_as(call: CallId) -> Mode {
    Mode::Apply(Apply { call: Some(call), expect: None })
}

fn view(path: &str, range: Option<(i64, i64)>) -> FileOp {
    let range = range.map(|(first, last)| LineRange { first, last });
    FileOp::View(View { path: path.to_owned(), range, max_characters: 2000 })
}

fn replace(path: &str, old: &str, new: &str) -> FileOp {
    replace_in(path, old, new, apply())
}

fn replace_in(path: &str, old: &str, new: &str, mode: Mode) -> FileOp {
    FileOp::StrReplace(StrReplace { path: path.to_owned(), old: old.to_owned(), new: new.to_owned(), mode })
}

fn insert(path: &str, line: i64, text: &str) -> FileOp {
    FileOp::Insert(Insert { path: path.to_owned(), line, text: text.to_owned(), mode: apply() })
}

fn create(path: &str, text: &str) -> FileOp {
    FileOp::Create(Create { path: path.to_owned(), text: text.to_owned(), mode: apply() })
}

fn undo(steps: u32) -> FileOp {
    FileOp::Undo(Undo { steps, newest: None, mode: apply() })
}
