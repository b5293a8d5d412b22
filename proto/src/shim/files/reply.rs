//! What the shim answers to a file operation.

use serde::{Deserialize, Serialize};

use super::{Basis, FileError, Matches, Paths};

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
    /// Lines that match.
    Matches(Matches),
    /// Files whose names match.
    Paths(Paths),
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
    /// What it starts from; an approval hands it back in `Apply::expect`.
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
    /// The number of the newest of these edits: it names all that was there to take back.
    #[serde(default)]
    pub newest: u64,
    /// What kept the rest of the wanted edits from being taken back, when some were.
    #[serde(default)]
    pub stopped: Option<FileError>,
}

/// The session's changes, one for each file, from before its first kept edit to now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// In the order of their first edit.
    pub changes: Vec<Change>,
    /// Files left out to keep the answer small.
    pub left_out: u64,
    /// Files whose change cannot be told, because what is there now cannot be read.
    #[serde(default)]
    pub unknown: Vec<FileError>,
}
