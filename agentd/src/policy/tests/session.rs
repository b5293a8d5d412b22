//! What the repository and earlier commands of the session do to a decision.

use super::*;

#[test]
fn a_repository_that_runs_programs_is_asked_about() {
    let programs = [
        "[core]\n\tfsmonitor = x",
        "[core]\n\thooksPath = h",
        "[diff \"x\"]\n\ttextconv = y",
        "[diff]\n\texternal = y",
        "[CORE] FSMONITOR=x",
        "[filter \"x\"]\n\tclean = y",
        "[include]\n\tpath = y",
        "[includeIf \"gitdir:x\"]\n\tpath = y",
        "[a \"]\"]\n[core]\nfsmonitor=x",
        "[core]\n\tf = \\\n[x]",
        "[gpg]\n\tprogram = x",
        "[remote \"o\"]\n\tpromisor = true",
        "[extensions]\n\tworktreeConfig = true",
        "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f; touch f",
        "[diff.x]\n\tcommand = y",
        "[core",
    ];
    for text in programs {
        let world = World { repository: Repository::from_configurations(["", text]), ..World::default() };
        assert_eq!(world.verdict("git status"), Verdict::Ask, "{text}");
        assert_eq!(world.verdict("ls"), Verdict::Allow, "{text}");
    }
    let plain = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = false\n[remote \"origin\"]\n\turl = x\n\tfetch = +a:b\n\
                 [branch \"main\"]\n\tremote = origin\n[filter \"lfs\"]\n\tprocess = git-lfs filter-process\n";
    assert_eq!(Repository::from_configurations([plain]), Repository::Ordinary);
    let hooked = Repository::Ordinary.with_hooks(["pre-commit.sample", "post-index-change"].into_iter());
    assert_eq!(World { repository: hooked, ..World::default() }.verdict("git status"), Verdict::Ask);
    assert_eq!(Repository::Ordinary.with_hooks(["pre-commit"].into_iter()), Repository::Ordinary);
    let unknown = World { repository: Repository::Unknown, ..World::default() };
    assert_eq!(unknown.verdict("git status"), Verdict::Ask);
}

#[test]
fn what_earlier_commands_did_to_the_shell_counts() {
    let hurt = [
        ("PATH=.:$PATH", "ls"),
        ("((PATH = 1))", "ls"),
        ("echo $((PATH = 1))", "ls"),
        ("export PATH=x", "ls"),
        ("ls() { rm x; }", "ls"),
        ("function ls { rm x; }", "cat a | ls"),
        ("alias ls=rm", "ls"),
        ("hash -p /x/ls ls", "ls"),
        ("enable -n echo", "echo"),
        ("trap x DEBUG", "ls"),
        ("trap -- x EXIT", "ls"),
        ("eval x", "ls"),
        ("source x", "ls"),
        (". x", "ls"),
        ("command . x", "ls"),
        ("builtin eval x", "ls"),
        ("$x", "ls"),
        ("ls )", "ls"),
        ("set -k", "ls"),
        ("shopt -s extdebug", "ls"),
        ("export GIT_DIR=x", "git status"),
        ("HOME=/x", "git status"),
        ("LD_PRELOAD=x", "ls"),
        ("declare -i n", "n=1"),
        ("declare -n r=x", "echo $r"),
        ("readonly -f ls", "ls"),
        ("printf -v PATH x", "ls"),
        ("read PATH", "ls"),
        ("for PATH in x; do :; done", "ls"),
        (": ${PATH:=x}", "ls"),
        ("mapfile PATH", "ls"),
        ("unset PATH", "ls"),
        ("IFS=x", "ls"),
        ("f() { PATH=x; }", "ls"),
        ("false || { PATH=x; }", "ls"),
        ("PATH=x export PATH", "ls"),
        ("cd sub", "git status"),
        ("exec 3<a ls", "ls"),
        ("function /bin/ls { rm x; }", "/bin/ls"),
        ("ls() { x; }; unset -f ls", "ls"),
        ("cd() { x; }", "cd sub"),
        ("export RIPGREP_CONFIG_PATH=x", "rg a"),
        ("CDPATH=/x", "cd sub"),
        ("unset -f x; ls() { y; }", "ls"),
    ];
    for (before, command) in hurt {
        let world = World { shell: ShellFacts::default().after(before), ..World::default() };
        assert_eq!(world.verdict(command), Verdict::Ask, "{before:?} then {command:?}");
    }
    let harmless = [
        ("npm test", "ls"),
        ("((i++)); x=$((y + 1)); echo ${a[@]} ${b[0]}", "ls"),
        ("for ((i = 0; i < 3; i++)); do make; done", "ls"),
        ("x=1", "ls"),
        ("export FOO=bar", "ls"),
        ("cd sub", "ls"),
        ("f() { ls; }", "ls"),
        ("(PATH=x)", "ls"),
        ("set -euo pipefail", "ls"),
        ("PATH=x make", "ls"),
        ("shopt -s globstar", "ls"),
        ("umask 022", "ls"),
        ("export A=\"$B\" C=$D", "ls"),
        ("export GIT_DIR=x", "ls"),
        ("ls > f", "git status"),
        ("trap x RETURN", "ls"),
        ("echo \"$(PATH=x)\"", "ls"),
    ];
    for (before, command) in harmless {
        let world = World { shell: ShellFacts::default().after(before), ..World::default() };
        assert_eq!(world.verdict(command), Verdict::Allow, "{before:?} then {command:?}");
    }
    let undone = ShellFacts::default().after("ls() { x; }").after("false && unset -f ls");
    assert_eq!(World { shell: undone, ..World::default() }.verdict("ls"), Verdict::Ask);
    let moved = ShellFacts::default().after("cd sub").with_known_directory();
    assert_eq!(World { shell: moved, ..World::default() }.verdict("git status"), Verdict::Allow);
    let trap = ShellFacts::default().after("trap x DEBUG").after("trap - DEBUG");
    assert_eq!(World { shell: trap, ..World::default() }.verdict("ls"), Verdict::Allow);
}
