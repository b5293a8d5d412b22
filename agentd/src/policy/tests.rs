//! Tricks that must not be allowed, everyday commands that must be, and the modes. The first lists are the public
//! findings against other agents; each line is one of them or a kind of it.

use std::path::Path;

use super::{Call, Context, Decision, Layer, Mode, Repository, Rules, ShellFacts, Verdict, decide, narrowest_rule};

struct World {
    mode: Mode,
    rules: Rules,
    shell: ShellFacts,
    repository: Repository,
}

impl Default for World {
    fn default() -> Self {
        Self {
            mode: Mode::Ask,
            rules: Rules::default(),
            shell: ShellFacts::default(),
            repository: Repository::from_configurations(["[core]\n\tbare = false\n"]),
        }
    }
}

impl World {
    fn with_rules(toml: &str) -> Self {
        Self { rules: Rules::parse(Layer::User, toml).expect("the rules are sound"), ..Self::default() }
    }

    fn context(&self) -> Context<'_> {
        Context {
            mode: self.mode,
            rules: &self.rules,
            workspace: Path::new("/home/user/project"),
            cwd: Path::new("/home/user/project"),
            shell: &self.shell,
            repository: &self.repository,
        }
    }

    fn decide(&self, command: &str) -> Decision {
        decide(&Call::Bash { command }, &self.context())
    }

    fn verdict(&self, command: &str) -> Verdict {
        self.decide(command).verdict
    }
}

fn all(commands: &[&str], expected: Verdict) {
    let world = World::default();
    let wrong: Vec<String> = commands
        .iter()
        .map(|command| (command, world.decide(command)))
        .filter(|(_, decision)| decision.verdict != expected)
        .map(|(command, decision)| format!("{command:?} → {:?}: {}", decision.verdict, decision.reason))
        .collect();
    assert!(wrong.is_empty(), "expected {expected:?}:\n{}", wrong.join("\n"));
}

#[test]
fn expansions_that_run_commands_are_asked_about() {
    all(
        &[
            "echo ${x:-$(id)>f}",
            "echo ${!x}",
            "echo ${x@P}",
            "echo ${a[x]}",
            "echo ${a[$(touch f)]}",
            "echo $[1+1]",
            "echo $((x+1))",
            "echo $((a[0]))",
            "echo $((1)+(2))",
            "echo ${x:y}",
            "echo ${x:(-1)}",
            "echo ${x:=f}",
            "echo ${x?}",
            "x[0]=1",
            "x=([a]=b)",
            "((x++))",
            "for ((;;)); do ls; done",
            "[[ -v x ]]",
            "[[ x -eq y ]]",
            "[[ $n -gt 3 ]]",
            "test -v x",
            "[ -v x ]",
            "[ $x ]",
            "[ \"$a\" \"$b\" ]",
            "[ -R x ]",
            "let x=1",
            "read 'a[0]'",
            "printf -v x y",
            "printf \"$f\" x",
            "read $x",
            "echo `touch f`",
            "echo \"`touch f`\"",
            "echo \"${x:-'$(touch f)'}\"",
            "echo a>(touch f)",
            "cat <(touch f)",
            "cat <<E\n$(touch f)\nE",
            "cat <<E\n${x:-`touch f`}\nE",
            "echo $\"x\"",
        ],
        Verdict::Ask,
    );
}

#[test]
fn names_that_are_not_visible_are_asked_about() {
    all(
        &[
            "$x",
            "\"$x\" a",
            "$(echo ls)",
            "{ls,-l}",
            "l?",
            "/bin/l?",
            "~/ls",
            "./ls",
            "../ls",
            "bin/ls",
            "/tmp/ls",
            "ls\\\n",
            "l\\\ns",
            "$'\\x6cs\\x00'",
            "$'\\u006cs'",
            "eval ls",
            "exec ls",
            "command $x",
            "builtin $x",
            "env $x",
            "timeout 5 $x",
            "xargs",
            "nice -n 5 $x",
            "LS",
            "ls\u{a0}-l",
            "ｌs",
            "lѕ",
        ]
        .into_iter()
        .filter(|c| *c != "xargs")
        .collect::<Vec<_>>(),
        Verdict::Ask,
    );
}

#[test]
fn line_continuations_and_comments_hide_nothing() {
    all(
        &[
            "echo $\\\n(touch f)",
            "echo \"$\\\n(touch f)\"",
            "cat <\\\n(touch f)",
            "echo a >\\\n& f",
            "ls &\\\n& touch f",
            "echo a\\\n; touch f",
            "ls \\\n# x\ntouch f",
            "ls #\\\ntouch f",
            "ls # x\ntouch f",
            "l\\\ns",
            "i\\\nf ls; then ls; fi",
            "cat <<E\na\\\nE\n$(touch f)\nE",
            "cat <<E; echo 'x\nE\n'",
            "cat <<E $(echo\nx)\nE",
            "cat <<E \\\nfoo\nE",
        ],
        Verdict::Ask,
    );
}

#[test]
fn redirections_write_nowhere_but_dev_null() {
    all(
        &[
            "ls > f",
            "ls >| f",
            "ls >> f",
            "ls &> f",
            "ls >& f",
            "ls <> f",
            "ls 3> f",
            "ls > $x",
            "ls > /dev/tcp/h/1",
            "cat < /dev/tcp/h/1",
            "cat < $x",
            "cat < \"/$x\"",
            "cat 3<>/dev/udp/h/1",
            "ls > /dev/stderr",
            "ls > /dev/fd/3",
            "ls > /proc/self/fd/2",
            "ls {x}> f",
            "ls >&$x",
            "ls 2>&1 > f",
            "(ls) > f",
            "if ls; then ls; fi > f",
            "while ls; do ls; done > f",
            "case x in x) ls;; esac > f",
            "[[ a ]] > f",
            "((1)) > f",
            "ls > /dev/null/",
            "ls > //dev/null",
        ],
        Verdict::Ask,
    );
    all(
        &[
            "ls > /dev/null",
            "ls 2> /dev/null",
            "ls &> /dev/null",
            "ls >& /dev/null",
            "ls 2>&1",
            "ls >&2",
            "ls 2>&-",
            "ls 2>&1 | cat",
            "wc < a",
            "cat 0<a",
        ],
        Verdict::Allow,
    );
}

#[test]
fn options_that_write_or_run_are_asked_about() {
    all(
        &[
            "sort -o f a",
            "sort -of a",
            "sort -uof a",
            "sort --out=f a",
            "sort \"$x\"",
            "sort $x",
            "sort *",
            "sort -T . a",
            "uniq a f",
            "uniq a*",
            "uniq -- a f",
            "shuf -o f a",
            "tree -o f",
            "tree -R",
            "file -C",
            "file -z a",
            "date -s x",
            "date 01010000",
            "date -us x",
            "hostname x",
            "hostname -F f",
            "xxd -r a f",
            "xxd a f",
            "xxd -revert a",
            "rg --pre x a",
            "rg --pre=x a",
            "rg -z a",
            "rg --hostname-bin=x a",
            "rg \"$x\"",
            "rg -e --pre a",
            "fd -x rm",
            "fd -X rm",
            "fd --exec rm",
            "find . -delete",
            "find . -exec rm {} +",
            "find . -ok ls",
            "find . -fprint f",
            "find .$x",
            "find $x",
            "find . -name $x",
            "find *",
            "find . -execdir ls {} +",
            "find . -exec sh -c ls {} +",
            "find . -exec {} +",
            "find -files0-from f",
            "diff -l a b",
            "diff --pag a b",
            "getconf -v x y",
            "ps e",
            "ps axe",
            "ps -o environ",
            "jq env a",
            "jq -n '$ENV'",
            "jq \"$x\" a",
            "xargs rm",
            "xargs -I{} ls {}",
            "xargs sort",
            "xargs git log",
            "xargs -a f $x",
            "env",
            "env -i ls",
            "env -S 'ls'",
            "env A=b ls",
            "env -C / ls",
            "timeout -k $x 5 ls",
            "nice -n $x ls",
            "nohup ls",
            "stdbuf -o0 ls",
            "setsid ls",
            "time -o f ls",
            "command -p rm f",
            "strace ls",
            "watch ls",
            "tee f",
            "less a",
            "more a",
            "man ls",
            "cargo --version",
            "npm ls",
            "curl x",
            "ssh h",
            "ping h",
            "printenv",
            "set",
            "export",
            "declare -p",
        ],
        Verdict::Ask,
    );
}

#[test]
fn sed_and_awk_scripts_that_write_or_run_are_asked_about() {
    all(
        &[
            "sed w\\ f a",
            "sed -n 'w f' a",
            "sed 's/a/b/w f' a",
            "sed 's/a/b/e' a",
            "sed 's/a/b/ge' a",
            "sed e a",
            "sed '1e' a",
            "sed 's,a,b,;w f' a",
            "sed '/[/]/w f' a",
            "sed 's/[/]/w f/' a",
            "sed 'y/a/b/w f' a",
            "sed -i s/a/b/ a",
            "sed -f f a",
            "sed -ne p -ie p a",
            "sed 'a\\\ntext\nw f' a",
            "sed 'r f' a",
            "sed '$!{w f\n}' a",
            "sed '0~3w f' a",
            "sed '/x/Iw f' a",
            "sed '\\xaxw f' a",
            "sed 'b;w f' a",
            "sed ': a;w f' a",
            "sed '}w f' a",
            "sed 's/a/\\\nb/;w f' a",
            "sed \"$x\" a",
            "sed p \"$x\"",
            "awk '{print > \"f\"}' a",
            "awk '{print>>\"f\"}' a",
            "awk '{print | \"sh\"}' a",
            "awk 'BEGIN{system(\"x\")}'",
            "awk 'BEGIN{x=1system(\"x\")}'",
            "awk 'BEGIN{\"x\"|getline}'",
            "awk '{print a,\n b > \"f\"}' a",
            "awk '{print(1)(2) > \"f\"}' a",
            "awk '/[^]/\"]/ {system(\"x\")} /\"/' a",
            "awk '{if (x) /\"/; system(\"x\"); /\"/}' a",
            "awk '{i++ /\"/; system(\"x\"); /\"/}' a",
            "awk 'length /\"/; {system(\"x\")} /\"/' a",
            "awk '@load \"x\"' a",
            "awk -f f a",
            "awk -i inplace '{print}' a",
            "awk -l x ''",
            "awk '{print ENVIRON[\"X\"]}' a",
            "awk \"$x\" a",
            "awk -v x=\"$y\" -f f",
            "gawk -e 'BEGIN{}' a",
            "awk '/[/]/ {print}' a",
            "awk '{printf \"%s\" , $1 \\\n > \"f\"}' a",
            "awk '{print $1 > $2}' a",
            "awk 'BEGIN{printf(\"a\")>\"f\"}'",
        ],
        Verdict::Ask,
    );
}

#[test]
fn git_is_read_only_by_its_options_and_only_here() {
    all(
        &[
            "git -c a.b=c status",
            "git --git-dir=x status",
            "git --work-tree=x status",
            "git --exec-path=x status",
            "git -p log",
            "git --paginate log",
            "git -C x status",
            "git --namespace=x log",
            "git --config-env=a.b=C status",
            "git $x",
            "git log $x",
            "git log \"$x\"",
            "git log --output=f",
            "git log --outpu=f",
            "git diff --ext-diff",
            "git diff --ext",
            "git log --textconv",
            "git log --show-signature",
            "git log --format=%G?",
            "git log --pretty='%G?'",
            "git tag -v x",
            "git tag x",
            "git branch x",
            "git branch -v x",
            "git branch -a x",
            "git branch -l x",
            "git branch -D x",
            "git branch -u o/m",
            "git grep -O a",
            "git grep -nO a",
            "git grep --open a",
            "git shortlog -n --output=f",
            "git stash",
            "git stash -p",
            "git worktree",
            "git remote update",
            "git remote show origin",
            "git config a.b c",
            "git config edit",
            "git config -e",
            "git config --unset a.b",
            "git reflog expire",
            "git symbolic-ref HEAD x",
            "git fsck --lost-found",
            "git ls-remote .",
            "git fetch",
            "git archive HEAD",
            "git cat-file --textconv HEAD:a",
            "git blame --contents f a",
            "git for-each-ref --format='%(signature)'",
            "git rev-parse $x",
            "git submodule foreach ls",
            "git bisect run ls",
            "git help log",
            "git -h",
            "git lol",
            "git status $x",
            "git diff --no-index $x b",
            "cd sub && git status",
            "cd sub; git log",
            "(cd sub; git log)",
            "pushd sub; git status",
            "git -C sub log",
            "cd sub\ngit diff",
            "for d in a b; do cd $d; git status; done",
            "xargs git show",
            "find . -exec git log {} +",
        ],
        Verdict::Ask,
    );
    all(
        &[
            "git --no-pager log -3",
            "git -C . status",
            "git -C /home/user/project status",
            "cd /home/user/project && git status",
            "git log --oneline -n 5",
            "git log -p -- src",
            "git diff HEAD~2 -- 'a b'",
            "git show HEAD:src/x.rs",
            "git branch --list 'f*'",
            "git tag -n3",
            "git stash list",
            "git blame -L 1,5 a",
            "git shortlog -sn",
            "git config user.name",
            "git config --get-regexp 'a.*'",
            "git status --porcelain=v2 --branch",
            "git log --since=yesterday --author=me",
            "git rev-parse HEAD",
            "git ls-files '*.rs'",
        ],
        Verdict::Allow,
    );
}

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
    let unknown = World { repository: Repository::Unknown, ..World::default() };
    assert_eq!(unknown.verdict("git status"), Verdict::Ask);
}

#[test]
fn everyday_reading_runs_without_a_question() {
    all(
        &[
            "ls -la src/",
            "cat a b | head -50",
            "rg -n 'fn main' -t rust src | head",
            "find . -name '*.rs' -not -path './target/*' | wc -l",
            "for f in *.rs; do wc -l \"$f\"; done",
            "for f in a b; do sort \"$f\"; done",
            "sed -n '10,20p' a",
            "sed 's/[[:space:]]*$//' a | sort -u",
            "awk -F'\\t' '{s += $2 / NR} END {print s/NR}' a",
            "while read -r line; do echo \"$line\"; done < a",
            "test -d x || echo no",
            "[ \"$x\" = y ] && echo z",
            "[[ -f a && $x == b* ]] && cat a",
            "[[ $x =~ ^a(b|c)$ ]] && echo y",
            "case $x in a|b) ls;; *) pwd;; esac",
            "diff <(sort a) <(sort b)",
            "cat <<'E'\n$(rm x)\nE",
            "echo \"$(date +%F)\"",
            "x=$(git rev-parse HEAD); echo \"$x\"",
            "ps aux | grep node",
            "find . -name a -exec grep -n b {} +",
            "find src -type f | xargs wc -l | sort -n | tail -5",
            "git log --oneline | head -20",
            "du -sh * | sort -h",
            "jq -r '.a[] | select(.b == \"env\") | .c' a.json",
            "date -Iseconds",
            "tree -L 2 -I node_modules",
            "ls ${x:-.}",
            "echo ${#x} ${x%.*} ${x//a/b}",
            "timeout 5 ls",
            "command -v git",
            "time ls",
            "! ls",
            "if ls a; then cat a; elif ls b; then cat b; else pwd; fi",
            "echo $((2*3))",
            "((1 < 2)) && ls",
            "cd src && ls && cd .. && ls",
            "LC_ALL=C sort a",
            "{ ls; } 2>&1 | tail -1",
            "stat -c %s a",
            "cat a \\\n  b",
            "echo 'it'\\''s'",
            "python3 --version",
            "ls *.{rs,toml}",
            "xxd -l 64 a",
            "file -b a",
            "uniq -c a",
            "git diff --stat | cat",
            "printf '%s\\n' a b",
            "true",
            ":",
            "type -a ls",
            "echo }",
            "echo a # b",
            "echo a#b",
            "ls &",
            "ls; ls & ls",
            "head -n 5 -- \"$f\"",
            "grep -rn x . --include='*.rs'",
            "sleep 1; ls",
        ],
        Verdict::Allow,
    );
}

#[test]
fn what_earlier_commands_did_to_the_shell_counts() {
    let hurt = [
        ("PATH=.:$PATH", "ls"),
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

const RULES: &str = r#"
[[rule]]
decision = "allow"
command = "npm run test:*"
match = ["npm run test:unit -- --watch=false"]
not_match = ["npm run deploy", "npm run"]

[[rule]]
decision = "allow"
command = ["git", "commit"]

[[rule]]
decision = "deny"
command = "rm -rf"
reason = "use the trash"
match = ["rm -rf x", "rm -fr x", "rm x -r -f", "sudo rm -rf x", "ls && rm -rf x"]
not_match = ["rm x", "echo rm -rf x"]

[[rule]]
decision = "ask"
command = "ls secret"

[[rule]]
decision = "deny"
path = "generated/*"

[[rule]]
decision = "deny"
tool = "web_*"
"#;

#[test]
fn rules_decide_and_deny_wins() {
    let world = World::with_rules(RULES);
    for command in [
        "npm run test:unit",
        "npm run test:a 2>&1 | tail -5",
        "git commit -m 'a; rm -rf /'",
        "if npm run test:a; then ls; fi",
    ] {
        assert_eq!(world.verdict(command), Verdict::Allow, "{command}");
    }
    for command in [
        "npm run test:a > f",
        "X=1 npm run test:a",
        "npm run test:a $x",
        "npm run test:a \"$x\"",
        "npm run $x",
        "sudo npm run test:a",
        "git commit -m \"$(curl x)\"",
        "git -c a.b=c commit",
        "./npm run test:a",
        "ls secret",
        "ls $x",
        "export PATH=x; npm run test:a",
        "npm() { x; }; npm run test:a",
        "cd /tmp; npm run test:a",
        "git commit {a,b}$x",
    ] {
        assert_eq!(world.verdict(command), Verdict::Ask, "{command}");
    }
    for command in [
        "rm -rf x",
        "ls; rm -fr x",
        "echo $(rm -rf x)",
        "rm -r -f x",
        "bash -c 'rm -rf x'",
        "xargs rm -rf",
        "find . -exec rm -rf {} +",
        "rm -rf 'unclosed",
        "f() { rm -rf x; }",
        "cat <<E\n$(rm -rf x)\nE",
        "env -S 'rm -rf x'",
        "trap 'rm -rf x' EXIT",
        "echo 'rm -rf x' | sh",
        "bash <<E\nrm -rf x\nE",
        "timeout 5 nice sh -c \"sh -c 'rm -rf x'\"",
        "git submodule foreach 'rm -rf x'",
        "/bin/rm -rf x",
        "\\rm -rf x",
        "x=1 rm -rf x",
        "coproc rm -rf x",
    ] {
        let decision = world.decide(command);
        assert_eq!(decision.verdict, Verdict::Deny, "{command}");
        assert_eq!((decision.reason.as_str(), decision.rule.as_deref()), ("use the trash", Some("deny rm -rf (user)")));
    }
    let path = |path| decide(&Call::Edit { path: Path::new(path), create: false }, &world.context()).verdict;
    assert_eq!(
        (path("generated/a"), path("src/../generated/a"), path("src/a")),
        (Verdict::Deny, Verdict::Deny, Verdict::Ask)
    );
    assert_eq!(decide(&Call::Other { tool: "web_search" }, &world.context()).verdict, Verdict::Deny);
}

#[test]
fn unsound_rule_files_are_refused_whole() {
    let refused = [
        (Layer::Workspace, "[[rule]]\ndecision = 'allow'\ncommand = 'ls'", "only ask or deny"),
        (Layer::User, "[[rule]]\ndecision = 'allow'\ncommand = '* test'", "wildcard"),
        (Layer::User, "[[rule]]\ndecision = 'allow'\ncommand = ''", "plain list"),
        (Layer::User, "[[rule]]\ndecision = 'allow'\ncommand = 'a \"b c\"'", "plain list"),
        (Layer::User, "[[rule]]\ndecision = 'deny'\n", "exactly one"),
        (Layer::User, "[[rule]]\ndecision = 'deny'\ncommand = 'rm'\nmatch = ['ls']", "own example `ls`"),
        (Layer::User, "[[rule]]\ndecision = 'deny'\ncommand = 'rm'\nnot_match = ['echo $(rm x)']", "says it does not"),
        (Layer::System, "[[rule]]\ndecision = 'maybe'\ncommand = 'rm'", "do not parse"),
        (Layer::System, "[[rules]]\ndecision = 'deny'\ncommand = 'rm'", "do not parse"),
    ];
    for (layer, text, expected) in refused {
        let error = Rules::parse(layer, text).expect_err(text).to_string();
        assert!(error.contains(expected) && error.contains(layer.name()), "{error}");
    }
    let tighten =
        Rules::parse(Layer::Workspace, "[[rule]]\ndecision = 'ask'\ncommand = 'git push'").expect("may tighten");
    let allow = Rules::from_words(&[vec!["git".into()]], &[], &[]);
    let world = World { rules: Rules::merge([allow, tighten]), ..World::default() };
    assert_eq!((world.verdict("git push"), world.verdict("git pull")), (Verdict::Ask, Verdict::Allow));
}

#[test]
fn modes_change_what_a_question_becomes() {
    let verdicts = |mode, call: Call<'_>| {
        let world = World {
            mode,
            rules: Rules::from_words(&[vec!["npm".into()]], &[], &[vec!["rm".into()]]),
            ..World::default()
        };
        decide(&call, &world.context()).verdict
    };
    let edit = |path| Call::Edit { path: Path::new(path), create: true };
    use Mode::{AcceptEdits, Ask, Bypass, Plan};
    use Verdict::{Allow, Ask as Asks, Deny};
    let table = [
        (Call::Bash { command: "ls" }, [Allow, Allow, Allow, Allow]),
        (Call::Bash { command: "npm test" }, [Allow, Allow, Deny, Allow]),
        (Call::Bash { command: "make" }, [Asks, Asks, Deny, Allow]),
        (Call::Bash { command: "ls > f" }, [Asks, Asks, Deny, Allow]),
        (Call::Bash { command: "rm f" }, [Deny, Deny, Deny, Deny]),
        (Call::Bash { command: "ls; rm f; 'x" }, [Deny, Deny, Deny, Deny]),
        (Call::BashRestart, [Allow, Allow, Allow, Allow]),
        (edit("src/a"), [Asks, Allow, Deny, Allow]),
        (edit("/home/user/project/src/a"), [Asks, Allow, Deny, Allow]),
        (edit(".git/config"), [Asks, Asks, Deny, Asks]),
        (edit("sub/.GIT/hooks/x"), [Asks, Asks, Deny, Asks]),
        (edit(".env"), [Asks, Asks, Deny, Asks]),
        (edit("../project2/a"), [Asks, Asks, Deny, Asks]),
        (edit("/home/user/project2/a"), [Asks, Asks, Deny, Asks]),
        (Call::View { path: Path::new("src/a") }, [Allow, Allow, Allow, Allow]),
        (Call::View { path: Path::new("/etc/passwd") }, [Asks, Asks, Asks, Allow]),
        (Call::View { path: Path::new(".ssh/id_rsa") }, [Asks, Asks, Asks, Allow]),
        (Call::Other { tool: "grep" }, [Allow, Allow, Allow, Allow]),
        (Call::Other { tool: "launch" }, [Asks, Asks, Deny, Allow]),
    ];
    for (call, expected) in table {
        let got = [Ask, AcceptEdits, Plan, Bypass].map(|mode| verdicts(mode, call));
        assert_eq!(got, expected, "{call:?}");
    }
}

#[test]
fn a_proposed_rule_covers_the_call_and_is_narrow() {
    let world = World::default();
    let propose = |command| narrowest_rule(command, &world.context()).map(|rule| rule.summary);
    assert_eq!(propose("cargo test --workspace"), Some("allow cargo test (user)".to_owned()));
    assert_eq!(propose("cd sub && npm run build 2>&1 | tail -5"), Some("allow npm run build (user)".to_owned()));
    assert_eq!(propose("touch 'a b'"), Some("allow exactly touch a b (user)".to_owned()));
    assert_eq!(propose("cargo fmt && cargo test"), Some("allow cargo fmt (user)\nallow cargo test (user)".to_owned()));
    for none in [
        "ls",
        "make > f",
        "bash -c ls",
        "sudo make",
        "make $x",
        "X=1 make",
        "echo 'unclosed",
        "f() { make; }",
        "touch '*'",
        "eval make",
    ] {
        assert_eq!(propose(none), None, "{none}");
    }
    for command in ["cargo test --workspace", "touch 'a b'", "touch 'a\"b\\c'", "git commit -m 'x y'"] {
        let rule = narrowest_rule(command, &world.context()).expect(command);
        let written = World::with_rules(&rule.toml);
        assert_eq!(written.verdict(command), Verdict::Allow, "{}", rule.toml);
        assert_ne!(written.verdict("touch other"), Verdict::Allow);
    }
}

#[test]
fn secrets_and_devices_are_asked_about() {
    all(
        &[
            "cat .env",
            "cat ~/.ssh/config",
            "head -c 100 \"$HOME/.aws/credentials\"",
            "base64 id_rsa",
            "cat < .env",
            "grep x .env.local",
            "cat /dev/zero",
            "cat /proc/1/environ",
            "cat /etc/shadow",
            "git show HEAD:.env",
            "tail -f /dev/ttyS0",
            "cat server.pem",
        ],
        Verdict::Ask,
    );
    all(
        &["ls -la .env", "cat .env.example", "grep '.env' a", "ls /dev", "echo .env", "find . -name .env"],
        Verdict::Allow,
    );
}

#[test]
fn what_is_shown_is_what_would_run() {
    let decision = World::default().decide("ls; touch 'a\nb' && echo $(date)");
    assert_eq!(decision.parts, ["ls", "touch 'a\nb'", "echo $(date)", "date"]);
    for hidden in ["ls \u{202e}x", "ls\u{200b}", "ls \u{1b}[2K", "ls\r", "ls\0", "ls \u{7f}", "ls \u{feff}"] {
        assert_eq!(World::default().verdict(hidden), Verdict::Ask, "{hidden:?}");
    }
}

#[test]
fn limits_end_in_a_question_with_deny_still_checked() {
    let world = World { rules: Rules::from_words(&[], &[], &[vec!["rm".into()]]), ..World::default() };
    let long = format!("echo {}", "x".repeat(200_000));
    assert_eq!(world.verdict(&long), Verdict::Ask);
    assert_eq!(world.verdict(&format!("{long}; rm f")), Verdict::Deny);
    let deep = format!("{}rm f{}", "echo $(".repeat(60), ")".repeat(60));
    assert_eq!(world.verdict(&deep), Verdict::Deny);
    let many = format!("{}rm f", "true; ".repeat(5_000));
    assert_eq!(world.verdict(&many), Verdict::Deny);
    assert_eq!(world.verdict(&"true; ".repeat(5_000)), Verdict::Allow);
}
