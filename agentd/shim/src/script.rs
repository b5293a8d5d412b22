//! The text that bash is fed: how a command is wrapped, how its end is told, how it is aborted, how state is saved.
//!
//! Bash reads one byte at a time from a pipe, so every byte of a wrapper costs a system call: they are short. Words that
//! a user could redefine are reached by `\builtin`, which beats aliases and functions; a function named `builtin` is
//! noticed by the missing mark and removed by [`Script::free_builtin`], which relies on syntax and on special builtins
//! in POSIX mode alone.
//!
//! Invariant: the wrapper's own commands run with all descriptors at /dev/null, so that traces and traps of the user's
//! never print them. Each contains `__agentd`, by which the abort trap knows what it must let pass.

use std::path::Path;

use uuid::Uuid;

/// Commands up to this size are fed as quoted text; longer ones are read by bash from a file in one piece.
const QUOTED_MAX: usize = 96;

/// The trap that aborts a command: a real-time signal that nobody else uses.
pub(crate) fn abort_signal() -> i32 {
    libc::SIGRTMIN() + ABORT_OFFSET
}

/// Distance from the first real-time signal.
const ABORT_OFFSET: i32 = 13;

/// Builds the texts of one shell.
#[derive(Debug)]
pub(crate) struct Script {
    ctl: String,
    /// Known to this shell's wrapper alone; frames its messages.
    nonce: String,
}

impl Script {
    pub(crate) fn new(ctl: &Path) -> Self {
        Self { ctl: quote(ctl.as_os_str().as_encoded_bytes()), nonce: Uuid::new_v4().simple().to_string() }
    }

    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Run once by a new shell: the abort trap.
    ///
    /// The trap reports what it replaces, then makes every further command of the user's fail before it runs (a DEBUG
    /// trap with `extdebug`; status 2 also returns from functions), and leaves the loops it stands in. The signal is
    /// repeated until the wrapper's mark is reached, for loops in callers of the function that it hit.
    pub(crate) fn prelude(&self) -> String {
        let (ctl, nonce) = (&self.ctl, &self.nonce);
        let trap = format!(
            "{{ \\builtin echo \"A {nonce}\";\\builtin trap -p DEBUG;\\builtin shopt -p extdebug;\
             \\builtin echo \"Z {nonce}\";}} 2>/dev/null >{ctl};\
             \\builtin shopt -s extdebug;\
             \\builtin trap '[[ $BASH_COMMAND == *__agentd* ]]||\\builtin cd -/ 2>/dev/null' DEBUG;\
             \\builtin break 99999 2>/dev/null"
        );
        format!("\\builtin trap {} RTMIN+{ABORT_OFFSET}\n", quote(trap.as_bytes()))
    }

    /// A command with its own standard descriptors, then the mark.
    pub(crate) fn command(&self, command: Source<'_>, run: &Run<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        if let Some(mark) = run.mark {
            text.extend_from_slice(format!("AGENTD_CALL={mark}\n").as_bytes());
        }
        let word = match command {
            Source::Text(command) => quote_bytes(command),
            Source::File(path) => {
                text.extend_from_slice(format!("\\builtin mapfile -d '' -t __agentd_c <{path}\n").as_bytes());
                b"\"$__agentd_c\"".to_vec()
            }
        };
        if run.last_status != 0 {
            // The status of the call before is what `$?` says at the start of this one.
            text.extend_from_slice(format!("(\\builtin exit {})||", run.last_status).as_bytes());
        }
        text.extend_from_slice(b"\\builtin eval ");
        text.extend_from_slice(&word);
        let data = quote(run.data.as_os_str().as_encoded_bytes());
        text.extend_from_slice(format!(" </dev/null >{data} 2>&1\n").as_bytes());
        text.extend_from_slice(self.mark(run.end).as_bytes());
        text
    }

    fn mark(&self, end: &str) -> String {
        format!("__agentd_s=$?;\\builtin echo \"$__agentd_s\" {end} >{}\n", self.ctl)
    }

    /// Told when the mark did not come though it was read: a function `builtin` stands in its way.
    pub(crate) fn free_builtin(&self, end: &str) -> String {
        format!(
            "case $SHELLOPTS in *posix*)\\unset -f builtin;;*)POSIXLY_CORRECT=y;\\unset -f builtin;\\unset POSIXLY_CORRECT;;esac\n\
             \\builtin enable builtin echo eval trap shopt mapfile exit declare alias set umask cd break enable\n\
             \\builtin echo \"$__agentd_s\" {end} >{}\n",
            self.ctl
        )
    }

    /// Ends abort mode; `saved` is what the trap reported.
    pub(crate) fn end_abort(&self, saved: &str) -> String {
        let mut text = String::from("\\builtin trap ${__agentd--} DEBUG\n\\builtin shopt ${__agentd--u} extdebug\n");
        // A trap is the user's own text as `trap -p` quotes it; it may span lines.
        text.push_str(saved);
        if !saved.is_empty() && !saved.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// Makes the shell tell its state. No word of it forks.
    pub(crate) fn snapshot(&self) -> String {
        let (ctl, nonce) = (&self.ctl, &self.nonce);
        format!(
            "{{ \\builtin echo \"S {nonce}\";\\builtin umask -p;\\builtin declare -px;\\builtin declare -f;\
             \\builtin alias -p;\\builtin shopt -p;\\builtin set +o;\\builtin echo \"E {nonce}\";}} 2>/dev/null >{ctl}\n"
        )
    }
}

/// Where a command's text is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// Short enough to be fed as it is.
    Text(&'a [u8]),
    /// In a file that bash can open.
    File(&'a str),
}

impl Source<'_> {
    /// Whether a command is short enough for [`Source::Text`].
    pub(crate) fn fits(command: &[u8]) -> bool {
        command.len() <= QUOTED_MAX
    }
}

/// The rest of what [`Script::command`] must know.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The pipe for the command's output.
    pub(crate) data: &'a Path,
    /// The mark of its end.
    pub(crate) end: &'a str,
    /// The value of its environment mark, where marks are used.
    pub(crate) mark: Option<&'a str>,
    /// The status of the command before.
    pub(crate) last_status: i32,
}

/// A word of shell text that stands for these bytes.
pub(crate) fn quote(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&quote_bytes(bytes)).into_owned()
}

fn quote_bytes(bytes: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return bytes.to_vec();
    }
    let mut word = Vec::with_capacity(bytes.len() + 2);
    word.push(b'\'');
    for &byte in bytes {
        if byte == b'\'' {
            word.extend_from_slice(b"'\\''");
        } else {
            word.push(byte);
        }
    }
    word.push(b'\'');
    word
}
