//! Paths as far as their text tells: inside the workspace, likely a secret, or something that is loaded and obeyed later.
//!
//! Links are not resolved here: the kernel confines the file tools (openat2), and a command that reads through a link
//! still only reads. Comparisons are by component, never by string prefix, and without case where a file system might
//! fold it.

use std::path::{Component, Path, PathBuf};

use super::words::listed;

/// `path` seen from `base`, without `.` and `..`; `None` when it leaves the root.
pub(super) fn resolve(base: &Path, path: &Path) -> Option<PathBuf> {
    let mut result = PathBuf::new();
    for component in base.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !result.pop() {
                    return None;
                }
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => result.push(component),
        }
    }
    Some(result)
}

/// Whether `path`, seen from `base`, lies inside `root` or is it.
pub(super) fn inside(root: &Path, base: &Path, path: &Path) -> bool {
    resolve(base, path).is_some_and(|path| path.starts_with(root))
}

fn lower_components(path: &Path) -> Vec<String> {
    path.components().map(|c| c.as_os_str().to_string_lossy().to_lowercase()).collect()
}

/// Files whose content is a secret by custom. A guess that costs a question when it is wrong.
pub(super) fn secret(path: &Path) -> bool {
    const DIRECTORIES: [&str; 6] = [".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".password-store"];
    const NAMES: &str = "\
    .env .netrc _netrc .pgpass .my.cnf .git-credentials .npmrc .pypirc .htpasswd id_rsa id_dsa id_ecdsa \
    id_ed25519 credentials shadow gshadow environ credentials.toml";
    const SUFFIXES: [&str; 6] = [".pem", ".p12", ".pfx", ".keystore", ".kdbx", ".jks"];
    const EXAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];
    let components = lower_components(path);
    let Some((name, parents)) = components.split_last() else { return false };
    let environment = name.strip_prefix(".env.").is_some_and(|rest| !EXAMPLES.iter().any(|e| rest.contains(e)));
    environment
        || listed(NAMES, name)
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        || components.iter().any(|c| DIRECTORIES.contains(&c.as_str()))
        || (name == "config.json" && parents.iter().any(|c| c == ".docker"))
        || (name == "config" && parents.iter().any(|c| c == ".kube"))
}

/// Devices: reading one may never end, or may be a network connection to bash.
pub(super) fn device(path: &Path) -> bool {
    let harmless = ["/dev/null", "/dev/stdin", "/dev/fd/0"].iter().any(|known| path == Path::new(known));
    path.starts_with("/dev") && !harmless
}

/// Files that some program will load and obey: never edited without a question, unless the session asks nothing.
pub(super) fn obeyed(path: &Path) -> bool {
    const DIRECTORIES: [&str; 9] =
        [".git", ".hg", ".svn", ".agentd", ".vscode", ".idea", ".husky", ".githooks", ".devcontainer"];
    const NAMES: &str = "\
    .agentd.toml agentd.toml .gitmodules .gitattributes .gitconfig .envrc .bashrc .bash_profile .bash_login \
    .bash_logout .profile .zshrc .zshenv .zprofile .inputrc .mcp.json .npmrc";
    let components = lower_components(path);
    let named = components.last().is_some_and(|name| listed(NAMES, name));
    named || components.iter().any(|c| DIRECTORIES.contains(&c.as_str()))
}
