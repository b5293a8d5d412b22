//! Taking edits back, and the sum of the session's changes.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use proto::ids::CallId;
use proto::shim::files::{Apply, Change, Changes, Fault, FileError, FileReply, Mode, Undo, Undone};

use super::editing::{Current, Plan, read};
use super::history::{Prior, Record, digest};
use super::path::{Found, Place};
use super::{Files, change, keep_fault, write};

/// Files in the sum of changes; more would not be read by anybody at once.
const CHANGED_FILES_MAX: usize = 200;

/// A file's content while several steps back are thought through; none = there is no file.
type Content = Option<Vec<u8>>;

impl Files {
    /// Takes the last edits back, the last first. A file that is not as its edit left it stops the whole before
    /// anything is written.
    pub(super) fn undo(&mut self, wish: &Undo) -> Result<FileReply, FileError> {
        let call = match &wish.mode {
            Mode::Preview {} => None,
            Mode::Apply(Apply { call, .. }) => *call,
        };
        let applied = matches!(wish.mode, Mode::Apply(_));
        let wanted = wish.steps as usize;
        let begun = match call.and_then(|call| self.history.answer(call)).cloned() {
            // A kill may have come between the steps: then the rest is still to do.
            Some(FileReply::Undone(undone)) if undone.changes.len() < wanted => Some(undone),
            Some(answer) => return Ok(answer),
            None => None,
        };
        let newest = self.history.standing().last().map_or(0, |record| record.number);
        if begun.is_none() && wish.newest.is_some_and(|seen| seen != newest) {
            return Err(FileError { path: String::new(), fault: Fault::ChangedSincePreview {} });
        }
        let left = self.history.standing().len() as u64;
        let mut undone = match begun {
            Some(undone) => Undone { left, stopped: None, ..undone },
            None => Undone { applied, changes: Vec::new(), left, newest, stopped: None },
        };
        let mut room = change::ANSWER_BYTES_MAX;
        for (record, change) in self.steps_back(wanted - undone.changes.len())? {
            let mut next = Undone { left: undone.left - 1, ..undone.clone() };
            next.changes.push(change::fit(change, &mut room));
            if applied {
                let reply = FileReply::Undone(next.clone());
                if let Err(fault) = self.take_back(&record, call, &reply) {
                    let error = FileError { path: record.path.clone(), fault };
                    // What was taken back stays so, and is told.
                    undone.stopped = (!undone.changes.is_empty()).then(|| error.clone());
                    return if undone.stopped.is_some() { Ok(FileReply::Undone(undone)) } else { Err(error) };
                }
            }
            undone = next;
        }
        Ok(FileReply::Undone(undone))
    }

    /// The sum of the session's changes, file by file, as far back as prior versions are kept.
    pub(super) fn changes(&self) -> FileReply {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut sum = Changes { changes: Vec::new(), left_out: 0, unknown: Vec::new() };
        let mut room = change::ANSWER_BYTES_MAX;
        for record in self.history.made().iter().filter(|record| seen.insert(&record.path)) {
            let told = sum.changes.len() + sum.unknown.len();
            match self.change_since(record) {
                Ok(None) => {}
                Ok(Some(_)) | Err(_) if told == CHANGED_FILES_MAX => sum.left_out += 1,
                Ok(Some(change)) => sum.changes.push(change::fit(change, &mut room)),
                Err(fault) => sum.unknown.push(FileError { path: record.path.clone(), fault }),
            }
        }
        FileReply::Changes(sum)
    }

    /// From before an edit to now; none = the same, or not known any more.
    fn change_since(&self, record: &Record) -> Result<Option<Change>, Fault> {
        let before = match self.prior(record.before.as_ref()) {
            Err(Fault::PriorGone {}) => return Ok(None),
            other => other?,
        };
        let (place, current) = self.now(&record.path)?;
        let now = current.map(|current| current.bytes);
        Ok((now != before).then(|| change::between(&place.shown, before.as_deref(), now.as_deref())))
    }

    /// The edits to take back, each with what that changes, checked against the files.
    fn steps_back(&self, steps: usize) -> Result<Vec<(Record, Change)>, FileError> {
        let standing = self.history.standing();
        if steps == 0 || steps > standing.len() {
            return Err(FileError { path: String::new(), fault: Fault::NothingToUndo { left: standing.len() as u64 } });
        }
        let mut contents: HashMap<&str, Content> = HashMap::new();
        let mut back = Vec::new();
        for record in standing.iter().rev().take(steps) {
            let later = contents.remove(record.path.as_str());
            let step = self.step_back(record, later);
            let (before, change) = step.map_err(|fault| FileError { path: record.path.clone(), fault })?;
            back.push(((*record).clone(), change));
            contents.insert(&record.path, before);
        }
        Ok(back)
    }

    /// What comes back when one edit is taken back; `later`: what a later step of the same file has brought back.
    fn step_back(&self, record: &Record, later: Option<Content>) -> Result<(Content, Change), Fault> {
        let (place, current) = self.now(&record.path)?;
        let now = later.unwrap_or_else(|| current.map(|current| current.bytes));
        if now.as_deref().map(digest) != record.after {
            return Err(self.conflict(record, &place, now.as_deref()));
        }
        let before = self.prior(record.before.as_ref())?;
        let change = change::between(&place.shown, now.as_deref(), before.as_deref());
        Ok((before, change))
    }

    fn conflict(&self, record: &Record, place: &Place, now: Option<&[u8]>) -> Fault {
        let left = record.after.as_ref().and_then(|after| self.seen.snapshot(Path::new(&record.path), after));
        let change = left.map(|left| Box::new(change::between(&place.shown, Some(&left), now)));
        Fault::UndoConflict { change }
    }

    fn prior(&self, prior: Option<&Prior>) -> Result<Content, Fault> {
        let Some(prior) = prior else { return Ok(None) };
        let bytes = self.history.bytes(prior).map_err(|error| keep_fault(&error))?;
        bytes.map(Some).ok_or(Fault::PriorGone {})
    }

    /// Takes one edit back.
    fn take_back(&mut self, record: &Record, call: Option<CallId>, reply: &FileReply) -> Result<(), Fault> {
        let (place, current) = self.now(&record.path)?;
        if current.as_ref().map(|current| digest(&current.bytes)) != record.after {
            return Err(Fault::ChangedSincePreview {});
        }
        if current.is_some() {
            write::check_writable(&place)?;
        }
        let after = self.prior(record.before.as_ref())?;
        let plan = Plan {
            place: &place,
            current: current.as_ref(),
            after: after.as_deref(),
            mode: record.before.as_ref().map(|prior| prior.mode),
            call,
            undoes: Some(record.number),
        };
        self.write(&plan, reply)?;
        if record.before.is_none() {
            self.remove_directories(&record.directories);
        }
        Ok(())
    }

    /// Removes directories that were made for a file, the innermost first, as far as they are empty.
    pub(super) fn remove_directories(&self, directories: &[String]) {
        for directory in directories.iter().rev() {
            if let Ok(place) = self.roots.resolve(directory, Path::new("/")) {
                write::remove_directory(&place);
            }
        }
    }

    /// A file of the history as it is now.
    fn now(&self, path: &str) -> Result<(Place, Option<Current>), Fault> {
        let place = self.roots.resolve(path, Path::new("/"))?;
        let current = match &place.found {
            Found::File(stat) => Some(read(&place, stat)?),
            Found::Nothing => None,
            Found::Directory => return Err(Fault::IsDirectory {}),
            Found::Other(kind) => return Err(Fault::NotRegular { kind: kind.clone() }),
        };
        Ok((place, current))
    }
}
