//! The policy against bash itself: scripts are made from safe-looking pieces, spliced and damaged; every one that the
//! policy allows is run under strace in a scratch directory and must not write, connect, or run a foreign program.
//!
//! `POLICY_ORACLE_SCRIPTS` sets how many scripts are tried, `POLICY_ORACLE_SEED` repeats a run. `POLICY_ORACLE_CORPUS` names a
//! folder of what the fuzzer of `tests/fuzz` keeps: all of it that is allowed is run, too.

#![expect(clippy::expect_used, reason = "a test's helpers may stop the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use agentd::policy::{Call, Context, Mode, Repository, Rules, ShellFacts, Verdict, decide};

/// Enough to notice a careless change within seconds; long runs set the variable.
const DEFAULT_SCRIPTS: u64 = 600;

const SYSTEM_CALLS: &str = "open,openat,openat2,creat,execve,execveat,connect,sendto,unlink,unlinkat,rename,renameat,renameat2,mkdir,\
                            mkdirat,rmdir,link,linkat,symlink,symlinkat,truncate,chmod,fchmod,fchmodat,chown,fchownat,mknod,mknodat,\
                            utimensat,setxattr,kill,tkill,mount,sethostname,clock_settime,settimeofday";

/// Commands with arguments that fit them, hostile ones among them.
const COMMANDS: [&str; 64] = [
    "ls",
    "ls -l",
    "cat a.txt",
    "head -2 a.txt",
    "wc -l",
    "grep -n a a.txt",
    "grep -rn alpha .",
    "find . -name '*.txt'",
    "find . -type f",
    "find . -maxdepth 1 -exec wc -l {} +",
    "sort a.txt",
    "sort -u",
    "uniq -c",
    "sed -n 1p a.txt",
    "sed 's/a/b/' a.txt",
    "sed -n '/al/{=;p}' a.txt",
    "awk '{print $1}' a.txt",
    "awk 'NR>1{print}' a.txt",
    "echo hi",
    "printf '%s\\n' x",
    "true",
    "false",
    ":",
    "pwd",
    "cd sub",
    "cd ..",
    "test -f a.txt",
    "[ -d sub ]",
    "[[ -f a.txt ]]",
    "[[ a == b ]]",
    "date",
    "date +%s",
    "stat a.txt",
    "git status",
    "git log -1",
    "git diff",
    "git show HEAD:a.txt",
    "git ls-files",
    "xargs wc -l",
    "xargs echo",
    "tr a b",
    "cut -c1",
    "tee",
    "tee pwned",
    "touch pwned",
    "cp a.txt pwned",
    "rm a.txt",
    "sort -o pwned a.txt",
    "uniq a.txt pwned",
    "sed -i s/a/b/ a.txt",
    "sed 'w pwned' a.txt",
    "sed '1e touch pwned' a.txt",
    "awk '{print > \"pwned\"}' a.txt",
    "find . -delete",
    "find . -exec touch pwned ;",
    "find . -fprint pwned",
    "git diff --output=pwned",
    "eval touch pwned",
    "env touch pwned",
    "timeout 5 ls",
    "command ls",
    "read -r x",
    "x=1",
    "date -s x",
];

const ARGUMENTS: [&str; 48] = [
    "a.txt",
    "sub",
    "*",
    "*.txt",
    "./*",
    "$x",
    "\"$x\"",
    "${x}",
    "${x:-y}",
    "\"${x:-$(touch pwned)}\"",
    "$(echo a)",
    "\"$(touch pwned)\"",
    "`echo a`",
    "`touch pwned`",
    "$((1+2))",
    "$((x))",
    "$((a[$(touch pwned)]))",
    "'; touch pwned'",
    "\"; touch pwned\"",
    "\\; touch pwned",
    "'a b'",
    "\"a'b\"",
    "$'a\\n'",
    "$'\\x3b' touch pwned",
    "{a,b}",
    "{a,$(touch pwned)}",
    "~",
    "-n",
    "-x",
    "--",
    "-o pwned",
    "--output=pwned",
    "-i",
    "<(ls)",
    ">(touch pwned)",
    "<a.txt",
    ">pwned",
    "2>/dev/null",
    "2>&1",
    ">/dev/null",
    ">&2",
    "&>pwned",
    "<<<x",
    "<<E\nx\nE\n",
    "<<'E'\n$(touch pwned)\nE\n",
    "# x",
    "#\\\n",
    "a#b",
];

const JOINS: [&str; 12] = ["; ", " && ", " || ", " | ", "\n", " & ", " |& ", ";", "&&", "|", " \\\n", ";\n"];

/// Bytes that change how the text around them is read.
const DAMAGE: [&str; 40] = [
    "\\",
    "\\\n",
    "\n",
    "$",
    "`",
    "'",
    "\"",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "#",
    " ",
    "\t",
    ";",
    "&",
    "|",
    "<",
    ">",
    "=",
    "!",
    "~",
    "*",
    "$(",
    "${",
    "$((",
    "))",
    "<<",
    "<(",
    "((",
    "[[",
    "]]",
    "EOF",
    "touch pwned",
    "; touch pwned",
    "\ntouch pwned\n",
    "$'",
    ",",
];

/// Pieces of nested quoting, where shells and parsers of shells disagree most.
const QUOTING: [&str; 52] = [
    "\"",
    "\"",
    "'",
    "$'",
    "`",
    "\\",
    "\\\"",
    "\\`",
    "\\$",
    "\\\\",
    "${x:-",
    "${x#",
    "${x/a/",
    "${x:+",
    "${HOME:+",
    "${HOME#",
    "}",
    "}",
    "$(",
    "$(",
    ")",
    ")",
    "(echo ",
    "touch pwned",
    "touch pwned",
    "; touch pwned;",
    "\\x24(touch pwned)",
    "\\x60",
    "\\n",
    "\n",
    "\\\n",
    " ",
    " ",
    "a",
    "b",
    "$x",
    "$HOME",
    "#",
    "# ",
    "{",
    "<<E\n",
    "E\n",
    "\nE\n",
    "<<'E'\n",
    "echo ",
    "cat ",
    "|",
    "&&",
    "~",
    "*",
    "[",
    "!",
];

/// A small generator (xorshift): the test needs repeatable variety, not quality.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).expect("below n")
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

fn simple(random: &mut Random) -> String {
    let mut text = random.pick(&COMMANDS).to_owned();
    for _ in 0..random.below(3) {
        text.push(' ');
        text.push_str(random.pick(&ARGUMENTS));
    }
    text
}

fn script(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.below(3) > 0 {
        return simple(random);
    }
    let a = script(random, depth - 1);
    let b = script(random, depth - 1);
    match random.below(14) {
        0..=4 => format!("{a}{}{b}", random.pick(&JOINS)),
        5 => format!("if {a}; then {b}; fi"),
        6 => format!("for x in a.txt sub; do {a} \"$x\"; done"),
        7 => format!("( {a} ); {b}"),
        8 => format!("{{ {a}; }} 2>&1"),
        9 => format!("echo \"$({a})\""),
        10 => format!("case a in a) {a};; *) {b};; esac"),
        11 => format!("cat <<E\n$({a})\nE\n{b}"),
        12 => format!("f() {{ {a}; }}; {b}"),
        _ => format!("! {a} && {b}"),
    }
}

fn damaged(random: &mut Random, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(2) {
        let at = random.below(characters.len() + 1);
        match random.below(4) {
            0 if at < characters.len() => {
                characters.remove(at);
            }
            1 if at < characters.len() => {
                let other = random.below(characters.len());
                characters.swap(at, other);
            }
            _ => {
                for c in random.pick(&DAMAGE).chars().rev() {
                    characters.insert(at, c);
                }
            }
        }
    }
    characters.into_iter().collect()
}

/// Nested quoting that mentions the payload and that the policy allows, or nothing if none was found quickly.
fn soup(random: &mut Random, allowed: impl Fn(&str) -> bool) -> Option<String> {
    const TRIES: usize = 400;
    for _ in 0..TRIES {
        let start =
            ["echo ", "echo \"", "cat <<E\n", "echo `", "x=", "echo ${HOME:+", "echo \"${HOME:+"][random.below(7)];
        let mut text = start.to_owned();
        for _ in 0..2 + random.below(10) {
            text.push_str(random.pick(&QUOTING));
        }
        text.push_str(["", "\"", "`", "}", "\nE\n", ")", "}\""][random.below(7)]);
        if text.contains("pwned") && allowed(&text) {
            return Some(text);
        }
    }
    None
}

/// The safe commands of the corpus, as material to damage.
fn corpus() -> Vec<String> {
    let text = include_str!("../../tests/data/policy.jsonl");
    let cases = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a case parses"));
    let safe =
        cases.filter(|case| case["expect"] == "allow" && case.get("rules").is_none() && case.get("prior").is_none());
    let commands = safe.filter_map(|case| case["command"].as_str().map(str::to_owned));
    // The network is not this test's, and neither is a command that reads the whole home or never ends.
    commands.filter(|command| command.len() < 200 && !command.contains("whereis")).collect()
}

fn prepare(directory: &Path) {
    fs::create_dir_all(directory.join("sub")).expect("a directory");
    fs::create_dir_all(directory.join("src")).expect("a directory");
    for name in ["a.txt", "b.txt", "sub/c.txt", "src/main.rs", "README.md", "-n", "-fprint"] {
        fs::write(directory.join(name), "alpha 1\nbeta 2\n").expect("a file");
    }
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(done.is_ok_and(|status| status.success()), "git {arguments:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]);
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).expect("a directory").flatten() {
            let path = entry.path();
            if path.ends_with(".git") {
                continue;
            }
            if path.is_dir() {
                waiting.push(path.clone());
            }
            let name = path.strip_prefix(directory).expect("inside").to_string_lossy().into_owned();
            found.insert(name, fs::read(&path).unwrap_or_default());
        }
    }
    found
}

/// What a line of the trace shows that must not happen.
fn offence(line: &str) -> Option<&str> {
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let (name, arguments) = call.split_once('(')?;
    if name.starts_with('<') || name.starts_with('-') || name.starts_with('+') {
        return None;
    }
    let path = arguments.split('"').nth(1).unwrap_or("");
    match name {
        "open" | "openat" | "openat2" | "creat" => {
            let writes = name == "creat"
                || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| arguments.contains(flag));
            let known = matches!(path, "/dev/null" | "/dev/tty")
                || path.starts_with("/tmp/sh-thd")
                || path.ends_with(".git/index.lock");
            (writes && !known).then_some(line)
        }
        "execve" | "execveat" => {
            let known =
                ["/bin/", "/usr/bin/", "/usr/local/bin/", "/usr/lib/git-core/", "/usr/libexec/", "/usr/local/libexec/"];
            (!known.iter().any(|place| path.starts_with(place)) && !line.contains("ENOENT")).then_some(line)
        }
        // The name service's cache daemon is asked by the C library; a mere signal 0 asks whether a process lives.
        "connect" | "sendto" => (!arguments.contains("nscd") && !arguments.contains("AF_NETLINK")).then_some(line),
        "rename" | "unlink" | "renameat2" | "unlinkat" | "fchmod" | "chmod" if arguments.contains(".git/index") => None,
        "unlink" | "unlinkat" | "fchmod" if path.starts_with("/tmp/sh-thd") => None,
        "kill" | "tkill" => (!arguments.contains(", 0)")).then_some(line),
        _ => Some(line),
    }
}

fn run(script: &str, directory: &Path, trace: &Path) -> Vec<String> {
    let status = Command::new("strace")
        .args(["-f", "-qq", "-s", "300", "-e", "signal=none", "-e"])
        .arg(format!("trace={SYSTEM_CALLS}"))
        .arg("-o")
        .arg(trace)
        .args(["timeout", "-s", "KILL", "5", "/bin/bash", "-c", script])
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", directory)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "strace starts");
    let text = String::from_utf8_lossy(&fs::read(trace).unwrap_or_default()).into_owned();
    // The first two programs are the timeout and the shell.
    text.lines().filter(|line| !line.contains("SIGKILL")).filter_map(offence).map(str::to_owned).collect()
}

/// The fuzzer's inputs as commands; the first byte of each chooses its world (`tests/fuzz/one.rs`).
fn kept_by_fuzzer(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("the fuzzer's folder").flatten();
    let inputs = files.filter_map(|file| fs::read(file.path()).ok());
    inputs.filter_map(|input| Some(String::from_utf8_lossy(input.get(1..)?).into_owned())).collect()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn what_is_allowed_neither_writes_nor_connects_nor_runs_foreign_programs() {
    let traced = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !traced.is_ok_and(|status| status.success()) {
        println!("skipped: strace is missing or may not trace here");
        return;
    }
    let seed = number("POLICY_ORACLE_SEED")
        .unwrap_or_else(|| u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let scripts = number("POLICY_ORACLE_SCRIPTS").unwrap_or(DEFAULT_SCRIPTS);
    println!("seed {seed}, {scripts} scripts");
    let scratch = tempfile::tempdir().expect("a directory");
    let directory = scratch.path().join("project");
    prepare(&directory);
    let noticed = run("touch pwned && rm pwned", &directory, &scratch.path().join("trace"));
    assert!(noticed.len() >= 2, "the oracle does not see a write: {noticed:?}");
    let before = contents(&directory);
    let rules = Rules::default();
    let (shell, repository) = (ShellFacts::default(), Repository::Ordinary);
    let context = Context {
        mode: Mode::Ask,
        rules: &rules,
        workspace: &directory,
        cwd: &directory,
        shell: &shell,
        repository: &repository,
        trust_reads: true,
    };
    let material = corpus();
    let mut random = Random(seed);
    let mut allowed = 0;
    let allows = |text: &str| decide(&Call::Bash { command: text }, &context).verdict == Verdict::Allow;
    let check = |text: &str| {
        let offences = run(text, &directory, &scratch.path().join("trace"));
        assert!(offences.is_empty(), "seed {seed}: allowed {text:?} did\n{}", offences.join("\n"));
        assert_eq!(contents(&directory), before, "seed {seed}: allowed {text:?} changed the directory");
    };
    if let Some(folder) = std::env::var_os("POLICY_ORACLE_CORPUS") {
        let kept = kept_by_fuzzer(Path::new(&folder));
        let found: Vec<&String> = kept.iter().filter(|text| !text.contains('\0') && allows(text)).collect();
        println!("{} of {} inputs that the fuzzer kept are allowed and run", found.len(), kept.len());
        found.iter().for_each(|text| check(text));
    }
    for _ in 0..scripts {
        let mut text = match random.below(4) {
            0 => material[random.below(material.len())].clone(),
            1 => soup(&mut random, allows).unwrap_or_default(),
            _ => script(&mut random, 2),
        };
        if random.below(4) > 0 {
            text = damaged(&mut random, &text);
        }
        if !allows(&text) {
            continue;
        }
        allowed += 1;
        check(&text);
    }
    println!("{allowed} of them were allowed and run");
    assert!(allowed * 20 >= scripts, "too few scripts were allowed for the comparison to mean anything");
}
