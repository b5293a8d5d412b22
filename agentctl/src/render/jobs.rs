//! Background commands: a table, one alone, and what a session's rows say of them.

use proto::event::{BackgroundAsked, JobEnded, JobSilent, JobStarted, JobStopAsked, Outcome};
use proto::ids::Timestamp;
use proto::job::{Environment, Job};

use super::table::{Cell, table};
use super::{Line, Style, call, notes, sanitize, time};

/// Lines of a job's notice that are shown as it ends.
const TAIL_LINES: usize = 6;

/// Quiet shorter than this is not worth a word.
const QUIET_MS: u64 = 10_000;

/// All jobs, aligned.
#[must_use]
pub fn list(jobs: &[Job], now: Timestamp, columns: usize) -> Vec<Line> {
    let row = |job: &Job| -> Vec<Cell> {
        let (style, state) = state(job);
        vec![
            (Style::Name, job.job.short()),
            (Style::Dim, job.session.short()),
            (style, state),
            (Style::Plain, size(job.output_bytes)),
            (Style::Dim, time::ago(job.started_at, now)),
            (Style::Plain, what(job)),
        ]
    };
    let rows: Vec<Vec<Cell>> = jobs.iter().map(row).collect();
    table(&["JOB", "SESSION", "STATE", "OUTPUT", "STARTED", "COMMAND"], &rows, columns)
}

/// One job's last line, below its output.
#[must_use]
pub fn one(job: &Job) -> Line {
    let (style, state) = state(job);
    let line = Line::new().lit(Style::Dim, "· job ").text(Style::Name, &job.job.short());
    let line = line
        .lit(Style::Dim, " ")
        .text(style, &state)
        .text(Style::Dim, &format!(" · {} of output", size(job.output_bytes)));
    match &job.spool {
        Some(spool) => line.text(Style::Dim, &format!(" in {spool}")),
        None => line,
    }
}

fn what(job: &Job) -> String {
    let command = job.command.trim().lines().next().unwrap_or_default();
    if job.description.is_empty() { command.to_owned() } else { format!("{command}  # {}", job.description) }
}

fn state(job: &Job) -> (Style, String) {
    let ran = time::span(job.running_ms);
    let left = match job.processes {
        0 => String::new(),
        1 => ", 1 process goes on".to_owned(),
        count => format!(", {count} processes go on"),
    };
    match &job.outcome {
        None if job.quiet_ms >= QUIET_MS => (Style::Good, format!("running {ran}, quiet {}", time::span(job.quiet_ms))),
        None => (Style::Good, format!("running {ran}")),
        Some(outcome) => {
            let (style, word) = ending(outcome);
            (style, format!("{word} after {ran}{left}"))
        }
    }
}

fn ending(outcome: &Outcome) -> (Style, String) {
    match outcome {
        Outcome::Exited { status: 0 } => (Style::Plain, "exit 0".to_owned()),
        Outcome::Exited { status } => (Style::Bad, format!("exit {status}")),
        Outcome::TimedOut { limit_ms } => (Style::Bad, format!("ended at its deadline of {}", time::span(*limit_ms))),
        Outcome::Interrupted {} => (Style::Warn, "stopped".to_owned()),
        Outcome::Unknown {} => (Style::Warn, "lost with its shell".to_owned()),
        Outcome::Failed {} | Outcome::Denied {} | Outcome::NotRun {} => (Style::Bad, "not started".to_owned()),
        Outcome::Done {} | Outcome::Background { .. } => (Style::Plain, "done".to_owned()),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// The line about a job that was silent for long.
#[must_use]
pub fn silent(silent: &JobSilent) -> Line {
    notes::notice(&format!("job {} has printed nothing for {}", silent.job.short(), time::span(silent.silence_ms)))
}

/// The line about somebody who stops a job.
#[must_use]
pub fn stop_asked(asked: &JobStopAsked) -> Line {
    notes::remark(&format!("{} stops job {}", asked.by, asked.job.short()))
}

/// The line about somebody who moves the running command to the background.
#[must_use]
pub fn background_asked(asked: &BackgroundAsked) -> Line {
    notes::remark(&format!("{} moves the command to the background", asked.by))
}

/// The line about a job that begins.
#[must_use]
pub fn started(started: &JobStarted, columns: usize) -> Line {
    let verb = if started.moved { " goes on in the background: " } else { " runs in the background: " };
    let head = Line::new().lit(Style::Good, "◐ ").lit(Style::Plain, "job ").text(Style::Name, &started.job.short());
    head.lit(Style::Dim, verb).join(call::name(&started.command)).fit(columns)
}

/// The lines about a job that is over, with the end of what it printed.
#[must_use]
pub fn ended(ended: &JobEnded, columns: usize) -> Vec<Line> {
    let (style, word) = ending(&ended.outcome);
    let line = Line::new().lit(style, "◑ ").lit(Style::Plain, "job ").text(Style::Name, &ended.job.short());
    let line = line.lit(Style::Dim, " · ").text(style, &word);
    let mut lines = vec![line.lit(Style::Dim, " · ").text(Style::Dim, &time::span(ended.duration_ms)).fit(columns)];
    // The first line of what the model is told says the same.
    let output: Vec<&str> = ended.text.trim_end().lines().skip(1).collect();
    let cut = output.len().saturating_sub(TAIL_LINES);
    lines.extend(output[cut..].iter().map(|line| call::output_line(line, columns)));
    lines
}

/// The environment as `NAME=value` lines; a value's control characters are shown, not sent.
#[must_use]
pub fn environment(env: &Environment) -> Vec<Line> {
    let line = |name: &str, value: &str| {
        Line::new().text(Style::Name, name).lit(Style::Dim, "=").text(Style::Plain, &sanitize::line(value))
    };
    env.variables.iter().map(|variable| line(&variable.name, &variable.value)).collect()
}

/// Which variables were kept back.
#[must_use]
pub fn removed(env: &Environment) -> Option<Line> {
    (!env.removed.is_empty()).then(|| notes::remark(&format!("kept from the shell: {}", env.removed.join(", "))))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::ids::CallId;

    use super::*;

    fn job(outcome: Option<Outcome>) -> Job {
        Job {
            session: "00000000-0000-0000-0000-000000000001".parse().unwrap(),
            job: "00000000-0000-0000-0000-0000ab12cd34".parse().unwrap(),
            call: CallId::new(),
            command: "npm run dev\nmore".into(),
            description: "the server".into(),
            cwd: "/w".into(),
            started_at: Timestamp(0),
            running_ms: 65_000,
            deadline_ms: 3_600_000,
            quiet_ms: 12_000,
            output_bytes: 123_456,
            processes: 2,
            spool: Some("/s/x.out".into()),
            outcome,
        }
    }

    #[test]
    fn jobs_are_a_table_and_one_is_a_line() {
        let jobs = [job(None), job(Some(Outcome::Exited { status: 1 }))];
        let lines: String = list(&jobs, Timestamp(65_000), 200).iter().map(|line| line.paint(false) + "\n").collect();
        expect![[r#"
            JOB       SESSION   STATE                                      OUTPUT  STARTED    COMMAND
            ab12cd34  00000001  running 1 min 5 s, quiet 12 s              123 kB  1 min ago  npm run dev  # the server
            ab12cd34  00000001  exit 1 after 1 min 5 s, 2 processes go on  123 kB  1 min ago  npm run dev  # the server
        "#]]
        .assert_eq(&lines);
        expect!["· job ab12cd34 running 1 min 5 s, quiet 12 s · 123 kB of output in /s/x.out"]
            .assert_eq(&one(&jobs[0]).paint(false));
    }

    #[test]
    fn an_end_shows_how_and_the_last_words() {
        let ended = JobEnded {
            job: "00000000-0000-0000-0000-0000ab12cd34".parse().unwrap(),
            outcome: Outcome::TimedOut { limit_ms: 60_000 },
            duration_ms: 60_100,
            output_bytes: 5,
            text: "[agentd, not the user: …]\nlast\u{1b}[2J\n".into(),
        };
        let lines: String = super::ended(&ended, 80).iter().map(|line| line.paint(false) + "\n").collect();
        expect![[r#"
            ◑ job ab12cd34 · ended at its deadline of 1 min 0 s · 1 min 0 s
              last␛[2J
        "#]]
        .assert_eq(&lines);
    }
}
