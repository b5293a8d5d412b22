//! Taking edits back, and the sum of the session's changes.

use std::collections::HashMap;
use std::path::Path;

use proto::ids::CallId;
use proto::shim::files::{Apply, Change, Changes, Fault, FileReply, Mode, Undo, Undone};

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
    pub(super) fn undo(&mut self, wish: &Undo) -> Result<FileReply, Fault> {
        let call = match &wish.mode {
            Mode::Preview {} => None,
            Mode::Apply(Apply { call, .. }) => *call,
        };
        let applied = matches!(wish.mode, Mode::Apply(_));
        let wanted = wish.steps as usize;
        let mut changes = match call.and_then(|call| self.history.answer(call)).cloned() {
            // A kill may have come between the steps: then the rest is still to do.
            Some(FileReply::Undone(undone)) if undone.changes.len() < wanted => undone.changes,
            Some(answer) => return Ok(answer),
            None => Vec::new(),
        };
        let steps = self.steps_back(wanted - changes.len())?;
        let mut left = self.history.standing().len() as u64;
        for (record, change) in steps {
            left -= 1;
            changes.push(change);
            if applied {
                let reply = FileReply::Undone(Undone { applied, changes: changes.clone(), left });
                self.take_back(&record, call, &reply)?;
            }
        }
        Ok(FileReply::Undone(Undone { applied, changes, left }))
    }

    /// The sum of the session's changes, file by file, as far back as prior versions are kept.
    pub(super) fn changes(&self) -> Result<FileReply, Fault> {
        let mut seen: Vec<&str> = Vec::new();
        let mut sum = Changes { changes: Vec::new(), left_out: 0 };
        for record in self.history.made() {
            if seen.contains(&record.path.as_str()) {
                continue;
            }
            seen.push(&record.path);
            let before = match &record.before {
                None => None,
                Some(prior) => match self.history.bytes(prior).map_err(|error| keep_fault(&error))? {
                    Some(bytes) => Some(bytes),
                    None => continue,
                },
            };
            let (place, current) = self.now(&record.path)?;
            let now = current.map(|current| current.bytes);
            if now == before {
                continue;
            }
            if sum.changes.len() == CHANGED_FILES_MAX {
                sum.left_out += 1;
            } else {
                sum.changes.push(change::between(&place.shown, before.as_deref(), now.as_deref()));
            }
        }
        Ok(FileReply::Changes(sum))
    }

    /// The edits to take back, each with what that changes, checked against the files.
    fn steps_back(&self, steps: usize) -> Result<Vec<(Record, Change)>, Fault> {
        let standing = self.history.standing();
        if steps == 0 || steps > standing.len() {
            return Err(Fault::NothingToUndo { left: standing.len() as u64 });
        }
        let mut contents: HashMap<&str, Content> = HashMap::new();
        let mut back = Vec::new();
        for record in standing.iter().rev().take(steps) {
            let (place, current) = self.now(&record.path)?;
            let now = match contents.remove(record.path.as_str()) {
                Some(content) => content,
                None => current.map(|current| current.bytes),
            };
            if now.as_deref().map(digest) != record.after {
                return Err(self.conflict(record, &place, now.as_deref()));
            }
            let before = self.prior(record.before.as_ref())?;
            back.push(((*record).clone(), change::between(&place.shown, now.as_deref(), before.as_deref())));
            contents.insert(&record.path, before);
        }
        Ok(back)
    }

    fn conflict(&self, record: &Record, place: &Place, now: Option<&[u8]>) -> Fault {
        let left = record.after.as_ref().and_then(|after| self.seen.snapshot(Path::new(&record.path), after));
        let change = left.map(|left| Box::new(change::between(&place.shown, Some(&left), now)));
        Fault::UndoConflict { file: place.shown.clone(), change }
    }

    fn prior(&self, prior: Option<&Prior>) -> Result<Content, Fault> {
        let Some(prior) = prior else { return Ok(None) };
        let bytes = self.history.bytes(prior).map_err(|error| keep_fault(&error))?;
        bytes.map(Some).ok_or(Fault::NothingToUndo { left: 0 })
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
