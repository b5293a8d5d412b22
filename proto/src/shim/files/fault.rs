//! Why a file operation was refused: facts, which the daemon words.

use serde::{Deserialize, Serialize};

use super::{Change, FileKind, LineRange};

/// Why nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileError {
    /// The path as it was given.
    pub path: String,
    /// The reason.
    pub fault: Fault,
}

/// The reason of a [`FileError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// The path is empty.
    EmptyPath {},
    /// The path holds a NUL.
    NulInPath {},
    /// A part of the path is longer than a file name can be.
    NameTooLong {},
    /// `~`, `$NAME` or a URL stand at the start; nothing is expanded.
    NotExpanded {},
    /// It leads outside of every root.
    Outside {
        /// The roots.
        roots: Vec<String>,
    },
    /// Too many links.
    LinkLoop {},
    /// There is nothing.
    NotFound {
        /// Existing paths with similar names.
        similar: Vec<String>,
        /// The first directory of the path that does not exist, if it is not the last part.
        missing_directory: Option<String>,
    },
    /// A link whose target does not exist.
    DanglingLink {
        /// Its target.
        target: String,
    },
    /// A part of the path that must be a directory is something else.
    NotADirectory {
        /// That part.
        part: String,
    },
    /// A directory, where a file is needed.
    IsDirectory {},
    /// Neither a file nor a directory.
    NotRegular {
        /// What it is.
        kind: FileKind,
    },
    /// Files of this directory decide what programs run; they are not edited with this tool.
    Protected {
        /// The directory's name, for example `.git`.
        name: String,
    },
    /// `create` on an existing file that was not viewed.
    Exists {},
    /// The file changed since it was viewed, where the edit would act.
    Stale {
        /// From what was viewed to what was found; none = not known any more.
        change: Option<Box<Change>>,
    },
    /// The file is not what the preview was made from.
    ChangedSincePreview {},
    /// The range is not within the file.
    BadRange {
        /// As given.
        range: LineRange,
        /// Lines of the file.
        total: u64,
    },
    /// A range is for files only.
    RangeOnDirectory {},
    /// `insert_line` is not within 0..=total.
    BadLine {
        /// As given.
        line: i64,
        /// Lines of the file.
        total: u64,
    },
    /// The text to replace is empty.
    EmptyOld {},
    /// There is nothing to insert.
    EmptyInsert {},
    /// The text to replace does not stand there.
    NoMatch {
        /// The most similar place.
        near: Option<Box<NearMiss>>,
        /// From what was viewed to what was found, if it changed since.
        change: Option<Box<Change>>,
    },
    /// The text to replace stands there several times.
    ManyMatches {
        /// How often, overlapping places counted.
        count: u64,
        /// The first lines of the first places.
        lines: Vec<u64>,
    },
    /// The regular expression cannot be used.
    BadPattern {
        /// What is wrong with it.
        message: String,
    },
    /// The glob cannot be used.
    BadGlob {
        /// The glob.
        glob: String,
        /// What is wrong with it.
        message: String,
    },
    /// The search ended without an answer: a fault of the shim's, or a file system that does not answer.
    SearchLost {},
    /// The edit would change nothing.
    NoChange {
        /// The two texts differ in their line ends alone.
        line_ends_only: bool,
    },
    /// Not text.
    Binary {
        /// What it seems to be.
        what: String,
        /// Bytes.
        size: u64,
    },
    /// Text in an encoding that this tool does not edit.
    Encoding {
        /// For example `UTF-16 (little endian)`.
        name: String,
    },
    /// The file is in a single-byte encoding and the new text has characters beyond ASCII.
    MixedEncoding {},
    /// Larger than this tool handles.
    TooLarge {
        /// Bytes of the file, or of what it would become.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The system forbids it.
    Denied {
        /// What was tried.
        action: Action,
    },
    /// The file's owner or group could not be kept.
    OwnerNotKept {},
    /// No space.
    NoSpace {
        /// What was tried.
        action: Action,
    },
    /// Any other failure of the system.
    System {
        /// What was tried.
        action: Action,
        /// The system's words.
        message: String,
    },
    /// Fewer edits than asked can be taken back.
    NothingToUndo {
        /// How many can.
        left: u64,
    },
    /// The prior version is not kept any more.
    PriorGone {},
    /// The file is not as the edit left it.
    UndoConflict {
        /// From how the edit left it to how it is now; none = not known any more.
        change: Option<Box<Change>>,
    },
}

/// What was tried when the system refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Follow the path.
    Resolve,
    /// Read the file or directory.
    Read,
    /// Write the file or make its directories.
    Write,
    /// Keep the prior version for undo.
    KeepPrior,
}

/// The place most similar to a text that was not found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearMiss {
    /// Number of its first line.
    pub first: u64,
    /// Its lines, without their ends.
    pub lines: Vec<String>,
    /// How the wanted text differs from it.
    pub differences: Vec<Difference>,
}

/// One way in which a text differs from a similar place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "difference", rename_all = "snake_case")]
pub enum Difference {
    /// It carries the line numbers of a view.
    LineNumbers {},
    /// Blanks at the start of a line, as (wanted, found).
    Indentation {
        /// In the wanted text.
        wanted: String,
        /// In the file.
        found: String,
    },
    /// Blanks at the end of a line.
    TrailingBlanks {},
    /// Blanks inside a line, or the number of blank lines.
    Blanks {},
    /// Straight and typographic quotes, dashes and the like.
    Punctuation {},
    /// Upper and lower case.
    Case {},
    /// Composed and decomposed characters that look the same.
    UnicodeForm {},
    /// A backslash escape too many or too few.
    Escapes {},
    /// Words.
    Line {
        /// Number of the line in the file.
        number: u64,
        /// In the wanted text.
        wanted: String,
        /// In the file.
        found: String,
    },
}
