//! The `grep` and `glob` tools: what the model asked for → a search; the shim's answer → text for the model.
//!
//! The result is what was found; notes follow, each a line in square brackets: every limit that was reached, what was
//! passed over, and what to do about it. Nothing here touches a file.

use std::fmt::Write as _;

use proto::event::Outcome;
use proto::json::JsonText;
use proto::shim::files::{
    Bounds, FileMatches, FileOp, FileReply, Glob, Grep, GrepOutput, Looked, MatchLine, Matches, Paths, SearchLimit,
};
use serde_json::{Map, Value};

use super::params::{flag, number, object, optional, required};
use super::{Part, ToolResult, editor, failure};

/// Files or lines of a result when the model does not say: more is rarely read, and costs tokens for the whole session.
const RESULTS: u64 = 200;

/// The most that the model may ask for; the bytes end most results before.
const RESULTS_MAX: u64 = 10_000;

/// Bytes of a result: some eight thousand tokens.
const BYTES_MAX: u64 = 30_000;

/// Bytes of one line: more is data, not text.
const LINE_BYTES_MAX: u64 = 400;

/// How long a search may take: a tree of a million files in the page's cache, and no tool call feels lost.
const TIME_MAX_MS: u64 = 20_000;

/// A call of one of the tools, checked for form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchInput {
    /// Search contents.
    Grep(Grep),
    /// Search names.
    Glob(Glob),
}

impl SearchInput {
    /// The tool's name as the model knows it.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        match self {
            Self::Grep(_) => super::call::GREP,
            Self::Glob(_) => super::call::GLOB,
        }
    }
}

/// Reads the input of `grep`. The names that ripgrep's flags have are understood too.
///
/// # Errors
/// Text for the model: which parameter is missing or wrong.
pub fn parse_grep(input: &JsonText) -> Result<SearchInput, String> {
    let input = object(input.as_str(), || "`pattern`, a regular expression".to_owned())?;
    let mode = optional(&input, "output_mode")?;
    let output = match mode.as_deref() {
        None | Some("files_with_matches") => GrepOutput::Files {},
        Some("content") => context(&input)?,
        Some("count") => GrepOutput::Counts {},
        Some(other) => {
            return Err(format!(
                "The parameter `output_mode` is `{other}`; it can be `files_with_matches`, `content` or `count`."
            ));
        }
    };
    Ok(SearchInput::Grep(Grep {
        pattern: pattern(&input, "the regular expression to search for")?,
        path: path(&input)?,
        glob: optional(&input, "glob")?.filter(|glob| !glob.is_empty()),
        ignore_case: flag(&input, "ignore_case")? || flag(&input, "-i")?,
        multiline: flag(&input, "multiline")?,
        all: flag(&input, "all")?,
        output,
        bounds: bounds(&input)?,
    }))
}

/// Reads the input of `glob`.
///
/// # Errors
/// Text for the model: which parameter is missing or wrong.
pub fn parse_glob(input: &JsonText) -> Result<SearchInput, String> {
    let input = object(input.as_str(), || "`pattern`, a glob such as **/*.rs".to_owned())?;
    Ok(SearchInput::Glob(Glob {
        pattern: pattern(&input, "the glob to match names with, such as **/*.rs")?,
        path: path(&input)?,
        all: flag(&input, "all")?,
        bounds: bounds(&input)?,
    }))
}

fn pattern(input: &Map<String, Value>, meaning: &str) -> Result<String, String> {
    let pattern = required(input, "pattern", meaning)?;
    if pattern.is_empty() { Err(format!("The parameter `pattern` is empty: give {meaning}.")) } else { Ok(pattern) }
}

/// An empty path is what models send for none.
fn path(input: &Map<String, Value>) -> Result<Option<String>, String> {
    Ok(optional(input, "path")?.filter(|path| !path.is_empty()))
}

fn context(input: &Map<String, Value>) -> Result<GrepOutput, String> {
    let lines = |name| {
        let lines = number(input, name, "the number of lines shown around each match")?;
        Ok::<_, String>(lines.map(|lines| u32::try_from(lines).unwrap_or(u32::MAX)))
    };
    let both = lines("context")?.or(lines("-C")?).unwrap_or(0);
    Ok(GrepOutput::Lines { before: lines("-B")?.unwrap_or(both), after: lines("-A")?.unwrap_or(both) })
}

fn bounds(input: &Map<String, Value>) -> Result<Bounds, String> {
    let asked = number(input, "head_limit", "the most files or lines to show")?;
    let results = match asked {
        None => RESULTS,
        // As many as there is room for.
        Some(0) => RESULTS_MAX,
        Some(asked) => asked.min(RESULTS_MAX),
    };
    Ok(Bounds { results, bytes: BYTES_MAX, line_bytes: LINE_BYTES_MAX, time_ms: TIME_MAX_MS })
}

/// One line for people, for example `grep "fn main" in src`.
#[must_use]
pub fn title(input: &SearchInput) -> String {
    let (tool, pattern, path) = match input {
        SearchInput::Grep(grep) => ("grep", &grep.pattern, &grep.path),
        SearchInput::Glob(glob) => ("glob", &glob.pattern, &glob.path),
    };
    let place = path.as_ref().map_or_else(String::new, |path| format!(" in {}", harmless(path)));
    format!("{tool} \"{}\"{place}", harmless(pattern))
}

/// The operation for the shim.
#[must_use]
pub fn op(input: &SearchInput) -> FileOp {
    match input.clone() {
        SearchInput::Grep(grep) => FileOp::Grep(grep),
        SearchInput::Glob(glob) => FileOp::Glob(glob),
    }
}

/// What the model receives for the shim's answer.
#[must_use]
pub fn render(reply: &FileReply) -> ToolResult {
    let (text, limits) = match reply {
        FileReply::Matches(found) => (matches_text(found), &found.limits),
        FileReply::Paths(found) => (paths_text(found), &found.limits),
        FileReply::Error(error) => return failure(&editor::fault_text(error)),
        FileReply::Text(_)
        | FileReply::Listing(_)
        | FileReply::Image(_)
        | FileReply::Edited(_)
        | FileReply::Undone(_)
        | FileReply::Changes(_) => return failure("The search had no answer that can be read."),
    };
    let interrupted = limits.contains(&SearchLimit::Interrupted {});
    let outcome = if interrupted { Outcome::Interrupted {} } else { Outcome::Done {} };
    ToolResult { content: vec![Part::Text(text)], is_error: interrupted, outcome, diff: None }
}

fn matches_text(found: &Matches) -> String {
    let mut text = String::new();
    let by_line = found.files.iter().any(|file| !file.lines.is_empty());
    for (index, file) in found.files.iter().enumerate() {
        if by_line {
            text.push_str(if index == 0 { "" } else { "\n" });
            push_lines(&mut text, file);
        } else if file.count > 0 {
            push(&mut text, &format!("{}:{}", harmless(&file.path), file.count));
        } else {
            push(&mut text, &harmless(&file.path));
        }
    }
    if found.files_total == 0 {
        push(&mut text, &nothing("Nothing matches", &found.path, &found.looked));
    }
    let shown = if by_line {
        let lines = found.files.iter().flat_map(|file| &file.lines).filter(|line| line.is_match).count();
        format!("{lines} of {} lines that match, in {} files,", found.lines_total, found.files_total)
    } else {
        format!("{} of {} files that match", found.files.len(), found.files_total)
    };
    push_limits(&mut text, &found.limits, &shown, "`pattern`, `path` or `glob`", &found.looked);
    push_passed_over(&mut text, &found.looked);
    text
}

fn paths_text(found: &Paths) -> String {
    let mut text = String::new();
    for path in &found.paths {
        push(&mut text, &harmless(path));
    }
    if found.total == 0 {
        push(&mut text, &nothing("No file name matches", &found.path, &found.looked));
    }
    let shown = format!("{} of {} files, the last changed,", found.paths.len(), found.total);
    push_limits(&mut text, &found.limits, &shown, "`pattern` or `path`", &found.looked);
    push_passed_over(&mut text, &found.looked);
    text
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// A file and its lines: `12:` is a match, `13-` stands beside one, `--` is a gap.
fn push_lines(text: &mut String, file: &FileMatches) {
    push(text, &harmless(&file.path));
    let mut next = None;
    for line in &file.lines {
        let has_context = file.lines.iter().any(|line| !line.is_match);
        if has_context && next.is_some_and(|next| next != line.number) {
            push(text, "--");
        }
        next = Some(line.number + 1);
        let sign = if line.is_match { ':' } else { '-' };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}{sign}{}", line.number, line_text(line));
    }
}

fn line_text(line: &MatchLine) -> String {
    let cut = |bytes: u64| if bytes == 0 { String::new() } else { format!("[… {bytes} bytes]") };
    format!("{}{}{}", cut(line.cut_before), harmless(&line.text), cut(line.cut_after))
}

/// What was passed over may be why nothing was found.
fn nothing(what: &str, path: &str, looked: &Looked) -> String {
    let mut text = format!("{what} in {}", harmless(path));
    if looked.files > 0 {
        let _ = write!(text, " ({} files searched)", looked.files);
    }
    text.push('.');
    if looked.ignored + looked.hidden > 0 {
        let _ = write!(
            text,
            " Passed over: {} ignored and {} hidden files or directories; `all`: true searches them too.",
            looked.ignored, looked.hidden
        );
    }
    text
}

fn push_limits(text: &mut String, limits: &[SearchLimit], shown: &str, narrower: &str, looked: &Looked) {
    for limit in limits {
        let note = match limit {
            SearchLimit::Results { .. } => {
                format!("Only {shown} are shown. Narrow {narrower}, or raise `head_limit`.")
            }
            SearchLimit::Bytes { most } => {
                format!("Only {shown} are shown: the limit of {most} bytes was reached. Narrow {narrower}.")
            }
            SearchLimit::Time { most_ms } => format!(
                "The search was ended after {} s, when {} files had been looked at; there may be more. Give a narrower \
                 `path`.",
                most_ms.div_ceil(1000),
                looked.files
            ),
            SearchLimit::Entries { most } => format!(
                "The search was ended after {most} files and directories; there may be more. Give a narrower `path`."
            ),
            SearchLimit::Depth { most } => {
                format!("Directories more than {most} levels deep were not searched. Give a deeper `path`.")
            }
            SearchLimit::Interrupted {} => "The user interrupted the search; there may be more.".to_owned(),
            SearchLimit::Other => "The search is not complete.".to_owned(),
        };
        push(text, &format!("[{note}]"));
    }
}

fn push_passed_over(text: &mut String, looked: &Looked) {
    let mut say = |count: u64, one: &str, many: &str| match count {
        0 => {}
        1 => push(text, &format!("[1 {one}]")),
        count => push(text, &format!("[{count} {many}]")),
    };
    say(looked.binary, "binary file was not searched.", "binary files were not searched.");
    say(looked.unreadable, "file or directory could not be read.", "files or directories could not be read.");
    say(
        looked.too_long,
        "file was not searched to its end: a line or match in it is too long. Use the bash tool for it.",
        "files were not searched to their end: a line or match in them is too long. Use the bash tool for them.",
    );
}

/// One line of text that neither ends the line nor steers a terminal.
fn harmless(text: &str) -> String {
    text.chars()
        .flat_map(|sign| match sign {
            '\t' => vec!['\t'],
            '\r' => vec!['\u{240D}'],
            sign if sign.is_control() => sign.escape_default().collect(),
            sign => vec![sign],
        })
        .collect()
}
