//! Showing a file: lines of a text, or an image; in memory that does not grow with the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use base64::Engine as _;
use proto::shim::files::{Action, Fault, ImageView, LineRange, TextTraits, TextView};

use super::path::io_fault;
use super::text::{self, Sniffed};

/// How far past the shown lines a file is read only to count its lines. Beyond it "how many lines" is not worth the
/// time: this is a fraction of a second of reading.
const COUNT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The largest image that the Messages API takes, in bytes of the file: 5 MB of base64.
const IMAGE_BYTES_MAX: u64 = 3_750_000;

/// What a line costs beside its text: its number and its end. Blank lines are not free.
const LINE_CHARACTERS: u64 = 8;

/// The buffer of the walk through a file: large enough that system calls do not matter.
const BUFFER_BYTES: usize = 128 * 1024;

/// What a view of a file shows.
pub(super) enum Shown {
    Text(TextView),
    Image(ImageView),
}

/// What is wanted of a file.
pub(super) struct Wish<'a> {
    /// The file, as people know it.
    pub(super) path: &'a str,
    pub(super) range: Option<LineRange>,
    /// In characters of the shown text.
    pub(super) limit: u64,
}

/// Shows a regular file.
pub(super) fn file(file: &File, size: u64, wish: &Wish<'_>) -> Result<Shown, Fault> {
    let read = |error: io::Error| io_fault(&error, Action::Read);
    let mut head = vec![0; text::SNIFF_BYTES];
    let filled = fill(file, &mut head).map_err(read)?;
    head.truncate(filled);
    match text::sniff(&head) {
        Sniffed::Image(media_type) => image(file, size, media_type, wish.path).map(Shown::Image),
        Sniffed::Wide(name) => Err(Fault::Encoding { name: name.to_owned() }),
        Sniffed::Binary(what) => Err(Fault::Binary { what: what.to_owned(), size }),
        Sniffed::Text => {
            let bom = head.starts_with(text::BOM);
            let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
            reader.seek(SeekFrom::Start(if bom { text::BOM.len() as u64 } else { 0 })).map_err(read)?;
            let mut shown = lines(&mut reader, size, wish)?;
            shown.traits.bom = bom;
            Ok(Shown::Text(shown))
        }
    }
}

fn fill(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn image(file: &File, size: u64, media_type: &str, path: &str) -> Result<ImageView, Fault> {
    if size > IMAGE_BYTES_MAX {
        return Err(Fault::TooLarge { size, limit: IMAGE_BYTES_MAX });
    }
    let mut bytes = Vec::new();
    file.take(IMAGE_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| io_fault(&error, Action::Read))?;
    let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
    Ok(ImageView { path: path.to_owned(), media_type: media_type.to_owned(), data, size })
}

/// A range that was checked as far as it can be without the file.
fn bounds(range: Option<LineRange>) -> Option<(u64, u64)> {
    let Some(LineRange { first, last }) = range else { return Some((1, u64::MAX)) };
    let first = u64::try_from(first).ok().filter(|first| *first >= 1)?;
    if last == -1 {
        return Some((first, u64::MAX));
    }
    let last = u64::try_from(last).ok().filter(|last| *last >= first)?;
    Some((first, last))
}

fn lines(reader: &mut BufReader<&File>, size: u64, wish: &Wish<'_>) -> Result<TextView, Fault> {
    let read = |error: io::Error| io_fault(&error, Action::Read);
    let Some((first, last)) = bounds(wish.range) else {
        let total = count(reader).map_err(read)?;
        return Err(Fault::BadRange { range: wish.range.unwrap_or(LineRange { first: 1, last: -1 }), total });
    };
    let skipped = skip(reader, first - 1).map_err(read)?;
    let mut page = Page { budget: wish.limit, ..Page::default() };
    let mut ended = false;
    while !page.full && skipped + (page.lines.len() as u64) < last {
        if !page.take_line(reader).map_err(read)? {
            ended = true;
            break;
        }
    }
    let shown = skipped + page.lines.len() as u64;
    // An empty file has no line 1, and asking for all of it is right all the same.
    if page.lines.is_empty() && ended && first > 1 {
        let range = wish.range.unwrap_or(LineRange { first: 1, last: -1 });
        return Err(Fault::BadRange { range, total: shown });
    }
    let rest = if ended { Some(0) } else { count_rest(reader, size).map_err(read)? };
    let rest = rest.map(|rest| rest + u64::from(page.open_line));
    Ok(TextView {
        path: wish.path.to_owned(),
        first,
        cut: page.bytes_cut > 0 || (page.full && rest != Some(0) && shown < last),
        lines: page.lines,
        bytes_cut: page.bytes_cut,
        total_lines: rest.map(|rest| shown + rest),
        size,
        traits: page.traits.finish(),
    })
}

/// Lines collected so far.
#[derive(Default)]
struct Page {
    lines: Vec<String>,
    /// Characters that still fit.
    budget: u64,
    /// The next line did not fit.
    full: bool,
    /// Part of the line that did not fit was read: it counts, but is not among those still to come.
    open_line: bool,
    bytes_cut: u64,
    traits: Ends,
}

impl Page {
    /// Takes the next line as far as it fits; false at the end of the file.
    fn take_line(&mut self, reader: &mut BufReader<&File>) -> io::Result<bool> {
        // A character has at most four bytes; one more byte tells that the line goes on.
        let most = self.budget.saturating_mul(4).saturating_add(2);
        let mut line = Vec::new();
        if reader.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        let whole = line.ends_with(b"\n") || reader.fill_buf()?.is_empty();
        let text = text::shown(text::without_end(&line));
        let length = text.chars().count() as u64 + LINE_CHARACTERS;
        if whole && length <= self.budget {
            self.budget -= length;
            self.traits.add(&line);
            self.lines.push(text);
            return Ok(true);
        }
        self.full = true;
        let rest = if whole { 0 } else { skip_line(reader)? };
        if self.lines.is_empty() {
            let fitting: String = text.chars().take(usize::try_from(self.budget).unwrap_or(usize::MAX)).collect();
            let left = (line.len() as u64 + rest).saturating_sub(fitting.len() as u64).max(1);
            self.traits.add(&line);
            self.lines.push(fitting);
            self.bytes_cut = left;
        } else {
            self.open_line = true;
        }
        Ok(true)
    }
}

/// What was seen of encoding and line ends.
#[derive(Default)]
struct Ends {
    crlf: bool,
    lf: bool,
    bare_cr: bool,
    not_utf8: bool,
}

impl Ends {
    fn add(&mut self, line: &[u8]) {
        self.crlf |= line.ends_with(b"\r\n");
        self.lf |= line.ends_with(b"\n") && !line.ends_with(b"\r\n");
        self.bare_cr |= text::without_end(line).contains(&b'\r');
        self.not_utf8 |= std::str::from_utf8(line).is_err();
    }

    fn finish(&self) -> TextTraits {
        TextTraits {
            bom: false,
            crlf: self.crlf && !self.lf,
            mixed_ends: self.crlf && self.lf,
            bare_cr: self.bare_cr,
            not_utf8: self.not_utf8,
        }
    }
}

/// Skips lines; how many there were, at most `wanted`.
fn skip(reader: &mut BufReader<&File>, wanted: u64) -> io::Result<u64> {
    let mut skipped = 0;
    while skipped < wanted && reader.skip_until(b'\n')? > 0 {
        skipped += 1;
    }
    Ok(skipped)
}

fn skip_line(reader: &mut BufReader<&File>) -> io::Result<u64> {
    reader.skip_until(b'\n').map(|skipped| skipped as u64)
}

/// Lines from here to the end, unless that is too far to count.
fn count_rest(reader: &mut BufReader<&File>, size: u64) -> io::Result<Option<u64>> {
    let here = reader.stream_position()?;
    if size.saturating_sub(here) > COUNT_BYTES_MAX { Ok(None) } else { count(reader).map(Some) }
}

fn count(reader: &mut BufReader<&File>) -> io::Result<u64> {
    let mut lines = 0;
    let mut open = false;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(lines + u64::from(open));
        }
        lines += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
        open = !chunk.ends_with(b"\n");
        let length = chunk.len();
        reader.consume(length);
    }
}
