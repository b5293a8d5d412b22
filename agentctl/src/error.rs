//! Everything that can go wrong, as one sentence each: what failed, on what, what to do next. And its exit code.
//!
//! The texts are pinned by `tests/errors.rs`.

use std::io;
use std::path::PathBuf;

use proto::frame::FrameError;
use proto::handshake::Refusal;
use proto::request::PROMPT_BYTES_MAX;
use proto::response::{ErrorCode, WireError};
use thiserror::Error;

use crate::exit::Exit;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CtlError {
    /// The daemon answered a request with an error.
    #[error("{0}")]
    Wire(WireError),
    /// A setting of `set` that is none.
    #[error("`{word}` is no setting; write model=ID, effort=high or max_tokens=32000")]
    Setting {
        /// What was typed.
        word: String,
    },
    /// Nothing listens, and starting a daemon was not wanted.
    #[error("cannot reach agentd at {}: {source}; start it with `agentd` or run the command without --no-start", .socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The daemon turned the connection away.
    #[error("agentd at {} refused the connection: {sentence}", .socket.display())]
    Refused {
        /// The socket.
        socket: PathBuf,
        /// The kind.
        refusal: Refusal,
        /// The daemon's own sentence.
        sentence: String,
    },
    /// Client and daemon are of different versions.
    #[error("{sentence}")]
    Version {
        /// Which side is behind and how to mend it.
        sentence: String,
    },
    /// Something listens there that does not speak our protocol.
    #[error("what listens at {} is not agentd (it answered {answer:?}); name the right socket with --socket or AGENTD_SOCKET", .socket.display())]
    NotAgentd {
        /// The socket.
        socket: PathBuf,
        /// The beginning of its answer.
        answer: String,
    },
    /// The socket or the process behind it is another user's.
    #[error("{} belongs to user {owner}, not to you (user {me}); nothing was sent: use your own daemon's socket, see --socket and AGENTD_SOCKET", .path.display())]
    OtherUser {
        /// The socket or its directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Ourselves.
        me: u32,
    },
    /// Others may write into the directory of the socket.
    #[error("the socket directory {} may be written by others (mode {mode:o}); `chmod 700 {}` mends it", .path.display(), .path.display())]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The daemon said why it does not start.
    #[error("agentd did not start: {sentence}")]
    StartFailed {
        /// Its own sentence.
        sentence: String,
    },
    /// The daemon ended or stayed silent without a reason.
    #[error("agentd was started and {what}; its log {} says more", .log.display())]
    StartSilent {
        /// What it did instead.
        what: String,
        /// The log file.
        log: PathBuf,
    },
    /// There is no daemon to start.
    #[error(
        "cannot start agentd: there is no `agentd` beside agentctl or in PATH; install it or name it with AGENTD_BIN"
    )]
    NoBinary,
    /// The daemon's program cannot be run.
    #[error("cannot start {}: {source}; check AGENTD_BIN and its permissions", .binary.display())]
    Spawn {
        /// The program.
        binary: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// systemd could not start the unit.
    #[error("`systemctl --user start agentd` failed: {detail}; `journalctl --user -u agentd` says more")]
    Unit {
        /// systemctl's last line.
        detail: String,
    },
    /// The connection ended in the middle.
    #[error("agentd closed the connection before it was done; try again, `agentctl doctor` looks closer")]
    Lost,
    /// The daemon was lost while a session was followed, and did not come back.
    #[error("agentd is gone; running commands go on, the next agentd finds them and `agentctl attach` shows them")]
    Gone,
    /// No answer in time.
    #[error("agentd at {} did not answer within {seconds} s; `agentctl doctor` looks closer", .socket.display())]
    Silent {
        /// The socket.
        socket: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The daemon sent something that does not fit what was asked.
    #[error("agentd sent an answer that does not fit the request ({0}); this is a fault: please report it")]
    Unexpected(&'static str),
    /// A frame cannot be written or read.
    #[error("the connection to agentd broke: {0}; try again")]
    Frame(#[from] FrameError),
    /// Reading or writing the connection failed.
    #[error("the connection to agentd broke: {0}; try again")]
    Connection(io::Error),
    /// No session of this directory exists.
    #[error("there is no session of {}; `agentctl ask \"…\"` starts one, `agentctl ls` shows those of other directories", .cwd.display())]
    NoSessionHere {
        /// The directory.
        cwd: PathBuf,
    },
    /// A prompt without text.
    #[error("the prompt is empty; give it as an argument or pipe it in: agentctl ask \"…\"")]
    EmptyPrompt,
    /// Prompt and piped input are too long together.
    #[error("the prompt is over the limit of {} KiB together with what was piped in; write the input to a file and name the file in the prompt", PROMPT_BYTES_MAX / 1024)]
    PromptTooLong,
    /// A question without anybody to answer it.
    #[error(
        "nobody can be asked without a terminal; nothing was taken back: say --yes to take edits back without a question"
    )]
    NobodyToAsk,
    /// `policy check` without a command.
    #[error(
        "there is nothing to check; give a command, or pipe JSON lines in: agentctl policy check 'git status && rm x'"
    )]
    NothingToCheck,
    /// `policy check` of a command that cannot be one.
    #[error("the policy cannot decide about this command: {0}")]
    NotChecked(String),
    /// `man` of something that is no command.
    #[error("there is no command {0:?}; `agentctl help` lists them")]
    NoSuchCommand(String),
    /// A path that JSON and the wire cannot carry.
    #[error("the path {} is not UTF-8; agentd needs a directory with a UTF-8 path", .0.display())]
    NotUtf8(PathBuf),
    /// The working directory is gone.
    #[error("cannot read the working directory: {0}; change into one that exists")]
    NoCwd(io::Error),
    /// Reading what was piped in failed.
    #[error("cannot read standard input: {0}")]
    Stdin(io::Error),
    /// Whoever read our output is gone; nothing is left to say.
    #[error("the reader of the output went away")]
    OutputClosed,
    /// A transcript cannot be written.
    #[error("cannot write {}: {source}; choose another file with --output", path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Our own output fails.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// The terminal cannot be set up.
    #[error("cannot set up the terminal: {0}; try `stty sane`, or run without a terminal")]
    Terminal(io::Error),
    /// A signal handler or the runtime cannot be set up.
    #[error("cannot set up agentctl: {0}")]
    Setup(io::Error),
}

impl CtlError {
    /// The exit code that goes with it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Wire(error) => match error.code {
                ErrorCode::NotFound | ErrorCode::Ambiguous => Exit::NotFound,
                ErrorCode::Config => Exit::Model,
                ErrorCode::BadRequest
                | ErrorCode::Conflict
                | ErrorCode::Forbidden
                | ErrorCode::Limit
                | ErrorCode::Storage
                | ErrorCode::Shell
                | ErrorCode::Internal => Exit::Failed,
            },
            Self::NoSessionHere { .. } => Exit::NotFound,
            Self::EmptyPrompt
            | Self::PromptTooLong
            | Self::NobodyToAsk
            | Self::NothingToCheck
            | Self::NotChecked(_)
            | Self::NoSuchCommand(_)
            | Self::Setting { .. }
            | Self::NotUtf8(_)
            | Self::NoCwd(_) => Exit::Usage,
            Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::Version { .. }
            | Self::NotAgentd { .. }
            | Self::OtherUser { .. }
            | Self::OpenDirectory { .. }
            | Self::StartFailed { .. }
            | Self::StartSilent { .. }
            | Self::NoBinary
            | Self::Spawn { .. }
            | Self::Unit { .. }
            | Self::Lost
            | Self::Gone
            | Self::Silent { .. }
            | Self::Frame(_)
            | Self::Connection(_) => Exit::Unreachable,
            Self::Unexpected(_)
            | Self::Stdin(_)
            | Self::OutputClosed
            | Self::Export { .. }
            | Self::Output(_)
            | Self::Terminal(_)
            | Self::Setup(_) => Exit::Failed,
        }
    }

    /// A stable word for `--json`.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Wire(error) => match serde_json::to_value(error.code) {
                Ok(serde_json::Value::String(word)) => word,
                Ok(_) | Err(_) => "internal".to_owned(),
            },
            other => match other.exit() {
                Exit::Unreachable => "unreachable",
                Exit::NotFound => "not_found",
                Exit::Usage => "usage",
                Exit::Done
                | Exit::Failed
                | Exit::Model
                | Exit::Denied
                | Exit::Interrupted
                | Exit::Refused
                | Exit::Unsound
                | Exit::WouldAsk
                | Exit::WouldDeny => "failed",
            }
            .to_owned(),
        }
    }

    /// Maps a failed write: a closed pipe is the reader's wish, not a failure to report.
    #[must_use]
    pub fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::OutputClosed } else { Self::Output(error) }
    }
}
