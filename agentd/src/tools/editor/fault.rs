//! Why a file operation was refused, in words that let the model succeed on the next try.

use proto::shim::files::{Action, Change, Difference, Fault, FileError, FileKind, LineRange, NearMiss};

use super::render::{count, numbered, short_diff, shorten, span};

/// The message for the model.
pub(super) fn text(error: &FileError) -> String {
    let path = &error.path;
    match &error.fault {
        Fault::EmptyPath {} => "The parameter `path` is empty; give the path of a file or directory.".to_owned(),
        Fault::NulInPath {} => "The parameter `path` holds a NUL character, which no path can have.".to_owned(),
        Fault::NameTooLong {} => format!("{path}: a file name can have at most 255 bytes."),
        Fault::NotExpanded {} => format!(
            "{path}: `~`, `$NAME` and URLs are not expanded. Give a path relative to the working directory, or an absolute \
             one inside it."
        ),
        Fault::Outside { roots } => format!(
            "{path} lies outside of the workspace, where this tool does not go. The workspace is {}. Give a path inside \
             it, relative or absolute.",
            roots.join(", ")
        ),
        Fault::LinkLoop {} => format!("{path}: too many symbolic links, or a loop of them."),
        Fault::NotFound { similar, missing_directory } => not_found(path, similar, missing_directory.as_deref()),
        Fault::DanglingLink { target } => format!(
            "{path} leads through a symbolic link whose target {target} does not exist. Create the target by its own path."
        ),
        Fault::NotADirectory { part } => format!("{path}: {part} is not a directory."),
        Fault::IsDirectory {} => {
            format!("{path} is a directory; only `view` works on directories. Give the path of a file.")
        }
        Fault::NotRegular { kind } => format!("{path} is {}, not a regular file; it is not opened.", kind_text(kind)),
        Fault::Protected { name } => format!(
            "{path} lies in {name}, whose files decide which programs run; this tool does not change it. Use the \
             program that owns it through the bash tool."
        ),
        Fault::Exists {} => format!(
            "{path} already exists; nothing was written. View it first if you mean to replace it whole, or change it with \
             `str_replace` or `insert`."
        ),
        Fault::Stale { change } => stale(path, change.as_deref()),
        Fault::ChangedSincePreview {} => {
            format!("{path} was changed by somebody else in the meantime; nothing was written. View it again.")
        }
        Fault::BadRange { range, total } => bad_range(path, *range, *total),
        Fault::RangeOnDirectory {} => format!("{path} is a directory; leave `view_range` out."),
        Fault::BadLine { line, total } => format!(
            "`insert_line` {line} is not in {path}, which has {}. Valid are 0 (before the first line) to {total} (after \
             the last).",
            count(*total, "line", "lines")
        ),
        Fault::EmptyOld {} => {
            "`old_str` is empty; give the exact text to replace. To add lines use `insert`.".to_owned()
        }
        Fault::EmptyInsert {} => {
            "`insert_text` is empty, so nothing was inserted. For a blank line give a newline.".to_owned()
        }
        Fault::NoMatch { near, change } => no_match(path, near.as_deref(), change.as_deref()),
        Fault::ManyMatches { count, lines } => many_matches(path, *count, lines),
        Fault::BadPattern { message } => format!(
            "The parameter `pattern` is not a regular expression that can be used. To find signs such as ( [ {{ . * ? \\ \
             themselves, put a \\ before each; look-around and back-references do not exist. {message}"
        ),
        Fault::BadGlob { glob, message } => format!(
            "The glob `{glob}` cannot be used: {message}. Valid are * ? [a-z] {{a,b}} and ** for any directories."
        ),
        Fault::SearchLost {} => {
            "The search did not come to an end: a file system may not answer. Give a narrower `path`, \
            or use the bash tool."
                .to_owned()
        }
        Fault::NoChange { line_ends_only: false } => {
            format!("Nothing was changed in {path}: the new text is the same as the old.")
        }
        Fault::NoChange { line_ends_only: true } => format!(
            "Nothing was changed in {path}: the texts differ only in their line ends, and edits keep the file's. To \
             convert line ends use the bash tool."
        ),
        Fault::Binary { what, size } => {
            format!("{path} is not text: {what}, {size} bytes. Use the bash tool to inspect or change it.")
        }
        Fault::Encoding { name } => format!(
            "{path} is text in {name}; this tool shows and edits UTF-8 and single-byte text. Use `iconv` through the bash \
             tool, and convert back afterwards."
        ),
        Fault::MixedEncoding {} => format!(
            "{path} is in a single-byte encoding such as Latin-1, and the new text has characters beyond ASCII, whose \
             UTF-8 bytes would not fit. Use ASCII only, or convert the file with `iconv` first."
        ),
        Fault::TooLarge { size, limit } => format!(
            "{path}: {size} bytes are more than the {limit} that this tool handles. Use the bash tool for a file of this size."
        ),
        Fault::Denied { action } => format!("Permission denied: {path} could not be {}.", action_text(*action)),
        Fault::OwnerNotKept {} => format!(
            "{path} belongs to another user or group, which the edit could not keep; nothing was written. Ask the user."
        ),
        Fault::NoSpace { action } => {
            format!("No space left on the device: {path} could not be {}; it is unchanged.", action_text(*action))
        }
        Fault::System { action, message } => format!("{path} could not be {}: {message}.", action_text(*action)),
        Fault::NothingToUndo { left: 0 } => "There is no edit whose prior version is still kept.".to_owned(),
        Fault::NothingToUndo { left } => format!("Only {left} edits can be taken back."),
        Fault::PriorGone {} => format!("The prior version of {path} is not kept any more; nothing was taken back."),
        Fault::UndoConflict { change } => format!(
            "{path} is no longer as the edit left it; taking the edit back would lose what came after it.{}",
            changed_text(change.as_deref())
        ),
    }
}

fn action_text(action: Action) -> &'static str {
    match action {
        Action::Resolve => "reached",
        Action::Read => "read",
        Action::Write => "written",
        Action::KeepPrior => "kept in its prior version for undo",
    }
}

fn kind_text(kind: &FileKind) -> &'static str {
    match kind {
        FileKind::File => "a file",
        FileKind::Directory => "a directory",
        FileKind::Symlink { .. } => "a symbolic link",
        FileKind::Fifo => "a named pipe",
        FileKind::Socket => "a socket",
        FileKind::Device => "a device",
    }
}

fn not_found(path: &str, similar: &[String], missing_directory: Option<&str>) -> String {
    let mut text = format!("{path} does not exist");
    if let Some(directory) = missing_directory {
        text.push_str(&format!(": there is no directory {directory}"));
    }
    text.push('.');
    if !similar.is_empty() {
        text.push_str(&format!(" Did you mean {}?", similar.join(", ")));
    }
    text
}

fn stale(path: &str, change: Option<&Change>) -> String {
    format!(
        "{path} has changed on disk since you last saw it; nothing was written. View it again and repeat the edit.{}",
        changed_text(change)
    )
}

fn changed_text(change: Option<&Change>) -> String {
    change.map_or_else(String::new, |change| format!(" What changed:\n{}", short_diff(change)))
}

fn bad_range(path: &str, range: LineRange, total: u64) -> String {
    let LineRange { first, last } = range;
    format!(
        "`view_range` [{first}, {last}] is not in {path}, which has {}. Valid are [first, last] with 1 <= first <= last, \
         first at most {total}, and last = -1 for the end.",
        count(total, "line", "lines")
    )
}

fn many_matches(path: &str, times: u64, lines: &[u64]) -> String {
    let mut numbers: Vec<String> = lines.iter().map(u64::to_string).collect();
    numbers.dedup();
    let more = if times > lines.len() as u64 { " and more" } else { "" };
    format!(
        "`old_str` stands {times} times in {path}, starting on lines {}{more}; nothing was changed. Add lines before or \
         after it until it is unique.",
        numbers.join(", ")
    )
}

fn no_match(path: &str, near: Option<&NearMiss>, change: Option<&Change>) -> String {
    let mut text = format!("`old_str` does not stand in {path}; nothing was changed.");
    if change.is_some() {
        text.push_str(" The file has changed on disk since you last saw it.");
        text.push_str(&changed_text(change));
    }
    let Some(near) = near else {
        text.push_str(" View the file and copy the text exactly.");
        return text;
    };
    let last = near.first + near.lines.len() as u64 - 1;
    text.push_str(&format!("\nThe most similar place is {}:\n", span(near.first, last)));
    let lines: Vec<String> = near.lines.iter().map(|line| shorten(line)).collect();
    text.push_str(&numbered(near.first, lines.iter().map(String::as_str)));
    for difference in &near.differences {
        text.push_str(&format!("- {}\n", difference_text(difference)));
    }
    text
}

fn difference_text(difference: &Difference) -> String {
    match difference {
        Difference::LineNumbers {} => {
            "`old_str` carries the line numbers of a view; leave number and tab out".to_owned()
        }
        Difference::Indentation { wanted, found } => {
            format!("indentation differs: `old_str` has {}, the file has {}", blanks(wanted), blanks(found))
        }
        Difference::TrailingBlanks {} => "blanks at the end of a line differ".to_owned(),
        Difference::Blanks {} => "blanks inside a line, or blank lines, differ".to_owned(),
        Difference::Punctuation {} => "quotes, dashes or similar signs differ (straight or typographic)".to_owned(),
        Difference::Case {} => "upper and lower case differ".to_owned(),
        Difference::UnicodeForm {} => {
            "characters look the same but are composed differently (accents as one character or as two)".to_owned()
        }
        Difference::Escapes {} => "backslashes differ: an escape too many or too few".to_owned(),
        Difference::Line { number, wanted, found } => {
            format!("line {number}: `old_str` has {:?}, the file has {:?}", shorten(wanted), shorten(found))
        }
    }
}

fn blanks(text: &str) -> String {
    let tabs = text.chars().filter(|c| *c == '\t').count();
    let spaces = text.chars().filter(|c| *c == ' ').count();
    match (tabs, spaces) {
        (0, 0) => "none".to_owned(),
        (tabs, 0) => format!("{tabs} tab(s)"),
        (0, spaces) => format!("{spaces} space(s)"),
        (tabs, spaces) => format!("{tabs} tab(s) and {spaces} space(s)"),
    }
}
