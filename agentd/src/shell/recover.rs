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

/// Ends every process that a dead shim of the session left behind, and removes its socket. Must not be called while a
/// shim lives.
pub fn sweep(session: SessionId, runtime_dir: &Path, state_dir: &Path) {
    if let Some(folder) = socket_of(session, runtime_dir).parent() {
        // None is there when the shim ended by itself.
        let _ = std::fs::remove_dir_all(folder);
    }
    scope::sweep(session, &state_of(session, state_dir));
    if let Ok(own) = shim::cgroup::own_group() {
        let group = own.join(format!("{}{}", shim::cgroup::PREFIX, session.0.simple()));
        if group.exists() {
            shim::cgroup::sweep(&group);
        }
    }
    let mark = format!("AGENTD_SESSION={session}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()) {
            // One that has ended meanwhile is what is wanted.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
