//! Rules, their files, modes and proposals.

use super::*;
use crate::policy::narrowest_rule;

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
        (edit(".git/config"), [Asks, Asks, Deny, Allow]),
        (edit("sub/.GIT/hooks/x"), [Asks, Asks, Deny, Allow]),
        (edit(".env"), [Asks, Asks, Deny, Allow]),
        (edit("../project2/a"), [Asks, Asks, Deny, Allow]),
        (edit("/home/user/project2/a"), [Asks, Asks, Deny, Allow]),
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
