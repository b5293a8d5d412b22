//! The corpus's expectations of one answer and of the files after it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use agentd::tools::{Part, ToolResult};
use serde_json::Value;

use crate::fixture::{Ground, Standing, bytes};

/// One answer and what it took.
pub(crate) struct Answer {
    pub(crate) result: ToolResult,
    pub(crate) took: Duration,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        let parts = self.result.content.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Image { .. } => "",
        });
        parts.collect::<Vec<_>>().join("\n")
    }
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Checks what the model received.
pub(crate) fn answer(expect: &Value, answer: &Answer) -> Result<(), String> {
    let text = answer.text();
    if let Some(wanted) = expect["is_error"].as_bool().or(expect["is_error"].is_null().then_some(false))
        && wanted != answer.result.is_error
    {
        return Err(format!("is_error is {}: {}", !wanted, short(&text)));
    }
    if let Some(missing) = strings(&expect["output_contains"]).into_iter().find(|part| !text.contains(part)) {
        return Err(format!("the output lacks {missing:?}: {}", short(&text)));
    }
    if let Some(wrong) = strings(&expect["output_not_contains"]).into_iter().find(|part| text.contains(part)) {
        return Err(format!("the output has {wrong:?}"));
    }
    if let Some(pattern) = expect["output_regex"].as_str() {
        // The corpus's only pattern: some word for "there is more".
        let words = pattern.trim_start_matches("(?i)").split('|');
        let lower = text.to_lowercase();
        if !words.clone().any(|word| lower.contains(word)) {
            return Err(format!("the output does not match {pattern}"));
        }
    }
    if let Some(most) = expect["max_output_bytes"].as_u64()
        && text.len() as u64 > most
    {
        return Err(format!("the output has {} bytes", text.len()));
    }
    if let Some(most) = expect["max_wall_s"].as_u64()
        && answer.took > Duration::from_secs(most)
    {
        return Err(format!("it took {:?}", answer.took));
    }
    if let Some(wanted) = expect["numbered"].as_array() {
        let shown: Vec<(u64, &str)> = text.split('\n').filter_map(numbered).collect();
        let wanted: Vec<(u64, &str)> =
            wanted.iter().map(|line| (line[0].as_u64().expect("number"), line[1].as_str().expect("text"))).collect();
        if shown != wanted {
            return Err(format!("numbered lines are {shown:?}"));
        }
    }
    Ok(())
}

/// A line as the view numbers it.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let (number, text) = line.split_once('\t')?;
    Some((number.trim_start().parse().ok()?, text))
}

/// Checks that the named files are as expected and that nothing else changed.
pub(crate) fn files(
    ground: &Ground,
    expect: &Value,
    before: &BTreeMap<PathBuf, Standing>,
    after: &BTreeMap<PathBuf, Standing>,
) -> Result<(), String> {
    let none = serde_json::Map::new();
    let named = expect["files_after"].as_object().unwrap_or(&none);
    let paths: BTreeMap<PathBuf, &Value> = named.iter().map(|(name, value)| (ground.path(name), value)).collect();
    for (path, value) in &paths {
        let Some(standing) = after.get(path) else { return Err(format!("{} is missing", path.display())) };
        if let Some(target) = value["symlink"].as_str() {
            if standing.link.as_deref() != Some(ground.fill(target).as_ref()) {
                return Err(format!("{} is no link to {target}", path.display()));
            }
            continue;
        }
        let wanted = bytes(value).ok_or_else(|| format!("unknown expectation {value}"))?;
        if standing.content != wanted {
            return Err(format!("{} holds {}", path.display(), short(&String::from_utf8_lossy(&standing.content))));
        }
        let mode = value["mode"].as_str().map(|mode| u32::from_str_radix(mode, 8).expect("octal"));
        let kept = mode.or(before.get(path).map(|standing| standing.mode));
        if kept.is_some_and(|mode| mode != standing.mode) {
            return Err(format!("{} has mode {:o}", path.display(), standing.mode));
        }
    }
    for (path, standing) in before {
        if !paths.contains_key(path) && after.get(path) != Some(standing) {
            return Err(format!("{} was changed", path.display()));
        }
    }
    let way_there = |path: &PathBuf| paths.keys().any(|named| named.starts_with(path));
    match after.keys().find(|path| !before.contains_key(*path) && !way_there(path)) {
        Some(path) => Err(format!("{} was left behind", path.display())),
        None => Ok(()),
    }
}

pub(crate) fn short(text: &str) -> String {
    text.chars().take(400).collect()
}
