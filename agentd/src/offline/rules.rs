//! `policy test`: rule files and the examples in them, with every problem and its place.

use std::io::Write;
use std::path::{Path, PathBuf};

use proto::policy::{TestProblem, Tested};

use super::{EXIT_WRONG, OfflineError, line, output, settings};
use crate::cli::Cli;
use crate::policy::{Layer, Rules, RulesError};
use crate::session::rules::{files, text_of};

pub(super) fn run(cli: &Cli, named: &[PathBuf]) -> Result<u8, OfflineError> {
    let (paths, _) = settings(cli)?;
    let here = std::env::current_dir()?;
    let in_force = files(&paths.config, Some(&here), None);
    let wanted: Vec<(Layer, PathBuf)> = if named.is_empty() {
        in_force.into_iter().filter(|(_, path)| path.exists()).collect()
    } else {
        named.iter().map(|path| (layer_of(path, &in_force), path.clone())).collect()
    };
    let mut out = output();
    let mut wrong = false;
    for (layer, path) in wanted {
        let tested = test(layer, &path);
        wrong |= !tested.problems.is_empty();
        line(&mut out, &tested)?;
    }
    out.flush()?;
    Ok(if wrong { EXIT_WRONG } else { 0 })
}

/// A file of a workspace is known by its place; any other is tested as the user's.
fn layer_of(path: &Path, in_force: &[(Layer, PathBuf)]) -> Layer {
    let same = |other: &Path| {
        path == other || matches!((path.canonicalize(), other.canonicalize()), (Ok(one), Ok(two)) if one == two)
    };
    let known = in_force.iter().find(|(_, other)| same(other)).map(|(layer, _)| *layer);
    let in_workspace = path.ends_with(crate::session::rules::WORKSPACE_FILE);
    known.unwrap_or(if in_workspace { Layer::Workspace } else { Layer::User })
}

fn test(layer: Layer, path: &Path) -> Tested {
    let tested = |rules, examples, problems| Tested {
        file: path.display().to_string(),
        layer: layer.name().to_owned(),
        rules,
        examples,
        problems,
    };
    let missing = |problem: String| tested(0, 0, vec![TestProblem { line: None, rule: None, problem }]);
    match text_of(path) {
        Ok(Some(text)) => {
            let examined = Rules::examine(layer, &text);
            let problems = examined.problems.iter().map(|error| problem(error, &text)).collect();
            tested(examined.rules, examined.examples, problems)
        }
        Ok(None) => missing("there is no such file".to_owned()),
        Err(reason) => missing(format!("it cannot be read: {reason}")),
    }
}

fn problem(error: &RulesError, text: &str) -> TestProblem {
    match error {
        RulesError::Syntax { source, .. } => {
            let before =
                source.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count());
            TestProblem { line: before.map(|lines| lines + 1), rule: None, problem: source.message().to_owned() }
        }
        RulesError::TooMany { .. } => TestProblem { line: None, rule: None, problem: error.to_string() },
        RulesError::Rule { line, number, problem, .. } => {
            TestProblem { line: Some(*line), rule: Some(*number), problem: problem.to_string() }
        }
    }
}

/// That a rule file can be used, before anything is decided by it.
pub(super) fn sound(file: &Path) -> Result<(), OfflineError> {
    let unusable = |reason: String| OfflineError::Rules { file: file.to_owned(), reason };
    let text = text_of(file).map_err(unusable)?.ok_or_else(|| unusable("there is no such file".to_owned()))?;
    Rules::parse(Layer::User, &text).map(drop).map_err(|error| unusable(error.to_string()))
}
