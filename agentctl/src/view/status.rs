//! What is going on right now, to be repainted in place. Pure.

use proto::event::Usage;
use proto::ids::Timestamp;

use super::running::spinner;
use super::{View, Waiting};
use crate::render::{Line, Style, notes, time};

/// Bytes of text that are about one token, for the number shown while a reply is written; its row brings the true one.
const BYTES_PER_TOKEN: usize = 4;

/// Tokens of a first reply from which their number is worth the place.
const TOKENS_SHOWN: u64 = 10;

impl View {
    /// What is going on right now, to be repainted in place: running commands with their last words, what is waited for.
    #[must_use]
    pub fn status(&self, now: Timestamp, columns: usize) -> Vec<Line> {
        if !self.running.is_empty() {
            return self
                .running
                .iter()
                .flat_map(|running| running.lines(&self.title(running.call), now, columns))
                .collect();
        }
        if !self.open.is_empty() {
            return Vec::new();
        }
        let line = match &self.waiting {
            Waiting::Nothing => return Vec::new(),
            Waiting::Model { since, call } => {
                let what = match call {
                    Some(tool) => format!("writing a call of {tool}"),
                    None if self.streaming.is_some() => "writing".to_owned(),
                    None => "thinking".to_owned(),
                };
                let begun = if self.turn.is_some() && self.since.0 > 0 { self.since } else { *since };
                let spent = time::span_short(now.0.saturating_sub(begun.0));
                spinner(now).text(Style::Dim, &format!("{what} · {spent}{}", self.tokens()))
            }
            Waiting::NextTry { at, parked } => {
                let left = at.0.saturating_sub(now.0).div_ceil(1000);
                let what = if *parked { "parked · " } else { "" };
                spinner(now).text(Style::Dim, &format!("{what}next try in {}", time::wait(left)))
            }
        };
        vec![line.fit(columns)]
    }

    /// ` · 12.3k tokens in, 456 out`, as far as it is known.
    fn tokens(&self) -> String {
        let mut usage = self.spent.usage;
        let known = usage != Usage::default();
        usage.output_tokens += u64::try_from(self.spent.writing / BYTES_PER_TOKEN).unwrap_or(0);
        match usage.output_tokens {
            _ if known => format!(" · {}", notes::usage(&usage)),
            0..TOKENS_SHOWN => String::new(),
            count => format!(" · {} tokens out", notes::thousands(count)),
        }
    }

    /// Whether [`Self::status`] would change with the time alone.
    #[must_use]
    pub fn ticks(&self) -> bool {
        !self.running.is_empty() || !matches!(self.waiting, Waiting::Nothing)
    }
}
