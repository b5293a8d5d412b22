//! From a path as the model wrote it to an open directory and a name in it: confinement.
//!
//! Every path is walked one component at a time from the descriptor of a root, each step with `O_PATH | O_NOFOLLOW`
//! through `openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)`. Links are read and walked by our own hand, so that an
//! absolute link that leads back inside still works, which RESOLVE_BENEATH alone refuses. `..` goes back along the
//! descriptors we came by. What is opened or written later is one plain name in the directory found here.
//!
//! Invariant: no descriptor of anything outside the roots is ever opened, whatever is renamed or swapped meanwhile.
//! Not here: whether the file may be edited.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use proto::shim::files::{Action, Fault, FileKind};

use super::FilesError;

/// As many links as the kernel follows in one path.
const LINKS_MAX: u32 = 40;

/// The directories that paths may lead to.
#[derive(Debug)]
pub(super) struct Roots {
    /// The first is the workspace.
    roots: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    dir: OwnedFd,
    /// As it was configured; it may lead through links.
    given: PathBuf,
    /// Without links, as it was when it was opened.
    canonical: PathBuf,
}

/// One name in one directory inside the roots.
#[derive(Debug)]
pub(super) struct Place {
    /// The directory.
    pub(super) dir: OwnedFd,
    /// The name in it; `.` for a root itself.
    pub(super) name: OsString,
    /// Directories between `dir` and `name` that do not exist yet.
    pub(super) missing: Vec<OsString>,
    /// The place without links, absolute.
    pub(super) real: PathBuf,
    /// The place as people know it: relative in the workspace, absolute elsewhere.
    pub(super) shown: String,
    /// What is there.
    pub(super) found: Found,
    /// Whether links were followed.
    pub(super) followed: bool,
}

/// What is at a [`Place`].
#[derive(Debug)]
pub(super) enum Found {
    /// A regular file.
    File(FileStat),
    /// A directory.
    Directory,
    /// Neither.
    Other(FileKind),
    /// Nothing.
    Nothing,
}

/// Which file a descriptor or a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inode {
    dev: u64,
    ino: u64,
}

impl Inode {
    pub(super) fn of(stat: &FileStat) -> Self {
        Self { dev: stat.st_dev, ino: stat.st_ino }
    }
}

impl Roots {
    /// Opens every root; the first is the workspace.
    pub(super) fn open(root: &Path, extra: &[PathBuf]) -> Result<Self, FilesError> {
        let mut roots = Vec::new();
        for given in std::iter::once(root).chain(extra.iter().map(PathBuf::as_path)) {
            let fail = |source| FilesError::Root { path: given.to_owned(), source };
            let canonical = std::fs::canonicalize(given).map_err(fail)?;
            let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            let dir = nix::fcntl::open(&canonical, flags, Mode::empty()).map_err(|errno| fail(errno.into()))?;
            roots.push(Root { dir, given: given.to_owned(), canonical });
        }
        Ok(Self { roots })
    }

    /// The roots as they were configured.
    pub(super) fn names(&self) -> Vec<String> {
        self.roots.iter().map(|root| root.given.display().to_string()).collect()
    }

    /// Opens the workspace itself for listing.
    pub(super) fn open_workspace(&self) -> nix::Result<OwnedFd> {
        open_directory(&self.roots[0].dir, OsStr::new("."))
    }

    /// The place that a path means; a relative one starts at `cwd` where that is inside, else at the workspace.
    pub(super) fn resolve(&self, path: &str, cwd: &Path) -> Result<Place, Fault> {
        check_text(path)?;
        let wanted: Vec<OsString> = components(OsStr::new(path)).collect();
        let (root, mut pending) = if path.starts_with('/') {
            self.locate(&wanted).ok_or_else(|| self.outside())?
        } else {
            let base: Vec<OsString> = components(cwd.as_os_str()).collect();
            let (root, mut pending) = self.locate(&base).unwrap_or_default();
            pending.extend(wanted);
            (root, pending)
        };
        if path.ends_with('/') || path.ends_with("/.") {
            // A trailing slash asks for a directory; the walk sees it as one more step from there.
            pending.push_back(OsString::from("."));
        }
        Walk { roots: self, root, stack: Vec::new(), pending, links: 0, link_rest: None }.run()
    }

    /// The root that an absolute path lies in, and the components below it. Compares whole components and never looks
    /// at the disk; the longest root wins.
    fn locate(&self, wanted: &[OsString]) -> Option<(usize, VecDeque<OsString>)> {
        let mut best: Option<(usize, usize)> = None;
        for (index, root) in self.roots.iter().enumerate() {
            for prefix in [&root.given, &root.canonical] {
                let prefix: Vec<OsString> = components(prefix.as_os_str()).collect();
                if wanted.starts_with(&prefix) && best.is_none_or(|(_, longest)| prefix.len() > longest) {
                    best = Some((index, prefix.len()));
                }
            }
        }
        best.map(|(index, length)| (index, wanted[length..].iter().cloned().collect()))
    }

    fn outside(&self) -> Fault {
        Fault::Outside { roots: self.names() }
    }

    fn shown(&self, root: usize, below: &Path) -> String {
        let path = if root == 0 { below.to_owned() } else { self.roots[root].canonical.join(below) };
        if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
    }
}

/// A walk that is under way.
struct Walk<'a> {
    roots: &'a Roots,
    root: usize,
    /// The directories from below the root to here.
    stack: Vec<(OwnedFd, OsString)>,
    /// What is left to walk.
    pending: VecDeque<OsString>,
    links: u32,
    /// While inside the text of a link: how many components of the path are left after it, and the link's text.
    link_rest: Option<(usize, String)>,
}

impl Walk<'_> {
    fn run(mut self) -> Result<Place, Fault> {
        while let Some(name) = self.pending.pop_front() {
            if self.link_rest.as_ref().is_some_and(|(rest, _)| self.pending.len() < *rest) {
                self.link_rest = None;
            }
            if name == "." {
                continue;
            }
            if name == ".." {
                self.up()?;
                continue;
            }
            let step = match open_step(self.here(), &name) {
                Ok(step) => step,
                Err(Errno::ENOENT) => return self.nothing(name),
                Err(errno) => return Err(fault(errno, Action::Resolve)),
            };
            let stat = fstat(&step).map_err(|errno| fault(errno, Action::Resolve))?;
            match kind_of(&stat) {
                SFlag::S_IFDIR => self.stack.push((step, name)),
                SFlag::S_IFLNK => self.follow(&step)?,
                _ if !self.pending.is_empty() => {
                    return Err(Fault::NotADirectory { part: self.roots.shown(self.root, &self.below(&name)) });
                }
                SFlag::S_IFREG => return self.place(name, Vec::new(), Found::File(stat)),
                other => return self.place(name, Vec::new(), Found::Other(special(other))),
            }
        }
        self.directory()
    }

    fn here(&self) -> &OwnedFd {
        self.stack.last().map_or(&self.roots.roots[self.root].dir, |(dir, _)| dir)
    }

    /// The path below the root that `name` has here.
    fn below(&self, name: &OsStr) -> PathBuf {
        let mut below: PathBuf = self.stack.iter().map(|(_, name)| name).collect();
        below.push(name);
        below
    }

    /// One `..`. Above a root it may still lead into another root, or back into the same one.
    fn up(&mut self) -> Result<(), Fault> {
        if self.stack.pop().is_some() {
            return Ok(());
        }
        let mut above: Vec<OsString> = components(self.roots.roots[self.root].canonical.as_os_str()).collect();
        above.pop();
        while self.pending.front().is_some_and(|next| next == "..") {
            self.pending.pop_front();
            above.pop();
        }
        above.extend(self.pending.drain(..));
        self.jump(&above)
    }

    fn jump(&mut self, absolute: &[OsString]) -> Result<(), Fault> {
        let (root, pending) = self.roots.locate(absolute).ok_or_else(|| self.roots.outside())?;
        self.root = root;
        self.stack.clear();
        self.pending = pending;
        Ok(())
    }

    fn follow(&mut self, link: &OwnedFd) -> Result<(), Fault> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Fault::LinkLoop {});
        }
        let target = readlinkat(link, "").map_err(|errno| fault(errno, Action::Resolve))?;
        if self.link_rest.is_none() {
            self.link_rest = Some((self.pending.len(), target.to_string_lossy().into_owned()));
        }
        let mut ahead: VecDeque<OsString> = components(&target).collect();
        if target.as_bytes().ends_with(b"/") {
            ahead.push_back(OsString::from("."));
        }
        ahead.append(&mut self.pending);
        self.pending = ahead;
        if Path::new(&target).is_absolute() {
            let absolute: Vec<OsString> = self.pending.drain(..).collect();
            return self.jump(&absolute);
        }
        Ok(())
    }

    /// `name` does not exist here: a place for a new file, unless the rest could not be made.
    fn nothing(mut self, name: OsString) -> Result<Place, Fault> {
        if let Some((_, target)) = self.link_rest.take() {
            return Err(Fault::DanglingLink { target });
        }
        let mut rest: Vec<OsString> = std::iter::once(name).chain(self.pending.drain(..)).collect();
        if rest.iter().any(|name| name == "." || name == "..") {
            let missing = self.roots.shown(self.root, &self.below(&rest[0]));
            return Err(Fault::NotFound { similar: Vec::new(), missing_directory: Some(missing) });
        }
        if rest.iter().any(|name| name.len() > NAME_MAX) {
            return Err(Fault::NameTooLong {});
        }
        match rest.pop() {
            Some(last) => self.place(last, rest, Found::Nothing),
            None => Err(Fault::EmptyPath {}),
        }
    }

    fn directory(mut self) -> Result<Place, Fault> {
        match self.stack.pop() {
            Some((_, name)) => self.place(name, Vec::new(), Found::Directory),
            None => self.place(OsString::from("."), Vec::new(), Found::Directory),
        }
    }

    fn place(mut self, name: OsString, missing: Vec<OsString>, found: Found) -> Result<Place, Fault> {
        let mut below: PathBuf = self.stack.iter().map(|(_, name)| name).collect();
        below.extend(&missing);
        if name != "." {
            below.push(&name);
        }
        let dir = match self.stack.pop() {
            Some((dir, _)) => dir,
            None => self.here().try_clone().map_err(|error| io_fault(&error, Action::Resolve))?,
        };
        let real = self.roots.roots[self.root].canonical.join(&below);
        let shown = self.roots.shown(self.root, &below);
        Ok(Place { dir, name, missing, real, shown, found, followed: self.links > 0 })
    }
}

impl Place {
    /// Opens the regular file that was found here for reading; nothing that came in its stead is read.
    pub(super) fn open_file(&self, stat: &FileStat) -> Result<File, Fault> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = openat(&self.dir, self.name.as_os_str(), flags, Mode::empty())
            .map_err(|errno| fault(errno, Action::Read))?;
        let now = fstat(&file).map_err(|errno| fault(errno, Action::Read))?;
        if Inode::of(&now) == Inode::of(stat) { Ok(File::from(file)) } else { Err(Fault::ChangedSincePreview {}) }
    }

    /// The directories that do not exist yet, absolute, the outermost first.
    pub(super) fn missing_directories(&self) -> Vec<String> {
        let mut above: Vec<&Path> = self.real.ancestors().skip(1).take(self.missing.len()).collect();
        above.reverse();
        above.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// Opens the directory that was found here for listing.
    pub(super) fn open_directory(&self) -> Result<OwnedFd, Fault> {
        open_directory(&self.dir, &self.name).map_err(|errno| fault(errno, Action::Read))
    }
}

/// The longest name of one file that Linux file systems take, in bytes.
const NAME_MAX: usize = 255;

/// Opens one directory entry for listing, never through a link.
pub(super) fn open_directory(dir: impl AsFd, name: &OsStr) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

/// Opens one component as a bare reference: nothing is read, no device is touched, no link is followed.
pub(super) fn open_step(dir: impl AsFd, name: &OsStr) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    loop {
        match openat2(&dir, name, how) {
            // The kernel asks for a repeat when something was renamed under a `..`; ours never hold one, but the
            // answer is allowed at any time.
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            other => return other,
        }
    }
}

/// The file type bits of a mode.
pub(super) fn kind_of(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// The kind of something that is neither a regular file nor a directory nor a link.
pub(super) fn special(kind: SFlag) -> FileKind {
    match kind {
        SFlag::S_IFIFO => FileKind::Fifo,
        SFlag::S_IFSOCK => FileKind::Socket,
        _ => FileKind::Device,
    }
}

/// The system's refusal as a reason.
pub(super) fn fault(errno: Errno, action: Action) -> Fault {
    match errno {
        Errno::EACCES | Errno::EPERM | Errno::EROFS => Fault::Denied { action },
        Errno::ENOSPC | Errno::EDQUOT => Fault::NoSpace { action },
        Errno::ENAMETOOLONG => Fault::NameTooLong {},
        Errno::ELOOP => Fault::LinkLoop {},
        Errno::ENOENT => Fault::NotFound { similar: Vec::new(), missing_directory: None },
        other => Fault::System { action, message: other.desc().to_owned() },
    }
}

/// The same for errors of the standard library.
pub(super) fn io_fault(error: &std::io::Error, action: Action) -> Fault {
    match error.raw_os_error() {
        Some(code) => fault(Errno::from_raw(code), action),
        None => Fault::System { action, message: error.to_string() },
    }
}

fn check_text(path: &str) -> Result<(), Fault> {
    if path.is_empty() {
        return Err(Fault::EmptyPath {});
    }
    if path.contains('\0') {
        return Err(Fault::NulInPath {});
    }
    Ok(())
}

/// The parts of a path without `/` and `.`.
fn components(path: &OsStr) -> impl Iterator<Item = OsString> + '_ {
    Path::new(path).components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}
