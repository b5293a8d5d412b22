//! Files as the corpus describes them: made on disk, and read back to compare.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use serde_json::Value;

/// The directories of one case.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) base: PathBuf,
    pub(crate) root: PathBuf,
}

impl Ground {
    /// `{root}` and its kind, filled in.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{root}", self.root.to_str().expect("UTF-8"))
            .replace("{outside}", self.base.to_str().expect("UTF-8"))
            .replace("{rootname}", "root")
    }

    /// The file that a corpus path means.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match name.strip_prefix("../") {
            Some(outside) => self.base.join(outside),
            None => self.root.join(name),
        }
    }
}

/// A text of the corpus: a string, or one of its short forms.
pub(crate) fn bytes(value: &Value) -> Option<Vec<u8>> {
    if let Some(text) = value.as_str() {
        return Some(text.as_bytes().to_vec());
    }
    if let Some(text) = value["text"].as_str() {
        return Some(text.as_bytes().to_vec());
    }
    if let Some(data) = value["b64"].as_str() {
        return Some(base64::engine::general_purpose::STANDARD.decode(data).expect("base64"));
    }
    if let Some(text) = value["repeat"].as_str() {
        let times = usize::try_from(value["times"].as_u64().expect("times")).expect("fits");
        let mut all = text.repeat(times);
        all.push_str(value["suffix"].as_str().unwrap_or_default());
        return Some(all.into_bytes());
    }
    let count = value["numbered_lines"].as_u64()?;
    let mut text: String = (1..=count).map(|number| format!("L{number}\n")).collect();
    if let Some([from, to]) = value["replace"].as_array().map(Vec::as_slice) {
        text = text.replacen(from.as_str().expect("text"), to.as_str().expect("text"), 1);
    }
    Some(text.into_bytes())
}

/// Makes one file of the corpus.
pub(crate) fn make(ground: &Ground, path: &Path, value: &Value) {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).expect("parents");
    }
    if let Some(target) = value["symlink"].as_str() {
        let _ = fs::remove_file(path);
        symlink(ground.fill(target), path).expect("symlink");
    } else if let Some(target) = value["hardlink"].as_str() {
        fs::hard_link(ground.path(target), path).expect("hard link");
    } else if value["fifo"].as_bool() == Some(true) {
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o644)).expect("fifo");
    } else if let Some(numbers) = value["chardev"].as_array() {
        make_device(path, numbers);
    } else if value["dir"].as_bool() == Some(true) {
        make_directory(ground, path, value);
    } else {
        fs::write(path, bytes(value).unwrap_or_else(|| panic!("unknown kind of file: {value}"))).expect("write");
    }
    if let Some(mode) = value["mode"].as_str() {
        let mode = u32::from_str_radix(mode, 8).expect("octal");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode");
    }
    if value["immutable"].as_bool() == Some(true) {
        set_immutable(path, true);
    }
}

fn make_directory(ground: &Ground, path: &Path, value: &Value) {
    fs::create_dir_all(path).expect("directory");
    for number in 0..value["files"].as_u64().unwrap_or(0) {
        fs::write(path.join(format!("f{number:05}")), b"x").expect("file");
    }
    for (name, child) in value["children"].as_object().into_iter().flatten() {
        make(ground, &path.join(name), child);
    }
}

fn make_device(path: &Path, numbers: &[Value]) {
    let number = |index: usize| u32::try_from(numbers[index].as_u64().expect("number")).expect("fits");
    let device = libc::makedev(number(0), number(1));
    let name = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
    // SAFETY: `name` ends in NUL.
    let made = unsafe { libc::mknod(name.as_ptr(), libc::S_IFCHR | 0o666, device) };
    assert_eq!(made, 0, "mknod {}", path.display());
}

/// Sets or clears the immutable attribute.
pub(crate) fn set_immutable(path: &Path, on: bool) {
    let status = Command::new("chattr").arg(if on { "+i" } else { "-i" }).arg(path).status().expect("chattr");
    assert!(status.success() || !on, "chattr {}", path.display());
}

/// What stands at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) content: Vec<u8>,
    pub(crate) link: Option<PathBuf>,
    pub(crate) mode: u32,
    pub(crate) kind: char,
}

/// Everything below a directory, by path.
pub(crate) fn picture(base: &Path) -> BTreeMap<PathBuf, Standing> {
    let mut all = BTreeMap::new();
    let mut left = vec![base.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let meta = fs::symlink_metadata(&path).expect("metadata");
            let kind = if meta.is_dir() {
                'd'
            } else if meta.is_symlink() {
                'l'
            } else if meta.is_file() {
                'f'
            } else {
                'o'
            };
            if kind == 'd' {
                left.push(path.clone());
            }
            let standing = Standing {
                content: if kind == 'f' { fs::read(&path).unwrap_or_default() } else { Vec::new() },
                link: fs::read_link(&path).ok(),
                mode: meta.permissions().mode() & 0o7777,
                kind,
            };
            all.insert(path, standing);
        }
    }
    all
}
