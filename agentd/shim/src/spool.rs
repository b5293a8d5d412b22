//! A command's output: all of it up to a bound, its first and last part beyond.
//!
//! Small outputs stay in memory; a larger one goes to a file whose first half is written once and whose second half is
//! a ring. When the command is over, [`Spool::seal`] puts a wrapped ring in order and writes the size of the gap between
//! the halves. Offsets are always those of the command's output, never of the file.
//!
//! Invariant: memory use does not depend on how much a command prints.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Output up to this size stays in memory: it is below what a model is shown, so a result that was cut always has a
/// file to name.
const MEMORY_MAX: usize = 24 * 1024;

/// A command's output.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    half: u64,
    total: u64,
    lines: u64,
    memory: Vec<u8>,
    file: Option<File>,
    seal: Option<Seal>,
    broken: bool,
}

/// How offsets map into the file once it is sealed.
#[derive(Clone, Copy, Debug)]
struct Seal {
    tail_start: u64,
    tail_in_file: u64,
    tail_bytes: u64,
}

impl Spool {
    pub(crate) fn new(path: PathBuf, limit: u64) -> Self {
        let half = (limit / 2).max(MEMORY_MAX as u64);
        Self { path, half, total: 0, lines: 0, memory: Vec::new(), file: None, seal: None, broken: false }
    }

    /// All bytes the command wrote.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// All line feeds among them.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// The file, when there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|_| self.path.as_path())
    }

    /// Where the file is, or would be.
    pub(crate) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Bytes in the middle that are not kept.
    pub(crate) fn gap(&self) -> u64 {
        self.total.saturating_sub(2 * self.half)
    }

    /// Takes output. A disk that fails loses bytes of the file, never the count.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.lines += count_lines(bytes);
        let at = self.total;
        self.total += bytes.len() as u64;
        if self.file.is_none() && self.memory.len() + bytes.len() <= MEMORY_MAX {
            self.memory.extend_from_slice(bytes);
            return;
        }
        if self.seal.is_some_and(|seal| seal.tail_bytes > 0) || self.broken {
            return;
        }
        self.broken = self.persist().and_then(|()| self.write(at, bytes)).is_err();
    }

    /// Makes sure that what was printed so far is in the file.
    pub(crate) fn persist(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            let file =
                OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
            file.write_all_at(&self.memory, 0)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        Ok(())
    }

    /// Whether output waits in memory only.
    pub(crate) fn is_volatile(&self) -> bool {
        self.file.is_none() && !self.memory.is_empty()
    }

    fn write(&self, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        while !bytes.is_empty() {
            let (place, room) = if at < self.half {
                (at, self.half - at)
            } else {
                let ring = (at - self.half) % self.half;
                (self.half + ring, self.half - ring)
            };
            let (now, rest) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            file.write_all_at(now, place)?;
            at += now.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Output from `offset` on, at most `max` bytes; the offset is moved over the gap when it lies inside.
    pub(crate) fn read(&self, offset: u64, max: usize) -> io::Result<(u64, Vec<u8>)> {
        let mut offset = offset.min(self.total);
        let Some(file) = &self.file else {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.memory.len());
            let to = from.saturating_add(max).min(self.memory.len());
            return Ok((offset, self.memory[from..to].to_vec()));
        };
        let tail_start = self.half + self.gap();
        if offset >= self.half && offset < tail_start {
            offset = tail_start;
        }
        let (place, room) = self.place(offset);
        let length = (self.total - offset).min(room).min(max as u64);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let got = read_at_most(file, &mut bytes, place)?;
        bytes.truncate(got);
        Ok((offset, bytes))
    }

    /// Where an offset lies in the file, and how many bytes follow it there in order.
    fn place(&self, offset: u64) -> (u64, u64) {
        if offset < self.half {
            return (offset, self.half - offset);
        }
        if let Some(seal) = self.seal.filter(|seal| seal.tail_bytes > 0) {
            let into = offset - seal.tail_start;
            return (seal.tail_in_file + into, seal.tail_bytes.saturating_sub(into));
        }
        let ring = (offset - self.half) % self.half;
        (self.half + ring, self.half - ring)
    }

    /// The first `head` and the last `tail` bytes, without overlap: the body and how much of it is head.
    pub(crate) fn ends(&self, head: u64, tail: u64) -> io::Result<(Vec<u8>, u64)> {
        if self.total <= head + tail {
            let body = self.collect(0, self.total)?;
            let length = body.len() as u64;
            return Ok((body, length));
        }
        let mut body = self.collect(0, head)?;
        let head = body.len() as u64;
        body.extend(self.collect(self.total - tail, tail)?);
        Ok((body, head))
    }

    fn collect(&self, mut offset: u64, mut length: u64) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while length > 0 {
            let (at, bytes) = self.read(offset, usize::try_from(length).unwrap_or(usize::MAX))?;
            if at != offset || bytes.is_empty() {
                break;
            }
            offset += bytes.len() as u64;
            length -= bytes.len() as u64;
            all.extend(bytes);
        }
        Ok(all)
    }

    /// The command is over: the file becomes something that can be read from start to end.
    pub(crate) fn seal(&mut self) {
        if self.seal.is_some() {
            return;
        }
        let mut seal = Seal { tail_start: 0, tail_in_file: 0, tail_bytes: 0 };
        if self.gap() > 0 {
            match self.put_in_order() {
                Ok(done) => seal = done,
                Err(_) => self.broken = true,
            }
        }
        self.seal = Some(seal);
    }

    fn put_in_order(&mut self) -> io::Result<Seal> {
        let Some(file) = self.file.as_mut() else { return Err(io::ErrorKind::NotFound.into()) };
        let (half, gap) = (self.half, self.total - 2 * self.half);
        let next_path = self.path.with_extension("sorted");
        let mut next =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&next_path)?;
        let cut = (self.total - half) % half;
        copy(file, &mut next, 0, half)?;
        next.write_all(format!("\n[{gap} bytes left out here]\n").as_bytes())?;
        let tail_in_file = next.stream_position()?;
        copy(file, &mut next, half + cut, half - cut)?;
        copy(file, &mut next, half, cut)?;
        std::fs::rename(&next_path, &self.path)?;
        self.file = Some(next);
        Ok(Seal { tail_start: half + gap, tail_in_file, tail_bytes: half })
    }
}

/// From file to file the library leaves the copying to the kernel, where that can.
fn copy(from: &mut File, to: &mut File, start: u64, length: u64) -> io::Result<()> {
    from.seek(SeekFrom::Start(start))?;
    let copied = io::copy(&mut from.take(length), to)?;
    if copied < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

fn read_at_most(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        let count = file.read_at(&mut buffer[got..], at + got as u64)?;
        if count == 0 {
            break;
        }
        got += count;
    }
    Ok(got)
}

/// Line feeds in a piece of output.
pub(crate) fn count_lines(bytes: &[u8]) -> u64 {
    // 255 at a time fit a byte, which lets the compiler count sixteen or more bytes per step.
    bytes.chunks(255).map(|chunk| u64::from(chunk.iter().fold(0u8, |sum, &byte| sum + u8::from(byte == b'\n')))).sum()
}
