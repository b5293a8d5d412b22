//! The place most similar to a text that does not stand in a file, and how the two differ. Pure.

use proto::shim::files::{Difference, NearMiss};

use super::text;

/// Finds the most similar place; none when nothing is similar enough to help.
pub(super) fn find(bytes: &[u8], wanted: &str) -> Option<NearMiss> {
    let file: Vec<String> = text::lines(text::body(bytes)).map(|line| text::shown(text::without_end(line))).collect();
    let wanted: Vec<String> = wanted.lines().map(str::to_owned).collect();
    if wanted.is_empty() {
        return None;
    }
    let fold = |line: &String| line.split_whitespace().collect::<String>();
    let folded: Vec<String> = file.iter().map(fold).collect();
    let target: Vec<String> = wanted.iter().map(fold).collect();
    let start = folded.windows(target.len()).position(|lines| lines == target)?;
    Some(NearMiss {
        first: start as u64 + 1,
        lines: file[start..start + wanted.len()].to_vec(),
        differences: vec![Difference::Blanks {}],
    })
}
