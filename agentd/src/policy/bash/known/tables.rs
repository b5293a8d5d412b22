//! Commands with a few options that write or run something: the options under which they only read.

use super::super::value::Value;
use super::Proof;
use super::options::{Parsed, Table};
use crate::policy::words::listed;

const NONE: Table = Table { flags: "", with_value: "", optional: "", long: "", long_with_value: "", numbers: false };

/// Without `-o` (writes), `-T` and `-S` (place and size of temporary files) and `--compress-program` (runs it).
const SORT: Table = Table {
    flags: "bdfgiMhnRrVcCmsuz",
    with_value: "kt",
    optional: "",
    long: "\
        ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort \
        human-numeric-sort numeric-sort random-sort reverse version-sort check merge stable unique \
        zero-terminated debug sort help version",
    long_with_value: "key field-separator parallel batch-size",
    numbers: false,
};

const UNIQ: Table = Table {
    flags: "cdDuiz",
    with_value: "fsw",
    optional: "",
    long: "\
        count repeated all-repeated group ignore-case unique zero-terminated help version",
    long_with_value: "skip-fields skip-chars check-chars",
    numbers: false,
};

/// Without `-o`.
const SHUF: Table = Table {
    flags: "erz",
    with_value: "in",
    optional: "",
    long: "echo repeat zero-terminated help version",
    long_with_value: "input-range head-count",
    numbers: false,
};

/// Without `-s`, `--set` and operands that set the clock.
const DATE: Table = Table {
    flags: "uR",
    with_value: "dr",
    optional: "I",
    long: "utc universal rfc-email rfc-2822 rfc-3339 iso-8601 debug help version",
    long_with_value: "date reference",
    numbers: false,
};

/// Without `-f`, `-d`, `-i` and others that ask a name server.
const HOSTNAME: Table = Table { flags: "sI", long: "short all-ip-addresses version help", ..NONE };

/// Without `-C` (writes), `-m` (obeys a file), `-z` and `-Z` (run decompressors), `-p` (sets times).
const FILE: Table = Table {
    flags: "biLhk0Nrsn",
    with_value: "",
    optional: "",
    long: "\
        brief mime mime-type mime-encoding dereference no-dereference keep-going print0 no-pad raw no-buffer \
        extension help version",
    long_with_value: "",
    numbers: false,
};

/// Without `-o` and `-R` (write).
const TREE: Table = Table {
    flags: "adflxpsuhgDFqNQrtcUJXnCiv",
    with_value: "LIP",
    optional: "",
    long: "\
        dirsfirst filesfirst noreport gitignore prune du si sort inodes device ignore-case matchdirs charset \
        timefmt filelimit noheader help version metafirst",
    long_with_value: "",
    numbers: false,
};

/// Without `--pre`, `--hostname-bin` and `-z`, which run programs.
const RG: Table = Table {
    flags: "acFhHiIlLnNopPqsSuUvVwx0b.",
    with_value: "ABCEefgjmMrtTd",
    optional: "",
    long: "\
        files files-with-matches files-without-match count count-matches fixed-strings ignore-case smart-case \
        case-sensitive invert-match word-regexp line-regexp line-number no-line-number column no-column heading \
        no-heading hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-dot no-ignore-global \
        no-config follow no-follow only-matching multiline multiline-dotall pcre2 text binary null null-data \
        passthru pretty quiet stats json trim vimgrep with-filename no-filename unrestricted type-list \
        no-messages glob-case-insensitive one-file-system crlf byte-offset debug trace version help mmap no-mmap \
        sort-files no-require-git include-zero no-unicode block-buffered line-buffered",
    long_with_value: "\
        after-context before-context context regexp file glob iglob type type-not type-add type-clear max-count \
        max-depth max-columns max-filesize replace sort sortr threads color colors encoding engine ignore-file \
        context-separator field-match-separator field-context-separator path-separator dfa-size-limit \
        regex-size-limit",
    numbers: false,
};

/// Without `-x` and `-X`.
const FD: Table = Table {
    flags: "HIusigFLp0a1q",
    with_value: "tedESc",
    optional: "",
    long: "\
        hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob fixed-strings absolute-path \
        follow full-path print0 quiet prune show-errors version help strip-cwd-prefix one-file-system",
    long_with_value: "\
        type extension max-depth min-depth exact-depth exclude size changed-within changed-before owner color \
        max-results threads",
    numbers: false,
};

/// Without the forms that show environments.
const PS: Table = Table {
    flags: "aAdefFHjlLMNPTwycZm",
    with_value: "oOpsuUgGtCqk",
    optional: "",
    long: "headers no-headers forest deselect version",
    long_with_value: "pid ppid user group sort format cols columns rows lines width",
    numbers: false,
};

const GETCONF: Table = Table { flags: "a", ..NONE };

/// The proof for a command with a table; `None` when it has none.
pub(super) fn read_only(name: &str, arguments: &[Value]) -> Option<Proof> {
    Some(match name {
        "sort" => SORT.read(name, arguments).map(drop),
        "uniq" => UNIQ.read(name, arguments).and_then(|parsed| at_most_one_file(name, &parsed)),
        "shuf" => SHUF.read(name, arguments).map(drop),
        "date" => DATE.read(name, arguments).and_then(|parsed| date_operands(&parsed)),
        "hostname" => HOSTNAME.read(name, arguments).and_then(|parsed| no_operands(name, &parsed)),
        "file" => FILE.read(name, arguments).map(drop),
        "tree" => TREE.read(name, arguments).map(drop),
        "rg" => RG.read(name, arguments).map(drop),
        "fd" | "fdfind" => FD.read(name, arguments).map(drop),
        "getconf" => GETCONF.read(name, arguments).map(drop),
        "ps" => processes(arguments),
        "xxd" => xxd(arguments),
        "jq" => jq(arguments),
        _ => return version_only(name, arguments),
    })
}

/// `uniq` writes to its second operand.
fn at_most_one_file(name: &str, parsed: &Parsed<'_>) -> Proof {
    match parsed.operands.as_slice() {
        [] => Ok(()),
        [file] if file.single() => Ok(()),
        _ => Err(format!("{name} may write to its last operand")),
    }
}

fn no_operands(name: &str, parsed: &Parsed<'_>) -> Proof {
    if parsed.operands.is_empty() { Ok(()) } else { Err(format!("{name} with an operand changes a setting")) }
}

fn date_operands(parsed: &Parsed<'_>) -> Proof {
    let formats = parsed.operands.iter().all(|operand| operand.prefix().starts_with('+'));
    if formats { Ok(()) } else { Err("date with an operand sets the clock".to_owned()) }
}

fn processes(arguments: &[Value]) -> Proof {
    let parsed = PS.read("ps", arguments)?;
    if parsed.options.iter().any(|(_, value)| value.is_some_and(|v| v.contains("env"))) {
        return Err("this form of ps may show the environments of processes".to_owned());
    }
    for operand in parsed.operands {
        // Options of the BSD style have no dash; `e` among them prints environments.
        let plain =
            operand.known().is_some_and(|o| o.bytes().all(|c| c.is_ascii_digit() || b"auxfwlhjmrT".contains(&c)));
        if !plain {
            return Err("this form of ps may show the environments of processes".to_owned());
        }
    }
    Ok(())
}

/// `xxd` spells its options like words; `-r` writes, and so does a second operand.
fn xxd(arguments: &[Value]) -> Proof {
    const FLAGS: &str = "-p -ps -plain -u -b -i -e -a -E -d";
    let mut operands = 0;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.known().ok_or("an argument of xxd is not known")?;
        let number = text.get(2..).is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()));
        match text {
            "-l" | "-s" | "-c" | "-g" | "-len" | "-seek" | "-cols" | "-groupsize" => {
                arguments.next().and_then(Value::known).ok_or("an argument of xxd is not known")?;
            }
            flag if listed(FLAGS, flag) => {}
            _ if number && text.starts_with(['-']) && text[1..].starts_with(['l', 's', 'c', 'g']) => {}
            _ if text.starts_with('-') || operands > 0 => return Err(format!("xxd {text} is not known to only read")),
            _ => operands += 1,
        }
    }
    Ok(())
}

/// `jq` reads files and nothing else, but a program can print the environment.
fn jq(arguments: &[Value]) -> Proof {
    for argument in arguments {
        let Some(text) = argument.known() else { continue };
        let text = without_strings(text);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == '.'));
        if words.into_iter().any(|word| word == "env" || word.starts_with("$ENV")) {
            return Err("this jq program reads the environment".to_owned());
        }
    }
    let program = arguments.iter().find(|a| a.known().is_none_or(|text| !text.starts_with('-')));
    match program {
        Some(Value::Known(_)) | None => Ok(()),
        Some(Value::One(_) | Value::Many(_)) => Err("the program of jq is not known".to_owned()),
    }
}

/// A jq program without its string literals, unless something is computed inside them.
fn without_strings(program: &str) -> String {
    if program.contains('\\') {
        return program.to_owned();
    }
    program.split('"').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Programs that only print their version when that is all they are asked. Those whose launchers read a file of the
/// working directory to choose a version (cargo, rustc, go, npm) are not among them.
fn version_only(name: &str, arguments: &[Value]) -> Option<Proof> {
    const LONG: &str = "\
    bash clang cmake docker g++ gcc git ld make node perl php python python3 ruby rg strace";
    const SHORT: [(&str, &str); 6] =
        [("python", "-V"), ("python3", "-V"), ("node", "-v"), ("perl", "-v"), ("ruby", "-v"), ("php", "-v")];
    let [Value::Known(only)] = arguments else { return None };
    let version = (only == "--version" && listed(LONG, name)) || SHORT.contains(&(name, only));
    version.then_some(Ok(()))
}
