//! Searching the workspace: what is asked and what was found. Limits that were reached are facts of the answer.

use serde::{Deserialize, Serialize};

/// Find lines in files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grep {
    /// A regular expression.
    pub pattern: String,
    /// The file or directory, as the model gave it; none = the shell's directory where that lies inside.
    #[serde(default)]
    pub path: Option<String>,
    /// Only files that match this glob.
    #[serde(default)]
    pub glob: Option<String>,
    /// Letters match in both cases.
    #[serde(default)]
    pub ignore_case: bool,
    /// A match may go over several lines.
    #[serde(default)]
    pub multiline: bool,
    /// Also hidden and ignored files.
    #[serde(default)]
    pub all: bool,
    /// What comes back.
    pub output: GrepOutput,
    /// How much comes back.
    pub bounds: Bounds,
}

/// Find files by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob {
    /// A glob; without `/` it matches names at any depth.
    pub pattern: String,
    /// The directory, as the model gave it; none = the shell's directory where that lies inside.
    #[serde(default)]
    pub path: Option<String>,
    /// Also hidden and ignored files.
    #[serde(default)]
    pub all: bool,
    /// How much comes back.
    pub bounds: Bounds,
}

/// What a [`Grep`] brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "output", rename_all = "snake_case")]
pub enum GrepOutput {
    /// The files with a match.
    Files {},
    /// The lines that match.
    Lines {
        /// Lines before each.
        before: u32,
        /// Lines after each.
        after: u32,
    },
    /// The number of lines that match, for each file.
    Counts {},
}

/// How much a search may bring back, and how long it may take. The shim has bounds of its own above these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Files, or lines that match where lines are asked for.
    pub results: u64,
    /// Bytes of paths and lines.
    pub bytes: u64,
    /// Bytes of one line.
    pub line_bytes: u64,
    /// Milliseconds.
    pub time_ms: u64,
}

/// What a [`Grep`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matches {
    /// What was searched, as people know it.
    pub path: String,
    /// The files, by path.
    pub files: Vec<FileMatches>,
    /// Files with a match, those left out included.
    pub files_total: u64,
    /// Lines that match in all of them; for [`GrepOutput::Files`] not counted.
    pub lines_total: u64,
    /// What was looked at.
    pub looked: Looked,
    /// What ended the search or left results out.
    #[serde(default)]
    pub limits: Vec<SearchLimit>,
}

/// What was found in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMatches {
    /// The file, as people know it.
    pub path: String,
    /// Lines that match; 0 = not counted.
    pub count: u64,
    /// Those lines and the ones around them, in order.
    #[serde(default)]
    pub lines: Vec<MatchLine>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchLine {
    /// From 1.
    pub number: u64,
    /// Without its end.
    pub text: String,
    /// Whether it matches, or stands beside one that does.
    pub is_match: bool,
    /// Bytes left out before the text, because the line is too long.
    #[serde(default)]
    pub cut_before: u64,
    /// Bytes left out after it.
    #[serde(default)]
    pub cut_after: u64,
}

/// What a [`Glob`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// What was searched, as people know it.
    pub path: String,
    /// The files as people know them, the last changed first.
    pub paths: Vec<String>,
    /// All that match, those left out included.
    pub total: u64,
    /// What was looked at.
    pub looked: Looked,
    /// What ended the search or left results out.
    #[serde(default)]
    pub limits: Vec<SearchLimit>,
}

/// What a search looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Looked {
    /// Files searched, or whose names match.
    pub files: u64,
    /// Files and directories skipped because ignore files name them.
    pub ignored: u64,
    /// Hidden ones skipped.
    pub hidden: u64,
    /// Files not searched because they are not text.
    pub binary: u64,
    /// Files and directories that could not be read.
    pub unreadable: u64,
    /// Files not searched to their end, because one line or match is too long to hold.
    pub too_long: u64,
}

/// A limit that a search reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum SearchLimit {
    /// More results than asked for; the rest was counted and left out.
    Results {
        /// How many were asked for.
        most: u64,
    },
    /// More bytes than asked for; the rest was counted and left out.
    Bytes {
        /// How many were asked for.
        most: u64,
    },
    /// The time was over before everything was looked at.
    Time {
        /// Milliseconds.
        most_ms: u64,
    },
    /// More files and directories than a search looks at.
    Entries {
        /// How many it looks at.
        most: u64,
    },
    /// Directories lie deeper than a search goes.
    Depth {
        /// How deep it goes.
        most: u64,
    },
    /// The user ended it.
    Interrupted {},
    /// A limit of a later version.
    #[serde(other)]
    Other,
}
