//! Finding lines in files, with ripgrep's searcher and regular expressions.
//!
//! Results come in the order of paths, whichever thread found them first: the same question has the same answer, also
//! when it is cut. A file with a NUL is not text and not searched; UTF-16 with a byte order mark is.
//!
//! Invariant: what is held grows with what may come back, not with what matches or with the files' size.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use proto::shim::files::{Bounds, Fault, FileMatches, Grep, GrepOutput, Looked, MatchLine, Matches, SearchLimit};

use super::search::{At, Start, Stop, bounded, names, plan, shown};
use super::walk::{Item, Visitor, add, open_regular, walk};

/// Memory of a compiled expression, and of its lazily built automaton on each thread.
const REGEX_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Files up to this size are read at once, which is faster; larger ones go through a buffer.
const WHOLE_BYTES_MAX: usize = 256 * 1024;

/// The longest line that is searched, and the largest file for matches over several lines: each thread may hold one.
const HEAP_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The most lines around a match.
const CONTEXT_MAX: u32 = 100;

pub(super) fn run(wish: &Grep, start: Start, stop: &Stop) -> Result<Matches, Fault> {
    let bounds = bounded(wish.bounds);
    let matcher = matcher(wish)?;
    let make = || Grepper::new(&matcher, wish, bounds, stop);
    let mut found = Matches { path: start.shown.clone(), ..Matches::default() };
    let mut base = PathBuf::new();
    let is_file = matches!(start.at, At::File { .. });
    let greppers = match start.at {
        At::Directory { dir, below, above } => {
            base.clone_from(&below);
            let plan = plan(dir, below, above, wish.glob.as_deref(), wish.all)?;
            let (greppers, looked, limits) = walk(plan, stop, make);
            found.looked = looked;
            found.limits = limits;
            greppers
        }
        At::File { dir, name } => {
            let wanted = !names(Path::new(""), wish.glob.as_deref())?.matched(&name, false).is_ignore();
            let mut grepper = make();
            if wanted {
                grepper.visit(&Item { dir: &dir, name: &name, below: Path::new(""), is_link: false });
            }
            vec![grepper]
        }
    };
    let mut files = Vec::new();
    for grepper in greppers {
        add(&mut found.looked, &grepper.looked);
        found.files_total += grepper.files_total;
        found.lines_total += grepper.lines_total;
        files.extend(grepper.found);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut cut = Cut::new(wish.output, bounds);
    for file in files {
        let below = file.path.strip_prefix(&base).unwrap_or(&file.path);
        let path = if is_file { start.shown.clone() } else { shown(&start.shown, below) };
        if !cut.take(&mut found.files, FileMatches { path, count: file.count, lines: file.lines }) {
            break;
        }
    }
    found.limits.extend(cut.limit);
    found.limits.extend(stop.limit());
    Ok(found)
}

fn matcher(wish: &Grep) -> Result<RegexMatcher, Fault> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(wish.ignore_case)
        .multi_line(true)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX);
    if !wish.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&wish.pattern).map_err(|error| Fault::BadPattern { message: error.to_string() })
}

/// Takes results in their order until a bound is reached.
struct Cut {
    by_line: bool,
    bounds: Bounds,
    results: u64,
    bytes: u64,
    limit: Option<SearchLimit>,
}

impl Cut {
    fn new(output: GrepOutput, bounds: Bounds) -> Self {
        let by_line = matches!(output, GrepOutput::Lines { .. });
        Self { by_line, bounds, results: 0, bytes: 0, limit: None }
    }

    /// Whether more may follow.
    fn take(&mut self, files: &mut Vec<FileMatches>, mut file: FileMatches) -> bool {
        let results = SearchLimit::Results { most: self.bounds.results };
        if self.results >= self.bounds.results {
            self.limit = Some(results);
            return false;
        }
        self.bytes += file.path.len() as u64;
        let mut kept = 0;
        let mut matched = 0;
        for line in &file.lines {
            if line.is_match && self.results + matched == self.bounds.results {
                self.limit = Some(results);
                break;
            }
            self.bytes += line.text.len() as u64;
            if self.bytes > self.bounds.bytes {
                break;
            }
            matched += u64::from(line.is_match);
            kept += 1;
        }
        self.results += if self.by_line { matched } else { 1 };
        if self.bytes > self.bounds.bytes {
            self.limit = Some(SearchLimit::Bytes { most: self.bounds.bytes });
        } else if self.by_line && matched < file.count && self.limit.is_none() {
            // The file had more than was held of it.
            self.limit = Some(results);
        }
        file.lines.truncate(kept);
        if kept > 0 || (!self.by_line && self.bytes <= self.bounds.bytes) {
            files.push(file);
        }
        self.limit.is_none()
    }
}

/// What one file gave.
struct Hit {
    path: PathBuf,
    count: u64,
    lines: Vec<MatchLine>,
}

impl Hit {
    fn bytes(&self) -> u64 {
        self.path.as_os_str().len() as u64 + self.lines.iter().map(|line| line.text.len() as u64).sum::<u64>()
    }
}

/// One thread's part of a search.
struct Grepper<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    buffer: Vec<u8>,
    output: GrepOutput,
    bounds: Bounds,
    stop: &'a Stop,
    found: Vec<Hit>,
    held: u64,
    files_total: u64,
    lines_total: u64,
    looked: Looked,
}

impl<'a> Grepper<'a> {
    fn new(matcher: &RegexMatcher, wish: &Grep, bounds: Bounds, stop: &'a Stop) -> Self {
        let (before, after) = match wish.output {
            GrepOutput::Lines { before, after } => (before.min(CONTEXT_MAX), after.min(CONTEXT_MAX)),
            GrepOutput::Files {} | GrepOutput::Counts {} => (0, 0),
        };
        let searcher = SearcherBuilder::new()
            .line_number(matches!(wish.output, GrepOutput::Lines { .. }))
            .multi_line(wish.multiline)
            .before_context(usize::try_from(before).unwrap_or(0))
            .after_context(usize::try_from(after).unwrap_or(0))
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_BYTES_MAX))
            .build();
        Self {
            // A copy has memory of its own to match with; a shared one would be waited for.
            matcher: matcher.clone(),
            searcher,
            buffer: Vec::new(),
            output: wish.output,
            bounds,
            stop,
            found: Vec::new(),
            held: 0,
            files_total: 0,
            lines_total: 0,
            looked: Looked::default(),
        }
    }

    fn search(&mut self, mut file: File) -> io::Result<Taken> {
        self.buffer.clear();
        (&mut file).take(WHOLE_BYTES_MAX as u64).read_to_end(&mut self.buffer)?;
        let mut taker = Taker {
            matcher: &self.matcher,
            output: self.output,
            bounds: self.bounds,
            bytes: 0,
            taken: Taken { count: 0, lines: Vec::new(), is_binary: false },
        };
        if self.buffer.len() < WHOLE_BYTES_MAX {
            self.searcher.search_slice(&self.matcher, &self.buffer, &mut taker)?;
        } else {
            let reader = Stoppable { reader: self.buffer.as_slice().chain(file), stop: self.stop };
            self.searcher.search_reader(&self.matcher, reader, &mut taker)?;
        }
        Ok(taker.taken)
    }

    fn keep(&mut self, hit: Hit) {
        self.held += hit.bytes();
        self.found.push(hit);
        let many = self.found.len() as u64 > 2 * self.bounds.results + 1000;
        if many || self.held > 2 * self.bounds.bytes + (1 << 20) {
            self.prune();
        }
    }

    /// Lets go of what could not come back anyway: everything behind the first results in the order of paths.
    fn prune(&mut self) {
        self.found.sort_by(|a, b| a.path.cmp(&b.path));
        let (mut results, mut bytes) = (0, 0);
        let by_line = matches!(self.output, GrepOutput::Lines { .. });
        let keep = self.found.iter().take_while(|hit| {
            // One beyond a bound is kept, so that the bound is seen to be reached.
            let within = results <= self.bounds.results && bytes <= self.bounds.bytes;
            results += if by_line { hit.count } else { 1 };
            bytes += hit.bytes();
            within
        });
        let keep = keep.count();
        self.found.truncate(keep);
        self.held = self.found.iter().map(Hit::bytes).sum();
    }
}

impl Visitor for Grepper<'_> {
    fn visit(&mut self, item: &Item<'_>) {
        // What a link leads to is found by its own path, or lies outside.
        if item.is_link {
            return;
        }
        let Ok((file, _)) = open_regular(item.dir, item.name) else {
            self.looked.unreadable += 1;
            return;
        };
        self.looked.files += 1;
        match self.search(file) {
            Ok(taken) if taken.is_binary => self.looked.binary += 1,
            Ok(taken) if taken.count == 0 => {}
            Ok(Taken { count, lines, .. }) => {
                let count = if matches!(self.output, GrepOutput::Files {}) { 0 } else { count };
                self.files_total += 1;
                self.lines_total += count;
                self.keep(Hit { path: item.below.join(item.name), count, lines });
            }
            Err(_) if self.stop.is_reached() => {}
            Err(error) if error.raw_os_error().is_some() => self.looked.unreadable += 1,
            // The searcher's own: the line or the file does not fit into the memory it may use.
            Err(_) => self.looked.too_long += 1,
        }
    }
}

/// A reader that ends when the search does.
struct Stoppable<'a, R> {
    reader: R,
    stop: &'a Stop,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_reached() { Err(io::ErrorKind::TimedOut.into()) } else { self.reader.read(buffer) }
    }
}

/// What was taken from one file.
struct Taken {
    count: u64,
    lines: Vec<MatchLine>,
    is_binary: bool,
}

/// Takes what one file gives.
struct Taker<'a> {
    matcher: &'a RegexMatcher,
    output: GrepOutput,
    bounds: Bounds,
    bytes: u64,
    taken: Taken,
}

impl Taker<'_> {
    /// Whether lines beside the last match, or the next one, could still come back.
    fn has_room(&self, matches: u64) -> bool {
        matches <= self.bounds.results && self.bytes <= self.bounds.bytes
    }

    fn push(&mut self, number: u64, line: &[u8], is_match: bool) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let at = if is_match { self.matcher.find(line).ok().flatten().map_or(0, |found| found.start()) } else { 0 };
        let (from, to) = window(line, at, usize::try_from(self.bounds.line_bytes).unwrap_or(usize::MAX));
        let text = String::from_utf8_lossy(&line[from..to]).into_owned();
        self.bytes += text.len() as u64;
        self.taken.lines.push(MatchLine {
            number,
            text,
            is_match,
            cut_before: from as u64,
            cut_after: (line.len() - to) as u64,
        });
    }
}

impl Sink for Taker<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.output {
            GrepOutput::Files {} => {
                self.taken.count = 1;
                return Ok(false);
            }
            GrepOutput::Counts {} => self.taken.count += found.lines().count() as u64,
            GrepOutput::Lines { .. } => {
                let first = found.line_number().unwrap_or(0);
                for (number, line) in (first..).zip(found.lines()) {
                    self.taken.count += 1;
                    if self.has_room(self.taken.count) {
                        self.push(number, line, true);
                    }
                }
            }
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let matches = match context.kind() {
            SinkContextKind::Before => self.taken.count + 1,
            SinkContextKind::After | SinkContextKind::Other => self.taken.count,
        };
        if self.has_room(matches) {
            self.push(context.line_number().unwrap_or(0), context.bytes(), false);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.taken.is_binary = true;
        Ok(false)
    }
}

/// The part of a line that is shown: all of it, or what stands around a place, without half characters at its ends.
fn window(line: &[u8], at: usize, most: usize) -> (usize, usize) {
    if line.len() <= most {
        return (0, line.len());
    }
    let is_inside = |at: usize| line.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    let mut from = at.saturating_sub(most / 4).min(line.len() - most);
    let mut to = from + most;
    // A character has at most four bytes; what goes on longer is no UTF-8.
    for _ in 0..3 {
        from += usize::from(from > 0 && is_inside(from));
        to -= usize::from(to < line.len() && is_inside(to));
    }
    (from, to.max(from))
}
