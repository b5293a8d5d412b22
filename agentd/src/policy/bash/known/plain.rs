//! Commands that only read under every combination of options and operands.
//!
//! Each was checked for options that write (`-o`), run programs, use the network or wait for input that never comes. A
//! command with a single such option does not belong here but in `tables.rs`.

use super::super::value::Value;
use super::Proof;
use crate::policy::words;

const PLAIN: &str = "\
    [ arch b2sum b3sum base32 base64 basename basenc cal cat cksum cmp colrm column comm cut df diff dir dirname \
    du echo egrep expand expr factor false fgrep fmt fold free getopt grep groups hd head hexdump id join locale \
    logname ls lsblk lscpu lsmod md5sum ncal nl nproc numfmt od paste pathchk pgrep pidof pr printf pwd readlink \
    realpath rev seq sha1sum sha224sum sha256sum sha384sum sha512sum sleep stat strings sum tac tail test tr \
    true tsort tty uname unexpand uptime vdir wc whereis which who whoami";

/// Whether the command is one of these.
pub(super) fn listed(name: &str) -> bool {
    words::listed(PLAIN, name)
}

/// Their proof: nothing to check but the little that is said here.
pub(super) fn read_only(name: &str, arguments: &[Value]) -> Proof {
    let opens_terminal = name == "diff" && arguments.iter().any(|a| a.known().is_some_and(paginates));
    if opens_terminal { Err("`diff --paginate` runs another program".to_owned()) } else { Ok(()) }
}

fn paginates(argument: &str) -> bool {
    let long = argument.len() > 3 && "--paginate".starts_with(argument);
    long || (argument.starts_with('-') && !argument.starts_with("--") && argument.contains('l'))
}
