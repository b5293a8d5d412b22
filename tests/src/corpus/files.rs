//! Fixtures of the editor corpus, and what became of them: everything below a case's base directory is compared, so
//! that a file touched by mistake or a temporary file left behind is found.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use serde_json::Value;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file with its bytes and mode.
    File(Vec<u8>, u32),
    /// A directory with its mode.
    Directory(u32),
    /// A symbolic link with its target.
    Link(PathBuf),
    /// A fifo, socket or device.
    Special,
}

/// Everything below a directory.
pub type Snapshot = BTreeMap<PathBuf, Entry>;

/// The directory of one case: `root` is the session's working directory, what lies beside it is outside.
#[derive(Debug)]
pub struct Base {
    directory: PathBuf,
}

impl Base {
    /// Makes the directory and its `root`.
    ///
    /// # Panics
    /// When they exist.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        fs::create_dir(&directory).expect("a new directory");
        fs::create_dir(directory.join("root")).expect("a new root");
        Self { directory }
    }

    /// The base of a root that was made before.
    ///
    /// # Panics
    /// When the root lies nowhere.
    #[must_use]
    pub fn existing(root: &Path) -> Self {
        Self { directory: root.parent().expect("a root in a base").to_owned() }
    }

    /// The session's working directory.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.directory.join("root")
    }

    /// A path of the corpus, relative to the root.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        match relative.strip_prefix("../") {
            Some(outside) => self.directory.join(outside),
            None => self.root().join(relative),
        }
    }

    /// Text with the corpus's placeholders replaced.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        text.replace("{rootname}", "root")
            .replace("{root}", &path(&self.root()))
            .replace("{outside}", &path(&self.directory))
    }

    /// Everything below the base.
    ///
    /// # Panics
    /// When something cannot be read.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        read_below(&self.directory, &mut snapshot);
        snapshot
    }

    /// Puts a fixture at a path, replacing what stands there; `null` removes it.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn put(&self, relative: &str, spec: &Value) {
        let path = self.path(relative);
        if path.symlink_metadata().is_ok() && spec["dir"] != true {
            fs::remove_file(&path).expect("a replaced file");
        }
        if spec.is_null() {
            return;
        }
        fs::create_dir_all(path.parent().expect("a path below the base")).expect("its directory");
        if let Some(target) = spec["symlink"].as_str() {
            symlink(self.fill(target), &path).expect("a link");
        } else if let Some(target) = spec["hardlink"].as_str() {
            fs::hard_link(self.path(target), &path).expect("a hard link");
        } else if spec["dir"] == true {
            self.put_directory(relative, &path, spec);
        } else if spec["fifo"] == true {
            nix::unistd::mkfifo(&path, Mode::from_bits_truncate(0o644)).expect("a fifo");
        } else if spec["socket"] == true {
            drop(UnixListener::bind(&path).expect("a socket"));
        } else if let Some([major, minor]) = spec["chardev"].as_array().map(Vec::as_slice) {
            let device = makedev(major.as_u64().expect("a number"), minor.as_u64().expect("a number"));
            mknod(&path, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), device).expect("a device");
        } else {
            fs::write(&path, self.content(spec)).expect("a file");
        }
        finish(&path, spec);
    }

    fn put_directory(&self, relative: &str, path: &Path, spec: &Value) {
        fs::create_dir_all(path).expect("a directory");
        for (name, child) in spec["children"].as_object().into_iter().flatten() {
            self.put(&format!("{relative}/{name}"), child);
        }
        for number in 0..spec["files"].as_u64().unwrap_or(0) {
            fs::write(path.join(format!("f{number:05}.txt")), "x\n").expect("a file");
        }
    }

    /// The bytes a fixture's file holds.
    ///
    /// # Panics
    /// When the fixture is no file.
    #[must_use]
    pub fn content(&self, spec: &Value) -> Vec<u8> {
        if let Some(text) = spec.as_str().or_else(|| spec["text"].as_str()) {
            return text.into();
        }
        if let Some(code) = spec["b64"].as_str() {
            return base64::engine::general_purpose::STANDARD.decode(code).expect("base64");
        }
        if let Some(lines) = spec["numbered_lines"].as_u64() {
            let text: String = (1..=lines).map(|number| format!("L{number}\n")).collect();
            let replace = |at: usize| spec["replace"][at].as_str();
            return match (replace(0), replace(1)) {
                (Some(old), Some(new)) => text.replacen(old, new, 1).into(),
                _ => text.into(),
            };
        }
        let repeat = spec["repeat"].as_str().unwrap_or_else(|| panic!("a fixture of an unknown kind: {spec}"));
        let times = usize::try_from(spec["times"].as_u64().expect("a number")).expect("a number");
        (repeat.repeat(times) + spec["suffix"].as_str().unwrap_or_default()).into()
    }

    /// Takes away what would keep the directory from being removed.
    pub fn release(&self) {
        // Only what `finish` made immutable needs it; a file system without the attribute has none.
        let _ = Command::new("chattr").args(["-R", "-i"]).arg(&self.directory).output();
    }
}

/// Owner, mode and attributes, in the order in which each is still possible.
fn finish(path: &Path, spec: &Value) {
    let id = |key: &str| spec[key].as_u64().and_then(|id| u32::try_from(id).ok());
    if id("uid").is_some() || id("gid").is_some() {
        chown(path, id("uid"), id("gid")).expect("an owner");
    }
    if let Some(mode) = mode_of(spec) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }
    if spec["immutable"] == true {
        let status = Command::new("chattr").arg("+i").arg(path).status();
        assert!(status.is_ok_and(|status| status.success()), "skip: this file system has no immutable attribute");
    }
}

/// The mode a fixture names, in octal digits.
#[must_use]
pub fn mode_of(spec: &Value) -> Option<u32> {
    spec["mode"].as_str().and_then(|mode| u32::from_str_radix(mode, 8).ok())
}

fn read_below(directory: &Path, snapshot: &mut Snapshot) {
    for entry in fs::read_dir(directory).expect("a readable directory") {
        let path = entry.expect("a readable entry").path();
        let meta = path.symlink_metadata().expect("it is there");
        let mode = meta.permissions().mode() & 0o7777;
        let kind = meta.file_type();
        let found = if kind.is_symlink() {
            Entry::Link(fs::read_link(&path).expect("a link"))
        } else if kind.is_dir() {
            read_below(&path, snapshot);
            Entry::Directory(mode)
        } else if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
            Entry::Special
        } else {
            // What its owner may not read (mode 000) has no content here either.
            Entry::File(fs::read(&path).unwrap_or_default(), mode)
        };
        snapshot.insert(path, found);
    }
}

/// Everything that differs from what was expected.
#[must_use]
pub fn differences(expected: &Snapshot, got: &Snapshot) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, entry) in expected {
        match got.get(path) {
            Some(found) if found == entry => {}
            Some(found) => wrong.push(format!("{}: {}, expected {}", path.display(), show(found), show(entry))),
            None => wrong.push(format!("{} is gone", path.display())),
        }
    }
    for (path, entry) in got {
        if !expected.contains_key(path) {
            wrong.push(format!("{} was left behind: {}", path.display(), show(entry)));
        }
    }
    wrong
}

fn show(entry: &Entry) -> String {
    match entry {
        Entry::File(bytes, mode) => {
            format!(
                "file {mode:o} {:?} ({} bytes)",
                super::expect::shorten(&String::from_utf8_lossy(bytes)),
                bytes.len()
            )
        }
        Entry::Directory(mode) => format!("directory {mode:o}"),
        Entry::Link(target) => format!("link to {}", target.display()),
        Entry::Special => "a special file".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fixtures_are_made_and_a_change_of_content_mode_or_name_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let base = Base::new(directory.path().join("base"));
        base.put("a.txt", &json!("alpha\n"));
        base.put(
            "d",
            &json!({ "dir": true, "children": { "x": { "text": "x", "mode": "600" }, "ff": { "fifo": true } } }),
        );
        base.put("l", &json!({ "symlink": "{outside}/o" }));
        base.put("../o", &json!({ "repeat": "ab", "times": 3, "suffix": "\n" }));
        let before = base.snapshot();
        assert_eq!(before.len(), 7);
        assert_eq!(before[&base.path("../o")], Entry::File(b"ababab\n".into(), 0o644));
        assert_eq!(before[&base.path("d/x")], Entry::File(b"x".into(), 0o600));
        assert!(differences(&before, &base.snapshot()).is_empty());
        base.put("a.txt", &json!("beta\n"));
        base.put("new", &json!(""));
        fs::set_permissions(base.path("d/x"), fs::Permissions::from_mode(0o644)).expect("a mode");
        base.put("l", &Value::Null);
        let wrong = differences(&before, &base.snapshot());
        assert_eq!(wrong.len(), 4, "{wrong:#?}");
    }
}
