//! What the bytes of a text file are: encoding, line ends, lines. Pure.
//!
//! A line ends at LF or CRLF and at nothing else; a final line end does not start another line.

use proto::shim::files::TextTraits;

/// The UTF-8 byte order mark.
pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How much of a file decides whether it is text: what `git` and `grep` look at, near enough.
pub(super) const SNIFF_BYTES: usize = 8 * 1024;

/// The line end of new lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    Lf,
    CrLf,
}

impl LineEnd {
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }

    /// The end that most lines of a text have; none when it has no line end or as many of both.
    pub(super) fn majority(text: &[u8]) -> Option<Self> {
        let (crlf, lf) = count_ends(text);
        match crlf.cmp(&lf) {
            std::cmp::Ordering::Greater => Some(Self::CrLf),
            std::cmp::Ordering::Less => Some(Self::Lf),
            std::cmp::Ordering::Equal => None,
        }
    }
}

/// What a file's first bytes say it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sniffed {
    /// Text that can be shown and edited.
    Text,
    /// Text in an encoding with NUL bytes in it.
    Wide(&'static str),
    /// Not text.
    Binary(&'static str),
    /// An image that a model can look at.
    Image(&'static str),
}

/// Judges a file by its first [`SNIFF_BYTES`].
pub(super) fn sniff(head: &[u8]) -> Sniffed {
    let head = &head[..head.len().min(SNIFF_BYTES)];
    if let Some(media_type) = image_type(head) {
        return Sniffed::Image(media_type);
    }
    if head.starts_with(b"\xFF\xFE\0\0") || head.starts_with(b"\0\0\xFE\xFF") {
        return Sniffed::Wide("UTF-32");
    }
    if head.starts_with(b"\xFF\xFE") {
        return Sniffed::Wide("UTF-16 (little endian)");
    }
    if head.starts_with(b"\xFE\xFF") {
        return Sniffed::Wide("UTF-16 (big endian)");
    }
    if !head.contains(&0) {
        return Sniffed::Text;
    }
    if let Some(name) = wide_without_mark(head) {
        return Sniffed::Wide(name);
    }
    Sniffed::Binary(binary_type(head))
}

/// UTF-16 without a byte order mark: Latin text has a NUL in nearly every other place, and only there.
fn wide_without_mark(head: &[u8]) -> Option<&'static str> {
    let half = head.len() / 2;
    let nul_at = |first: usize| head.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (nul_at(0), nul_at(1));
    if half >= 4 && even == 0 && odd * 10 >= half * 8 {
        return Some("UTF-16 (little endian)");
    }
    if half >= 4 && odd == 0 && even * 10 >= half * 8 {
        return Some("UTF-16 (big endian)");
    }
    None
}

fn image_type(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89PNG\r\n\x1A\n") {
        return Some("image/png");
    }
    if head.starts_with(b"\xFF\xD8\xFF") {
        return Some("image/jpeg");
    }
    if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        return Some("image/gif");
    }
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    None
}

fn binary_type(head: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 12] = [
        (b"\x7FELF", "an ELF program or library"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1F\x8B", "gzip data"),
        (b"\x28\xB5\x2F\xFD", "zstd data"),
        (b"BZh", "bzip2 data"),
        (b"\xFD7zXZ\0", "xz data"),
        (b"%PDF", "a PDF document"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\0asm", "a WebAssembly module"),
        (b"!<arch>\n", "an archive of object files"),
        (b"MZ", "a Windows program"),
        (b"\xCA\xFE\xBA\xBE", "a Java class or Mach-O program"),
    ];
    KNOWN.iter().find(|(magic, _)| head.starts_with(magic)).map_or("binary data", |(_, name)| name)
}

/// The text after a byte order mark.
pub(super) fn body(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BOM).unwrap_or(bytes)
}

/// How many lines end in (CRLF, LF alone).
pub(super) fn count_ends(text: &[u8]) -> (usize, usize) {
    let mut crlf = 0;
    let mut lf = 0;
    let mut previous = 0;
    for byte in text {
        if *byte == b'\n' {
            if previous == b'\r' {
                crlf += 1;
            } else {
                lf += 1;
            }
        }
        previous = *byte;
    }
    (crlf, lf)
}

/// What is special about a text.
pub(super) fn traits(bytes: &[u8]) -> TextTraits {
    let (crlf, lf) = count_ends(bytes);
    TextTraits {
        bom: bytes.starts_with(BOM),
        crlf: crlf > 0 && lf == 0,
        mixed_ends: crlf > 0 && lf > 0,
        bare_cr: bytes.iter().filter(|byte| **byte == b'\r').count() > crlf,
        not_utf8: std::str::from_utf8(bytes).is_err(),
    }
}

/// The lines of a text with their ends.
pub(super) fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// How many lines a text has.
pub(super) fn count_lines(text: &[u8]) -> u64 {
    let ends = text.iter().filter(|byte| **byte == b'\n').count();
    let open = usize::from(!text.is_empty() && !text.ends_with(b"\n"));
    (ends + open) as u64
}

/// The number of the line that holds a byte, from 1.
pub(super) fn line_of(text: &[u8], offset: usize) -> u64 {
    1 + text[..offset].iter().filter(|byte| **byte == b'\n').count() as u64
}

/// A line without its end.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let Some(line) = line.strip_suffix(b"\n") else { return line };
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as it is shown: U+FFFD for what is not UTF-8, U+240D for a CR, which would overwrite the line on a terminal.
pub(super) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    if text.contains('\r') { text.replace('\r', "\u{240D}") } else { text.into_owned() }
}

/// Whether a text is in some single-byte encoding: it has bytes beyond ASCII, none of which form UTF-8 characters.
pub(super) fn is_single_byte(bytes: &[u8]) -> bool {
    let mut wide = false;
    let mut broken = false;
    for chunk in bytes.utf8_chunks() {
        wide |= !chunk.valid().is_ascii();
        broken |= !chunk.invalid().is_empty();
    }
    broken && !wide
}
