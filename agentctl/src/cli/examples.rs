//! What commands are used for, under their help.

/// What `ask` is used for, under its help.
pub(super) const ASK_EXAMPLES: &str = "\
Examples:
  agentctl ask \"why does the build fail?\"
  git diff | agentctl ask \"review this\"
  agentctl ask --new --name docs \"write a README\"
  agentctl ask --detach \"run the long tests\"; agentctl attach
  agentctl ask --approve all --quiet \"count the lines of src\" > answer.md
  agentctl ask --scenario demo \"show me\"";

/// What `undo` is used for, under its help.
pub(super) const UNDO_EXAMPLES: &str = "\
Examples:
  agentctl undo                  the last edit of the newest session here
  agentctl undo 3                its last three edits
  agentctl undo build 2 --yes    the last two of another session, without a question";

/// What `run` is used for, under its help.
pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  agentctl run -- make test                      in the shell of the newest session here
  agentctl run build -- 'cd src && ls | wc -l'   in another session's; quotes keep your own shell out
  agentctl run -- 'export PATH=$HOME/bin:$PATH'  what the agent's commands will see, too";

/// How `completions` is used, under its help.
pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(agentctl completions bash)              in ~/.bashrc
  source <(agentctl completions zsh)               in ~/.zshrc, after compinit
  agentctl completions fish > ~/.config/fish/completions/agentctl.fish

Sessions, approvals and background commands are asked of the daemon while you complete; none is started for it.";

/// What one does with agentctl, under the help of the whole.
pub(super) const EXAMPLES: &str = "\
Examples:
  agentctl ask \"why does the build fail?\"          a job, watched to its end
  git diff | agentctl ask \"review this\"             what is piped in becomes context
  agentctl attach                                    the newest session here, with an input; /help lists what it knows
  agentctl ls; agentctl approvals                    what runs, and what waits for your answer
  agentctl log -f build                              the rows of a session as they come
  agentctl undo                                      the last edit back, after showing it
  agentctl ask --json --approve all \"…\" | jq …      for scripts; exit codes below";

/// What `export` is used for, under its help.
pub(super) const EXPORT_EXAMPLES: &str = "\
Examples:
  agentctl export build --html -o build.html     a page with folded outputs and diffs
  agentctl export | less                         the newest session here as Markdown
  agentctl export build --json > build.jsonl     everything, for programs";
