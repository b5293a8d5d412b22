//! What dead shims left behind: the records of their calls, and processes.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::ids::{CallId, SessionId};
use shim::journal::{self, Record};

use super::launch::{socket_of, state_of};
use super::{RunResult, scope};

/// What is known of a call whose shim is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remains {
    /// The shim never began it: it did not run.
    NotBegun,
    /// It began and its end is not recorded: the outcome is unknown. What it printed may be in part in the file.
    Unknown {
        /// The file with what was captured, if anything was.
        spool: Option<PathBuf>,
    },
    /// It ended before the shim did.
    Ended(Box<RunResult>),
}

/// What a dead shim recorded of a call.
///
/// # Errors
/// When the journal cannot be read.
pub fn remains(session: SessionId, call: CallId, state_dir: &Path) -> io::Result<Remains> {
    let mut found = Remains::NotBegun;
    for (record, body) in journal::read(&state_of(session, state_dir))? {
        match record {
            Record::Began { call: began, spool } if began == call => {
                let spool = Some(PathBuf::from(spool)).filter(|path| path.exists());
                found = Remains::Unknown { spool };
            }
            Record::Ended { call: ended, end } if ended == call => {
                found = Remains::Ended(Box::new(RunResult { end, body: Bytes::from(body) }));
            }
            Record::Began { .. } | Record::Ended { .. } | Record::Unknown => {}
        }
    }
    Ok(found)
}

/// Of these sessions, those whose shim died without ending its session: its socket is there and nobody listens on it.
#[must_use]
pub fn dead(sessions: &[SessionId], runtime_dir: &Path) -> Vec<SessionId> {
    let refused = |session: &&SessionId| {
        let connected = std::os::unix::net::UnixStream::connect(socket_of(**session, runtime_dir));
        connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    sessions.iter().filter(refused).copied().collect()
}

/// Whether an earlier shim of the session left a folder for its socket behind.
#[must_use]
pub fn left_behind(session: SessionId, runtime_dir: &Path) -> bool {
    socket_of(session, runtime_dir).parent().is_some_and(Path::exists)
}

/// Ends every process that dead shims of these sessions left behind, and removes their sockets. Must not be called while
/// a shim of them lives.
pub fn sweep(sessions: &[SessionId], runtime_dir: &Path, state_dir: &Path) {
    if sessions.is_empty() {
        return;
    }
    let own = shim::cgroup::own_group().ok();
    for session in sessions {
        if let Some(folder) = socket_of(*session, runtime_dir).parent() {
            // None is there when the shim ended by itself.
            let _ = std::fs::remove_dir_all(folder);
        }
        scope::sweep(*session, &state_of(*session, state_dir));
        let group = own.as_ref().map(|own| own.join(format!("{}{}", shim::cgroup::PREFIX, session.0.simple())));
        if let Some(group) = group.filter(|group| group.exists()) {
            shim::cgroup::sweep(&group);
        }
    }
    let marks: Vec<String> = sessions.iter().map(|session| format!("AGENTD_SESSION={session}")).collect();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let marked = |entry: &[u8]| marks.iter().any(|mark| mark.as_bytes() == entry);
        if environ.split(|byte| *byte == 0).any(marked) {
            // One that has ended meanwhile is what is wanted.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
