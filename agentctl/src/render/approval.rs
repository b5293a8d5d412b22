//! A question to the user, whole: what would run is never cut, wrapped away or hidden.

use proto::approval::{Approval, Choice, Decider, Proposal, Subject, Verdict};

use super::{Line, Style, diff};

/// A run of this many spaces is shown as a count: padding must not push the end of a command out of sight.
const PADDING: usize = 16;

/// The question's lines, without the line of choices.
#[must_use]
pub fn question(approval: &Approval) -> Vec<Line> {
    let mut lines = vec![head(approval)];
    match &approval.subject {
        Subject::Command(command) => {
            lines.extend(command_lines(&command.command));
            lines.push(fact("in", &command.cwd));
            if command.parts.len() > 1 {
                lines.push(fact("runs", &command.parts.join(" · ")));
            }
        }
        Subject::Edit(edit) => {
            lines.push(Line::new().lit(Style::Plain, "  ").join(diff::head(&edit.diff)));
            lines.extend(diff::body(&edit.diff, usize::MAX));
        }
        Subject::Other(other) => {
            lines.push(Line::new().lit(Style::Plain, "  ").text(Style::Name, &other.title));
            lines.push(fact("input", other.input.as_str()));
        }
    }
    if !approval.reason.is_empty() {
        lines.push(fact("asks because", &approval.reason));
    }
    if let Some(proposal) = &approval.proposal {
        lines.extend(proposed(proposal));
    }
    lines
}

/// Exactly what "always" would write, one line a rule; "for this session" is the same for as long as the session lasts.
fn proposed(proposal: &Proposal) -> Vec<Line> {
    let mut rules: Vec<Vec<&str>> = Vec::new();
    for text in proposal.toml.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match rules.last_mut() {
            Some(rule) if text != "[[rule]]" => rule.push(text),
            Some(_) | None => rules.push(Vec::new()),
        }
    }
    let mut lines: Vec<Line> = rules.iter().map(|rule| fact("always adds", &rule.join(", "))).collect();
    lines.push(fact("to", &proposal.file));
    lines
}

fn head(approval: &Approval) -> Line {
    let what = match &approval.subject {
        Subject::Command(_) => "Run this command?",
        Subject::Edit(edit) if edit.diff.created => "Create this file?",
        Subject::Edit(_) => "Make this change?",
        Subject::Other(_) => "Allow this call?",
    };
    Line::new()
        .lit(Style::Warn, "? ")
        .lit(Style::Bold, what)
        .text(Style::Dim, &format!("  approval {}", approval.id.short()))
}

fn fact(name: &'static str, text: &str) -> Line {
    let line = Line::new().lit(Style::Plain, "  ").lit(Style::Dim, name).lit(Style::Plain, " ");
    line.text(Style::Plain, text).prose("    ")
}

fn command_lines(command: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for (at, text) in command.trim_end_matches('\n').split('\n').enumerate() {
        let start = Line::new().lit(Style::Dim, if at == 0 { "  $ " } else { "    " });
        lines.push(padded(start, text));
    }
    lines
}

fn padded(mut line: Line, text: &str) -> Line {
    let mut rest = text;
    while let Some(start) = rest.find(&" ".repeat(PADDING)) {
        let gap = rest[start..].len() - rest[start..].trim_start_matches(' ').len();
        line = line.text(Style::Name, &rest[..start]).text(Style::Warn, &format!("‹{gap} spaces›"));
        rest = &rest[start + gap..];
    }
    line.text(Style::Name, rest)
}

/// The line of choices, only those that exist here.
#[must_use]
pub fn choices(approval: &Approval) -> Line {
    let mut line = Line::new();
    for choice in &approval.choices {
        line = match choice {
            Choice::Once => line.lit(Style::Bold, "[y]").lit(Style::Plain, "es once  "),
            Choice::Session => line.lit(Style::Bold, "[s]").lit(Style::Plain, "ession  "),
            Choice::Always => line.lit(Style::Bold, "[a]").lit(Style::Plain, "lways  "),
            Choice::Edit => line.lit(Style::Bold, "[e]").lit(Style::Plain, "dit  "),
            Choice::Deny => line
                .lit(Style::Bold, "[n]")
                .lit(Style::Plain, "o  ")
                .lit(Style::Bold, "[r]")
                .lit(Style::Plain, "eason…  "),
        };
    }
    line.lit(Style::Bold, "> ")
}

/// The same for a terminal that is too narrow for words.
#[must_use]
pub fn keys_only(approval: &Approval) -> Line {
    let mut line = Line::new();
    for choice in &approval.choices {
        line = line.lit(
            Style::Bold,
            match choice {
                Choice::Once => "[y] ",
                Choice::Session => "[s] ",
                Choice::Always => "[a] ",
                Choice::Edit => "[e] ",
                Choice::Deny => "[n] [r] ",
            },
        );
    }
    line.lit(Style::Bold, "> ")
}

/// A key that answers a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// This is the answer.
    Answer(Verdict),
    /// No, with a reason that is typed next.
    Reason,
    /// Another command, which is typed next.
    Edit,
}

/// What a key means for this question; `None` when it means nothing here.
#[must_use]
pub fn key(approval: &Approval, key: u8) -> Option<Key> {
    let (choice, key) = match key {
        b'y' | b'Y' => (Choice::Once, Key::Answer(Verdict::Once {})),
        b's' | b'S' => (Choice::Session, Key::Answer(Verdict::Session {})),
        b'a' | b'A' => (Choice::Always, Key::Answer(Verdict::Always {})),
        b'n' | b'N' => (Choice::Deny, Key::Answer(Verdict::Deny { reason: None })),
        b'r' | b'R' => (Choice::Deny, Key::Reason),
        b'e' | b'E' => (Choice::Edit, Key::Edit),
        _ => return None,
    };
    approval.choices.contains(&choice).then_some(key)
}

/// How a question was closed: `answered by agentctl on pts/3: yes`. `mine`: by this very terminal.
#[must_use]
pub fn closed(verdict: &Verdict, by: &Decider, mine: bool) -> Line {
    let (style, answer) = match verdict {
        Verdict::Once {} => (Style::Good, "yes".to_owned()),
        Verdict::Session {} => (Style::Good, "yes, for this session".to_owned()),
        Verdict::Always {} => (Style::Good, "yes, always".to_owned()),
        Verdict::Deny { reason: None } => (Style::Warn, "no".to_owned()),
        Verdict::Deny { reason: Some(reason) } => (Style::Warn, format!("no ({reason})")),
        Verdict::Edit { command } => (Style::Good, format!("yes, but as $ {command}")),
    };
    let line = Line::new().lit(Style::Plain, "  ");
    let line = match by {
        Decider::Client { .. } if mine => line.lit(Style::Dim, "you answered: "),
        Decider::Client { name } => line.text(Style::Dim, &format!("answered by {name}: ")),
        Decider::Grant { name } => line.text(Style::Dim, &format!("answered before by {name}: ")),
        Decider::Policy { rule } => line.text(Style::Dim, &format!("decided by the rule {rule}: ")),
        Decider::Flag { value } => line.text(Style::Dim, &format!("decided by --approve {value}: ")),
        Decider::Expiry {} => line.lit(Style::Dim, "nobody answered in time: "),
        Decider::Interrupt {} => line.lit(Style::Dim, "the turn was interrupted: "),
        Decider::Changed {} => line.lit(Style::Dim, "what was shown is no longer what would run: "),
        Decider::Mode { mode } => line.text(Style::Dim, &format!("decided by the mode {mode}: ")),
    };
    line.text(style, &answer)
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::{Expect, expect};
    use proto::approval::{CommandSubject, EditSubject};
    use proto::ids::{CallId, SessionId, Timestamp, TurnId};

    use super::*;

    pub(crate) fn sample(subject: Subject) -> Approval {
        Approval {
            id: "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap(),
            session: SessionId::new(),
            turn: TurnId::new(),
            call: CallId::new(),
            tool: "bash".into(),
            subject,
            reason: "it writes files".into(),
            asked_at: Timestamp(0),
            expires_at: Timestamp(1),
            choices: vec![Choice::Once, Choice::Session, Choice::Deny],
            digest: "d".into(),
            proposal: None,
        }
    }

    pub(crate) fn command(command: &str) -> Approval {
        sample(Subject::Command(CommandSubject {
            command: command.into(),
            cwd: "/home/me/project".into(),
            parts: vec!["echo hi".into(), "rm -rf target".into()],
        }))
    }

    fn check(approval: &Approval, expected: &Expect) {
        let mut text: String = question(approval).iter().map(|line| line.paint(false) + "\n").collect();
        text += &(choices(approval).paint(false) + "\n");
        expected.assert_eq(&text);
    }

    #[test]
    fn a_command_is_shown_whole_and_its_padding_is_counted() {
        let text = format!("echo hi{}&& \\\n  rm -rf target\x1b[1A\u{202e}", " ".repeat(300));
        check(
            &command(&text),
            &expect![[r#"
            ? Run this command?  approval 26f8ad91
              $ echo hi‹300 spaces›&& \
                  rm -rf target␛[1A‹202e›
              in /home/me/project
              runs echo hi · rm -rf target
              asks because it writes files
            [y]es once  [s]ession  [n]o  [r]eason…  > 
        "#]],
        );
    }

    #[test]
    fn always_shows_exactly_what_it_would_write() {
        let mut approval = command("touch x");
        let toml = "\n# for: touch x\n[[rule]]\ndecision = \"allow\"\ncommand = [\"touch\", \"x\"]\nexact = true\n";
        approval.proposal = Some(Proposal { file: "/c/policy.toml".into(), toml: toml.into(), rules: Vec::new() });
        approval.choices = vec![Choice::Once, Choice::Session, Choice::Always, Choice::Edit, Choice::Deny];
        check(
            &approval,
            &expect![[r#"
                ? Run this command?  approval 26f8ad91
                  $ touch x
                  in /home/me/project
                  runs echo hi · rm -rf target
                  asks because it writes files
                  always adds decision = "allow", command = ["touch", "x"], exact = true
                  to /c/policy.toml
                [y]es once  [s]ession  [a]lways  [e]dit  [n]o  [r]eason…  > 
            "#]],
        );
        assert_eq!(key(&approval, b'a'), Some(Key::Answer(Verdict::Always {})));
        assert_eq!(key(&approval, b'e'), Some(Key::Edit));
    }

    #[test]
    fn an_edit_is_shown_as_its_diff() {
        let diff = crate::render::diff::tests::sample();
        check(
            &sample(Subject::Edit(EditSubject { diff })),
            &expect![[r#"
            ? Make this change?  approval 26f8ad91
              src/lib.rs  +2 −1
               9   fn main() {
              10 -     let x = 1;
              10 +     let x = 2␛[2J;
              11 + }  (no line end)
              asks because it writes files
            [y]es once  [s]ession  [n]o  [r]eason…  > 
        "#]],
        );
    }

    #[test]
    fn only_keys_of_offered_choices_answer() {
        let mut approval = command("x");
        assert_eq!(key(&approval, b'y'), Some(Key::Answer(Verdict::Once {})));
        assert_eq!(key(&approval, b'a'), None, "always is not offered");
        assert_eq!(key(&approval, b'\r'), None, "Enter is no answer");
        approval.choices = vec![Choice::Deny];
        assert_eq!(key(&approval, b'y'), None);
        assert_eq!(key(&approval, b'R'), Some(Key::Reason));
    }

    #[test]
    fn the_closing_line_says_who_answered() {
        let by = Decider::Client { name: "agentctl on pts/3".into() };
        assert_eq!(closed(&Verdict::Once {}, &by, false).paint(false), "  answered by agentctl on pts/3: yes");
        assert_eq!(closed(&Verdict::Once {}, &by, true).paint(false), "  you answered: yes");
        let no = Verdict::Deny { reason: Some("not now".into()) };
        assert_eq!(closed(&no, &Decider::Expiry {}, false).paint(false), "  nobody answered in time: no (not now)");
    }
}
