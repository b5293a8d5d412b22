//! What the session's edits replaced: prior bytes by content, and a journal of intents and outcomes.
//!
//! An edit is written down before it is made (what it replaces, what it will leave, its answer, its temporary file) and
//! again when it is done. At the next start an intent without outcome is judged by the file itself: it holds the new
//! bytes or it does not. So an applied call id is answered from here and never written twice, an edit can be taken
//! back after a restart, and what a kill left behind is swept.
//!
//! Invariant: an edit that is listed here as done can be taken back, or says that its prior bytes are gone.
//! Not here: workspace files are only ever touched by the caller.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use proto::ids::CallId;
use proto::shim::files::{Digest, FileReply};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::blobs::Blobs;

/// Edits that can be taken back and call ids that are remembered.
const EDITS_MAX: usize = 1000;

/// Bytes of prior versions kept in all, before they are compressed; the oldest edits go first.
const STORE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The journal is written anew when it has this many lines more than it needs.
const STALE_LINES_MAX: usize = 2000;

/// The SHA-256 of some bytes.
pub(super) fn digest(bytes: &[u8]) -> Digest {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Digest(text)
}

/// One edit of one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// 1, 2, 3 … in this session.
    pub(super) number: u64,
    /// The call that made it.
    pub(super) call: Option<CallId>,
    /// The file, absolute, without links.
    pub(super) path: String,
    /// What was there; none = nothing.
    pub(super) before: Option<Prior>,
    /// What is there afterwards; none = nothing.
    pub(super) after: Option<Digest>,
    /// The name of the temporary file beside it.
    pub(super) temp: String,
    /// Directories that are made for it, absolute, the outermost first.
    pub(super) directories: Vec<String>,
    /// The edit that this one takes back.
    pub(super) undoes: Option<u64>,
    /// The answer to the call.
    pub(super) reply: FileReply,
}

/// A prior version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Prior {
    pub(super) digest: Digest,
    pub(super) mode: u32,
    pub(super) size: u64,
}

/// One line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
enum Line {
    Begin(Box<Record>),
    Done { number: u64 },
    Failed { number: u64 },
}

/// The store of one session.
#[derive(Debug)]
pub(super) struct History {
    dir: PathBuf,
    blobs: Blobs,
    journal: File,
    /// Edits that were made, oldest first.
    done: Vec<Record>,
    /// An edit whose outcome is not known yet.
    open: Option<Record>,
    lines: usize,
    next: u64,
}

impl History {
    /// Opens the store; the second part is the edits whose outcome was not written down, to be given to
    /// [`History::settle`].
    pub(super) fn open(dir: &Path) -> io::Result<(Self, Vec<Record>)> {
        let blobs = Blobs::open(dir.join("blobs"))?;
        let path = dir.join("edits.jsonl");
        let mut text = Vec::new();
        let mut journal = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
        journal.read_to_end(&mut text)?;
        // A line that a crash cut short never counted.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        journal.set_len(whole as u64)?;
        let mut history = Self { dir: dir.to_owned(), blobs, journal, done: Vec::new(), open: None, lines: 0, next: 1 };
        let mut begun: Vec<Record> = Vec::new();
        for line in text[..whole].split_inclusive(|byte| *byte == b'\n') {
            history.lines += 1;
            match serde_json::from_slice(line) {
                Ok(Line::Begin(record)) => {
                    history.next = history.next.max(record.number + 1);
                    begun.push(*record);
                }
                Ok(Line::Done { number }) => {
                    if let Some(index) = begun.iter().position(|record| record.number == number) {
                        history.done.push(begun.remove(index));
                    }
                }
                Ok(Line::Failed { number }) => begun.retain(|record| record.number != number),
                // A line of a later version: nothing that this one could take back.
                Err(_) => {}
            }
        }
        history.drop_orphans(&begun)?;
        Ok((history, begun))
    }

    /// The answer that a call was given, with all edits it made.
    pub(super) fn answer(&self, call: CallId) -> Option<&FileReply> {
        self.done.iter().rev().find(|record| record.call == Some(call)).map(|record| &record.reply)
    }

    /// The edits that stand and can be taken back, oldest first.
    pub(super) fn standing(&self) -> Vec<&Record> {
        let undone: HashSet<u64> = self.done.iter().filter_map(|record| record.undoes).collect();
        self.done.iter().filter(|record| record.undoes.is_none() && !undone.contains(&record.number)).collect()
    }

    /// All edits that were made, oldest first.
    pub(super) fn made(&self) -> &[Record] {
        &self.done
    }

    /// The number of the next edit.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Keeps the prior bytes and writes the intent down. After this the edit may be made.
    pub(super) fn begin(&mut self, record: Record, prior: Option<&[u8]>) -> io::Result<()> {
        if let Some(bytes) = prior {
            self.blobs.keep(bytes)?;
        }
        self.next = record.number + 1;
        self.append(&Line::Begin(Box::new(record.clone())))?;
        // Only the intent must reach the disk before the deed. An outcome that a power failure takes away is found out
        // from the file, like that of a kill.
        self.journal.sync_data()?;
        self.open = Some(record);
        Ok(())
    }

    /// The edit that began last is made.
    pub(super) fn done(&mut self) -> io::Result<()> {
        let Some(record) = self.open.take() else { return Ok(()) };
        let number = record.number;
        self.done.push(record);
        self.append(&Line::Done { number })?;
        self.trim()
    }

    /// The edit that began last was not made.
    pub(super) fn failed(&mut self) -> io::Result<()> {
        let Some(record) = self.open.take() else { return Ok(()) };
        self.append(&Line::Failed { number: record.number })
    }

    /// Settles an intent found at the start.
    pub(super) fn settle(&mut self, record: Record, made: bool) -> io::Result<()> {
        self.open = Some(record);
        if made { self.done() } else { self.failed() }
    }

    /// Prior bytes; none when they were dropped to keep the store small.
    pub(super) fn bytes(&self, prior: &Prior) -> io::Result<Option<Vec<u8>>> {
        self.blobs.read(prior)
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let length = self.journal.metadata()?.len();
        let written = self.journal.write_all(&text);
        if written.is_err() {
            // Half a line would swallow the next one.
            self.journal.set_len(length)?;
        }
        self.lines += usize::from(written.is_ok());
        written
    }

    /// Drops the oldest edits beyond the limits, and bytes that no edit needs any more.
    fn trim(&mut self) -> io::Result<()> {
        let sizes = self.done.iter().rev().map(|record| record.before.as_ref().map_or(0, |prior| prior.size));
        let mut total = 0;
        let fit = sizes
            .take_while(|size| {
                total += size;
                total <= STORE_BYTES_MAX
            })
            .take(EDITS_MAX)
            .count();
        let excess = self.done.len() - fit;
        if excess == 0 && self.lines < 2 * EDITS_MAX + STALE_LINES_MAX {
            return Ok(());
        }
        let dropped: Vec<Record> = self.done.drain(..excess).collect();
        if self.lines >= 2 * EDITS_MAX + STALE_LINES_MAX {
            self.rewrite()?;
        }
        for prior in dropped.iter().filter_map(|record| record.before.as_ref()) {
            let needed = self.done.iter().filter_map(|record| record.before.as_ref());
            if !needed.map(|prior| &prior.digest).any(|digest| *digest == prior.digest) {
                self.blobs.remove(&prior.digest);
            }
        }
        Ok(())
    }

    /// Removes bytes that no edit names: a kill came between keeping them and naming them.
    fn drop_orphans(&self, begun: &[Record]) -> io::Result<()> {
        let priors = self.done.iter().chain(begun).filter_map(|record| record.before.as_ref());
        let needed: HashSet<&str> = priors.map(|prior| prior.digest.0.as_str()).collect();
        self.blobs.keep_only(&needed)
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let path = self.dir.join("edits.jsonl");
        let temp = self.dir.join("edits.part");
        let mut text = Vec::new();
        for record in &self.done {
            serde_json::to_writer(&mut text, &Line::Begin(Box::new(record.clone())))?;
            text.push(b'\n');
            serde_json::to_writer(&mut text, &Line::Done { number: record.number })?;
            text.push(b'\n');
        }
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
        file.write_all(&text)?;
        file.sync_data()?;
        fs::rename(&temp, &path)?;
        self.journal = OpenOptions::new().read(true).append(true).open(&path)?;
        self.lines = 2 * self.done.len();
        Ok(())
    }
}
