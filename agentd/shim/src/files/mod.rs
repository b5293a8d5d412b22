//! The files of the workspace, as the model's editor sees and changes them.
//!
//! In reading order: [`path`] turns a path into an open directory and a name, inside the roots whatever is swapped;
//! [`view`] and [`list`] show; [`edit`] computes new bytes, [`near`] what may have been meant when a text is not there,
//! [`change`] what differs; [`editing`] is the order of an edit, [`mod@write`] the atomic deed, [`attributes`] what a file
//! keeps; [`history`] and [`blobs`] hold what was replaced, [`undo`] brings it back; [`seen`] knows what the model has seen;
//! [`text`] knows bytes, lines and encodings. [`search`] finds: by content ([`grep`]) or name ([`glob`]), through [`walk`]
//! and the rules of [`ignores`].
//!
//! Invariant: bytes outside an edit never change, and a file is never left half written.
//! Invariant: nothing outside the roots is read or written, and only regular files are.
//! Not here: wording for the model, approvals, who may call.

mod attributes;
mod blobs;
mod change;
mod edit;
mod editing;
mod glob;
mod grep;
mod history;
mod ignores;
mod list;
mod near;
mod path;
mod search;
mod seen;
#[cfg(test)]
mod tests;
mod text;
mod undo;
mod view;
mod walk;
mod write;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::stat::fstat;
use proto::shim::files::{Action, Fault, FileError, FileOp, FileReply, View};

use history::{History, Record};
use path::{Found, Place, Roots};
use search::Wish;
pub use search::{Search, Stop};
use seen::Seen;

/// The largest file that is edited: it is held in memory, and every prior version is kept.
const EDIT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The largest file that a view reads whole, to know it again later; larger ones are known by size and time alone.
const DIGEST_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Why the files could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A root is not there or not a directory.
    #[error("cannot open the directory {}: {source}", path.display())]
    Root {
        /// The root as it was configured.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The session's own directory cannot be used.
    #[error("cannot use the session's store {}: {source}", path.display())]
    Store {
        /// The store's directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The files of one session.
#[derive(Debug)]
pub struct Files {
    roots: Roots,
    seen: Seen,
    history: History,
}

impl Files {
    /// Opens the workspace `root`, further roots from the user's configuration, and the session's private store, and
    /// clears away what an earlier process was killed over.
    ///
    /// # Errors
    /// When a root or the store cannot be opened.
    pub fn open(root: &Path, extra_roots: &[PathBuf], store_dir: &Path) -> Result<Self, FilesError> {
        let store = |source| FilesError::Store { path: store_dir.to_owned(), source };
        let roots = Roots::open(root, extra_roots)?;
        let (history, unsettled) = History::open(store_dir).map_err(store)?;
        let mut files = Self { roots, seen: Seen::default(), history };
        for record in unsettled {
            let made = files.sweep(&record);
            files.history.settle(record, made).map_err(store)?;
        }
        Ok(files)
    }

    /// Does one operation, whatever time it takes; for a search see [`Files::search`]. A relative path starts at `cwd`
    /// where that lies inside, else at the workspace.
    pub fn handle(&mut self, op: &FileOp, cwd: &Path) -> FileReply {
        let at = |path: &str| {
            let path = path.to_owned();
            |fault| FileError { path, fault }
        };
        let done = match op {
            FileOp::View(view) => self.view(view, cwd).map_err(at(&view.path)),
            FileOp::Create(create) => self.create(create, cwd).map_err(at(&create.path)),
            FileOp::StrReplace(replace) => self.str_replace(replace, cwd).map_err(at(&replace.path)),
            FileOp::Insert(insert) => self.insert(insert, cwd).map_err(at(&insert.path)),
            FileOp::Undo(undo) => self.undo(undo),
            FileOp::Changes {} => Ok(self.changes()),
            FileOp::Grep(grep) => return run(self.prepare(Wish::Grep(grep.clone()), cwd)),
            FileOp::Glob(glob) => return run(self.prepare(Wish::Glob(glob.clone()), cwd)),
        };
        done.unwrap_or_else(FileReply::Error)
    }

    fn view(&mut self, wish: &View, cwd: &Path) -> Result<FileReply, Fault> {
        let place = self.existing(&wish.path, cwd)?;
        let stat = match &place.found {
            Found::File(stat) => *stat,
            Found::Directory if wish.range.is_some() => return Err(Fault::RangeOnDirectory {}),
            Found::Directory => return list::directory(place.open_directory()?, &place.shown).map(FileReply::Listing),
            Found::Other(kind) => return Err(Fault::NotRegular { kind: kind.clone() }),
            Found::Nothing => return Err(self.not_found(&place)),
        };
        let file = place.open_file(&stat)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let shown =
            view::file(&file, size, &view::Wish { path: &place.shown, range: wish.range, limit: wish.max_characters })?;
        match shown {
            view::Shown::Text(text) => {
                let bytes = if size <= DIGEST_BYTES_MAX { Some(editing::read_all(&file)?) } else { None };
                // Written to while it was read: what was shown is known by its time alone, and will count as changed.
                let still = fstat(&file).is_ok_and(|now| write::same_content(&now, &stat));
                self.seen.viewed(&place.real, &stat, bytes.as_deref().filter(|_| still));
                Ok(FileReply::Text(text))
            }
            view::Shown::Image(image) => Ok(FileReply::Image(image)),
        }
    }

    /// The place of something that should exist; what the path may have meant when it does not. What is not there from
    /// `cwd` may be there from the workspace: that is how our answers name files.
    fn existing(&self, path: &str, cwd: &Path) -> Result<Place, Fault> {
        let there = |place: &Place| !matches!(place.found, Found::Nothing);
        let place = self.roots.resolve(path, cwd);
        if place.as_ref().is_ok_and(there) || path.starts_with('/') {
            let place = place?;
            return if there(&place) { Ok(place) } else { Err(self.not_found(&place)) };
        }
        match self.roots.resolve(path, Path::new("")) {
            Ok(other) if there(&other) => Ok(other),
            Ok(_) | Err(_) => Err(self.not_found(&place?)),
        }
    }

    fn not_found(&self, place: &Place) -> Fault {
        let wanted = place.missing.first().map_or(place.name.as_os_str(), |name| name.as_os_str());
        let above = Path::new(&place.shown).ancestors().nth(1 + place.missing.len()).unwrap_or(Path::new(""));
        let mut similar: Vec<String> = path::open_directory(&place.dir, OsStr::new("."))
            .map(|dir| list::similar(dir, wanted))
            .unwrap_or_default()
            .into_iter()
            .map(|name| above.join(name).to_string_lossy().into_owned())
            .collect();
        if similar.is_empty() {
            similar = self.roots.open_workspace().map(|dir| list::elsewhere(dir, &place.name)).unwrap_or_default();
        }
        let missing = place.missing.first().map(|name| above.join(name).to_string_lossy().into_owned());
        Fault::NotFound { similar, missing_directory: missing }
    }

    /// Judges an edit that was begun and not finished, and removes what it left beside its file.
    fn sweep(&self, record: &Record) -> bool {
        let Ok(place) = self.roots.resolve(&record.path, Path::new("/")) else { return false };
        let made = match (&record.after, &place.found) {
            (None, Found::Nothing) => true,
            (Some(after), Found::File(stat)) => {
                let bytes = place.open_file(stat).and_then(|file| editing::read_all(&file));
                bytes.is_ok_and(|bytes| history::digest(&bytes) == *after)
            }
            (None, Found::File(_) | Found::Directory | Found::Other(_))
            | (Some(_), Found::Nothing | Found::Directory | Found::Other(_)) => false,
        };
        write::sweep(&place.dir, OsStr::new(&record.temp));
        if !made {
            self.sweep_made(record);
        }
        made
    }

    /// Removes what was made on the way to a file that never came to be: the temporary file in the innermost
    /// directory, then the directories as far as they are empty.
    fn sweep_made(&self, record: &Record) {
        let innermost = record.directories.last().map(|path| self.roots.resolve(path, Path::new("/")));
        if let Some(Ok(dir)) = innermost.map(|place| place?.open_directory()) {
            write::sweep(&dir, OsStr::new(&record.temp));
        }
        self.remove_directories(&record.directories);
    }
}

fn run(search: Result<Search, Box<FileReply>>) -> FileReply {
    search.map_or_else(|refusal| *refusal, Search::run)
}

/// What keeping the prior version ran into.
fn keep_fault(error: &io::Error) -> Fault {
    path::io_fault(error, Action::KeepPrior)
}
