//! The user's and the system's rules for calls, as files: `policy.toml` beside `agentd.toml`, and one inside the workspace
//! that may only tighten. The rules' form is described in [`crate::policy`]'s `layers.rs`.
//!
//! Invariant: a file that does not read stops nothing silently: as long as it is so, nothing is allowed without asking.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::policy::{Layer, Repository, Rules};

/// The system's rules.
const SYSTEM_FILE: &str = "/etc/agentd/policy.toml";

/// The user's rules, relative to the folder of the configuration.
pub(super) const USER_FILE: &str = "policy.toml";

/// The workspace's rules, relative to it.
pub(crate) const WORKSPACE_FILE: &str = ".agentd/policy.toml";

/// Largest rule file, in bytes: people write a few KiB.
pub(super) const FILE_BYTES_MAX: u64 = 256 * 1024;

/// For this long after a change of a file, in seconds, its times say nothing about a further change: the coarsest file
/// systems in use count whole seconds.
const STAMP_SECONDS: i64 = 2;

/// Configurations of submodules that are read; a repository with more of them is not known.
const SUBMODULES_MAX: usize = 64;

/// The rules in force, and what is wrong with their files.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleBook {
    /// The rules that could be read.
    pub(crate) rules: Rules,
    /// What is wrong, each one sentence; while there is any, nothing is allowed by itself.
    pub(crate) problems: Vec<String>,
}

/// The files of all layers, whether they exist or not; `user` stands in for the user's.
pub(crate) fn files(config: &Path, workspace: Option<&Path>, user: Option<&Path>) -> Vec<(Layer, PathBuf)> {
    let user = user.map_or_else(|| config.join(USER_FILE), Path::to_owned);
    let workspace = workspace.map(|workspace| (Layer::Workspace, workspace.join(WORKSPACE_FILE)));
    [(Layer::System, PathBuf::from(SYSTEM_FILE)), (Layer::User, user)].into_iter().chain(workspace).collect()
}

/// Reads the rules of all layers, with another file in place of the user's if one is named.
pub(crate) fn read_with(config: &Path, workspace: Option<&Path>, user: Option<&Path>) -> RuleBook {
    RuleFiles::default().read_files(files(config, workspace, user), &[])
}

/// The rule files of all layers as they were last read. A file counts as it is at each decision; one that has not
/// changed is not read again.
#[derive(Debug, Default)]
pub(super) struct RuleFiles {
    read: Mutex<HashMap<PathBuf, Read>>,
}

/// A file as it was, and its rules or what is wrong with it.
type Read = (Stamp, Result<Rules, String>);

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            file: (meta.dev(), meta.ino()),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether another change could still leave the same stamp, because the clock of files is coarse.
    fn is_young(self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        self.changed.0.saturating_add(STAMP_SECONDS) >= i64::try_from(now).unwrap_or(i64::MAX)
    }
}

impl RuleFiles {
    /// The rules in force for a session.
    pub(super) fn read(&self, config: &Path, workspace: &Path, session: &[String]) -> RuleBook {
        self.read_files(files(config, Some(workspace), None), session)
    }

    fn read_files(&self, files: Vec<(Layer, PathBuf)>, session: &[String]) -> RuleBook {
        let mut book = RuleBook::default();
        let mut layers = Vec::new();
        for (layer, path) in files {
            match self.rules_of(layer, &path) {
                Some(Ok(rules)) => layers.push(rules),
                Some(Err(problem)) => book.problems.push(problem),
                None => {}
            }
        }
        for text in session {
            match Rules::parse(Layer::Session, text) {
                Ok(rules) => layers.push(rules),
                Err(error) => book.problems.push(format!("an answer for this session does not read: {error}")),
            }
        }
        book.rules = Rules::merge(layers);
        book
    }

    /// One file's rules or what is wrong with it; `None` when there is no file.
    fn rules_of(&self, layer: Layer, path: &Path) -> Option<Result<Rules, String>> {
        let stamp = match fs::metadata(path) {
            Ok(meta) => Stamp::of(&meta),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => return Some(Err(unreadable(path, &error.to_string()))),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rules)) = read.get(path)
            && *known == stamp
        {
            return Some(rules.clone());
        }
        let rules = match text_of(path) {
            Ok(Some(text)) => Rules::parse(layer, &text).map_err(|error| format!("{}: {error}", path.display())),
            Ok(None) => return None,
            Err(reason) => Err(unreadable(path, &reason)),
        };
        if stamp.is_young() {
            read.remove(path);
        } else {
            read.insert(path.to_owned(), (stamp, rules.clone()));
        }
        drop(read);
        Some(rules)
    }
}

fn unreadable(path: &Path, reason: &str) -> String {
    format!("the rules in {} cannot be read: {reason}", path.display())
}

/// The text of a small regular file; `None` when there is no file.
pub(crate) fn text_of(path: &Path) -> Result<Option<String>, String> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !meta.is_file() {
        return Err("it is not a regular file".into());
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(format!("it is over {FILE_BYTES_MAX} bytes"));
    }
    std::fs::read_to_string(path).map(Some).map_err(|error| error.to_string())
}

/// What the repository that git would find from a directory has configured. git itself is never run for that.
pub(crate) fn repository(cwd: &Path) -> Repository {
    for folder in cwd.ancestors() {
        let git = folder.join(".git");
        if git.is_dir() {
            return configured(&git, &git).unwrap_or_default();
        }
        if git.exists() {
            return linked(folder, &git).unwrap_or_default();
        }
        // A bare repository is one by its content.
        if folder.join("HEAD").exists() && folder.join("objects").exists() {
            return Repository::Unknown;
        }
    }
    Repository::Ordinary
}

/// A linked worktree or a submodule: `.git` is a file that says where the repository is, and a linked worktree's says in
/// `commondir` where the configuration that it shares is.
fn linked(folder: &Path, file: &Path) -> Option<Repository> {
    let text = text_of(file).ok()??;
    let git = folder.join(text.strip_prefix("gitdir:")?.trim());
    let common = match text_of(&git.join("commondir")).ok()? {
        Some(common) => git.join(common.trim()),
        None => git.clone(),
    };
    if !common.join("config").is_file() {
        return None;
    }
    configured(&git, &common)
}

/// `git` is the directory of this worktree, `common` the one that all worktrees share.
fn configured(git: &Path, common: &Path) -> Option<Repository> {
    let mut texts = Vec::new();
    for file in [common.join("config"), git.join("config.worktree")] {
        texts.extend(text_of(&file).ok()?);
    }
    let mut folders = vec![common.join("modules")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            texts.extend(text_of(&entry.path().join("config")).ok()?);
            if texts.len() + folders.len() > SUBMODULES_MAX {
                return None;
            }
            folders.push(entry.path());
        }
    }
    let hooks: Vec<String> = std::fs::read_dir(common.join("hooks"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let repository = Repository::from_configurations(texts.iter().map(String::as_str));
    Some(repository.with_hooks(hooks.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_is_a_problem_and_the_others_stay_in_force() {
        let dir = tempfile::tempdir().unwrap();
        let (config, workspace) = (dir.path().join("config"), dir.path().join("work"));
        std::fs::create_dir_all(&config).unwrap();
        std::fs::create_dir_all(workspace.join(".agentd")).unwrap();
        std::fs::write(config.join("policy.toml"), "[[rule]]\ndecision = \"deny\"\ncommand = \"rm\"\n").unwrap();
        let files = RuleFiles::default();
        assert!(files.read(&config, &workspace, &[]).problems.is_empty());
        let loosens = "[[rule]]\ndecision = \"allow\"\ncommand = \"rm\"\n";
        std::fs::write(workspace.join(WORKSPACE_FILE), loosens).unwrap();
        let book = files.read(&config, &workspace, &[]);
        assert_eq!((book.problems.len(), book.rules.len()), (1, 1), "{book:?}");
    }

    #[test]
    fn a_file_is_read_again_exactly_when_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(USER_FILE);
        let count = |files: &RuleFiles| files.read(dir.path(), dir.path(), &[]).rules.len();
        let files = RuleFiles::default();
        let rule = "[[rule]]\ndecision = \"deny\"\ncommand = \"rm\"\n";
        assert_eq!(count(&files), 0);
        // Changes that follow each other closely count each.
        for number in 1..4 {
            fs::write(&file, rule.repeat(number)).unwrap();
            assert_eq!(count(&files), number);
        }
        assert!(files.read.lock().unwrap().is_empty(), "what has just changed may change again");
        let meta = fs::metadata(&file).unwrap();
        let stamp = Stamp::of(&meta);
        files.read.lock().unwrap().insert(file.clone(), (stamp, Ok(Rules::default())));
        assert_eq!(count(&files), 0, "it has not changed");
        fs::remove_file(&file).unwrap();
        fs::write(&file, rule).unwrap();
        assert_eq!(count(&files), 1, "it has changed");
    }

    #[test]
    fn a_repository_that_names_a_program_is_found_from_below() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".git")).unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join(".git/config"), "[core]\n\tbare = false\n").unwrap();
        assert_eq!(repository(&dir.path().join("a/b")), Repository::Ordinary);
        std::fs::write(dir.path().join(".git/config"), "[core]\n\tfsmonitor = ./x\n").unwrap();
        assert!(matches!(repository(&dir.path().join("a/b")), Repository::RunsPrograms { .. }));
    }

    #[test]
    fn a_linked_worktree_is_judged_by_the_configuration_it_shares() {
        let dir = tempfile::tempdir().unwrap();
        let (main, tree) = (dir.path().join("main/.git"), dir.path().join("tree"));
        std::fs::create_dir_all(main.join("worktrees/tree")).unwrap();
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::write(tree.join(".git"), "gitdir: ../main/.git/worktrees/tree\n").unwrap();
        assert_eq!(repository(&tree), Repository::Unknown);
        std::fs::write(main.join("worktrees/tree/commondir"), "../..\n").unwrap();
        std::fs::write(main.join("config"), "[core]\n\tbare = false\n").unwrap();
        assert_eq!(repository(&tree), Repository::Ordinary);
        std::fs::write(main.join("config"), "[diff]\n\texternal = x\n").unwrap();
        assert!(matches!(repository(&tree), Repository::RunsPrograms { .. }));
        std::fs::write(tree.join(".git"), "gitdir: ../nowhere\n").unwrap();
        assert_eq!(repository(&tree), Repository::Unknown);
    }
}
