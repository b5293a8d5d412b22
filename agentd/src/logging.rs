//! The daemon's own log: to journald when it runs under it, else to standard error. Fields, not sentences.
//!
//! In the journal a field has its own name in upper case (`agentd_session` is `AGENTD_SESSION`), so that `journalctl
//! AGENTD_SESSION=…` finds it. What a session does is said by `session::trail`, which lists its fields; whoever adds
//! more takes the same names. The text of prompts only where `log.prompts` is set, commands from `debug` on; replies,
//! results and keys never.
//!
//! Audit rows ([`crate::journal`]) are apart: they go to journald wherever one listens, with the command and without regard
//! to `log.level`, and never to standard error.

use std::os::linux::fs::MetadataExt;

use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::LogConfig;
use crate::journal::TARGET as AUDIT;

/// What entries are found by: `journalctl -t agentd`.
const IDENTIFIER: &str = "agentd";

/// Starts logging. Returns a sentence when the level is not understood (`info` is used then).
pub fn start(config: &LogConfig, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let wanted = env("AGENTD_LOG").unwrap_or_else(|| config.level.clone());
    let (filter, warning) = match EnvFilter::try_new(&wanted) {
        Ok(filter) => (filter, None),
        Err(error) => {
            (EnvFilter::new("info"), Some(format!("log.level `{wanted}` is not understood: {error}; using info")))
        }
    };
    let output = match env("JOURNAL_STREAM").filter(|stream| stderr_is(stream)).and_then(|_| journal()) {
        Some(layer) => layer.boxed(),
        // A line that cannot be written, on a full disk, must not be told of on the same descriptor: that panics.
        None => {
            let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
            lines.log_internal_errors(false).boxed()
        }
    };
    let audit = config.audit_journal.then(journal).flatten();
    // A second start in one process (tests) keeps the first.
    let _ = tracing_subscriber::registry()
        .with(output.with_filter(filter.and(filter_fn(|event| event.target() != AUDIT))))
        .with(audit.with_filter(filter_fn(|event| event.target() == AUDIT)))
        .try_init();
    warning
}

/// journald, if one listens.
fn journal() -> Option<tracing_journald::Layer> {
    let layer = tracing_journald::layer().ok()?;
    // No prefix: fields are looked for by the names that this daemon gives them.
    Some(layer.with_syslog_identifier(IDENTIFIER.into()).with_field_prefix(None).with_priority_mappings(priorities()))
}

/// `info` is the journal's `info`, not its `notice`: nothing there asks for anybody's attention.
fn priorities() -> PriorityMappings {
    PriorityMappings {
        error: Priority::Error,
        warn: Priority::Warning,
        info: Priority::Informational,
        debug: Priority::Debug,
        trace: Priority::Debug,
    }
}

/// Whether standard error is the journal's stream, named `DEVICE:INODE` by systemd (systemd.exec(5)): a redirected
/// daemon must not write past its redirection.
fn stderr_is(stream: &str) -> bool {
    std::fs::metadata("/proc/self/fd/2").is_ok_and(|meta| stream == format!("{}:{}", meta.st_dev(), meta.st_ino()))
}
