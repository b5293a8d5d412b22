//! The branch a directory is on, as Git's own files say: no process is started for a status line.

use std::fs;
use std::path::{Path, PathBuf};

/// Digits of a commit that is checked out without a branch.
const COMMIT_DIGITS: usize = 8;

/// The branch, or the commit, of the repository around a directory.
#[must_use]
pub fn of(directory: &Path) -> Option<String> {
    let git = directory.ancestors().map(|dir| dir.join(".git")).find(|path| path.exists())?;
    let head = fs::read_to_string(git_dir(&git)?.join("HEAD")).ok()?;
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None => head.get(..COMMIT_DIGITS).map(str::to_owned),
    }
}

/// A worktree's `.git` is a file that names the directory.
fn git_dir(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = fs::read_to_string(git).ok()?;
    let named = text.trim().strip_prefix("gitdir: ")?;
    Some(git.parent()?.join(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_a_commit_and_a_worktree_are_told() {
        let home = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("a/.git/HEAD", "ref: refs/heads/fix/it\n");
        put("a/src/x", "");
        put("b/.git", "gitdir: ../a/.git/worktrees/b\n");
        put("a/.git/worktrees/b/HEAD", "0123456789abcdef\n");
        assert_eq!(of(&home.path().join("a/src")).as_deref(), Some("fix/it"));
        assert_eq!(of(&home.path().join("b")).as_deref(), Some("01234567"));
    }
}
