//! The instructions that users and projects keep in files: `AGENTS.md` and `CLAUDE.md`. Read once, when a session starts,
//! and frozen with its system prompt.
//!
//! In this order, the more general first: the user's own (`AGENTS.md` beside the configuration), then from the
//! repository's root down to the workspace. `@path` in a file takes that file in behind it. Files in directories below are
//! only named: the model views them when it works there.
//!
//! Invariant: only regular files inside the repository (or the workspace, when there is none) and the user's
//! configuration folder are read, links resolved; nothing is read twice; the sizes are bounded.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Names of instruction files, in the order of reading. Where one imports or links the other, it is read once.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Bytes taken of one file: far more than a useful one has, since each is paid for with every request.
const FILE_BYTES_MAX: usize = 32 * 1024;

/// Bytes taken in all, about 16,000 tokens.
const TOTAL_BYTES_MAX: usize = 64 * 1024;

/// How deep imports nest; deeper is a mistake or a game.
const IMPORT_DEPTH_MAX: usize = 5;

/// Directories between the repository's root and the workspace.
const ANCESTORS_MAX: usize = 32;

/// Directories that are looked into for files to name: a start must not wait for a whole disk.
const LOOKED_INTO_MAX: usize = 2_000;

/// Depth below the workspace that is looked at.
const DEPTH_MAX: usize = 4;

/// Files that are named.
const NAMED_MAX: usize = 20;

/// Directories in which nobody keeps instructions of their own.
const SKIPPED: [&str; 4] = ["node_modules", "target", "vendor", "dist"];

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Instructions {
    /// Whether the workspace is in a git repository.
    pub(super) git: bool,
    /// Path and text, in order.
    pub(super) files: Vec<(PathBuf, String)>,
    /// Files in directories below.
    pub(super) below: Vec<PathBuf>,
    /// What was left out, each one sentence for the user.
    pub(super) left_out: Vec<String>,
}

/// Reads what holds for a workspace.
pub(super) fn read(workspace: &Path, config: &Path) -> Instructions {
    let root = workspace.ancestors().take(ANCESTORS_MAX).find(|dir| dir.join(".git").exists());
    let top = root.unwrap_or(workspace);
    let mut reader = Reader {
        inside: [top, config].iter().filter_map(|dir| dir.canonicalize().ok()).collect(),
        seen: Vec::new(),
        room: TOTAL_BYTES_MAX,
        found: Instructions { git: root.is_some(), ..Instructions::default() },
    };
    reader.take(&config.join(NAMES[0]), 0);
    let mut chain: Vec<&Path> = workspace.ancestors().take_while(|dir| dir.starts_with(top)).collect();
    chain.reverse();
    for dir in chain {
        for name in NAMES {
            reader.take(&dir.join(name), 0);
        }
    }
    let below = below(workspace);
    let seen = reader.seen;
    reader.found.below =
        below.into_iter().filter(|path| path.canonicalize().is_ok_and(|it| !seen.contains(&it))).collect();
    reader.found
}

struct Reader {
    /// Canonical folders that may be read.
    inside: Vec<PathBuf>,
    /// Canonical paths of what was read.
    seen: Vec<PathBuf>,
    room: usize,
    found: Instructions,
}

impl Reader {
    /// Takes a file in, if it is there, and what it imports behind it.
    fn take(&mut self, path: &Path, depth: usize) {
        let Ok(real) = path.canonicalize() else { return };
        if self.seen.contains(&real) {
            return;
        }
        if !self.inside.iter().any(|dir| real.starts_with(dir)) {
            self.leave_out(path, "it is outside the workspace");
            return;
        }
        if depth > IMPORT_DEPTH_MAX {
            self.leave_out(path, "the imports are nested too deep");
            return;
        }
        self.seen.push(real.clone());
        let (text, whole) = match beginning(&real, FILE_BYTES_MAX.min(self.room)) {
            Ok(read) => read,
            Err(error) => return self.leave_out(path, &error),
        };
        if !whole {
            self.leave_out(path, &format!("only its first {} bytes were taken", text.len()));
        }
        self.room -= text.len();
        let note = if whole { "" } else { "\n[cut here; view the file for the rest]" };
        let text_with_note = format!("{}{note}", text.trim());
        if !text.trim().is_empty() {
            self.found.files.push((path.to_owned(), text_with_note));
        }
        let folder = real.parent().unwrap_or(Path::new("/")).to_owned();
        for import in imports(&text) {
            self.take(&folder.join(import), depth + 1);
        }
    }

    fn leave_out(&mut self, path: &Path, why: &str) {
        self.found.left_out.push(format!("instructions from {}: {why}", path.display()));
    }
}

/// The beginning of a regular file, and whether it is the whole.
fn beginning(path: &Path, most: usize) -> Result<(String, bool), String> {
    let file = std::fs::metadata(path).and_then(|meta| {
        // A pipe would never end, and a device might.
        if meta.is_file() { std::fs::File::open(path).map(Some) } else { Ok(None) }
    });
    let file = file.map_err(|error| error.to_string())?.ok_or("it is not a regular file")?;
    let mut bytes = Vec::new();
    // One more than wanted, to know whether there is more.
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let whole = bytes.len() <= most;
    bytes.truncate(most);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !whole {
        // Half a line says half a thing.
        text.truncate(text.rfind('\n').map_or(text.len(), |at| at + 1));
    }
    Ok((text, whole))
}

/// The paths after `@` at the beginning of a word, outside code.
fn imports(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        // Every second part between backticks is code.
        for prose in line.split('`').step_by(2) {
            let words = prose.split_whitespace().filter_map(|word| word.strip_prefix('@'));
            out.extend(
                words.map(|path| path.trim_end_matches(['.', ',', ';', ':', ')'])).filter(|path| !path.is_empty()),
            );
        }
    }
    out
}

/// Instruction files in directories below the workspace, nearest first.
fn below(workspace: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut queue = VecDeque::from([(workspace.to_owned(), 0)]);
    let mut looked = 0;
    while let Some((dir, depth)) = queue.pop_front() {
        looked += 1;
        if looked > LOOKED_INTO_MAX || out.len() >= NAMED_MAX {
            break;
        }
        if depth > 0 {
            out.extend(NAMES.iter().map(|name| dir.join(name)).find(|path| path.is_file()));
        }
        if depth == DEPTH_MAX {
            continue;
        }
        let mut folders: Vec<PathBuf> = std::fs::read_dir(&dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                !name.starts_with('.') && !SKIPPED.contains(&&*name)
            })
            .map(|entry| entry.path())
            .collect();
        folders.sort();
        queue.extend(folders.into_iter().map(|folder| (folder, depth + 1)));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new(files: &[(&str, &str)]) -> Self {
            let place = Self { dir: tempfile::tempdir().unwrap() };
            for dir in ["repo/.git", "repo/sub", "config"] {
                fs::create_dir_all(place.path(dir)).unwrap();
            }
            for (path, text) in files {
                let path = place.path(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            place
        }

        fn path(&self, below: &str) -> PathBuf {
            self.dir.path().join(below)
        }

        fn read(&self, workspace: &str) -> Instructions {
            read(&self.path(workspace), &self.path("config"))
        }

        fn texts(&self, workspace: &str) -> Vec<String> {
            self.read(workspace).files.into_iter().map(|(_, text)| text).collect()
        }
    }

    #[test]
    fn the_general_comes_before_the_special_and_directories_below_are_named() {
        let place = Place::new(&[
            ("config/AGENTS.md", "user"),
            ("repo/AGENTS.md", "root\n"),
            ("repo/sub/CLAUDE.md", "sub"),
            ("repo/sub/deep/er/AGENTS.md", "not read"),
            ("repo/sub/node_modules/x/AGENTS.md", "never"),
            ("AGENTS.md", "above the repository"),
        ]);
        assert_eq!(place.texts("repo/sub"), ["user", "root", "sub"]);
        assert_eq!(place.read("repo/sub").below, [place.path("repo/sub/deep/er/AGENTS.md")]);
        assert!(place.read("repo/sub").git && !place.read("config").git);
    }

    #[test]
    fn one_that_only_imports_or_links_the_other_is_read_once() {
        let place = Place::new(&[("repo/AGENTS.md", "all"), ("repo/CLAUDE.md", "@AGENTS.md")]);
        assert_eq!(place.texts("repo"), ["all", "@AGENTS.md"]);
        fs::remove_file(place.path("repo/CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink("AGENTS.md", place.path("repo/CLAUDE.md")).unwrap();
        assert_eq!(place.texts("repo"), ["all"]);
    }

    #[test]
    fn imports_are_confined_and_what_is_left_out_is_told() {
        let place = Place::new(&[
            (
                "repo/AGENTS.md",
                "See @docs/style.md, and `@docs/code.md`.\n@../secret @/etc/hostname @link mail a@b.c @nobody",
            ),
            ("repo/docs/style.md", "style @../AGENTS.md @inner.md"),
            ("repo/docs/inner.md", "inner"),
            ("repo/docs/code.md", "never"),
            ("secret", "key"),
        ]);
        std::os::unix::fs::symlink(place.path("secret"), place.path("repo/link")).unwrap();
        let found = place.read("repo");
        let texts: Vec<&str> = found.files.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts.len(), 3, "{found:?}");
        assert!(texts[1].starts_with("style") && texts[2] == "inner");
        assert_eq!(found.left_out.len(), 3, "{found:?}");
        assert!(found.left_out.iter().all(|line| line.contains("outside the workspace")), "{found:?}");
    }

    #[test]
    fn sizes_are_bounded_and_a_pipe_is_not_read() {
        let long = "0123456789abcde\n".repeat(10_000);
        let place = Place::new(&[
            ("repo/AGENTS.md", &format!("@b @c @d\n{long}")),
            ("repo/b", &long),
            ("repo/c", &long),
            ("repo/d/AGENTS.md", ""),
        ]);
        nix::unistd::mkfifo(&place.path("repo/CLAUDE.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let found = place.read("repo");
        let total: usize = found.files.iter().map(|(_, text)| text.len()).sum();
        assert!((60_000..70_000).contains(&total), "{total}");
        assert!(found.files[0].1.ends_with("view the file for the rest]"));
        assert!(found.left_out.iter().any(|line| line.contains("not a regular file")), "{:?}", found.left_out);
    }
}
