//! The repository keeps its own rules: module heads, file sizes, paths in the documents, directions of dependency.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::binaries::repository;
use regex::Regex;

/// Longest file without a stated reason in its head.
const LINES_MAX: usize = 400;

/// Longest file of tests without one: a list of claims is read by its names, not from top to bottom.
const TEST_LINES_MAX: usize = 600;

/// A head with one of these words has stated why its file is long.
const REASON: &str = "Over 400 lines";

/// Every Rust file that git knows.
fn sources() -> Vec<(PathBuf, String)> {
    files(&["*.rs"])
}

fn files(patterns: &[&str]) -> Vec<(PathBuf, String)> {
    let output =
        Command::new("git").arg("-C").arg(repository()).args(["ls-files", "--"]).args(patterns).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let names = String::from_utf8(output.stdout).unwrap();
    // A file that was removed and not yet committed is still listed.
    let read = |name: &str| Some((PathBuf::from(name), fs::read_to_string(repository().join(name)).ok()?));
    names.lines().filter_map(read).collect()
}

fn head(text: &str) -> String {
    text.lines().take_while(|line| line.starts_with("//!") || line.starts_with("#!")).collect::<Vec<_>>().join("\n")
}

fn report(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|(_, text)| !head(text).contains("//! "))
        .map(|(path, _)| path.display().to_string())
        .collect();
    report("files without a head (//!)", &wrong);
}

#[test]
fn a_long_file_says_why() {
    let is_test = |path: &Path| {
        path.ends_with("tests.rs") || path.iter().skip(1).any(|part| part == "tests" || part == "benches")
    };
    let most = |path: &Path| if is_test(path) { TEST_LINES_MAX } else { LINES_MAX };
    let long = |path: &Path, text: &str| text.lines().count() > most(path) && !head(text).contains(REASON);
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|(path, text)| long(path, text))
        .map(|(path, text)| format!("{} ({} lines)", path.display(), text.lines().count()))
        .collect();
    report("split these, or say in their heads why not (\"Over 400 lines because …\")", &wrong);
}

#[test]
fn every_path_in_the_documents_exists() {
    let path = Regex::new(r"`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+/?)`|\]\(([^)#]+)\)").unwrap();
    let roots: BTreeSet<String> = fs::read_dir(repository())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let mut wrong = Vec::new();
    for (document, text) in files(&["*.md"]) {
        let beside = repository().join(&document).parent().unwrap().to_owned();
        for found in path.captures_iter(&text) {
            let name = found.get(1).or(found.get(2)).unwrap().as_str();
            let is_path = found.get(2).is_some() || roots.contains(name.split('/').next().unwrap_or_default());
            let elsewhere = name.contains("://") || name.starts_with("mailto:") || name.starts_with("target/");
            if is_path && !elsewhere && !beside.join(name).exists() && !repository().join(name).exists() {
                wrong.push(format!("{}: {name}", document.display()));
            }
        }
    }
    report("paths that do not exist", &wrong);
}

#[test]
fn every_claim_that_a_table_names_exists() {
    let rust = sources();
    let named = Regex::new(r"`([a-z0-9]+(?:_[a-z0-9]+)+)`").unwrap();
    let mut wrong = Vec::new();
    for (path, text) in &rust {
        // The last column of a table whose head says "claim".
        let table = head(text);
        let rows = table.lines().skip_while(|line| !(line.starts_with("//! |") && line.contains("claim"))).skip(2);
        for row in rows.take_while(|line| line.starts_with("//! |")) {
            let claims = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
            for claim in named.captures_iter(claims) {
                let (function, entry) = (format!("fn {}(", &claim[1]), format!("    {} = \"", &claim[1]));
                if !rust.iter().any(|(_, text)| text.contains(&function) || text.contains(&entry)) {
                    wrong.push(format!("{}: {}", path.display(), &claim[1]));
                }
            }
        }
    }
    report("claims that do not exist", &wrong);
}

/// The packages of the workspace that a package is built from, and the named others.
fn dependencies(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", package, "-e", "normal", "--prefix", "none", "--format", "{p}", "--offline"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn packages_depend_downwards_only() {
    let banned = [
        ("agentctl", &["agentd", "agentd-shim", "reqwest", "rusqlite"][..]),
        ("agentd-shim", &["agentd", "reqwest", "hyper", "rustls", "rusqlite", "libsqlite3-sys", "clap"]),
        ("agentd-proto", &["agentd", "agentd-shim", "tokio", "reqwest", "rusqlite", "nix"]),
    ];
    let mut wrong = Vec::new();
    for (package, banned) in banned {
        let found = dependencies(package);
        let bad = banned.iter().filter(|name| found.contains(**name));
        wrong.extend(bad.map(|name| format!("{package} is built from {name}")));
    }
    report("dependencies in the wrong direction", &wrong);
}

/// Modules of the daemon and those above them, which they must not know.
const LAYERS: [(&str, &[&str]); 7] = [
    ("model", &["session", "server", "daemon", "tools", "policy", "store", "shell"]),
    ("policy", &["session", "server", "daemon", "tools", "model", "store", "shell"]),
    ("store", &["session", "server", "daemon", "tools", "policy", "model", "shell"]),
    ("shell", &["session", "server", "daemon", "tools", "policy", "model", "store"]),
    ("tools", &["session", "server", "daemon", "policy"]),
    ("config", &["session", "server", "daemon"]),
    ("session", &["server", "daemon"]),
];

#[test]
fn modules_of_the_daemon_know_only_those_below() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Ok(inside) = path.strip_prefix("agentd/src") else { continue };
        let module = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let module = module.trim_end_matches(".rs");
        let Some((_, above)) = LAYERS.iter().find(|(name, _)| *name == module) else { continue };
        for name in *above {
            let names = Regex::new(&format!(r"\bcrate::{name}\b|\bcrate::\{{[^}}]*\b{name}(::|,|\}})")).unwrap();
            let code: String =
                text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            if names.is_match(&code) {
                wrong.push(format!("{} names crate::{name}", path.display()));
            }
        }
    }
    report("modules that know those above them", &wrong);
}

#[test]
fn the_session_machine_is_pure() {
    let banned = Regex::new(r"\b(tokio|std::fs|std::net|std::time::(Instant|SystemTime)|Timestamp::now)\b").unwrap();
    let inside = |path: &Path| path.starts_with("agentd/src/session/machine");
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|(path, _)| inside(path) && !path.ends_with("tests.rs"))
        .filter_map(|(path, text)| Some(format!("{}: {}", path.display(), banned.find(&code(text))?.as_str())))
        .collect();
    report("the machine has no clock, no I/O and no runtime", &wrong);
}

/// A file's text without comments.
fn code(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_codec_is_named_in_one_file() {
    let names = Regex::new(r"\bbincode::").unwrap();
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|(path, text)| path != Path::new("proto/src/frame.rs") && names.is_match(&code(text)))
        .filter(|(path, _)| path != Path::new("tests/tests/tidy.rs"))
        .map(|(path, _)| path.display().to_string())
        .collect();
    report("files that name the codec's crate", &wrong);
}

#[test]
fn no_test_is_switched_off_and_nothing_is_left_to_do() {
    let banned = Regex::new(r"#\[ignore|\btodo!\(|\bunimplemented!\(|\bdbg!\(|// ?(TODO|FIXME|XXX)\b").unwrap();
    let mut wrong = Vec::new();
    for (path, text) in sources().iter().filter(|(path, _)| path != Path::new("tests/tests/tidy.rs")) {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| banned.is_match(line)) {
            wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
        }
    }
    report("switched off or unfinished", &wrong);
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let mut wrong = Vec::new();
    for (path, text) in sources().iter().filter(|(path, _)| path != Path::new("tests/tests/tidy.rs")) {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let is_unsafe = line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl");
            if is_unsafe && !line.trim_start().starts_with("//") {
                let before = &lines[number.saturating_sub(8)..number];
                if !before.iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety")) {
                    wrong.push(format!("{}:{}", path.display(), number + 1));
                }
            }
        }
    }
    report("unsafe without SAFETY", &wrong);
}
