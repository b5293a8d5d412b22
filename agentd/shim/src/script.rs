//! The text that bash is fed: how a command is wrapped, how its end is told, how it is aborted, how state is saved.
//!
//! The script is a file in memory that grows: bash reads it in blocks, where it would read a pipe byte by byte. So that it
//! does not reach the end, every piece of text ends with a wait for one byte on a socket, and that byte is sent when the
//! next piece is there. While bash waits, its standard descriptors are the script, /dev/null and the socket; a command
//! gets its own ones for the time of its `eval`.
//!
//! Words that a user could redefine are reached by `\builtin`, which beats aliases and functions. A function named
//! `builtin` is noticed at once, because the wait returns without the right byte; it is removed by `unset` in POSIX
//! mode, where no function comes before it. A shell that executes nothing any more (`set -n`) reaches the end of the script and ends.
//!
//! Invariant: a command's trace, traps and `set -v` never print the wrapper: it writes to /dev/null and to the socket.
//! Invariant: every simple command of the wrapper is one that the abort trap lets pass.

use std::path::Path;

use uuid::Uuid;

/// The trap that aborts a command: a real-time signal that nobody else uses.
pub(crate) fn abort_signal() -> i32 {
    libc::SIGRTMIN() + ABORT_OFFSET
}

/// Distance from the first real-time signal.
const ABORT_OFFSET: i32 = 13;

/// Variables that the shell itself obeys also when they are not exported; they are told when they are set.
const OWN_VARIABLES: &str = "\
    CDPATH GLOBIGNORE EXECIGNORE BASH_ENV ENV BASH_XTRACEFD POSIXLY_CORRECT PROMPT_COMMAND \
    FUNCNEST HOME PATH TMPDIR";

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
    /// The trap reports what it replaces, then puts a DEBUG trap (with `extdebug`) before every further command of the
    /// user's: it fails, so that the command is not run, and leaves the loops around it. Both in one command, because a
    /// trap does nothing more once it has left a loop; for the same reason the signal is sent once, not again and again.
    pub(crate) fn prelude(&self) -> String {
        let (ctl, nonce) = (&self.ctl, &self.nonce);
        let trap = format!(
            "{{ \\builtin echo \"A {nonce}\";\\builtin trap -p DEBUG;\\builtin shopt -p extdebug;\
             \\builtin echo \"Z {nonce}\";}} 2>/dev/null >{ctl};\
             \\builtin shopt -s extdebug;\
             \\builtin trap '[[ $BASH_COMMAND == *__agentd*||$BASH_COMMAND == \"\\builtin echo \\\"\\$?\\\" \"* ]]\
             ||! \\builtin break 99999 2>/dev/null' DEBUG;\
             \\builtin break 99999 2>/dev/null"
        );
        let rescue = format!(
            "case $SHELLOPTS in *posix*)\\unset -f builtin;;\
             *)POSIXLY_CORRECT=y;\\unset -f builtin;\\unset POSIXLY_CORRECT;;esac;\
             \\builtin enable builtin echo eval read trap shopt declare alias set umask cd break exit;\
             \\builtin echo \"B {nonce}\" >&2;\\builtin read -rN1 -u2 __agentd_g"
        );
        let (trap, rescue) = (quote(trap.as_bytes()), quote(rescue.as_bytes()));
        format!("\\builtin trap {trap} RTMIN+{ABORT_OFFSET}\n__agentd_r={rescue}\n")
    }

    /// Waits for this byte; without it something stands in the way of `builtin`, which is taken away and told.
    pub(crate) fn wait(token: char) -> String {
        format!("\\builtin read -rN1 -u2 __agentd_g\n[[ $__agentd_g == {token} ]]||\\eval \"$__agentd_r\"\n")
    }

    /// A command with its own standard descriptors, then the mark.
    pub(crate) fn command(&self, command: &[u8], run: &Run<'_>) -> Vec<u8> {
        let mut text = Vec::with_capacity(command.len() + 128);
        if let Some(mark) = run.mark {
            text.extend_from_slice(format!("AGENTD_CALL={mark}\n").as_bytes());
        }
        if run.last_status != 0 {
            // The status of the call before is what `$?` says at the start of this one.
            text.extend_from_slice(format!("(\\builtin exit {})||", run.last_status).as_bytes());
        }
        text.extend_from_slice(b"\\builtin eval ");
        text.extend_from_slice(&quote_bytes(command));
        let data = quote(run.data.as_os_str().as_encoded_bytes());
        text.extend_from_slice(format!(" <&1 >{data} 2>&1\n\\builtin echo \"$?\" {} >&2\n", run.end).as_bytes());
        text
    }

    /// A background command in a shell of its own: as [`Self::command`], but in a subshell, so that `exit` ends the command
    /// and not what waits for it. `errexit` is on from its start where it was on in the session's shell.
    pub(crate) fn job(&self, command: &[u8], run: &Run<'_>, errexit: bool) -> Vec<u8> {
        let mut text = Vec::with_capacity(command.len() + 128);
        if let Some(mark) = run.mark {
            text.extend_from_slice(format!("AGENTD_CALL={mark}\n").as_bytes());
        }
        let set = if errexit { "\\builtin set -e;" } else { "" };
        text.extend_from_slice(format!("({set}\\builtin eval ").as_bytes());
        text.extend_from_slice(&quote_bytes(command));
        let data = quote(run.data.as_os_str().as_encoded_bytes());
        text.extend_from_slice(format!(") <&1 >{data} 2>&1\n\\builtin echo \"$?\" {} >&2\n", run.end).as_bytes());
        text
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

    /// Makes the shell tell its state. No word of it forks, and none can end a shell with `set -e`. Every line is a system
    /// call, so options are told in one: the names of those that are on, after `O`.
    ///
    /// In front of `T` stands what makes names mean something else (`crate::facts` reads it), behind it what makes the
    /// state again. `N` is told only by a shell that could tell which builtins are disabled.
    pub(crate) fn snapshot(&self) -> String {
        let nonce = &self.nonce;
        let own: String = OWN_VARIABLES.split(' ').map(|name| format!("${{{name}+{name} }}")).collect();
        format!(
            "{{ \\builtin echo \"S {nonce}\";\\builtin trap -p;\\builtin hash -l;\\builtin declare -pi;\\builtin declare -pn;\
             \\builtin enable -n&&\\builtin echo \"N {nonce}\";\
             \\builtin echo \"V ${{IFS+${{IFS@Q}}}} ${{PS4+${{PS4@Q}}}}|{own}\";\
             \\builtin echo \"T {nonce}\";\\builtin umask -p;\\builtin declare -px;\\builtin declare -f;\
             \\builtin alias -p;\\builtin echo \"O $SHELLOPTS $BASHOPTS\";\\builtin echo \"E {nonce}\";}} >&2||__agentd_s=\n"
        )
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
