//! `policy check`: a decision for each line of standard input, in the same order, one line each.
//!
//! A line is `{"id", "command", "prior"?, "rules"?, "cwd"?, "files"?, "mode"?}`; other keys are for the reader. Without
//! `rules` those in force at `cwd` count; with them, they and no others. `prior` are commands that ran before in the
//! session. `files` are thought to be in `cwd` besides what is there.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use proto::policy::{BadLine, Checked, CheckedPart};
use serde::Deserialize;
use serde_json::Value;

use super::{CheckArgs, EXIT_WRONG, OfflineError, decided, line, output, settings};
use crate::cli::Cli;
use crate::config::ReadOnly;
use crate::config::paths::Paths;
use crate::policy::{Call, Context, Decision, Mode, Repository, Rules, ShellFacts, Verdict, decide, explain};
use crate::session::rules::{self, RuleBook};

/// Longest line: the longest command a session takes, and as much again for what stands around it.
const LINE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Input that is read at once: hundreds of lines, so that answers leave together.
const INPUT_BUFFER_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
struct Question {
    id: Option<Value>,
    command: String,
    #[serde(default)]
    prior: Vec<Prior>,
    rules: Option<WordRules>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    files: BTreeMap<String, Value>,
    mode: Option<ModeWord>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prior {
    Ran(String),
    Restarted { restart: bool },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModeWord {
    Ask,
    #[serde(alias = "accept_edits")]
    AcceptEdits,
    Plan,
    Bypass,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WordRules {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
}

/// What does not change from line to line.
pub(super) struct Desk {
    pub(super) paths: Paths,
    pub(super) read_only: ReadOnly,
    pub(super) rules_file: Option<PathBuf>,
    pub(super) here: PathBuf,
    pub(super) mode: Mode,
}

pub(super) fn run(cli: &Cli, args: &CheckArgs) -> Result<u8, OfflineError> {
    let (paths, config) = settings(cli)?;
    let here = std::env::current_dir()?;
    let desk = Desk {
        paths,
        read_only: config.policy.read_only,
        rules_file: args.rules.clone(),
        here,
        mode: args.mode.into(),
    };
    if let Some(file) = &desk.rules_file {
        super::rules::sound(file)?;
    }
    let (mut input, mut out) = (BufReader::with_capacity(INPUT_BUFFER_BYTES, io::stdin()), output());
    let (mut number, mut bad, mut bytes) = (0_u64, false, Vec::new());
    loop {
        bytes.clear();
        if !next_line(&mut input, &mut bytes)? {
            break;
        }
        number += 1;
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        match question(&bytes) {
            Ok(question) => line(&mut out, &answer(&question, &desk))?,
            Err((id, error)) => {
                bad = true;
                line(&mut out, &BadLine { id, line: number, error })?;
            }
        }
        // Whoever asks line by line waits for each answer.
        if input.buffer().is_empty() {
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(if bad { EXIT_WRONG } else { 0 })
}

/// Reads up to the next line feed; false at the end. What is over the limit is read past, not kept.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let mut any = false;
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(chunk.len());
        if line.len() <= LINE_BYTES_MAX {
            line.extend_from_slice(&chunk[..taken]);
        }
        let used = end.map_or(taken, |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// A line as a question, or its id and what is wrong with it.
fn question(bytes: &[u8]) -> Result<Question, (Option<Value>, String)> {
    if bytes.len() > LINE_BYTES_MAX {
        return Err((None, format!("the line is over {LINE_BYTES_MAX} bytes")));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let id = serde_json::from_slice::<Value>(bytes).ok().and_then(|line| line.get("id").cloned());
        (id, format!("no question for the policy: {error}"))
    })
}

fn answer(question: &Question, desk: &Desk) -> Checked {
    let cwd = question.cwd.as_ref().map_or_else(|| desk.here.clone(), |cwd| desk.here.join(cwd));
    let cwd = cwd.canonicalize().unwrap_or(cwd);
    let facts = question.prior.iter().fold(ShellFacts::default(), |facts, prior| match prior {
        Prior::Ran(command) => facts.after(command),
        Prior::Restarted { restart: true } => ShellFacts::restarted(),
        Prior::Restarted { restart: false } => facts,
    });
    let book = match &question.rules {
        Some(words) => RuleBook { rules: from_words(words), problems: Vec::new() },
        None => desk.book(&cwd),
    };
    let repository = match question.files.get(".git/config").and_then(Value::as_str) {
        Some(text) => Repository::from_configurations([text]),
        None => rules::repository(&cwd),
    };
    let mode = question.mode.map_or(desk.mode, |word| match word {
        ModeWord::Ask => Mode::Ask,
        ModeWord::AcceptEdits => Mode::AcceptEdits,
        ModeWord::Plan => Mode::Plan,
        ModeWord::Bypass => Mode::Bypass,
    });
    let context = Context {
        mode,
        rules: &book.rules,
        workspace: &cwd,
        cwd: &cwd,
        shell: &facts,
        repository: &repository,
        trust_reads: desk.read_only == ReadOnly::Run,
    };
    let decision = careful(decide(&Call::Bash { command: &question.command }, &context), &book);
    let parts = explain(&question.command, &context).into_iter().map(|part| CheckedPart {
        command: part.command,
        decision: decided(part.verdict),
        reason: part.reason,
        rule: part.rule,
    });
    Checked {
        id: question.id.clone(),
        decision: decided(decision.verdict),
        reason: decision.reason,
        rule: decision.rule,
        parts: parts.collect(),
    }
}

/// As in a session: while a rule file is broken, nothing is allowed by itself.
pub(super) fn careful(decision: Decision, book: &RuleBook) -> Decision {
    match book.problems.first() {
        Some(problem) if decision.verdict == Verdict::Allow => Decision {
            verdict: Verdict::Ask,
            reason: format!("nothing is allowed by itself while {problem}"),
            rule: None,
            ..decision
        },
        Some(_) | None => decision,
    }
}

impl Desk {
    /// The rules in force for a workspace.
    pub(super) fn book(&self, workspace: &Path) -> RuleBook {
        rules::read_with(&self.paths.config, Some(workspace), self.rules_file.as_deref())
    }
}

fn from_words(words: &WordRules) -> Rules {
    let split = |rules: &[String]| -> Vec<Vec<String>> {
        rules.iter().map(|rule| rule.split_whitespace().map(str::to_owned).collect()).collect()
    };
    Rules::from_words(&split(&words.allow), &split(&words.ask), &split(&words.deny))
}
