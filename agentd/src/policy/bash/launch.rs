//! Commands that run what their arguments say: where in the arguments the command is.
//!
//! Used to find denied commands, never to allow one: an option that is not listed here moves the place, and then a deny
//! rule may be missed behind a wrapper whose own verdict is a question all the same.

use super::value::Value;
use crate::policy::rule::base_name;
use crate::policy::words::listed;

/// What a command launches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Launch<'a> {
    /// These words, as a command.
    Words(&'a [Value]),
    /// A text for a shell.
    Text(String),
}

/// Programs that read a script from their input or their arguments.
pub(super) const SHELLS: &str = "ash bash busybox csh dash fish ksh mksh sh tcsh zsh";

/// Wrappers: the options of each that take an argument, and how many operands stand before the command.
const WRAPPERS: [(&str, &str, usize); 44] = [
    ("builtin", "", 0),
    ("bwrap", "", 0),
    ("catchsegv", "", 0),
    ("chroot", "--userspec --groups", 1),
    ("chrt", "-T -P -D", 0),
    ("command", "", 0),
    ("dbus-run-session", "", 0),
    ("doas", "-u -C", 0),
    ("eatmydata", "", 0),
    ("env", "-u -C -S --unset --chdir", 0),
    ("exec", "-a", 0),
    ("fakeroot", "-l -s -i -b", 0),
    ("firejail", "", 0),
    ("flock", "-w -E", 1),
    ("gdb", "", 0),
    ("ionice", "-c -n -p -P -u", 0),
    ("ltrace", "-o -e -s -p -a -u", 0),
    ("nice", "-n --adjustment", 0),
    ("nohup", "", 0),
    ("npx", "-p --package", 0),
    ("nsenter", "-t -S -G", 0),
    ("numactl", "", 0),
    ("parallel", "-j -S -a -I -n -N -L --jobs", 0),
    ("perf", "-e -o -p", 1),
    ("pkexec", "--user", 0),
    ("prlimit", "-p", 0),
    ("rlwrap", "", 0),
    ("runuser", "-u -g -G -s -w", 0),
    ("setarch", "", 1),
    ("setpriv", "", 0),
    ("setsid", "", 0),
    ("ssh", "-p -i -l -o -F -J -L -R -D -b -c -E -e -I -m -O -Q -S -W -w -B", 1),
    ("stdbuf", "-i -o -e", 0),
    ("strace", "-o -e -s -p -a -E -I -O -P -S -u -X -b", 0),
    ("sudo", "-u -g -C -D -h -p -r -t -T -U -R --user --group", 0),
    ("systemd-run", "-p -u -H -M -E -G --unit --property --slice --uid --gid", 0),
    ("taskset", "-p", 0),
    ("time", "-f -o", 0),
    ("timeout", "-k -s --kill-after --signal", 0),
    ("toybox", "", 0),
    ("unbuffer", "", 0),
    ("unshare", "-S -G -R", 0),
    ("watch", "-n -q", 0),
    ("xargs", "-I -n -L -P -s -d -E -a --max-args --max-procs --arg-file --delimiter", 0),
];

/// Those whose arguments are joined and handed to a shell.
const JOINING: &str = "eval ssh watch parallel";

/// What `name` with these arguments launches.
pub(super) fn launches<'a>(name: &str, arguments: &'a [Value]) -> Vec<Launch<'a>> {
    let mut found = match name {
        "find" => behind(arguments, "-exec -execdir -ok -okdir"),
        "fd" | "fdfind" => behind(arguments, "-x -X --exec --exec-batch"),
        "git" => git(arguments),
        "trap" => arguments.iter().find(|a| !a.prefix().starts_with('-')).and_then(text).into_iter().collect(),
        "su" | "runuser" | "script" | "flock" => option_text(arguments, 'c'),
        "env" => option_text(arguments, 'S'),
        _ if listed(SHELLS, name) => shell(arguments),
        _ => Vec::new(),
    };
    if name == "env" {
        let split = arguments.iter().filter_map(Value::known).filter_map(|a| a.strip_prefix("--split-string="));
        found.extend(split.map(|script| Launch::Text(script.to_owned())));
    }
    if listed(JOINING, name) {
        let known: Vec<&str> = arguments.iter().filter_map(Value::known).collect();
        found.push(Launch::Text(known.join(" ")));
    }
    if let Some((_, with_argument, operands)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) {
        found.extend(wrapped(arguments, with_argument, *operands).map(Launch::Words));
    }
    found
}

fn text<'a>(value: &Value) -> Option<Launch<'a>> {
    value.known().map(|text| Launch::Text(text.to_owned()))
}

/// The words behind options like `-exec`.
fn behind<'a>(arguments: &'a [Value], options: &str) -> Vec<Launch<'a>> {
    let places = arguments.iter().enumerate().filter(|(_, a)| a.known().is_some_and(|a| listed(options, a)));
    places.map(|(index, _)| Launch::Words(&arguments[index + 1..])).collect()
}

/// The argument of an option letter, joined or separate, in whatever cluster.
fn option_text<'a>(arguments: &'a [Value], letter: char) -> Vec<Launch<'a>> {
    let mut found = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let cluster = argument.known().filter(|a| a.starts_with('-') && !a.starts_with("--"));
        if let Some((_, joined)) = cluster.and_then(|a| a.split_once(letter)) {
            let separate = arguments.get(index + 1).and_then(Value::known);
            found.push(Launch::Text(if joined.is_empty() { separate.unwrap_or("") } else { joined }.to_owned()));
        }
    }
    found
}

/// A shell's `-c text`; of a multi-call program the words as well.
fn shell(arguments: &[Value]) -> Vec<Launch<'_>> {
    let mut found = vec![Launch::Words(arguments)];
    let command = arguments.iter().position(|a| a.known().is_some_and(|a| a.starts_with('-') && a.contains('c')));
    if let Some(at) = command {
        let rest = arguments[at + 1..].iter().find(|a| a.known().is_none_or(|a| !a.starts_with(['-', '+'])));
        found.extend(rest.and_then(text));
    }
    found
}

/// git subcommands that run a command of the command line.
fn git(arguments: &[Value]) -> Vec<Launch<'_>> {
    let launcher =
        |a: &Value| a.known().is_some_and(|a| listed("bisect rebase submodule filter-branch difftool mergetool", a));
    if !arguments.iter().any(launcher) {
        return Vec::new();
    }
    let mut found = behind(arguments, "run foreach -x --exec --extcmd");
    let texts = arguments.iter().filter_map(Value::known).filter(|a| a.contains(char::is_whitespace));
    found.extend(texts.map(|a| Launch::Text(a.to_owned())));
    found
}

/// The command inside a wrapper.
fn wrapped<'a>(arguments: &'a [Value], with_argument: &str, mut operands: usize) -> Option<&'a [Value]> {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let word = argument.known().unwrap_or("");
        // The last letter of a cluster may take an argument, too.
        let last = word.chars().last().filter(|_| word.starts_with('-') && !word.starts_with("--"));
        let takes = listed(with_argument, word) || last.is_some_and(|l| listed(with_argument, &format!("-{l}")));
        let setting = word.starts_with(['-', '+']) || word.contains('=');
        let number = base_name(word).starts_with(|c: char| c.is_ascii_digit());
        match (setting || number, operands) {
            (true, _) => at += 1 + usize::from(takes),
            (false, 0) => return Some(&arguments[at..]),
            (false, _) => {
                operands -= 1;
                at += 1;
            }
        }
    }
    None
}
