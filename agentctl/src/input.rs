//! What is piped in becomes context of a prompt.
//!
//! Invariant: an open pipe that stays silent never hangs a command. Scripts, editors and services often leave one open.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use proto::request::PROMPT_BYTES_MAX;

use crate::error::CtlError;

/// How long a pipe may be silent before it is taken for one that nobody writes to. `git diff |` and the like begin within
/// milliseconds; who runs something slower uses a file.
const FIRST_BYTE_WAIT: Duration = Duration::from_secs(1);

/// What standard input held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piped {
    /// Nothing was piped in: a terminal, `/dev/null`, an empty file or pipe.
    Nothing,
    /// An open pipe from which nothing came.
    Silent,
    /// This.
    Text(String),
}

/// Reads what is piped in, if anything is.
///
/// # Errors
/// [`CtlError::PromptTooLong`] over a prompt's limit, [`CtlError::Stdin`] when reading fails.
pub fn read(terminal: bool) -> Result<Piped, CtlError> {
    if terminal {
        return Ok(Piped::Nothing);
    }
    // A closed standard input is no error: there is just nothing.
    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else { return Ok(Piped::Nothing) };
    read_from(File::from(stdin), FIRST_BYTE_WAIT)
}

fn read_from(mut file: File, wait: Duration) -> Result<Piped, CtlError> {
    let kind = file.metadata().map_err(CtlError::Stdin)?.file_type();
    if kind.is_char_device() || kind.is_dir() || kind.is_block_device() {
        return Ok(Piped::Nothing);
    }
    if !kind.is_file() && !begins(&file, wait)? {
        return Ok(Piped::Silent);
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(PROMPT_BYTES_MAX).unwrap_or(u64::MAX) + 1;
    file.by_ref().take(limit).read_to_end(&mut bytes).map_err(CtlError::Stdin)?;
    if bytes.len() > PROMPT_BYTES_MAX {
        return Err(CtlError::PromptTooLong);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(if text.trim().is_empty() { Piped::Nothing } else { Piped::Text(text) })
}

fn begins(file: &File, wait: Duration) -> Result<bool, CtlError> {
    let mut fds = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
    poll(&mut fds, wait).map(|ready| ready > 0).map_err(|errno| CtlError::Stdin(errno.into()))
}

/// Prompt and context as one text.
///
/// # Errors
/// [`CtlError::EmptyPrompt`], [`CtlError::PromptTooLong`].
pub fn prompt(words: Option<&str>, piped: &Piped) -> Result<String, CtlError> {
    let words = words.map(str::trim).filter(|words| !words.is_empty() && *words != "-");
    let text = match (words, piped) {
        (None, Piped::Nothing | Piped::Silent) => return Err(CtlError::EmptyPrompt),
        (Some(words), Piped::Nothing | Piped::Silent) => words.to_owned(),
        (None, Piped::Text(text)) => text.trim_end().to_owned(),
        (Some(words), Piped::Text(text)) => {
            format!(
                "{words}\n\nThis was piped in on standard input:\n\n<stdin>\n{}\n</stdin>",
                text.trim_end_matches('\n')
            )
        }
    };
    if text.len() > PROMPT_BYTES_MAX { Err(CtlError::PromptTooLong) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn an_open_silent_pipe_does_not_hang() {
        let (reader, _writer) = io::pipe().unwrap();
        let read = read_from(File::from(OwnedFd::from(reader)), Duration::from_millis(10)).unwrap();
        assert_eq!(read, Piped::Silent);
    }

    #[test]
    fn what_a_pipe_or_file_holds_is_read_to_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"one\n\xff").unwrap();
        drop(writer);
        let read = read_from(File::from(OwnedFd::from(reader)), FIRST_BYTE_WAIT).unwrap();
        assert_eq!(read, Piped::Text("one\n\u{fffd}".into()));
        let null = File::open("/dev/null").unwrap();
        assert_eq!(read_from(null, FIRST_BYTE_WAIT).unwrap(), Piped::Nothing);
    }

    #[test]
    fn more_than_a_prompt_holds_is_refused_and_not_cut() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; PROMPT_BYTES_MAX + 1]).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        assert!(matches!(read_from(file, FIRST_BYTE_WAIT), Err(CtlError::PromptTooLong)));
    }

    #[test]
    fn words_and_context_make_one_prompt() {
        let piped = Piped::Text("diff\n".into());
        let text = prompt(Some("review"), &piped).unwrap();
        assert_eq!(text, "review\n\nThis was piped in on standard input:\n\n<stdin>\ndiff\n</stdin>");
        assert_eq!(prompt(None, &piped).unwrap(), "diff");
        assert_eq!(prompt(Some("hi"), &Piped::Silent).unwrap(), "hi");
        assert!(matches!(prompt(Some(" "), &Piped::Nothing), Err(CtlError::EmptyPrompt)));
    }
}
