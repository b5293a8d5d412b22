//! What a git repository's own configuration would run when git only reads.
//!
//! A repository is data that somebody else wrote, but its configuration names programs: a file-system monitor, diff
//! drivers, filters, hooks. The caller reads the files (never by running git) and hands their text to
//! [`Repository::from_configurations`]; where it cannot (a `.git` file that leads elsewhere, a link, an unreadable file) the
//! answer is [`Repository::Unknown`].

use super::words::listed;

/// What is known of the repository git will use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Repository {
    /// Nothing: git commands are asked about.
    #[default]
    Unknown,
    /// Its configuration runs nothing when git reads.
    Ordinary,
    /// Its configuration names a program, another configuration or a network peer: this key.
    RunsPrograms {
        /// `section.key`, in lower case.
        key: String,
    },
}

impl Repository {
    /// From the text of the repository's configuration files: `config`, `config.worktree`, and those of its submodules
    /// (`modules/**/config`). Not the user's own configuration, which is the user's word.
    #[must_use]
    pub fn from_configurations<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        for text in texts {
            if let Some(key) = running_key(text) {
                return Self::RunsPrograms { key };
            }
        }
        Self::Ordinary
    }

    /// The same repository, given the names of the files in its `hooks` directory.
    #[must_use]
    pub fn with_hooks<'a>(self, mut names: impl Iterator<Item = &'a str>) -> Self {
        match (self, names.find(|name| listed(READING_HOOKS, name))) {
            (Self::Ordinary, Some(hook)) => Self::RunsPrograms { key: format!("hook {hook}") },
            (other, _) => other,
        }
    }
}

/// Hooks that run when git only refreshes what it knows, as `git status` does.
const READING_HOOKS: &str = "post-index-change fsmonitor-watchman query-watchman";

/// The first key of a configuration that makes a reading git do more than read.
fn running_key(text: &str) -> Option<String> {
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((name, after)) = section_header(rest) else {
                return Some("a section that does not parse".to_owned());
            };
            section = name;
            line = after.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A continued line may hide a key from this simple reading.
        if line.ends_with('\\') {
            return Some(format!("{section}, continued over lines"));
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let (key, value) = (key.trim().to_lowercase(), value.trim());
        if runs(&section, &key, value) {
            return Some(format!("{section}.{key}"));
        }
    }
    None
}

/// `name "sub"] rest` → (`name`, `rest`); the subsection does not matter to [`runs`].
fn section_header(text: &str) -> Option<(String, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => {
                let name = text[..at].split([' ', '\t', '.', '"']).next().unwrap_or("");
                return Some((name.to_lowercase(), &text[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

/// Git LFS as its installer writes it.
const LFS: [&str; 3] = ["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"];

fn runs(section: &str, key: &str, value: &str) -> bool {
    let off = matches!(value, "false" | "no" | "off" | "0" | "\"\"" | "");
    match (section, key) {
        ("core", "fsmonitor") => !off,
        ("core", "hookspath" | "sshcommand" | "askpass" | "gitproxy" | "alternaterefscommand" | "pager") => true,
        ("diff", "external" | "command" | "textconv") => true,
        ("filter", "clean" | "smudge" | "process") => !LFS.contains(&value.trim_matches('"')),
        ("merge", "driver") | ("trailer", "cmd" | "command") | ("interactive", "difffilter") => true,
        ("gpg", "program") | ("log", "showsignature") => true,
        ("include" | "includeif", _) => true,
        ("pretty" | "format", _) => value.contains("%G"),
        ("pager", _) => !off,
        // A partial clone fetches what it lacks while it reads.
        ("remote", "promisor" | "partialclonefilter") | ("extensions", "partialclone" | "worktreeconfig") => !off,
        _ => false,
    }
}
