//! A command that runs: how long, and its last words. Pure.

use std::collections::VecDeque;

use proto::ids::{CallId, Timestamp};
use proto::live::LiveOutput;

use crate::render::{Line, Style, call, sanitize, time};

/// Output lines of a running command that are shown while it runs.
const LIVE_TAIL_LINES: usize = 5;

/// Longest piece of an unfinished output line that is kept: a terminal shows less.
const LIVE_LINE_BYTES: usize = 4096;

/// A call between its start and its result.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) call: CallId,
    since: Timestamp,
    received: u64,
    tail: VecDeque<String>,
    partial: String,
}

impl Running {
    pub(super) fn new(call: CallId, since: Timestamp) -> Self {
        Self { call, since, received: 0, tail: VecDeque::new(), partial: String::new() }
    }

    /// Takes a piece of output; what was there already changes nothing.
    pub(super) fn take(&mut self, output: &LiveOutput) {
        let end = output.offset.saturating_add(output.bytes);
        if end <= self.received {
            return;
        }
        if output.offset > self.received {
            self.push_line("…".to_owned());
        }
        self.received = end;
        for piece in output.text.split_inclusive('\n') {
            self.partial.push_str(piece.trim_end_matches(['\n', '\r']));
            // A progress bar rewrites its line: the last state is what counts.
            if let Some(at) = self.partial.rfind('\r') {
                self.partial.drain(..=at);
            }
            if self.partial.len() > LIVE_LINE_BYTES {
                let cut = (0..=LIVE_LINE_BYTES).rev().find(|&at| self.partial.is_char_boundary(at)).unwrap_or(0);
                self.partial.truncate(cut);
            }
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                self.push_line(line);
            }
        }
    }

    fn push_line(&mut self, line: String) {
        if self.tail.len() == LIVE_TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    /// The call with its time, and its last lines.
    pub(super) fn lines(&self, title: &str, now: Timestamp, columns: usize) -> Vec<Line> {
        let spent = Line::new().text(Style::Dim, &format!(" · {}", time::span(now.0.saturating_sub(self.since.0))));
        let head = spinner(now).join(call::name(title)).fit(columns.saturating_sub(spent.width())).join(spent);
        let partial = Some(&self.partial).filter(|text| !text.is_empty());
        let mut lines = vec![head];
        let tail = self.tail.iter().chain(partial).map(|text| sanitize::without_colors(text));
        lines.extend(tail.map(|text| call::output_line(&text, columns)));
        lines
    }
}

/// How long each picture of the spinner stands.
pub(crate) const SPINNER_MS: u64 = 125;

/// A mark that turns: something goes on.
pub(super) fn spinner(now: Timestamp) -> Line {
    const FRAMES: [&str; 8] = ["⠋ ", "⠙ ", "⠸ ", "⠴ ", "⠦ ", "⠇ ", "⠏ ", "⠋ "];
    let at = usize::try_from(now.0 / SPINNER_MS).unwrap_or(0) % FRAMES.len();
    Line::new().lit(Style::Name, FRAMES[at])
}
