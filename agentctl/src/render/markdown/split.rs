//! What of an unfinished text can no longer change: every block but the last, every item of a list but the last, and
//! every line of a code block.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::Fence;
use super::inline::OPTIONS;

/// Where the text can be cut.
#[derive(Debug)]
pub(super) enum Cut {
    /// Nowhere yet.
    Nothing,
    /// Behind whole blocks. `list_ends`: what follows does not go on with a list that was cut before.
    Blocks { upto: usize, list_ends: bool },
    /// Inside a list, behind so many items; the first of them has this number, or is a point.
    Items { upto: usize, first: Option<u64>, count: u64 },
    /// Behind the line that opens a code block.
    Fence { upto: usize, fence: Fence },
}

/// Where a text of complete lines can be cut.
pub(super) fn cut(text: &str) -> Cut {
    let mut depth = 0_usize;
    let mut blocks = 0_usize;
    let mut last = Last { start: 0, end: 0, kind: Kind::Other };
    let mut items: Vec<usize> = Vec::new();
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    blocks += 1;
                    items.clear();
                    last = Last { start: line_start(text, range.start), end: range.end, kind: kind(&tag) };
                }
                if depth == 1 && matches!(tag, Tag::Item) {
                    items.push(line_start(text, range.start));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => {
                blocks += 1;
                items.clear();
                last = Last { start: line_start(text, range.start), end: range.end, kind: Kind::Complete };
            }
            _ => {}
        }
    }
    let closed = match last.kind {
        Kind::Complete => true,
        Kind::Paragraph => text[last.end.min(text.len())..].contains('\n') || text.ends_with("\n\n"),
        Kind::List(_) | Kind::Fenced | Kind::Other => false,
    };
    if blocks > 0 && closed {
        return Cut::Blocks { upto: text.len(), list_ends: true };
    }
    if blocks > 1 {
        return Cut::Blocks { upto: last.start, list_ends: true };
    }
    match last.kind {
        Kind::Fenced => {
            let first = last.start + text[last.start..].find('\n').map_or(0, |at| at + 1);
            Fence::open(text[last.start..first].trim_end())
                .map_or(Cut::Nothing, |fence| Cut::Fence { upto: first, fence })
        }
        Kind::List(first) => match items.split_last() {
            Some((&upto, before)) if !before.is_empty() => {
                Cut::Items { upto, first, count: u64::try_from(before.len()).unwrap_or(u64::MAX) }
            }
            Some(_) | None => Cut::Nothing,
        },
        Kind::Complete | Kind::Paragraph | Kind::Other => Cut::Nothing,
    }
}

struct Last {
    start: usize,
    end: usize,
    kind: Kind,
}

enum Kind {
    List(Option<u64>),
    Fenced,
    Paragraph,
    /// Nothing that follows belongs to it.
    Complete,
    Other,
}

fn kind(tag: &Tag<'_>) -> Kind {
    match tag {
        Tag::List(first) => Kind::List(*first),
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => Kind::Fenced,
        Tag::Paragraph => Kind::Paragraph,
        Tag::Heading { .. } => Kind::Complete,
        _ => Kind::Other,
    }
}

/// Blocks are cut where their first line begins, so that indentations keep their meaning.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}
