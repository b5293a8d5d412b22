//! git: the subcommands and options that only read.
//!
//! Not listed, so never proved: `-c`, `--git-dir`, `--exec-path`, `--paginate`, `--output`, `--ext-diff`, `--textconv`,
//! `--show-signature`, `--open-files-in-pager`, everything that talks to a remote, and formats that verify signatures.
//! A repository's own configuration can run programs under every subcommand; that is the context's
//! [`Repository`], and after a change of directory nobody knows it.

use super::super::value::Value;
use super::options::{Parsed, Table};
use super::{Proof, Surroundings};
use crate::policy::{Repository, path};
use std::path::Path;

/// Options of everything that walks history or shows differences.
const HISTORY: Table = Table {
    flags: "pusRatbwzqmcrEFPig0vW",
    with_value: "nSGLO",
    optional: "UMCBXlIX",
    long: "\
        abbrev abbrev-commit after all all-match anchored ancestry-path author basic-regexp before binary bisect \
        boundary branches cached cc check cherry cherry-mark cherry-pick children clear-decorations color \
        color-moved color-words combined-all-paths committer compact-summary count cumulative date date-order dd \
        decorate decorate-refs decorate-refs-exclude dense diff-algorithm diff-filter diff-merges dirstat \
        dirstat-by-file disk-usage do-walk dst-prefix encoding exclude exit-code expand-tabs extended-regexp \
        find-copies find-copies-harder find-object find-renames first-parent fixed-strings follow format \
        full-diff full-history full-index function-context glob graph grep grep-reflog histogram \
        ignore-all-space ignore-blank-lines ignore-cr-at-eol ignore-matching-lines ignore-missing \
        ignore-space-at-eol ignore-space-change ignore-submodules indent-heuristic inter-hunk-context \
        invert-grep irreversible-delete left-only left-right log-size max-age max-count max-parents merge \
        merge-base merges min-age min-parents minimal name-only name-status no-abbrev no-abbrev-commit no-color \
        no-color-moved no-commit-id no-decorate no-ext-diff no-indent-heuristic no-index no-merges no-notes \
        no-patch no-prefix no-renames no-textconv no-walk notes numstat objects oneline parents patch \
        patch-with-raw patch-with-stat patience perl-regexp pickaxe-all pickaxe-regex pretty quiet raw reflog \
        regexp-ignore-case relative relative-date remotes remove-empty reverse right-only root shortstat \
        show-linear-break show-pulls simplify-by-decoration simplify-merges since skip source sparse src-prefix \
        staged stat stat-count stat-name-width stat-width stdin submodule summary tags text timestamp topo-order \
        unified until use-mailmap no-use-mailmap word-diff word-diff-regex ws-error-highlight \
        ita-invisible-in-index numbered email group default-prefix not rename-empty no-rename-empty",
    long_with_value: "",
    numbers: true,
};

/// Where `-n` sorts by number.
const SHORTLOG: Table = Table { flags: "snecEFiP", with_value: "", optional: "w", ..HISTORY };

/// A table of plain flags.
const fn flags(flags: &'static str, with_value: &'static str, long: &'static str) -> Table {
    Table { flags, with_value, optional: "", long, long_with_value: "", numbers: false }
}

const STATUS: Table = Table {
    optional: "uM",
    ..flags(
        "sbvz",
        "",
        "\
    short branch show-stash porcelain long verbose untracked-files ignored ignore-submodules null column \
    no-column ahead-behind no-ahead-behind renames no-renames find-renames",
    )
};

const LS_FILES: Table = flags(
    "cdmokstuvfzi",
    "xX",
    "\
    cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol deduplicate \
    exclude exclude-from exclude-standard error-unmatch full-name recurse-submodules abbrev debug sparse format \
    resolve-undo",
);

const LS_TREE: Table = flags(
    "drtlz",
    "",
    "\
    long name-only name-status object-only full-name full-tree abbrev format",
);

const CAT_FILE: Table = flags(
    "etsp",
    "",
    "\
    batch batch-check batch-all-objects buffer allow-unknown-type unordered",
);

const GREP: Table = Table {
    numbers: true,
    ..flags(
        "aIiwvhHEGFPnlLzocpWqr",
        "efABCm",
        "\
    text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp fixed-strings \
    line-number column files-with-matches name-only files-without-match null only-matching count color no-color \
    break heading show-function function-context threads and or not all-match quiet max-depth recursive \
    no-recursive cached untracked no-index exclude-standard no-exclude-standard recurse-submodules max-count \
    context after-context before-context",
    )
};

const BLAME: Table = Table {
    optional: "MC",
    ..flags(
        "bltfnsepw",
        "LS",
        "\
    root show-stats porcelain line-porcelain incremental encoding date abbrev color-lines color-by-age \
    ignore-rev since show-name show-number show-email first-parent",
    )
};

const REV_PARSE: Table = flags(
    "q",
    "",
    "\
    verify quiet short abbrev-ref symbolic symbolic-full-name all branches tags remotes show-toplevel \
    show-prefix show-cdup git-dir git-common-dir absolute-git-dir is-inside-git-dir is-inside-work-tree \
    is-bare-repository is-shallow-repository show-superproject-working-tree git-path show-object-format \
    revs-only no-revs flags no-flags default prefix sq not since until after before disambiguate local-env-vars \
    path-format exclude glob show-ref-format",
);

const DESCRIBE: Table = flags(
    "",
    "",
    "\
    all tags contains abbrev candidates exact-match debug long match exclude always first-parent dirty broken",
);

const REFS: Table = flags(
    "dshq",
    "",
    "\
    count sort format points-at merged no-merged contains no-contains ignore-case omit-empty exclude heads \
    branches tags head hash verify quiet abbrev dereference exists stdin color no-color is-ancestor octopus \
    independent fork-point all name-only refs always no-undefined annotate-stdin merge-base topo-order \
    date-order current list more sparse no-name sha1-name topics reflog remotes",
);

const LIST_LONG: &str = "\
    all remotes verbose list show-current contains no-contains merged no-merged sort format points-at column \
    no-column color no-color abbrev no-abbrev ignore-case omit-empty";

const BRANCH: Table = flags("arvi", "", LIST_LONG);

/// Without `-v`, which verifies and so runs gpg.
const TAG: Table = Table { optional: "n", ..flags("li", "", LIST_LONG) };

/// A name behind one of these is a pattern or a commit, not a new branch or tag.
const LISTING: [&str; 7] = ["l", "list", "contains", "no-contains", "merged", "no-merged", "points-at"];

const CONFIG: Table = Table {
    long_with_value: "file blob type default",
    ..flags(
        "lz",
        "f",
        "\
    list get get-all get-regexp get-urlmatch global local system worktree show-origin show-scope name-only null \
    includes no-includes bool int path bool-or-int expiry-date all regexp",
    )
};

const FSCK: Table = flags(
    "v",
    "",
    "\
    no-dangling dangling unreachable root tags cache no-reflogs full no-full strict connectivity-only verbose \
    no-progress progress name-objects",
);

const FEW: Table = flags(
    "vqzanHs",
    "",
    "\
    verbose porcelain stdin all null non-matching no-index human-readable quiet cached recursive short",
);

/// Proves that a `git` only reads.
pub(super) fn read_only(arguments: &[Value], around: &Surroundings<'_>) -> Proof {
    if let [Value::Known(only)] = arguments
        && matches!(only.as_str(), "--version" | "version")
    {
        return Ok(());
    }
    let arguments = global_options(arguments, around)?;
    let Some((subcommand, arguments)) = arguments.split_first() else { return Ok(()) };
    let subcommand = subcommand.known().ok_or("the git subcommand is not known")?;
    known_subcommand(subcommand, arguments)?;
    if around.moved {
        return Err("the configuration of the repository in another directory is not known".to_owned());
    }
    match around.context.repository {
        Repository::Ordinary => Ok(()),
        Repository::Unknown => Err("the repository's configuration is not known and may run programs".to_owned()),
        Repository::RunsPrograms { key } => Err(format!("the repository's own configuration ({key}) may run programs")),
    }
}

/// Global options that change neither the repository nor a program; `-C` only to where we are.
fn global_options<'a>(arguments: &'a [Value], around: &Surroundings<'_>) -> Result<&'a [Value], String> {
    let mut rest = arguments;
    while let Some((option, others)) = rest.split_first() {
        let option = option.known().ok_or("an argument of git is not known and might be an option")?;
        match option {
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-replace-objects"
            | "--no-lazy-fetch" => rest = others,
            "-C" => {
                let here = others.first().and_then(Value::known).is_some_and(|directory| {
                    path::resolve(around.context.cwd, Path::new(directory)).as_deref() == Some(around.context.cwd)
                });
                if !here {
                    return Err("git -C may enter a repository whose configuration runs programs".to_owned());
                }
                rest = &others[1..];
            }
            option if option.starts_with('-') => return Err(format!("git {option} is not known to only read")),
            _ => break,
        }
    }
    Ok(rest)
}

fn known_subcommand(name: &str, arguments: &[Value]) -> Proof {
    let table = match name {
        "log" | "show" | "diff" | "whatchanged" | "rev-list" | "diff-tree" | "diff-index" | "diff-files"
        | "range-diff" | "cherry" => &HISTORY,
        "shortlog" => &SHORTLOG,
        "status" => &STATUS,
        "ls-files" => &LS_FILES,
        "ls-tree" => &LS_TREE,
        "cat-file" => &CAT_FILE,
        "grep" => &GREP,
        "blame" | "annotate" => &BLAME,
        "rev-parse" => &REV_PARSE,
        "describe" => &DESCRIBE,
        "for-each-ref" | "show-ref" | "merge-base" | "name-rev" | "show-branch" => &REFS,
        "fsck" => &FSCK,
        "count-objects" | "check-ignore" | "check-attr" | "check-mailmap" => &FEW,
        "branch" | "tag" => return listing(name, arguments),
        "reflog" => return verb(arguments, &["show"], &HISTORY),
        "stash" => return verb(arguments, &["list", "show"], &HISTORY).and_then(|()| not_empty(name, arguments)),
        "worktree" => return verb(arguments, &["list"], &FEW).and_then(|()| not_empty(name, arguments)),
        "submodule" => return verb(arguments, &["status"], &FEW),
        "remote" => return remote(arguments),
        "config" => return config(arguments),
        "var" => return one_word(name, arguments),
        "symbolic-ref" => return one_word(name, arguments),
        _ => return Err(format!("git {name} is not known to only read")),
    };
    formats(&table.read(&format!("git {name}"), arguments)?)
}

/// Formats that verify signatures run gpg.
fn formats(parsed: &Parsed<'_>) -> Proof {
    for (name, value) in &parsed.options {
        let value = value.unwrap_or("");
        if matches!(*name, "format" | "pretty" | "sort") && (value.contains("%G") || value.contains("signature")) {
            return Err("a format that verifies signatures runs another program".to_owned());
        }
    }
    Ok(())
}

fn listing(name: &str, arguments: &[Value]) -> Proof {
    let command = format!("git {name}");
    let table = if name == "tag" { TAG } else { BRANCH };
    let parsed = table.read(&command, arguments)?;
    formats(&parsed)?;
    if parsed.operands.is_empty() || parsed.has(&LISTING) {
        Ok(())
    } else {
        Err(format!("{command} with a name creates it"))
    }
}

/// A subcommand with verbs of its own: one of `verbs`, or none and no operand at all.
fn verb(arguments: &[Value], verbs: &[&str], table: &Table) -> Proof {
    let (verb, rest) = match arguments.split_first() {
        Some((first, rest)) if !first.known().is_some_and(|word| word.starts_with('-')) => (first.known(), rest),
        Some(_) | None => (None, arguments),
    };
    let parsed = table.read("git", rest)?;
    formats(&parsed)?;
    match verb {
        Some(verb) if verbs.contains(&verb) => Ok(()),
        None if parsed.operands.is_empty() && rest.len() == arguments.len() => Ok(()),
        Some(_) | None => Err("this git subcommand is not known to only read".to_owned()),
    }
}

fn not_empty(name: &str, arguments: &[Value]) -> Proof {
    match arguments.first().and_then(Value::known) {
        Some(verb) if !verb.starts_with('-') => Ok(()),
        Some(_) | None => Err(format!("git {name} alone changes something")),
    }
}

fn remote(arguments: &[Value]) -> Proof {
    let known: Option<Vec<&str>> = arguments.iter().map(Value::known).collect();
    match known.as_deref() {
        Some([] | ["-v" | "--verbose"] | ["get-url", _] | ["get-url", "--all" | "--push", _]) => Ok(()),
        Some(_) | None => Err("this git remote may change something or use the network".to_owned()),
    }
}

fn config(arguments: &[Value]) -> Proof {
    let parsed = CONFIG.read("git config", arguments)?;
    let words: Option<Vec<&str>> = parsed.operands.iter().map(|operand| operand.known()).collect();
    let words = words.ok_or("the arguments of git config are not known")?;
    let reads = parsed.has(&["l", "list", "get", "get-all", "get-regexp", "get-urlmatch"]);
    match words.as_slice() {
        _ if reads => Ok(()),
        ["list"] => Ok(()),
        ["get", _] => Ok(()),
        // A key has a dot; without one it is a verb.
        [key] if key.contains('.') => Ok(()),
        _ => Err("git config with a value sets it".to_owned()),
    }
}

fn one_word(name: &str, arguments: &[Value]) -> Proof {
    let parsed = flags("lq", "", "short quiet recurse no-recurse").read(name, arguments)?;
    match parsed.operands.as_slice() {
        [] => Ok(()),
        [word] if word.single() => Ok(()),
        _ => Err(format!("git {name} with two names sets one")),
    }
}
