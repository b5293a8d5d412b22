//! The daemon's own log: to journald when it runs under it, else to standard error. Fields, not sentences; no text of
//! prompts, replies or commands.

use std::os::linux::fs::MetadataExt;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Starts logging. Returns a sentence when the level is not understood (`info` is used then).
pub fn start(level: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let wanted = env("AGENTD_LOG").unwrap_or_else(|| level.to_owned());
    let (filter, warning) = match EnvFilter::try_new(&wanted) {
        Ok(filter) => (filter, None),
        Err(error) => {
            (EnvFilter::new("info"), Some(format!("log.level `{wanted}` is not understood: {error}; using info")))
        }
    };
    let journal = env("JOURNAL_STREAM").filter(|stream| stderr_is(stream)).and_then(|_| tracing_journald::layer().ok());
    let output = match journal {
        Some(layer) => layer.with_syslog_identifier("agentd".into()).boxed(),
        None => tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).boxed(),
    };
    // A second start in one process (tests) keeps the first.
    let _ = tracing_subscriber::registry().with(filter).with(output).try_init();
    warning
}

/// Whether standard error is the journal's stream, named `DEVICE:INODE` by systemd (systemd.exec(5)): a redirected
/// daemon must not write past its redirection.
fn stderr_is(stream: &str) -> bool {
    std::fs::metadata("/proc/self/fd/2").is_ok_and(|meta| stream == format!("{}:{}", meta.st_dev(), meta.st_ino()))
}
