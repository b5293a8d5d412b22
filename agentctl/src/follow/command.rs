//! What is typed in `attach`: prompts and `/commands`. Pure.

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Help,
    Detach,
    Interrupt,
    Retry,
    Diff,
    Undo,
    Withdraw,
    Rename,
    Show,
    Clear,
    Mode,
    Model,
    Effort,
    Compact,
    Usage,
    Jobs,
    Job,
    Kill,
    Background,
    Steer,
    Rerun,
    Search,
    Fork,
    Who,
}

/// A command as it is typed and listed.
#[derive(Debug)]
pub struct Command {
    /// With its slash.
    pub name: &'static str,
    /// Other names, not listed.
    others: &'static [&'static str],
    /// What follows the name.
    pub argument: &'static str,
    /// One line for the list.
    pub about: &'static str,
    wish: Wish,
}

/// All of them, as listed.
pub const ALL: &[Command] = &[
    command("/help", &["/?"], "", "show this", Wish::Help),
    command(
        "/detach",
        &["/quit", "/exit", "/q"],
        "",
        "leave; the session goes on (or Ctrl-D; Ctrl-C twice)",
        Wish::Detach,
    ),
    command("/interrupt", &["/stop"], "", "end the running turn (or Ctrl-C)", Wish::Interrupt),
    command("/steer", &[], "NOTE", "hand the running turn a note before its next request", Wish::Steer),
    command(
        "/background",
        &["/bg"],
        "",
        "move the running command to the background; the turn goes on",
        Wish::Background,
    ),
    command("/retry", &[], "", "try a request that waits for its next try at once", Wish::Retry),
    command("/diff", &[], "", "what the session's edits changed", Wish::Diff),
    command("/undo", &[], "[N]", "take the last edits back, after showing them", Wish::Undo),
    command("/withdraw", &[], "", "take the newest queued prompt back into the input", Wish::Withdraw),
    command("/rerun", &[], "[WORDS]", "ask the last prompt again, in the same or other words", Wish::Rerun),
    command("/model", &[], "[NAME]", "show or change the model of the next turns", Wish::Model),
    command("/effort", &[], "[LEVEL]", "show or change how much work goes into an answer", Wish::Effort),
    command("/compact", &[], "", "replace what the model sees of the past by a summary", Wish::Compact),
    command("/usage", &["/cost"], "", "tokens and money of this session", Wish::Usage),
    command("/jobs", &[], "", "commands in the background", Wish::Jobs),
    command("/job", &[], "[ID]", "the last lines of one", Wish::Job),
    command("/kill", &[], "ID", "end one and all its processes", Wish::Kill),
    command("/search", &[], "WORDS", "find words in all sessions", Wish::Search),
    command("/fork", &[], "[NAME]", "start a session that goes on from here with a new shell", Wish::Fork),
    command("/who", &[], "", "who is attached", Wish::Who),
    command("/rename", &[], "NAME", "give the session a name", Wish::Rename),
    command("/mode", &[], "[MODE]", "show or switch the mode: ask, accept-edits, plan, bypass", Wish::Mode),
    command("/show", &["/status"], "", "the session's state, and who is attached", Wish::Show),
    command("/clear", &[], "", "empty the screen; the session and the scrollback stay", Wish::Clear),
];

/// The keys, below the commands of the help.
pub const KEYS: &[(&str, &str)] = &[
    ("!COMMAND", "runs in the session's shell; the model reads it with the next prompt"),
    ("anything else", "is a prompt; while a turn runs it waits for its end, /steer does not"),
    ("@file", "completes a path of the workspace (Tab or Enter takes it)"),
    ("Ctrl-J, Alt-Enter", "a line break; a paste keeps its own"),
    ("Up, Down", "earlier prompts"),
    ("Ctrl-C", "empties the input, else ends the turn; again: leaves"),
    ("Ctrl-Z", "stops agentctl, not the session; fg brings it back"),
];

const fn command(
    name: &'static str,
    others: &'static [&'static str],
    argument: &'static str,
    about: &'static str,
    wish: Wish,
) -> Command {
    Command { name, others, argument, about, wish }
}

/// What a command's name stands for.
#[must_use]
pub fn wish(name: &str) -> Option<Wish> {
    ALL.iter().find(|command| command.name == name || command.others.contains(&name)).map(|command| command.wish)
}

/// What an input means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing was typed.
    Nothing,
    /// A command and what follows it.
    Command(Wish, String),
    /// A slash and a word that is none.
    Unknown(String),
    /// A command for the session's shell.
    Run(String),
    /// Everything else.
    Prompt(String),
}

impl Input {
    /// A slash begins a command, `!` one for the shell; a space before it makes it a prompt, and so does a word after the
    /// slash that cannot be a command.
    #[must_use]
    pub fn read(line: &str) -> Self {
        let text = line.trim_end();
        if text.trim().is_empty() {
            return Self::Nothing;
        }
        if let Some(command) = text.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
            return Self::Run(command.to_owned());
        }
        let (word, rest) = text.split_once([' ', '\n']).unwrap_or((text, ""));
        let known = ALL.iter().find(|command| command.name == word || command.others.contains(&word));
        match known {
            Some(command) if rest.trim().is_empty() || !command.argument.is_empty() => {
                Self::Command(command.wish, rest.trim().to_owned())
            }
            None if text.starts_with('/') && rest.is_empty() && !text[1..].contains('/') => {
                Self::Unknown(text.to_owned())
            }
            Some(_) | None => Self::Prompt(text.trim_start().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_words_are_commands_and_paths_are_prompts_and_an_exclamation_mark_runs() {
        let prompt = |text: &str| Input::Prompt(text.to_owned());
        let command = |wish, rest: &str| Input::Command(wish, rest.to_owned());
        let lines = [
            "",
            "  ",
            "/quit",
            "/help ",
            "/undo 3",
            "/foo",
            " /foo",
            "/etc/hosts",
            "/etc is full",
            "hi",
            "/help me",
            "!ls -l ",
            " !ls",
            "!",
            "/steer look at b\nfirst",
        ];
        assert_eq!(
            lines.map(Input::read),
            [
                Input::Nothing,
                Input::Nothing,
                command(Wish::Detach, ""),
                command(Wish::Help, ""),
                command(Wish::Undo, "3"),
                Input::Unknown("/foo".into()),
                prompt("/foo"),
                prompt("/etc/hosts"),
                prompt("/etc is full"),
                prompt("hi"),
                prompt("/help me"),
                Input::Run("ls -l".into()),
                prompt("!ls"),
                prompt("!"),
                command(Wish::Steer, "look at b\nfirst"),
            ]
        );
    }
}
