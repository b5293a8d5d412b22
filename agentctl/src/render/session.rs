//! Sessions and the daemon's state as tables and blocks.

use std::path::Path;

use jiff::tz::TimeZone;
use proto::approval::{Approval, Choice, Subject};
use proto::handshake::Role;
use proto::ids::Timestamp;
use proto::mode::Mode;
use proto::response::{Attendee, DaemonStatus, Hit, SessionInfo, SessionState, Speaker};

use super::table::{Cell, table};
use super::{Line, Style, approval, notes, time};

/// What a session is doing, in one word.
#[must_use]
pub fn state(info: &SessionInfo) -> (Style, &'static str) {
    match info.state {
        _ if info.archived => (Style::Dim, "archived"),
        SessionState::Idle => (Style::Dim, "idle"),
        SessionState::Thinking => (Style::Good, "thinking"),
        SessionState::Running => (Style::Good, "running"),
        SessionState::Asking => (Style::Warn, "asks you"),
        SessionState::Waiting => (Style::Warn, "waits"),
        SessionState::Parked => (Style::Warn, "parked"),
        SessionState::Stopping => (Style::Warn, "stopping"),
    }
}

/// How a mode stands out.
#[must_use]
pub fn mode_style(mode: Mode) -> Style {
    match mode {
        Mode::Ask => Style::Dim,
        Mode::AcceptEdits => Style::Warn,
        Mode::Plan => Style::Good,
        Mode::Bypass => Style::Bad,
    }
}

/// The list of sessions.
#[must_use]
pub fn list(sessions: &[SessionInfo], home: &str, now: Timestamp, columns: usize) -> Vec<Line> {
    let rows: Vec<Vec<Cell>> = sessions
        .iter()
        .map(|info| {
            let (style, word) = state(info);
            // A session that rests while a server of its runs does not look as if nothing did.
            let word = match info.jobs {
                0 => word.to_owned(),
                1 => format!("{word}, 1 job"),
                jobs => format!("{word}, {jobs} jobs"),
            };
            vec![
                (Style::Name, info.id.short()),
                (Style::Bold, info.name.clone().unwrap_or_default()),
                (style, word),
                (mode_style(info.mode), info.mode.name().to_owned()),
                (Style::Dim, time::ago(info.active_at, now)),
                (Style::Plain, shorten(&info.cwd, home)),
                (Style::Plain, info.title.clone()),
            ]
        })
        .collect();
    table(&["SESSION", "NAME", "STATE", "MODE", "ACTIVE", "DIRECTORY", "TITLE"], &rows, columns)
}

/// What a search found.
#[must_use]
pub fn hits(hits: &[Hit], now: Timestamp, columns: usize) -> Vec<Line> {
    let rows: Vec<Vec<Cell>> = hits
        .iter()
        .map(|hit| {
            let speaker = match hit.speaker {
                Speaker::User => "prompt",
                Speaker::Model => "model",
                Speaker::Tool => "tool",
            };
            vec![
                (Style::Name, hit.session.short()),
                (Style::Bold, hit.name.clone().unwrap_or_default()),
                (Style::Dim, hit.seq.to_string()),
                (Style::Dim, time::ago(hit.at, now)),
                (Style::Dim, speaker.to_owned()),
                (Style::Plain, hit.excerpt.clone()),
            ]
        })
        .collect();
    table(&["SESSION", "NAME", "ROW", "WHEN", "IN", "TEXT"], &rows, columns)
}

/// `~` for the home directory.
fn shorten(path: &str, home: &str) -> String {
    match Path::new(path).strip_prefix(home) {
        Ok(rest) if !home.is_empty() && home != "/" => {
            if rest.as_os_str().is_empty() {
                "~".to_owned()
            } else {
                format!("~/{}", rest.display())
            }
        }
        Ok(_) | Err(_) => path.to_owned(),
    }
}

/// Names and values below each other. A value of several words that is wider than the terminal goes on below itself; a
/// path stays whole, so that it can be copied.
#[must_use]
pub fn facts(rows: &[(&'static str, String)]) -> Vec<Line> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    rows.iter()
        .map(|(name, value)| {
            let gap = " ".repeat(width - name.len());
            let line = Line::new().lit(Style::Dim, name).text(Style::Plain, &gap).text(Style::Plain, value);
            if value.contains(' ') { line.prose_below(width) } else { line }
        })
        .collect()
}

/// `vim on pts/3 (watching)`.
#[must_use]
pub fn attendee(client: &Attendee) -> String {
    let place = if client.terminal.is_empty() { String::new() } else { format!(" on {}", client.terminal) };
    let role = match client.role {
        Role::Driver => "",
        Role::Approver => " (may answer)",
        Role::Observer => " (watching)",
    };
    format!("{}{place}{role}", client.program)
}

/// One session's state.
#[must_use]
pub fn show(info: &SessionInfo, now: Timestamp, zone: &TimeZone) -> Vec<Line> {
    let mut rows = vec![
        ("session", info.id.to_string()),
        ("name", info.name.clone().unwrap_or_else(|| "–".to_owned())),
        ("title", info.title.clone()),
        ("directory", info.cwd.clone()),
        (
            "model",
            format!(
                "{} ({}), effort {}, at most {} tokens a reply",
                info.model,
                info.provider,
                info.effort.as_deref().unwrap_or("default"),
                info.max_tokens
            ),
        ),
        (
            "state",
            match info.next_try {
                Some(at) => format!("{}, next try {}", state(info).1, time::clock(at, zone)),
                None => state(info).1.to_owned(),
            },
        ),
        ("mode", format!("{}: {}", info.mode, info.mode.meaning())),
        ("created", format!("{} ({})", time::date(info.created_at, zone), time::ago(info.created_at, now))),
        ("active", format!("{} ({})", time::date(info.active_at, zone), time::ago(info.active_at, now))),
        ("rows", info.head.to_string()),
        ("queued", info.queued.len().to_string()),
        ("window", window(info)),
        ("used", super::notes::usage(&info.usage)),
    ];
    let clients: Vec<String> = info.clients.iter().map(attendee).collect();
    rows.push(("attached", if clients.is_empty() { "nobody".to_owned() } else { clients.join(", ") }));
    rows.push(("shell", info.shim_pid.map_or_else(|| "not running".to_owned(), |pid| format!("process {pid}"))));
    if info.jobs > 0 {
        rows.push(("jobs", format!("{} running; agentctl jobs {}", info.jobs, info.id.short())));
    }
    let mut lines = facts(&rows);
    for asked in &info.approvals {
        lines.push(Line::new());
        lines.extend(approval_block(asked));
    }
    lines
}

/// What changes of a session while one looks.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// How much runs without a question.
    pub mode: Mode,
    /// The workspace's branch.
    pub branch: Option<&'a str>,
    /// What the last request read.
    pub context_tokens: u64,
    /// What the session cost, in billionths of a dollar.
    pub cost_nanousd: u64,
    /// What this client may do.
    pub role: Role,
}

/// The line below an input: session, model, what its context holds, what it cost, branch, who else is there; the last ones go
/// first where the terminal is narrow.
#[must_use]
pub fn status_line(info: &SessionInfo, now: &Now<'_>, columns: usize) -> Line {
    let mut parts = vec![info.name.clone().unwrap_or_else(|| info.id.short()), info.model.clone()];
    if now.role == Role::Observer {
        parts.push("read only".to_owned());
    }
    if now.context_tokens > 0 {
        // How full it is says more in less room, where it is known.
        parts.push(match now.context_tokens.saturating_mul(100).checked_div(info.context_window) {
            Some(percent) => format!("context {percent} %"),
            None => format!("{} tokens of context", notes::thousands(now.context_tokens)),
        });
    }
    if now.cost_nanousd > 0 {
        parts.push(notes::money(now.cost_nanousd));
    }
    parts.extend(now.branch.map(str::to_owned));
    if info.clients.len() > 1 {
        parts.push(format!("{} attached", info.clients.len()));
    }
    // The mode stands first: it is never what a narrow terminal leaves out.
    let head = Line::new().lit(Style::Dim, "mode ").text(mode_style(now.mode), now.mode.name());
    let room = columns.saturating_sub(head.width());
    let mut text = String::new();
    for part in parts {
        let longer = format!("{text} · {part}");
        if !text.is_empty() && Line::new().text(Style::Dim, &longer).width() > room {
            break;
        }
        text = longer;
    }
    head.text(Style::Dim, &text).fit(columns)
}

/// How full the model's window is.
fn window(info: &SessionInfo) -> String {
    let tokens = super::notes::thousands(info.context_tokens);
    match (info.context_tokens, info.context_window) {
        (0, _) => "not known yet".to_owned(),
        (_, 0) => format!("{tokens} tokens"),
        (used, all) => {
            let percent = used.saturating_mul(100) / all;
            format!("{tokens} of {} tokens ({percent} %)", super::notes::thousands(all))
        }
    }
}

/// An open approval with the commands that answer it.
#[must_use]
pub fn approval_block(asked: &Approval) -> Vec<Line> {
    let mut lines = approval::question(asked);
    let id = asked.id.short();
    let mut ways = vec![format!("agentctl approve {id}")];
    ways.extend(asked.choices.iter().filter_map(|choice| match choice {
        Choice::Session => Some("--session".to_owned()),
        Choice::Always => Some("--always".to_owned()),
        Choice::Edit => Some("--edit CMD".to_owned()),
        Choice::Once | Choice::Deny => None,
    }));
    let ways = ways.join(" | ");
    lines.push(Line::new().lit(Style::Plain, "  ").text(Style::Dim, &format!("{ways} · agentctl deny {id}")));
    lines
}

/// One line about an approval.
#[must_use]
pub fn approval_title(asked: &Approval) -> String {
    match &asked.subject {
        Subject::Command(command) => format!("$ {}", command.command),
        Subject::Edit(edit) => format!("edit {}", edit.diff.path),
        Subject::Other(other) => other.title.clone(),
    }
}

/// The daemon's state.
#[must_use]
pub fn status(status: &DaemonStatus, now: Timestamp) -> Vec<Line> {
    let mut lines = facts(&[
        (
            "agentd",
            format!("{} (process {}, started {})", status.release, status.pid, time::ago(status.started_at, now)),
        ),
        ("socket", status.socket.clone()),
        ("database", status.database.clone()),
        ("config", if status.config_files.is_empty() { "defaults".into() } else { status.config_files.join(", ") }),
        ("model", format!("{} at {}", status.model, status.base_url)),
        ("key", status.key_source.clone()),
        ("accounting", status.accounting.clone()),
        ("sessions", format!("{} ({} at work, {} in the mode bypass)", status.sessions, status.working, status.bypass)),
        ("approvals", status.approvals.to_string()),
        ("clients", status.clients.to_string()),
    ]);
    lines.extend(status.warnings.iter().map(|warning| super::notes::notice(warning)));
    lines
}
