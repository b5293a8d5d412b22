//! Layers of configuration, lowest first: defaults, `/etc/agentd/agentd.toml`, the user's `agentd.toml`, environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toml::{Table, Value};

use super::Config;

/// The system's configuration file.
pub const SYSTEM_FILE: &str = "/etc/agentd/agentd.toml";

/// Variables that begin like an override and are something else.
const NOT_OVERRIDES: [&str; 12] = [
    "AGENTD_SOCKET",
    "AGENTD_BIN",
    "AGENTD_FAULT",
    "AGENTD_CONFIG",
    "AGENTD_SCENARIO",
    "AGENTD_PROVIDER",
    "AGENTD_LOG",
    "AGENTD_TEST_BIN_DIR",
    "AGENTD_SESSION",
    // What the client obeys, which hands its environment on to a daemon that it starts.
    "AGENTD_NOTIFY",
    "AGENTD_NOTIFY_WHEN",
    "AGENTD_SCREEN_READER",
];

/// Settings that only the files of user and system can set.
pub const FILES_ONLY: [&str; 1] = ["workspace.extra_roots"];

/// The settings and where each came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// Origin of each setting that is not a default: `a.b` → file or variable.
    pub origins: BTreeMap<String, String>,
    /// Files that were read, lowest precedence first.
    pub files: Vec<PathBuf>,
    /// Things a person should know, each one sentence.
    pub warnings: Vec<String>,
}

/// Why the configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file is there and cannot be read.
    #[error("cannot read the configuration {path}: {source}; mend its permissions or move it away")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file's text is not what it should be.
    #[error("the configuration {path} is wrong: {reason}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What and where.
        reason: String,
    },
    /// A variable's value is not what it should be.
    #[error("the environment variable {name} is wrong: {reason}")]
    Variable {
        /// The variable.
        name: String,
        /// What about it.
        reason: String,
    },
}

/// Reads all layers.
///
/// # Errors
/// The first layer that cannot be used, with the place.
pub fn load(user_file: &Path, explicit: bool, env: &[(String, String)]) -> Result<Loaded, ConfigError> {
    let defaults = table_of(&Config::default());
    let mut merged = defaults.clone();
    let mut loaded =
        Loaded { config: Config::default(), origins: BTreeMap::new(), files: Vec::new(), warnings: Vec::new() };
    for (path, must_exist) in [(Path::new(SYSTEM_FILE), false), (user_file, explicit)] {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => continue,
            Err(source) => return Err(ConfigError::Unreadable { path: path.to_owned(), source }),
        };
        let wrong = |reason: String| ConfigError::Wrong { path: path.to_owned(), reason };
        // Parsed strictly alone first, so that a mistake is reported with its own file, line and key.
        let _: Config = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        let table: Table = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        overlay(&mut merged, &table, "", &path.display().to_string(), &mut loaded.origins);
        loaded.files.push(path.to_owned());
    }
    apply_environment(&mut merged, &defaults, env, &mut loaded)?;
    loaded.config = Value::Table(merged).try_into().map_err(|error: toml::de::Error| ConfigError::Variable {
        name: "AGENTD_…".into(),
        reason: error.to_string(),
    })?;
    drop_relative_roots(&mut loaded);
    check_effort(&mut loaded);
    Ok(loaded)
}

/// A word that is no effort would be the model's default without a sign.
fn check_effort(loaded: &mut Loaded) {
    let word = &loaded.config.model.effort;
    if !word.is_empty() && crate::effort::Effort::named(word).is_none() {
        loaded
            .warnings
            .push(format!("model.effort: `{word}` is none of low, medium, high, xhigh, max; the default is used"));
    }
}

/// A relative root would depend on where the daemon was started.
fn drop_relative_roots(loaded: &mut Loaded) {
    let warnings = &mut loaded.warnings;
    loaded.config.workspace.extra_roots.retain(|root| {
        let absolute = Path::new(root).is_absolute();
        if !absolute {
            warnings.push(format!("workspace.extra_roots: `{root}` is not an absolute path and is ignored"));
        }
        absolute
    });
}

/// `a.b` as the name of its variable.
#[must_use]
pub fn variable_of(key: &str) -> String {
    format!("AGENTD_{}", key.replace('.', "_").to_uppercase())
}

/// Every setting as `a.b` and its value, in order.
#[must_use]
pub fn settings(config: &Config) -> Vec<(String, String)> {
    let mut out = Vec::new();
    flatten(&table_of(config), "", &mut out);
    out.into_iter().map(|(key, value)| (key, value.to_string())).collect()
}

fn table_of(config: &Config) -> Table {
    // The tree holds only strings, numbers and lists of strings: it always serialises.
    Table::try_from(config).unwrap_or_default()
}

fn flatten(table: &Table, prefix: &str, out: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => flatten(inner, &name, out),
            other => out.push((name, other.clone())),
        }
    }
}

fn overlay(base: &mut Table, top: &Table, prefix: &str, origin: &str, origins: &mut BTreeMap<String, String>) {
    for (key, value) in top {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        if let (Some(Value::Table(inner)), Value::Table(over)) = (base.get_mut(key), value) {
            overlay(inner, over, &name, origin, origins);
        } else {
            origins.insert(name, origin.to_owned());
            base.insert(key.clone(), value.clone());
        }
    }
}

fn apply_environment(
    merged: &mut Table,
    defaults: &Table,
    env: &[(String, String)],
    loaded: &mut Loaded,
) -> Result<(), ConfigError> {
    let mut keys = Vec::new();
    flatten(defaults, "", &mut keys);
    for (name, text) in env.iter().filter(|(name, _)| name.starts_with("AGENTD_")) {
        if NOT_OVERRIDES.contains(&name.as_str()) {
            continue;
        }
        let Some((key, default)) = keys.iter().find(|(key, _)| variable_of(key) == *name) else {
            loaded.warnings.push(format!("the environment variable {name} names no setting and is ignored"));
            continue;
        };
        if FILES_ONLY.contains(&key.as_str()) {
            loaded.warnings.push(format!("{key} can be set in a configuration file only; {name} is ignored"));
            continue;
        }
        let value = value_like(default, text).map_err(|reason| ConfigError::Variable { name: name.clone(), reason })?;
        let (section, leaf) = key.split_once('.').unwrap_or(("", key));
        if let Some(Value::Table(inner)) = merged.get_mut(section) {
            inner.insert(leaf.to_owned(), value);
            // Checked key by key, so that the error names this variable.
            Value::Table(merged.clone())
                .try_into::<Config>()
                .map_err(|error| ConfigError::Variable { name: name.clone(), reason: error.message().to_owned() })?;
            loaded.origins.insert(key.clone(), name.clone());
        }
    }
    Ok(())
}

/// Reads a variable's text as the kind of value its default is; lists are separated by commas.
fn value_like(default: &Value, text: &str) -> Result<Value, String> {
    match default {
        Value::Integer(_) => {
            text.trim().parse().map(Value::Integer).map_err(|_| format!("`{text}` is not a whole number"))
        }
        Value::Boolean(_) => {
            text.trim().parse().map(Value::Boolean).map_err(|_| format!("`{text}` is not true or false"))
        }
        Value::Float(_) => text.trim().parse().map(Value::Float).map_err(|_| format!("`{text}` is not a number")),
        Value::Array(_) => Ok(Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Value::String(item.to_owned()))
                .collect(),
        )),
        Value::String(_) | Value::Datetime(_) | Value::Table(_) => Ok(Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, env: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agentd.toml");
        std::fs::write(&file, text).unwrap();
        let env: Vec<_> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        load(&file, true, &env)
    }

    #[test]
    fn what_the_client_obeys_is_no_mistake_in_a_daemon_that_it_starts() {
        for name in ["AGENTD_NOTIFY", "AGENTD_NOTIFY_WHEN", "AGENTD_SCREEN_READER", "AGENTD_SOCKET"] {
            assert_eq!(with("", &[(name, "off")]).unwrap().warnings, [] as [&str; 0], "{name}");
        }
        assert_eq!(
            with("", &[("AGENTD_NOTIFY_DESKTOP", "off")]).unwrap().config.notify.desktop,
            super::super::Desktop::Off
        );
    }

    #[test]
    fn the_environment_wins_over_the_file_and_says_so() {
        let loaded =
            with("[shell]\ndeadline = \"5s\"\n[turn]\nrequests_max = 3", &[("AGENTD_SHELL_DEADLINE", "2s")]).unwrap();
        assert_eq!(loaded.config.shell.deadline.ms(), 2_000);
        assert_eq!(loaded.config.turn.requests_max, 3);
        assert_eq!(loaded.origins["shell.deadline"], "AGENTD_SHELL_DEADLINE");
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it_and_its_line() {
        let error = with("[shell]\ndedline = \"5s\"", &[]).unwrap_err().to_string();
        assert!(error.contains("dedline") && error.contains("line 2"), "{error}");
    }

    #[test]
    fn a_wrong_variable_is_an_error_that_names_it() {
        let error = with("", &[("AGENTD_SHELL_DEADLINE", "soon")]).unwrap_err().to_string();
        assert!(error.contains("AGENTD_SHELL_DEADLINE") && error.contains("soon"), "{error}");
        let error = with("", &[("AGENTD_TURN_REQUESTS_MAX", "many")]).unwrap_err().to_string();
        assert!(error.contains("AGENTD_TURN_REQUESTS_MAX"), "{error}");
    }

    #[test]
    fn every_setting_has_an_override_that_takes_effect() {
        let settings = settings(&Config::default());
        for (key, value) in settings.into_iter().filter(|(key, _)| !FILES_ONLY.contains(&key.as_str())) {
            let text = value.trim_matches('"').trim_matches(['[', ']']).to_owned();
            let loaded = with("", &[(&variable_of(&key), &text)]).unwrap();
            assert_eq!(loaded.origins.get(&key), Some(&variable_of(&key)), "{key}");
            assert!(loaded.warnings.is_empty(), "{key}: {:?}", loaded.warnings);
        }
    }

    #[test]
    fn extra_roots_come_from_files_alone_and_are_absolute() {
        let variable = ("AGENTD_WORKSPACE_EXTRA_ROOTS", "/root");
        let loaded = with("[workspace]\nextra_roots = [\"/srv/notes\", \"~/x\"]", &[variable]).unwrap();
        assert_eq!(loaded.config.workspace.extra_roots, ["/srv/notes"]);
        assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
        assert!(!loaded.origins["workspace.extra_roots"].starts_with("AGENTD"));
    }

    #[test]
    fn a_variable_that_names_no_setting_is_a_warning() {
        let loaded = with("", &[("AGENTD_SHELL_DEDLINE", "1s")]).unwrap();
        assert_eq!(loaded.warnings.len(), 1);
    }
}
