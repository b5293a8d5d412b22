//! The edits themselves: bytes and a wish in, bytes out. Pure.
//!
//! Texts are compared with CRLF read as LF, on bytes, literally. What is written is cut into the old bytes at the
//! smallest place that differs, so every other byte stays: marks, mixed line ends, undecodable bytes. New line ends
//! follow the replaced place, else the majority of the file.

use std::borrow::Cow;
use std::ops::Range;

use proto::shim::files::Fault;

use super::text::{self, LineEnd};

/// How many places of an ambiguous match are named.
const PLACES_SHOWN: usize = 20;

/// New bytes and where they differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spliced {
    /// The whole new content.
    pub(super) bytes: Vec<u8>,
    /// The bytes of the old content that the wish named; a change elsewhere does not touch it.
    pub(super) touched: Range<usize>,
}

/// A text in which every CRLF is read as LF, and the way back.
pub(super) struct Folded<'a> {
    pub(super) text: Cow<'a, [u8]>,
    /// Where in `text` an LF stands that is a CRLF in the original, ascending.
    folds: Vec<usize>,
}

impl<'a> Folded<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        if !bytes.windows(2).any(|pair| pair == b"\r\n") {
            return Self { text: Cow::Borrowed(bytes), folds: Vec::new() };
        }
        let mut text = Vec::with_capacity(bytes.len());
        let mut folds = Vec::new();
        for (index, byte) in bytes.iter().enumerate() {
            if *byte == b'\r' && bytes.get(index + 1) == Some(&b'\n') {
                folds.push(text.len());
            } else {
                text.push(*byte);
            }
        }
        Self { text: Cow::Owned(text), folds }
    }

    /// The place in the original that starts where this one starts; before the CR of a folded CRLF.
    fn original(&self, offset: usize) -> usize {
        offset + self.folds.partition_point(|fold| *fold < offset)
    }

    fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        self.original(range.start)..self.original(range.end)
    }
}

/// Replaces the one place where `old` stands by `new`.
pub(super) fn str_replace(bytes: &[u8], old: &str, new: &str) -> Result<Spliced, Fault> {
    if old.is_empty() {
        return Err(Fault::EmptyOld {});
    }
    let folded = Folded::new(bytes);
    let wanted = Folded::new(old.as_bytes()).text;
    let fresh = Folded::new(new.as_bytes()).text;
    let places = find_all(&folded.text, &wanted);
    let start = match places.as_slice() {
        [] => return Err(Fault::NoMatch { near: None, change: None }),
        [start] => *start,
        many => {
            let lines = many.iter().take(PLACES_SHOWN).map(|start| text::line_of(&folded.text, *start)).collect();
            return Err(Fault::ManyMatches { count: many.len() as u64, lines });
        }
    };
    if wanted == fresh {
        return Err(Fault::NoChange { line_ends_only: old != new });
    }
    if !new.is_ascii() && text::is_single_byte(bytes) {
        return Err(Fault::MixedEncoding {});
    }
    let touched = folded.original_range(&(start..start + wanted.len()));
    let above = wanted.iter().zip(fresh.iter()).take_while(|(a, b)| a == b).count();
    let below = wanted[above..].iter().rev().zip(fresh[above..].iter().rev()).take_while(|(a, b)| a == b).count();
    let cut = folded.original_range(&(start + above..start + wanted.len() - below));
    let end = LineEnd::majority(&bytes[touched.clone()]).or_else(|| LineEnd::majority(bytes));
    let text = match end {
        Some(end) => with_ends(&fresh[above..fresh.len() - below], end),
        // The file has no line end that could be followed: the new text keeps its own.
        None => Cow::Borrowed(own_ends(new, above, fresh.len() - below)),
    };
    Ok(Spliced { bytes: splice(bytes, &cut, &text), touched })
}

/// Puts `wish` after line `line` as whole lines.
pub(super) fn insert(bytes: &[u8], line: i64, wish: &str) -> Result<Spliced, Fault> {
    let body = text::body(bytes);
    let total = text::count_lines(body);
    let after = u64::try_from(line).ok().filter(|line| *line <= total).ok_or(Fault::BadLine { line, total })?;
    if wish.is_empty() {
        return Err(Fault::EmptyInsert {});
    }
    if !wish.is_ascii() && text::is_single_byte(bytes) {
        return Err(Fault::MixedEncoding {});
    }
    let mark = bytes.len() - body.len();
    let skip = usize::try_from(after).unwrap_or(usize::MAX);
    let at = mark + text::lines(body).take(skip).map(<[u8]>::len).sum::<usize>();
    let end = LineEnd::majority(bytes).or_else(|| LineEnd::majority(wish.as_bytes())).unwrap_or(LineEnd::Lf);
    let mut lines = with_ends(&Folded::new(wish.as_bytes()).text, end).into_owned();
    let last_line_is_open = at == bytes.len() && !body.is_empty() && !body.ends_with(b"\n");
    if last_line_is_open {
        lines.splice(0..0, end.bytes().iter().copied());
    } else if !(lines.ends_with(b"\n") || body.is_empty()) {
        lines.extend_from_slice(end.bytes());
    }
    Ok(Spliced { bytes: splice(bytes, &(at..at), &lines), touched: at..at })
}

fn splice(bytes: &[u8], cut: &Range<usize>, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() - cut.len() + text.len());
    out.extend_from_slice(&bytes[..cut.start]);
    out.extend_from_slice(text);
    out.extend_from_slice(&bytes[cut.end..]);
    out
}

/// Every place where `wanted` starts, overlapping ones too.
fn find_all(text: &[u8], wanted: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut search = Search::new(wanted);
    while let Some(start) = search.next_in(text) {
        places.push(start);
    }
    places
}

/// Knuth-Morris-Pratt: linear whatever the text repeats, and finds overlapping places by its nature.
struct Search<'a> {
    wanted: &'a [u8],
    /// For each length matched: the longest shorter match that ends in the same place.
    shorter: Vec<usize>,
    matched: usize,
    at: usize,
}

impl<'a> Search<'a> {
    fn new(wanted: &'a [u8]) -> Self {
        let mut shorter = vec![0; wanted.len() + 1];
        let mut length = 0;
        for index in 1..wanted.len() {
            while length > 0 && wanted[index] != wanted[length] {
                length = shorter[length];
            }
            if wanted[index] == wanted[length] {
                length += 1;
            }
            shorter[index + 1] = length;
        }
        Self { wanted, shorter, matched: 0, at: 0 }
    }

    fn next_in(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(byte) = text.get(self.at) {
            while self.matched > 0 && self.wanted[self.matched] != *byte {
                self.matched = self.shorter[self.matched];
            }
            if self.wanted[self.matched] == *byte {
                self.matched += 1;
            }
            self.at += 1;
            if self.matched == self.wanted.len() {
                self.matched = self.shorter[self.matched];
                return Some(self.at - self.wanted.len());
            }
        }
        None
    }
}

/// A text whose lines end in LF, with the given line end instead.
fn with_ends(text: &[u8], end: LineEnd) -> Cow<'_, [u8]> {
    match end {
        LineEnd::Lf => Cow::Borrowed(text),
        LineEnd::CrLf => {
            let mut out = Vec::with_capacity(text.len() + 16);
            for byte in text {
                if *byte == b'\n' {
                    out.push(b'\r');
                }
                out.push(*byte);
            }
            Cow::Owned(out)
        }
    }
}

/// The part of `new` that stands between two offsets of its folded form.
fn own_ends(new: &str, start: usize, end: usize) -> &[u8] {
    let folded = Folded::new(new.as_bytes());
    &new.as_bytes()[folded.original_range(&(start..end))]
}
