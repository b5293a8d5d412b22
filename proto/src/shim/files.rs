//! File operations asked of the shim, and their structured answers.
//!
//! The shim does the deed and states facts; the daemon words them for the model and computes the diff. Both sides are
//! self-describing JSON: fields may be added (readers skip what they do not know, new fields carry a default).
//!
//! Texts in answers are for showing: bytes that are not UTF-8 stand as U+FFFD there. Nothing in an answer is ever
//! written back to a file.

use serde::{Deserialize, Serialize};

use crate::ids::CallId;

/// A SHA-256 as 64 lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub String);

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum FileOp {
    /// Show a file or a directory.
    View(View),
    /// Make a file, or replace one that this session has viewed as it is now.
    Create(Create),
    /// Replace the one place where a text stands.
    StrReplace(StrReplace),
    /// Put lines between lines.
    Insert(Insert),
    /// Take back the session's last edits.
    Undo(Undo),
    /// All changes of the session that stand, file by file.
    Changes {},
}

/// Show a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// As the model gave it.
    pub path: String,
    /// The lines wanted; none = all.
    #[serde(default)]
    pub range: Option<LineRange>,
    /// At most this many characters of text come back.
    pub max_characters: u64,
}

/// Lines as the model asked for them, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    /// From 1.
    pub first: i64,
    /// Inclusive; -1 = to the end.
    pub last: i64,
}

/// Make or replace a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Create {
    /// As the model gave it.
    pub path: String,
    /// The whole content.
    pub text: String,
    /// Whether to write.
    pub mode: Mode,
}

/// Replace the one place where a text stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrReplace {
    /// As the model gave it.
    pub path: String,
    /// The text that must stand there exactly once.
    pub old: String,
    /// What stands there afterwards.
    pub new: String,
    /// Whether to write.
    pub mode: Mode,
}

/// Put lines between lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insert {
    /// As the model gave it.
    pub path: String,
    /// After this line; 0 = before the first.
    pub line: i64,
    /// Whole lines.
    pub text: String,
    /// Whether to write.
    pub mode: Mode,
}

/// Take back edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// How many, the last first.
    pub steps: u32,
    /// Whether to write.
    pub mode: Mode,
}

/// Whether an edit is only computed or also written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Mode {
    /// Everything but the write: every error and the diff, for an approval.
    Preview {},
    /// The write.
    Apply(Apply),
}

/// Conditions of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {
    /// A call id that was applied before gets the stored answer and writes nothing.
    #[serde(default)]
    pub call: Option<CallId>,
    /// What the preview was made from; anything else now is refused.
    #[serde(default)]
    pub expect: Option<Basis>,
}

/// What an edit starts from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The file meant, with all links resolved.
    pub path: String,
    /// Its bytes; none = there is no file.
    pub content: Option<Digest>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum FileReply {
    /// Lines of a file.
    Text(TextView),
    /// A directory.
    Listing(Listing),
    /// An image.
    Image(ImageView),
    /// An edit: previewed or written.
    Edited(Edited),
    /// Edits taken back: previewed or done.
    Undone(Undone),
    /// The session's changes.
    Changes(Changes),
    /// It could not be done; nothing was changed.
    Error(FileError),
}

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextView {
    /// The file, as people know it.
    pub path: String,
    /// Number of the first line shown.
    pub first: u64,
    /// The lines without their ends.
    pub lines: Vec<String>,
    /// Bytes of the last shown line that were left out because it is too long; 0 = it is whole.
    pub bytes_cut: u64,
    /// Lines of the whole file; none = too large to count.
    pub total_lines: Option<u64>,
    /// Bytes of the whole file.
    pub size: u64,
    /// Whether the limit on characters ended the view before the wanted range did.
    pub cut: bool,
    /// What is special about the bytes.
    pub traits: TextTraits,
}

/// What is special about a text file's bytes, as far as they were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextTraits {
    /// It starts with a UTF-8 byte order mark (not shown).
    pub bom: bool,
    /// Its lines end in CRLF.
    pub crlf: bool,
    /// Some lines end in CRLF and some in LF.
    pub mixed_ends: bool,
    /// It has CR that are not part of a line end (shown as U+240D).
    pub bare_cr: bool,
    /// It has bytes that are not UTF-8 (shown as U+FFFD).
    pub not_utf8: bool,
}

/// A directory, two levels deep, without hidden entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The directory, as people know it.
    pub path: String,
    /// Its entries in the order of their names, each directory followed by its own.
    pub entries: Vec<Entry>,
    /// Entries left out because there are too many.
    pub left_out: u64,
    /// Hidden entries of the directory itself, left out by rule.
    pub hidden: u64,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Relative to the listed directory.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Entries of this directory that are not listed; 0 = all are.
    #[serde(default)]
    pub left_out: u64,
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, not followed.
    Symlink {
        /// Its text.
        target: String,
    },
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// An image, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageView {
    /// The file, as people know it.
    pub path: String,
    /// For example `image/png`, by its content.
    pub media_type: String,
    /// Base64.
    pub data: String,
    /// Bytes of the file.
    pub size: u64,
}

/// An edit: previewed or written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// Whether it was written.
    pub applied: bool,
    /// What it starts from; an approval hands it back in [`Apply::expect`].
    pub basis: Basis,
    /// What it changes.
    pub change: Change,
    /// What else the caller should know.
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// The lines that an edit changes, with some lines around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The file, as people know it.
    pub path: String,
    /// Whether the file did not exist before.
    pub created: bool,
    /// Whether the file does not exist afterwards.
    pub deleted: bool,
    /// Number of the first line in `before` and `after`, from 1.
    pub first: u64,
    /// The lines before, ends included.
    pub before: String,
    /// The lines after, ends included.
    pub after: String,
    /// How many of the first lines are the same in both.
    pub context_above: u32,
    /// How many of the last lines are the same in both.
    pub context_below: u32,
    /// Changed lines of the old file beyond `before`; 0 = all are there.
    #[serde(default)]
    pub before_left_out: u64,
    /// Changed lines of the new file beyond `after`; 0 = all are there.
    #[serde(default)]
    pub after_left_out: u64,
    /// Lines of the file afterwards.
    pub total_lines: u64,
}

/// What else the caller of an edit should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// Other names of the same file (hard links) keep the old content.
    HardLinks {
        /// How many.
        others: u64,
    },
    /// The file changed on disk since it was viewed, away from this edit.
    ChangedSinceViewed {
        /// From what was viewed to what was found; none = not known any more.
        change: Option<Box<Change>>,
    },
    /// The path led through links to another file.
    Followed {
        /// The file that was meant.
        path: String,
    },
    /// Set-user-ID or set-group-ID were kept.
    SpecialBits {
        /// The mode, for example 0o2755.
        mode: u32,
    },
    /// The replaced file ended its lines in CRLF; the new text does not.
    LineEndsNow {},
    /// The replaced file began with a byte order mark; the new text does not.
    BomGone {},
}

/// Edits taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// Whether it was written.
    pub applied: bool,
    /// One change for each edit taken back, in the order in which it happened: the last edit first.
    pub changes: Vec<Change>,
    /// Edits that can still be taken back.
    pub left: u64,
}

/// The session's changes, one for each file, from before its first kept edit to now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// In the order of their first edit.
    pub changes: Vec<Change>,
    /// Files left out to keep the answer small.
    pub left_out: u64,
}

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
