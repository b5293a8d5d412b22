//! Telling a user who looks elsewhere that something waits or is done: the bell, and the sequences with which terminals
//! make a desktop notification. Pure; [`crate::screen`] writes it.

use clap::ValueEnum;
use proto::secret::EnvVars;

use crate::render::sanitize;

/// A turn that took at least this long is worth a notification: before that the user still looks.
pub const LONG_MS: u64 = 10_000;

/// Longest text of a notification: desktops show a line or two.
const TEXT_CHARS: usize = 120;

/// How the user wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Not at all
    Off,
    /// The terminal's bell
    Bell,
    /// A desktop notification by way of the terminal (OSC 9, as iTerm2, kitty, Ghostty, WezTerm, Windows Terminal know it)
    Osc9,
    /// The same as urxvt, foot and others know it (OSC 777)
    Osc777,
    /// The bell, and the sequence that this terminal is likely to know
    Auto,
}

/// When the user wants to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// While the terminal has not the focus; where it does not tell that, after ten seconds without a key
    #[default]
    Away,
    /// Always
    Always,
}

impl How {
    /// What `auto` means in this environment.
    #[must_use]
    pub fn resolve(self, vars: &EnvVars) -> Vec<Self> {
        if self != Self::Auto {
            return vec![self];
        }
        let term = vars.get("TERM").unwrap_or_default();
        if term == "linux" {
            return vec![Self::Bell];
        }
        let knows_777 = term.starts_with("foot") || term.starts_with("rxvt") || vars.get("VTE_VERSION").is_some();
        vec![if knows_777 { Self::Osc777 } else { Self::Osc9 }, Self::Bell]
    }
}

/// One notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    ways: Vec<How>,
    /// Inside tmux sequences for the terminal must be wrapped.
    tmux: bool,
    text: String,
}

impl Notification {
    /// In words: what waits, where.
    #[must_use]
    pub fn new(how: How, vars: &EnvVars, text: &str) -> Self {
        let text: String = sanitize::line(text).replace(';', ",").chars().take(TEXT_CHARS).collect();
        Self { ways: how.resolve(vars), tmux: vars.get("TMUX").is_some_and(|value| !value.is_empty()), text }
    }

    /// What the terminal gets.
    #[must_use]
    pub fn bytes(&self) -> String {
        self.ways
            .iter()
            .map(|way| match way {
                How::Off | How::Auto => String::new(),
                How::Bell => "\x07".to_owned(),
                How::Osc9 => self.wrapped(&format!("\x1b]9;agentd: {}\x1b\\", self.text)),
                How::Osc777 => self.wrapped(&format!("\x1b]777;notify;agentd;{}\x1b\\", self.text)),
            })
            .collect()
    }

    fn wrapped(&self, sequence: &str) -> String {
        if self.tmux {
            format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
        } else {
            sequence.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(how: How, vars: &[(&str, &str)]) -> String {
        let vars = EnvVars(vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
        Notification::new(how, &vars, "rm -rf x\x1b\\\x07;y").bytes()
    }

    #[test]
    fn a_notification_names_what_waits_and_nothing_escapes_from_it() {
        let osc9 = "\x1b]9;agentd: rm -rf x␛\\␇,y\x1b\\";
        assert_eq!(bytes(How::Osc9, &[]), osc9);
        assert_eq!(bytes(How::Osc9, &[("TMUX", "x")]), "\x1bPtmux;\x1b\x1b]9;agentd: rm -rf x␛\\␇,y\x1b\x1b\\\x1b\\");
        assert_eq!(bytes(How::Auto, &[("TERM", "xterm-kitty")]), format!("{osc9}\x07"));
    }

    #[test]
    fn a_terminal_gets_what_it_knows() {
        assert!(bytes(How::Auto, &[("TERM", "foot")]).contains("]777;notify;agentd;rm"));
        assert!(bytes(How::Auto, &[("TERM", "xterm"), ("VTE_VERSION", "7000")]).contains("]777;"));
        assert_eq!(bytes(How::Auto, &[("TERM", "linux")]), "\x07");
        assert_eq!(bytes(How::Off, &[]), "");
    }
}
