//! The order of an edit: find the file, compute, check that the model knows what it changes, write the intent down,
//! write, write the outcome down.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::stat::FileStat;
use proto::ids::CallId;
use proto::shim::files::{
    Action, Apply, Basis, Change, Create, Edited, Fault, FileReply, Insert, Mode, Note, StrReplace,
};

use super::edit::{self, Spliced};
use super::history::{Prior, Record, digest};
use super::path::{Found, Place, io_fault};
use super::seen::Knowledge;
use super::text::{self, Sniffed};
use super::{EDIT_BYTES_MAX, Files, attributes, change, keep_fault, near, write};

/// Directories whose files decide which programs run: writing there would be running commands by another name.
const PROTECTED: [&str; 1] = [".git"];

/// A file as it is now.
pub(super) struct Current {
    pub(super) file: File,
    pub(super) stat: FileStat,
    pub(super) bytes: Vec<u8>,
}

/// An edit that is ready to be written.
pub(super) struct Plan<'a> {
    pub(super) place: &'a Place,
    pub(super) current: Option<&'a Current>,
    /// The new content; none = the file goes away.
    pub(super) after: Option<&'a [u8]>,
    /// The mode afterwards; none = as it is, or as new files get it.
    pub(super) mode: Option<u32>,
    pub(super) call: Option<CallId>,
    pub(super) undoes: Option<u64>,
}

impl Files {
    pub(super) fn create(&mut self, wish: &Create, cwd: &Path) -> Result<FileReply, Fault> {
        if let Some(answer) = self.answered(&wish.mode) {
            return Ok(answer);
        }
        let place = self.roots.resolve(&wish.path, cwd)?;
        check_place(&place)?;
        check_not_expanded(&wish.path, &place)?;
        check_size(wish.text.len())?;
        let current = match &place.found {
            Found::Nothing => None,
            Found::File(stat) => Some(read(&place, stat)?),
            Found::Directory => return Err(Fault::IsDirectory {}),
            Found::Other(kind) => return Err(Fault::NotRegular { kind: kind.clone() }),
        };
        let mut notes = Vec::new();
        if let Some(current) = &current {
            match self.seen.knowledge(&place.real, &current.stat, &digest(&current.bytes)) {
                Knowledge::Fresh { viewed: true } => {}
                Knowledge::Fresh { viewed: false } | Knowledge::None => return Err(Fault::Exists {}),
                Knowledge::Stale { seen } => {
                    return Err(Fault::Stale { change: since(&place, seen.as_deref(), current) });
                }
            }
            if current.bytes == wish.text.as_bytes() {
                return Err(Fault::NoChange { line_ends_only: false });
            }
            let (old, new) = (text::traits(&current.bytes), text::traits(wish.text.as_bytes()));
            if old.bom && !new.bom {
                notes.push(Note::BomGone {});
            }
            if old.crlf && !new.crlf {
                notes.push(Note::LineEndsNow {});
            }
        }
        self.carry_out(&place, current.as_ref(), wish.text.as_bytes(), &wish.mode, notes)
    }

    pub(super) fn str_replace(&mut self, wish: &StrReplace, cwd: &Path) -> Result<FileReply, Fault> {
        if let Some(answer) = self.answered(&wish.mode) {
            return Ok(answer);
        }
        let (place, current) = self.editable(&wish.path, cwd)?;
        let knowledge = self.seen.knowledge(&place.real, &current.stat, &digest(&current.bytes));
        let stale = match knowledge {
            Knowledge::None | Knowledge::Fresh { .. } => None,
            Knowledge::Stale { seen } => Some(seen),
        };
        let seen = stale.as_ref().and_then(|seen| seen.as_deref());
        let spliced = edit::str_replace(&current.bytes, &wish.old, &wish.new).map_err(|fault| match fault {
            Fault::NoMatch { .. } => Fault::NoMatch {
                near: near::find(&current.bytes, &wish.old).map(Box::new),
                change: seen.and_then(|seen| since(&place, Some(seen), &current)),
            },
            other => other,
        })?;
        let mut notes = Vec::new();
        if stale.is_some() {
            // The exact match shows that the model knows this place, unless its lines are among those that changed.
            let change = since(&place, seen, &current);
            if seen.is_some_and(|seen| !stands_in(&current.bytes, &spliced, seen)) {
                return Err(Fault::Stale { change });
            }
            notes.push(Note::ChangedSinceViewed { change });
        }
        check_size(spliced.bytes.len())?;
        self.carry_out(&place, Some(&current), &spliced.bytes, &wish.mode, notes)
    }

    pub(super) fn insert(&mut self, wish: &Insert, cwd: &Path) -> Result<FileReply, Fault> {
        if let Some(answer) = self.answered(&wish.mode) {
            return Ok(answer);
        }
        let (place, current) = self.editable(&wish.path, cwd)?;
        let spliced = edit::insert(&current.bytes, wish.line, &wish.text)?;
        // A line number proves nothing: it must be a number in the text that was seen.
        if let Knowledge::Stale { seen } = self.seen.knowledge(&place.real, &current.stat, &digest(&current.bytes)) {
            return Err(Fault::Stale { change: since(&place, seen.as_deref(), &current) });
        }
        check_size(spliced.bytes.len())?;
        self.carry_out(&place, Some(&current), &spliced.bytes, &wish.mode, Vec::new())
    }

    /// The answer of a call that was applied before.
    fn answered(&self, mode: &Mode) -> Option<FileReply> {
        match mode {
            Mode::Preview {} => None,
            Mode::Apply(Apply { call, .. }) => call.and_then(|call| self.history.answer(call)).cloned(),
        }
    }

    /// An existing text file that may be edited.
    fn editable(&self, path: &str, cwd: &Path) -> Result<(Place, Current), Fault> {
        let place = self.existing(path, cwd)?;
        check_place(&place)?;
        let current = match &place.found {
            Found::File(stat) => read(&place, stat)?,
            Found::Directory => return Err(Fault::IsDirectory {}),
            Found::Other(kind) => return Err(Fault::NotRegular { kind: kind.clone() }),
            Found::Nothing => return Err(self.not_found(&place)),
        };
        match text::sniff(&current.bytes) {
            Sniffed::Text => Ok((place, current)),
            Sniffed::Wide(name) => Err(Fault::Encoding { name: name.to_owned() }),
            Sniffed::Binary(what) => Err(Fault::Binary { what: what.to_owned(), size: current.bytes.len() as u64 }),
            Sniffed::Image(_) => Err(Fault::Binary { what: "an image".to_owned(), size: current.bytes.len() as u64 }),
        }
    }

    /// The common end of every edit of the model's: the answer, and the write if it is wanted.
    fn carry_out(
        &mut self,
        place: &Place,
        current: Option<&Current>,
        after: &[u8],
        mode: &Mode,
        mut notes: Vec<Note>,
    ) -> Result<FileReply, Fault> {
        let basis = Basis {
            path: place.real.to_string_lossy().into_owned(),
            content: current.map(|current| digest(&current.bytes)),
        };
        let change = change::between(&place.shown, current.map(|current| current.bytes.as_slice()), Some(after));
        notes.extend(facts(place, current));
        if current.is_some() {
            write::check_writable(place)?;
        }
        let (apply, applied) = match mode {
            Mode::Preview {} => (None, false),
            Mode::Apply(apply) => (Some(apply), true),
        };
        let reply = FileReply::Edited(Edited { applied, basis: basis.clone(), change, notes });
        let Some(apply) = apply else { return Ok(reply) };
        if apply.expect.as_ref().is_some_and(|expect| *expect != basis) {
            return Err(Fault::ChangedSincePreview {});
        }
        let plan = Plan { place, current, after: Some(after), mode: None, call: apply.call, undoes: None };
        self.write(&plan, &reply)?;
        Ok(reply)
    }

    /// Writes a plan down, carries it out, and writes the outcome down.
    pub(super) fn write(&mut self, plan: &Plan<'_>, reply: &FileReply) -> Result<(), Fault> {
        let place = plan.place;
        let number = self.history.next_number();
        let temp = write::temp_name(number);
        let record = Record {
            number,
            call: plan.call,
            path: place.real.to_string_lossy().into_owned(),
            before: plan.current.map(|current| Prior {
                digest: digest(&current.bytes),
                mode: attributes::permissions(&current.stat),
                size: current.bytes.len() as u64,
            }),
            after: plan.after.map(digest),
            temp: temp.to_string_lossy().into_owned(),
            directories: place.missing_directories(),
            undoes: plan.undoes,
            reply: reply.clone(),
        };
        let prior = plan.current.map(|current| current.bytes.as_slice());
        self.history.begin(record, prior).map_err(|error| keep_fault(&error))?;
        let written = deed(plan, &temp);
        // When the journal cannot take the outcome, the next start finds it out from the file.
        let noted = if written.is_ok() { self.history.done() } else { self.history.failed() };
        match (written?, plan.after) {
            // The model does not know what the user took back: to it that is a change like anybody's.
            (Some(_), Some(_)) if plan.undoes.is_some() => {}
            (Some(stat), Some(bytes)) => self.seen.wrote(&place.real, &stat, bytes),
            _ => self.seen.removed(&place.real),
        }
        noted.map_err(|error| keep_fault(&error))
    }
}

fn deed(plan: &Plan<'_>, temp: &OsString) -> Result<Option<FileStat>, Fault> {
    match (plan.current, plan.after) {
        (Some(current), Some(bytes)) => {
            let mode = plan.mode.unwrap_or_else(|| attributes::permissions(&current.stat));
            let old = write::Replacement { file: &current.file, stat: &current.stat, mode };
            write::replace(plan.place, &old, bytes, temp).map(Some)
        }
        (None, Some(bytes)) => write::create(plan.place, plan.mode, bytes, temp).map(Some),
        (_, None) => write::remove(plan.place).map(|()| None),
    }
}

/// Reads a file that will be edited.
pub(super) fn read(place: &Place, stat: &FileStat) -> Result<Current, Fault> {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > EDIT_BYTES_MAX {
        return Err(Fault::TooLarge { size, limit: EDIT_BYTES_MAX });
    }
    let file = place.open_file(stat)?;
    let bytes = read_all(&file)?;
    Ok(Current { file, stat: *stat, bytes })
}

/// All bytes of an open file, wherever it was read to.
pub(super) fn read_all(file: &File) -> Result<Vec<u8>, Fault> {
    use std::io::Seek as _;
    let fail = |error: std::io::Error| io_fault(&error, Action::Read);
    let mut file = file;
    file.rewind().map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(EDIT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(fail)?;
    check_size(bytes.len())?;
    Ok(bytes)
}

fn check_size(size: usize) -> Result<(), Fault> {
    let size = size as u64;
    if size > EDIT_BYTES_MAX { Err(Fault::TooLarge { size, limit: EDIT_BYTES_MAX }) } else { Ok(()) }
}

/// Refuses places whose files decide which programs run. Judged on the path without links, so a link does not help; in
/// any case, because some file systems do not tell cases apart.
pub(super) fn check_place(place: &Place) -> Result<(), Fault> {
    let protected = place
        .real
        .iter()
        .find_map(|part| PROTECTED.iter().find(|name| part.as_bytes().eq_ignore_ascii_case(name.as_bytes())));
    match protected {
        Some(name) => Err(Fault::Protected { name: (*name).to_owned() }),
        None => Ok(()),
    }
}

/// Refuses to make a directory (or a file) that is plainly meant to be expanded by a shell or is the start of a URL.
fn check_not_expanded(path: &str, place: &Place) -> Result<(), Fault> {
    let first = path.split('/').next().unwrap_or_default();
    let made = place.missing.first().or(matches!(place.found, Found::Nothing).then_some(&place.name));
    if made.is_none_or(|made| made != OsStr::new(first)) {
        return Ok(());
    }
    let alone = !path.contains('/');
    let home = first == "~" || (first.starts_with('~') && !alone);
    let url = !alone && first.ends_with(':') && path[first.len()..].starts_with("//");
    let name = first.strip_prefix('$').map(|name| name.trim_start_matches('{').trim_end_matches('}'));
    let is_variable = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    if home || url || (!alone && name.is_some_and(is_variable)) { Err(Fault::NotExpanded {}) } else { Ok(()) }
}

/// From what was seen of a file to what it is now.
fn since(place: &Place, seen: Option<&[u8]>, current: &Current) -> Option<Box<Change>> {
    seen.map(|seen| Box::new(change::between(&place.shown, Some(seen), Some(&current.bytes))))
}

/// Whether the whole lines that an edit touches stood in what was seen just as they stand now.
fn stands_in(now: &[u8], spliced: &Spliced, seen: &[u8]) -> bool {
    let touched = &spliced.touched;
    let start = now[..touched.start].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let last = touched.end.saturating_sub(1).max(start);
    let end = now[last..].iter().position(|byte| *byte == b'\n').map_or(now.len(), |end| last + end + 1);
    let wanted: Vec<&[u8]> = text::lines(&now[start..end]).map(text::without_end).collect();
    let seen: Vec<&[u8]> = text::lines(seen).map(text::without_end).collect();
    seen.windows(wanted.len().max(1)).any(|lines| lines == wanted)
}

/// What is worth saying about the file itself.
fn facts(place: &Place, current: Option<&Current>) -> Vec<Note> {
    let mut notes = Vec::new();
    if place.followed {
        notes.push(Note::Followed { path: place.shown.clone() });
    }
    let Some(current) = current else { return notes };
    if current.stat.st_nlink > 1 {
        notes.push(Note::HardLinks { others: current.stat.st_nlink - 1 });
    }
    let mode = attributes::permissions(&current.stat);
    if mode & 0o6000 != 0 {
        notes.push(Note::SpecialBits { mode });
    }
    notes
}
