//! Lines about a turn: what failed and is tried again, how it ended, what the user should know.

use jiff::tz::TimeZone;
use proto::event::{Problem, RequestFailed, SessionForked, TurnOutcome, Usage};
use proto::mode::Mode;

use proto::ids::SessionId;

use super::session::mode_style;
use super::{Line, Style, time};

/// A failed try and the time of the next one.
#[must_use]
pub fn request_failed(failed: &RequestFailed, zone: &TimeZone) -> Line {
    let line = Line::new().lit(Style::Warn, "! ").text(Style::Plain, &failed.problem.message).prose("  ");
    match failed.next_try {
        Some(at) if failed.parked => line.text(
            Style::Dim,
            &format!(" · parked: tries again at {}, or at once with agentctl retry", time::clock(at, zone)),
        ),
        Some(at) => line.text(Style::Dim, &format!(" · tries again at {}", time::clock(at, zone))),
        None => line,
    }
}

/// The last words of an `ask` that does not wait for its parked turn.
#[must_use]
pub fn parked(problem: &Problem, session: SessionId) -> Line {
    let id = session.short();
    Line::new().lit(Style::Bad, "✗ ").text(Style::Plain, &problem.message).text(
        Style::Plain,
        &match problem.code.as_str() {
            "paused" => {
                format!("; the turn waits for an answer: agentctl attach {id}, approvals {id} or interrupt {id}")
            }
            _ => format!(
                "; the turn is parked and goes on by itself: agentctl attach {id}, retry {id} or interrupt {id}"
            ),
        },
    )
}

/// A sentence from the daemon.
#[must_use]
pub fn notice(text: &str) -> Line {
    Line::new().lit(Style::Warn, "! ").text(Style::Plain, text).prose("  ")
}

/// Where a session comes from.
#[must_use]
pub fn forked(it: &SessionForked) -> Line {
    remark(&format!("forked by {} from session {} after its row {}", it.by, it.from.short(), it.at))
}

/// A quiet remark of our own.
#[must_use]
pub fn remark(text: &str) -> Line {
    Line::new().lit(Style::Dim, "· ").text(Style::Dim, text).prose("  ")
}

/// The session's mode was switched.
#[must_use]
pub fn mode(mode: Mode, by: &str) -> Line {
    let line = Line::new().lit(Style::Dim, "· mode ").text(mode_style(mode), mode.name());
    line.text(Style::Dim, &format!(": {} · by {by}", mode.meaning()))
}

/// Another client's prompt.
#[must_use]
pub fn prompt(text: &str, by: &str) -> Vec<Line> {
    let mut rest = text.trim_end().lines();
    let first = rest.next().unwrap_or_default();
    let mut head = Line::new().lit(Style::Bold, "› ").text(Style::Bold, first).prose("  ");
    if !by.is_empty() {
        head = head.text(Style::Dim, &format!("  {by}"));
    }
    let mut lines = vec![head];
    lines.extend(rest.map(|line| Line::new().lit(Style::Plain, "  ").text(Style::Bold, line).prose("  ")));
    lines
}

/// How a turn ended; nothing when it ended well.
#[must_use]
pub fn outcome(outcome: &TurnOutcome) -> Vec<Line> {
    match outcome {
        TurnOutcome::Done {} => Vec::new(),
        TurnOutcome::Interrupted {} => vec![Line::new().lit(Style::Warn, "! interrupted")],
        TurnOutcome::Refused { category, explanation } => {
            let category = category.as_ref().map(|word| format!(" ({word})")).unwrap_or_default();
            let explanation = explanation.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            vec![
                Line::new()
                    .lit(Style::Bad, "✗ the model refused to answer")
                    .text(Style::Plain, &format!("{category}{explanation}"))
                    .prose("  "),
            ]
        }
        TurnOutcome::Failed { problem } => vec![self::problem(problem)],
    }
}

/// A problem in one sentence: what failed, on what, what to do next.
#[must_use]
pub fn problem(problem: &Problem) -> Line {
    let mut line = Line::new().lit(Style::Bad, "✗ ").text(Style::Plain, &problem.message).prose("  ");
    if !problem.hint.is_empty() {
        line = line.text(Style::Plain, &format!("; {}", problem.hint));
    }
    match &problem.request_id {
        Some(id) => line.text(Style::Dim, &format!(" (request {id})")),
        None => line,
    }
}

/// `12.3k tokens in, 456 out, 0.12 USD`.
#[must_use]
pub fn usage(usage: &Usage) -> String {
    let input = usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens;
    let cost = usage.cost_nanousd.map(|nano| format!(", {}", money(nano))).unwrap_or_default();
    format!("{} tokens in, {} out{cost}", thousands(input), thousands(usage.output_tokens))
}

/// `0.0042 USD`, `1.25 USD`: cents, or the first digits of less.
#[must_use]
pub fn money(nano: u64) -> String {
    let (whole, part) = (nano / 1_000_000_000, nano % 1_000_000_000);
    match nano {
        0 => "0 USD".to_owned(),
        1..=99_999_999 => format!("0.{:04} USD", part.div_ceil(100_000)),
        _ => format!("{whole}.{:02} USD", part / 10_000_000),
    }
}

/// What a turn took: `· 12 s · 12.3k tokens in, 456 out`.
#[must_use]
pub fn spent(ms: u64, tokens: &Usage) -> Line {
    let took = time::span(ms);
    if *tokens == Usage::default() { remark(&took) } else { remark(&format!("{took} · {}", usage(tokens))) }
}

/// `12.3k`.
#[must_use]
pub fn thousands(count: u64) -> String {
    match count {
        0..=999 => count.to_string(),
        1_000..=999_999 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::ids::{RequestId, Timestamp, TurnId};

    use super::*;

    fn sample() -> Problem {
        Problem {
            code: "overloaded".into(),
            message: "the API at https://api.anthropic.com is overloaded".into(),
            hint: "wait, or choose another model".into(),
            request_id: Some("req_1".into()),
        }
    }

    #[test]
    fn a_failed_try_names_the_time_of_the_next() {
        let failed = RequestFailed {
            turn: TurnId::new(),
            request: RequestId::new(),
            attempt: 1,
            problem: sample(),
            next_try: Some(Timestamp(1_700_000_000_000)),
            parked: false,
        };
        expect!["! the API at https://api.anthropic.com is overloaded · tries again at 22:13:20"]
            .assert_eq(&request_failed(&failed, &TimeZone::UTC).paint(false));
    }

    #[test]
    fn a_failed_turn_says_what_to_do() {
        let lines = outcome(&TurnOutcome::Failed { problem: sample() });
        expect!["✗ the API at https://api.anthropic.com is overloaded; wait, or choose another model (request req_1)"]
            .assert_eq(&lines[0].paint(false));
    }

    #[test]
    fn token_counts_are_short() {
        let counts =
            Usage { input_tokens: 12_000, cache_read_tokens: 345, output_tokens: 1_200_000, ..Usage::default() };
        assert_eq!(usage(&counts), "12.3k tokens in, 1.2M out");
        let costly = Usage { cost_nanousd: Some(120_000_000), ..counts };
        assert_eq!(usage(&costly), "12.3k tokens in, 1.2M out, 0.12 USD");
        assert_eq!(
            [money(0), money(4_200_000), money(1), money(12_345_000_000)],
            ["0 USD", "0.0042 USD", "0.0001 USD", "12.34 USD"]
        );
    }
}
