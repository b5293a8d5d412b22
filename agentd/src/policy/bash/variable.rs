//! Variables that other programs obey.
//!
//! Known commands are few, so it is known which variables they obey; a variable nobody here obeys hurts nobody here.

use crate::policy::words::listed;

/// Whom a change of a variable can hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Hurts {
    /// Nobody whom the policy trusts.
    Nothing,
    /// These commands.
    Commands(&'static str),
    /// The shell itself, the loader or the C library: everybody.
    Everything,
}

/// Whom the variable `name` can hurt.
pub(in crate::policy) fn hurts(name: &str) -> Hurts {
    const EVERYBODY: &str = "\
    PATH IFS ENV SHELLOPTS BASHOPTS GLOBIGNORE PS4 PROMPT_COMMAND POSIXLY_CORRECT HOME PWD OLDPWD CDPATH LOCPATH \
    NLSPATH GCONV_PATH GETCONF_DIR TMPDIR TERMINFO TERMINFO_DIRS TERMCAP TERMPATH HOSTALIASES RES_OPTIONS \
    LOCALDOMAIN TEXTDOMAIN TEXTDOMAINDIR EXECIGNORE";
    const PREFIXES: [&str; 6] = ["BASH_", "LD_", "DYLD_", "MALLOC_", "GLIBC_", "FUNCNEST"];
    const TOOLS: [(&str, &str); 16] = [
        ("GIT_", "git"),
        ("XDG_", "git rg fd fdfind jq"),
        ("PAGER", "git man"),
        ("EDITOR", "git"),
        ("VISUAL", "git"),
        ("LESS", "git less man"),
        ("GPG", "git"),
        ("GNUPG", "git"),
        ("RIPGREP_", "rg"),
        ("GREP_", "grep egrep fgrep"),
        ("FD_", "fd fdfind"),
        ("AWK", "awk gawk mawk"),
        ("GAWK", "awk gawk"),
        ("JQ", "jq"),
        ("MAGIC", "file"),
        ("JAVA", "java mvn gradle"),
    ];
    const INTERPRETERS: [(&str, &str); 14] = [
        ("PYTHON", "python python3"),
        ("NODE_", "node npm npx yarn pnpm"),
        ("npm_", "npm npx yarn pnpm node"),
        ("PERL", "perl"),
        ("RUBY", "ruby bundle rake"),
        ("_JAVA", "java mvn gradle"),
        ("JDK_", "java mvn gradle"),
        ("RUST", "cargo rustc rustup"),
        ("CARGO", "cargo rustc"),
        ("GO", "go"),
        ("MAKE", "make"),
        ("PIP", "pip pip3"),
        ("GRADLE", "gradle"),
        ("MAVEN", "mvn"),
    ];
    if listed(EVERYBODY, name) || PREFIXES.iter().any(|p| name.starts_with(p)) {
        return Hurts::Everything;
    }
    let tool = TOOLS.iter().chain(&INTERPRETERS).find(|(prefix, _)| name.starts_with(prefix));
    tool.map_or(Hurts::Nothing, |(_, names)| Hurts::Commands(names))
}
