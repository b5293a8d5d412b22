//! What became of calls, on disk: a call is recorded before it runs and its end before that is reported, so that both
//! survive the shim.
//!
//! The file is a row of frames ([`proto::shim::frame`]): a JSON header, and the output itself where it is small enough
//! not to have a file of its own. When nothing is outstanding the file starts over.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proto::ids::CallId;
use proto::shim::frame::{self, Decoder};
use proto::shim::outcome::RunEnd;
use serde::{Deserialize, Serialize};

/// The journal's name in the state directory.
pub const FILE: &str = "journal";

/// The file starts over at this size when no result is outstanding.
const COMPACT_BYTES: u64 = 1024 * 1024;

/// The file is longer than its records by up to this, because a write that does not move the end costs less; the rest is
/// zeros, which no frame begins with.
const GROW_BYTES: u64 = 256 * 1024;

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A command is about to run; its output will be in `spool` once it is more than a little.
    Began {
        /// The call.
        call: CallId,
        /// Where its output goes.
        spool: String,
    },
    /// A command is over; the body is its output's first and last bytes.
    Ended {
        /// The call.
        call: CallId,
        /// How.
        #[serde(flatten)]
        end: RunEnd,
    },
    /// A record of a later version.
    #[serde(other)]
    Unknown,
}

/// Records, each with its body.
pub type Records = Vec<(Record, Vec<u8>)>;

/// The journal, open for writing.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    room: u64,
    scratch: Vec<u8>,
}

impl Journal {
    pub(crate) fn open(state_dir: &Path) -> io::Result<Self> {
        let path = state_dir.join(FILE);
        let bytes = read_all(state_dir)?.1;
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
        file.set_len(bytes + GROW_BYTES)?;
        Ok(Self { path, file, bytes, room: bytes + GROW_BYTES, scratch: Vec::new() })
    }

    pub(crate) fn write(&mut self, record: &Record, body: &[u8]) -> io::Result<()> {
        self.scratch.clear();
        frame::encode(&mut self.scratch, record, body).map_err(io::Error::other)?;
        let end = self.bytes + self.scratch.len() as u64;
        if end > self.room {
            self.room = end + GROW_BYTES;
            self.file.set_len(self.room)?;
        }
        self.file.write_all_at(&self.scratch, self.bytes)?;
        self.bytes = end;
        self.scratch.shrink_to(READ_BYTES);
        Ok(())
    }

    /// No result is outstanding but those of jobs that run, whose records are kept.
    pub(crate) fn settle(&mut self, keep: impl FnOnce() -> Vec<Record>) {
        if self.bytes <= COMPACT_BYTES {
            return;
        }
        let keep = keep();
        if !keep.is_empty() {
            // A failure leaves the longer file, which is as good.
            let _ = self.start_over_with(&keep);
        } else if self.file.set_len(0).and_then(|()| self.file.set_len(GROW_BYTES)).is_ok() {
            (self.bytes, self.room) = (0, GROW_BYTES);
        }
    }

    /// A new file takes this one's place, so that no moment is without the records.
    fn start_over_with(&mut self, records: &[Record]) -> io::Result<()> {
        let next = self.path.with_extension("next");
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&next)?;
        let mut fresh =
            Self { path: self.path.clone(), file, bytes: 0, room: 0, scratch: std::mem::take(&mut self.scratch) };
        for record in records {
            fresh.write(record, &[])?;
        }
        std::fs::rename(&next, &self.path)?;
        *self = fresh;
        Ok(())
    }
}

/// All records of a journal, oldest first, each with its body. A record cut short by a crash ends the list.
///
/// # Errors
/// When the file cannot be read; a missing one is empty.
pub fn read(state_dir: &Path) -> io::Result<Records> {
    Ok(read_all(state_dir)?.0)
}

/// The records and where they end.
fn read_all(state_dir: &Path) -> io::Result<(Records, u64)> {
    let mut file = match File::open(state_dir.join(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let (mut decoder, mut buffer) = (Decoder::default(), vec![0; READ_BYTES]);
    let (mut records, mut end) = (Records::new(), 0);
    loop {
        let got = file.read(&mut buffer)?;
        if got == 0 {
            return Ok((records, end));
        }
        decoder.push(&buffer[..got]);
        loop {
            match decoder.next_frame() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    end += frame.bytes() as u64;
                    if let Ok(record) = frame.header() {
                        records.push((record, frame.body));
                    }
                }
                // The zeros after the last record, or what a crash of the machine left of it.
                Err(_) => return Ok((records, end)),
            }
        }
    }
}
