//! What a result must look like, and what the product adds to a command's output.
//!
//! The product's decorations are lines in square brackets after the output (and, where output was left out, one line in
//! its middle). They are taken off before the output is compared, and read as facts: exit status, deadline, new shell.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::play::Taken;
use crate::model_server::ToolResult;
use crate::processes;
use crate::wait::within;

/// How long processes that must be gone may take to go, as the corpus allows.
const SETTLE: std::time::Duration = std::time::Duration::from_secs(1);

/// Expectation of one call of the bash tool. Absent keys are not looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    output: Option<String>,
    #[serde(default)]
    output_contains: Vec<String>,
    #[serde(default)]
    output_not_contains: Vec<String>,
    output_regex: Option<String>,
    exit_code: Option<Value>,
    timed_out: Option<bool>,
    session_restarted: Option<bool>,
    truncated: Option<bool>,
    is_error: Option<bool>,
    max_wall_s: Option<f64>,
    min_wall_s: Option<f64>,
    max_output_bytes: Option<usize>,
    /// Always true here: a result that is not valid JSON and UTF-8 never reaches this point.
    #[serde(rename = "valid_utf8")]
    _valid_utf8: Option<bool>,
    /// Processes that must or must not be alive when the step is answered.
    #[serde(default)]
    pub survivors: Vec<Survivors>,
    #[serde(default)]
    any_of: Vec<Expect>,
    /// One expectation for each of several parallel calls.
    #[serde(default)]
    pub parallel: Vec<Expect>,
}

/// How many processes may have a token as one whole argument.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survivors {
    /// The token.
    pub token: String,
    min: Option<usize>,
    max: Option<usize>,
}

impl Survivors {
    /// Waits for the number of processes to be right; what is wrong if it does not become so.
    #[must_use]
    pub fn check(&self) -> Option<String> {
        let count = || processes::with_argument(&self.token).len();
        let right = |count: usize| self.min.is_none_or(|min| count >= min) && self.max.is_none_or(|max| count <= max);
        match within(SETTLE, || right(count()).then_some(())) {
            Some(()) => None,
            None => Some(format!("{} processes with {}, expected {self:?}", count(), self.token)),
        }
    }
}

/// A result of the bash tool, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// What the command wrote.
    pub output: String,
    /// Its exit status; 0 when none is told.
    pub exit_code: i32,
    /// Whether a deadline ended it.
    pub timed_out: bool,
    /// Whether the caller is told that the shell is new.
    pub restarted: bool,
    /// Whether output was left out.
    pub truncated: bool,
}

/// A line that the product added at the end: in brackets, and of one of its kinds.
static NOTE: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = [
        r"exit status -?\d+",
        "timed out after .*",
        "interrupted by the user.*",
        "ended by a restart of the shell.*",
        "the command could not be handed to the shell.*",
        "processes were killed: .*",
        "forks were refused: .*",
        "the shell function .* was removed.*",
        ".*a new shell was started in .*",
        "hint: .*",
    ];
    pattern(&format!(r"^\[({})\]$", kinds.join("|")))
});

/// The status as the product tells it.
static STATUS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\[exit status (-?\d+)\]$"));

/// The line in the middle of a result from which output was left out.
static GAP: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\[[^\n]* left out here[^\n]*\]$"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

impl Shown {
    /// Takes a result's text apart.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut shown = Self { truncated: GAP.is_match(text), ..Self::default() };
        let mut output = text;
        loop {
            // One line feed that is not part of the output stands before the first note, unless there is no output.
            let (rest, line) = output.rsplit_once('\n').unwrap_or(("", output));
            if !NOTE.is_match(line) {
                break;
            }
            if let Some(status) = STATUS.captures(line) {
                shown.exit_code = status[1].parse().unwrap_or(-1);
            }
            shown.timed_out |= line.starts_with("[timed out");
            shown.restarted |= line.contains("a new shell was started");
            output = rest;
        }
        output.clone_into(&mut shown.output);
        shown
    }
}

impl Expect {
    /// Everything in which a step's answer differs.
    #[must_use]
    pub fn check_step(&self, taken: &Taken, strict: bool) -> Vec<String> {
        let wall = taken.wall.as_secs_f64();
        let mut wrong = self.check_wall(wall);
        if self.parallel.is_empty() {
            match taken.results.as_slice() {
                [one] => wrong.extend(self.check(one, wall, strict)),
                many => wrong.push(format!("{} answers to one call", many.len())),
            }
            return wrong;
        }
        if taken.results.len() != self.parallel.len() {
            wrong.push(format!("{} answers to {} calls", taken.results.len(), self.parallel.len()));
        }
        for (index, (expect, result)) in self.parallel.iter().zip(&taken.results).enumerate() {
            wrong.extend(expect.check(result, wall, strict).into_iter().map(|wrong| format!("call {index}: {wrong}")));
        }
        wrong
    }

    fn check_wall(&self, wall: f64) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.max_wall_s.is_some_and(|max| wall > max) || self.min_wall_s.is_some_and(|min| wall < min) {
            wrong.push(format!("took {wall:.2} s, expected {:?}..{:?}", self.min_wall_s, self.max_wall_s));
        }
        wrong
    }

    fn check(&self, result: &ToolResult, wall: f64, strict: bool) -> Vec<String> {
        let shown = Shown::read(&result.text);
        let mut wrong = self.check_text(&shown, strict);
        if self.exit_code.as_ref().is_some_and(|expected| !status_fits(expected, shown.exit_code)) {
            wrong.push(format!("exit code {}, expected {:?}", shown.exit_code, self.exit_code));
        }
        let facts = [
            ("timed_out", self.timed_out, shown.timed_out),
            ("session_restarted", self.session_restarted, shown.restarted),
            ("truncated", self.truncated, shown.truncated),
            ("is_error", self.is_error, result.is_error),
        ];
        let differing = facts.iter().filter(|(_, expected, got)| expected.is_some_and(|expected| expected != *got));
        wrong.extend(differing.map(|(name, _, got)| format!("{name} is {got}")));
        if self.max_output_bytes.is_some_and(|max| result.text.len() > max) {
            wrong.push(format!("{} bytes of result, at most {:?}", result.text.len(), self.max_output_bytes));
        }
        if !self.any_of.is_empty() {
            let each: Vec<Vec<String>> = self
                .any_of
                .iter()
                .map(|expect| [expect.check_wall(wall), expect.check(result, wall, strict)].concat())
                .collect();
            if !each.iter().any(Vec::is_empty) {
                wrong.push(format!("none of these holds: {each:?}"));
            }
        }
        if !wrong.is_empty() {
            wrong.push(format!("the result was {:?}", shorten(&result.text)));
        }
        wrong
    }

    fn check_text(&self, shown: &Shown, strict: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let got = &shown.output;
        if let Some(expected) = &self.output {
            let same =
                if strict { got == expected } else { got.trim_end_matches('\n') == expected.trim_end_matches('\n') };
            if !same {
                wrong.push(format!("output {:?}, expected {:?}", shorten(got), shorten(expected)));
            }
        }
        wrong.extend(contains(got, &self.output_contains, &self.output_not_contains));
        if let Some(regex) = &self.output_regex
            && !python_search(regex, got)
        {
            wrong.push(format!("output {:?} does not match {regex:?}", shorten(got)));
        }
        wrong
    }
}

/// What is missing from a text, and what should be.
pub(super) fn contains(got: &str, needed: &[String], banned: &[String]) -> Vec<String> {
    let missing = needed.iter().filter(|text| !got.contains(*text)).map(|text| format!("{text:?} is missing"));
    let present = banned.iter().filter(|text| got.contains(*text)).map(|text| format!("{text:?} is there"));
    missing.chain(present).collect()
}

/// Python's `re.search` with DOTALL: `$` also matches before a last newline, and trailing newlines do not count.
pub(super) fn python_search(regex: &str, text: &str) -> bool {
    let regex = Regex::new(&format!("(?s){regex}")).unwrap_or_else(|error| panic!("{regex:?}: {error}"));
    let trimmed = text.trim_end_matches('\n');
    [text, trimmed, &format!("{trimmed}\n")].iter().any(|text| regex.is_match(text))
}

fn status_fits(expected: &Value, got: i32) -> bool {
    match expected {
        Value::String(word) => word == "nonzero" && got != 0,
        Value::Number(number) => number.as_i64() == Some(i64::from(got)),
        Value::Array(list) => list.iter().any(|expected| status_fits(expected, got)),
        Value::Null | Value::Bool(_) | Value::Object(_) => false,
    }
}

/// A text short enough for a report.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 400;
    let count = text.chars().count();
    if count <= SHOWN {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN / 2).collect();
    let tail: String = text.chars().skip(count - SHOWN / 2).collect();
    format!("{head} … {} characters … {tail}", count - SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (String, i32) {
        let shown = Shown::read(text);
        (shown.output, shown.exit_code)
    }

    #[test]
    fn decorations_are_taken_off_and_output_in_brackets_is_not() {
        assert_eq!(shown("abc\n\n[exit status 3]"), ("abc\n".to_owned(), 3));
        assert_eq!(shown("abc\n[exit status 3]"), ("abc".to_owned(), 3));
        assert_eq!(shown("[a]\n[b]\n"), ("[a]\n[b]\n".to_owned(), 0));
        assert_eq!(shown("[exit status 1]"), (String::new(), 1));
        assert_eq!(shown("x"), ("x".to_owned(), 0));
        assert_eq!(shown("x\n\n[hint: the glob tool does this]"), ("x\n".to_owned(), 0));
        assert_eq!(shown("[1]+  Done  sleep 1\n\n[exit status 0]"), ("[1]+  Done  sleep 1\n".to_owned(), 0));
        let ended =
            Shown::read("x\n\n[exit status 4]\n[the shell exited with status 4; a new shell was started in /w; x]");
        assert_eq!((ended.output.as_str(), ended.exit_code, ended.restarted), ("x\n", 4, true));
    }

    #[test]
    fn a_regex_is_read_as_python_reads_it() {
        assert!(python_search("^1\\n2\\n$", "1\n2\n"));
        assert!(python_search("a.b", "a\nb"));
        assert!(!python_search("^b", "a\nb"));
    }

    #[test]
    fn each_key_of_an_expectation_is_looked_at() {
        let result = ToolResult { tool_use_id: "t".into(), text: "out\n[exit status 2]".into(), is_error: true };
        let taken = Taken { results: vec![result], wall: std::time::Duration::from_secs(2) };
        let wrong =
            |json: &str| serde_json::from_str::<Expect>(json).expect("an expectation").check_step(&taken, false);
        assert!(wrong(r#"{"output":"out","exit_code":[1,2],"is_error":true,"max_wall_s":3}"#).is_empty());
        assert!(wrong(r#"{"any_of":[{"output":"x"},{"exit_code":"nonzero"}]}"#).is_empty());
        for bad in [
            r#"{"output":"ou"}"#,
            r#"{"exit_code":0}"#,
            r#"{"output_contains":["x"]}"#,
            r#"{"output_not_contains":["out"]}"#,
            r#"{"output_regex":"^x"}"#,
            r#"{"timed_out":true}"#,
            r#"{"session_restarted":true}"#,
            r#"{"truncated":true}"#,
            r#"{"is_error":false}"#,
            r#"{"max_wall_s":1}"#,
            r#"{"min_wall_s":3}"#,
            r#"{"max_output_bytes":3}"#,
            r#"{"any_of":[{"output":"x"}]}"#,
            r#"{"parallel":[{},{}]}"#,
        ] {
            assert!(!wrong(bad).is_empty(), "{bad}");
        }
    }
}
