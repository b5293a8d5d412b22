//! Tricks that must not be allowed, everyday commands that must be, the shell's state, rules and modes.

mod commands;
mod rules;
mod session;

use std::path::Path;

use super::{Call, Context, Decision, Layer, Mode, Repository, Rules, ShellFacts, Verdict, decide};

/// What a decision rests on, with everything ordinary.
pub(super) struct World {
    pub(super) mode: Mode,
    pub(super) rules: Rules,
    pub(super) shell: ShellFacts,
    pub(super) repository: Repository,
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
    pub(super) fn with_rules(toml: &str) -> Self {
        Self { rules: Rules::parse(Layer::User, toml).expect("the rules are sound"), ..Self::default() }
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            mode: self.mode,
            rules: &self.rules,
            workspace: Path::new("/home/user/project"),
            cwd: Path::new("/home/user/project"),
            shell: &self.shell,
            repository: &self.repository,
            trust_reads: true,
        }
    }

    pub(super) fn decide(&self, command: &str) -> Decision {
        decide(&Call::Bash { command }, &self.context())
    }

    pub(super) fn verdict(&self, command: &str) -> Verdict {
        self.decide(command).verdict
    }
}
