//! The shim's answer as text for the model.

use std::fmt::Write as _;

use proto::event::Outcome;
use proto::shim::files::{
    Change, Changes, Edited, Entry, FileKind, FileReply, ImageView, LineRange, Listing, Note, TextTraits, TextView,
    Undone,
};

use super::{EditorInput, VIEW_CHARACTERS_MAX, fault};
use crate::tools::diff::{file_diff, unified};
use crate::tools::{Part, ToolResult};

/// Lines of an edited place that are shown from its start and from its end. What lies between is the model's own text.
const SNIPPET_LINES: usize = 30;

/// Characters of one line of a snippet.
const SNIPPET_LINE_CHARACTERS: usize = 500;

/// Characters of a diff that is part of a message.
const DIFF_CHARACTERS_MAX: usize = 3000;

pub(super) fn render(input: &EditorInput, reply: &FileReply) -> ToolResult {
    match reply {
        FileReply::Text(view) => done(view_text(input, view)),
        FileReply::Listing(listing) => done(listing_text(listing)),
        FileReply::Image(image) => image_result(image),
        FileReply::Edited(edited) => {
            let diff = Some(file_diff(&edited.change));
            ToolResult { diff, ..done(edited_text(edited)) }
        }
        FileReply::Undone(undone) => done(undone_text(undone)),
        FileReply::Changes(changes) => done(changes_text(changes)),
        FileReply::Matches(_) | FileReply::Paths(_) => crate::tools::search::render(reply),
        FileReply::Error(error) => ToolResult {
            content: vec![Part::Text(fault::text(error))],
            is_error: true,
            outcome: Outcome::Failed {},
            diff: None,
        },
    }
}

fn done(text: String) -> ToolResult {
    ToolResult { content: vec![Part::Text(text)], is_error: false, outcome: Outcome::Done {}, diff: None }
}

/// Lines as `cat -n` numbers them.
pub(super) fn numbered<'a>(first: u64, lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for (number, line) in (first..).zip(lines) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{number:>6}\t{line}");
    }
    text
}

/// A number of things.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// Lines by their numbers.
pub(super) fn span(first: u64, last: u64) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first}-{last}") }
}

fn view_text(input: &EditorInput, view: &TextView) -> String {
    let path = input.path();
    if view.lines.is_empty() {
        return format!("{path} is empty: it has no lines.");
    }
    let last = view.first + view.lines.len() as u64 - 1;
    let total = view.total_lines.map_or_else(|| format!("a file of {} bytes", view.size), |total| total.to_string());
    let whole = view.first == 1 && view.total_lines == Some(last) && !view.cut;
    let part = if whole { String::new() } else { format!(", {} of {total}", span(view.first, last)) };
    let mut text = format!("Here is `cat -n` of {path}{part}:\n");
    text.push_str(&numbered(view.first, view.lines.iter().map(String::as_str)));
    if view.bytes_cut > 0 {
        let _ = writeln!(
            text,
            "[Line {last} is too long to show: its last {} bytes are omitted. Use the bash tool to look at parts of it.]",
            view.bytes_cut
        );
    }
    if view.cut {
        let _ = writeln!(
            text,
            "[Truncated at {VIEW_CHARACTERS_MAX} characters: only {} shown. Use `view_range` from {} on for more, or search \
             the file first.]",
            span(view.first, last),
            last + 1
        );
    }
    if let (EditorInput::View { range: Some(LineRange { last: wanted, .. }), .. }, Some(total)) =
        (input, view.total_lines)
        && u64::try_from(*wanted).is_ok_and(|wanted| wanted > total)
    {
        let _ = writeln!(text, "[The file ends at line {total}.]");
    }
    text.push_str(&traits_text(view.traits));
    text
}

fn traits_text(traits: TextTraits) -> String {
    let mut text = String::new();
    let mut say = |is: bool, what: &str| {
        if is {
            text.push_str(what);
        }
    };
    say(traits.bom, "[The file starts with a UTF-8 byte order mark, which is not shown and is kept by edits.]\n");
    say(traits.crlf, "[Lines end in CRLF. Write plain newlines in edits: they become CRLF.]\n");
    say(
        traits.mixed_ends,
        "[Some lines end in CRLF and some in LF. Edits keep the ends of lines they do not touch.]\n",
    );
    say(traits.bare_cr, "[Carriage returns that end no line are shown as \u{240D}; in `old_str` they are \\r.]\n");
    say(
        traits.not_utf8,
        "[The file has bytes that are not UTF-8, shown as \u{FFFD}. Edits keep them; leave them out of `old_str`.]\n",
    );
    text
}

fn listing_text(listing: &Listing) -> String {
    let mut text =
        format!("Here are the files and directories up to 2 levels deep in {}, excluding hidden ones:\n", listing.path);
    if listing.entries.is_empty() {
        text.push_str("(none)\n");
    }
    for entry in &listing.entries {
        let _ = writeln!(text, "{}", entry_text(entry));
    }
    if listing.left_out > 0 {
        let _ = writeln!(text, "[{} omitted.]", count(listing.left_out, "more entry is", "more entries are"));
    }
    if listing.hidden > 0 {
        let _ = writeln!(text, "[{} not listed.]", count(listing.hidden, "hidden entry is", "hidden entries are"));
    }
    text
}

fn entry_text(entry: &Entry) -> String {
    // A name may hold a newline or an escape sequence; it must not look like another entry.
    let path: String =
        entry.path.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
    let more = if entry.left_out > 0 {
        format!("  [{}]", count(entry.left_out, "more entry", "more entries"))
    } else {
        String::new()
    };
    match &entry.kind {
        FileKind::File => path,
        FileKind::Directory => format!("{path}/{more}"),
        FileKind::Symlink { target } => format!("{path} -> {}", target.escape_debug()),
        FileKind::Fifo => format!("{path} (named pipe)"),
        FileKind::Socket => format!("{path} (socket)"),
        FileKind::Device => format!("{path} (device)"),
    }
}

fn image_result(image: &ImageView) -> ToolResult {
    let text = format!("{} ({}, {} bytes):", image.path, image.media_type, image.size);
    ToolResult {
        content: vec![Part::Text(text), Part::Image { media_type: image.media_type.clone(), data: image.data.clone() }],
        is_error: false,
        outcome: Outcome::Done {},
        diff: None,
    }
}

fn edited_text(edited: &Edited) -> String {
    let change = &edited.change;
    let size = count(change.total_lines, "line", "lines");
    let mut text = match (edited.applied, change.created) {
        (true, true) => format!("The file {} has been created ({size}).\n", change.path),
        (true, false) => format!("The file {} has been edited. {}", change.path, snippet(change)),
        (false, true) => format!("The file {} would be created ({size}).\n", change.path),
        (false, false) => format!("The file {} would be edited. {}", change.path, snippet(change)),
    };
    for note in &edited.notes {
        text.push_str(&note_text(note));
    }
    text
}

/// The place of a change with its line numbers.
fn snippet(change: &Change) -> String {
    if change.total_lines == 0 {
        return "It is empty now.\n".to_owned();
    }
    let lines: Vec<String> = change.after.lines().map(shorten).collect();
    let mut text = "Here is `cat -n` of the place:\n".to_owned();
    let last = lines.len() as u64;
    if lines.len() <= 2 * SNIPPET_LINES && change.after_left_out == 0 {
        text.push_str(&numbered(change.first, lines.iter().map(String::as_str)));
    } else {
        let head = lines.len().min(SNIPPET_LINES);
        text.push_str(&numbered(change.first, lines[..head].iter().map(String::as_str)));
        if change.after_left_out == 0 {
            let tail = lines.len() - SNIPPET_LINES;
            let _ = writeln!(text, "[{} lines omitted]", tail - head);
            text.push_str(&numbered(change.first + tail as u64, lines[tail..].iter().map(String::as_str)));
        } else {
            let _ = writeln!(text, "[{} more changed lines omitted]", last - head as u64 + change.after_left_out);
        }
    }
    text.push_str("Check that it is as you meant it, and edit again if it is not.\n");
    text
}

pub(super) fn shorten(line: &str) -> String {
    let line = line.replace('\r', "\u{240D}");
    match line.char_indices().nth(SNIPPET_LINE_CHARACTERS) {
        Some((end, _)) => format!("{} […]", &line[..end]),
        None => line,
    }
}

fn note_text(note: &Note) -> String {
    match note {
        Note::HardLinks { others } => {
            let names = count(*others, "more name (a hard link) that keeps", "more names (hard links) that keep");
            format!("[The file has {names} the old content.]\n")
        }
        Note::ChangedSinceViewed { change: Some(change) } => {
            let diff = short_diff(change);
            format!("[The file had changed on disk since you last saw it, away from this edit. That change:]\n{diff}")
        }
        Note::ChangedSinceViewed { change: None } => {
            "[The file had changed on disk since you last saw it; view it again before the next edit.]\n".to_owned()
        }
        Note::Followed { path } => format!("[The path leads through a symbolic link; the file edited is {path}.]\n"),
        Note::SpecialBits { mode } => format!("[The mode {mode:o} was kept, its set-ID bits included.]\n"),
        Note::LineEndsNow {} => "[The file's lines ended in CRLF; the new content's end in LF.]\n".to_owned(),
        Note::BomGone {} => "[The file began with a byte order mark; the new content does not.]\n".to_owned(),
    }
}

/// A diff short enough for a message.
pub(super) fn short_diff(change: &Change) -> String {
    let text = unified(&file_diff(change));
    match text.char_indices().nth(DIFF_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}\n[The rest of the diff is omitted.]\n", &text[..end]),
        None => text,
    }
}

fn undone_text(undone: &Undone) -> String {
    let verb = if undone.applied { "Took back" } else { "Would take back" };
    let mut text = String::new();
    for change in &undone.changes {
        let _ = writeln!(text, "{verb} an edit of {}:\n{}", change.path, short_diff(change));
    }
    let _ = writeln!(text, "{} earlier edits can still be taken back.", undone.left);
    text
}

fn changes_text(changes: &Changes) -> String {
    let mut text = String::new();
    for change in &changes.changes {
        let _ = writeln!(text, "{}:\n{}", change.path, short_diff(change));
    }
    if changes.left_out > 0 {
        let _ = writeln!(text, "{} more files changed.", changes.left_out);
    }
    if text.is_empty() { "Nothing has changed.\n".to_owned() } else { text }
}
