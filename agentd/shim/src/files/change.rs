//! What an edit changes, as whole lines with some lines around them. Pure.

use proto::shim::files::Change;

use super::text;

/// Lines shown on each side of a change: what the model is used to.
const CONTEXT_LINES: usize = 4;

/// The most text of each side that an answer carries. A change beyond it is told by its number of lines; a frame stays
/// small whatever is replaced.
const SIDE_BYTES_MAX: usize = 128 * 1024;

/// The most text of all changes of one answer, in bytes of JSON. Under the limit of a frame, and small enough to be written
/// down with every step of an undo.
pub(super) const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Makes a change fit an answer that has room for so many bytes: beyond it only the numbers of its lines are told.
pub(super) fn fit(mut change: Change, room: &mut usize) -> Change {
    // What serializes is a plain value; the worst case counts as too large.
    let bytes = serde_json::to_vec(&change).map_or(usize::MAX, |text| text.len());
    if let Some(left) = room.checked_sub(bytes) {
        *room = left;
        return change;
    }
    let count = |text: &str| text::lines(text.as_bytes()).count() as u64;
    let shared = u64::from(change.context_above) + u64::from(change.context_below);
    change.before_left_out += count(&change.before).saturating_sub(shared);
    change.after_left_out += count(&change.after).saturating_sub(shared);
    (change.context_above, change.context_below) = (0, 0);
    change.before.clear();
    change.after.clear();
    change
}

/// Compares two contents line by line from both ends; none = there is no file.
pub(super) fn between(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Change {
    let old: Vec<&[u8]> = text::lines(before.unwrap_or_default()).collect();
    let new: Vec<&[u8]> = text::lines(after.unwrap_or_default()).collect();
    let same_above = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[same_above..], &new[same_above..]);
    let same_below = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let above = same_above.min(CONTEXT_LINES);
    let first = same_above - above;
    let (old_end, new_end) = (old.len() - same_below, new.len() - same_below);
    let (before_text, before_left_out) = side(&old[first..old_end]);
    let (after_text, after_left_out) = side(&new[first..new_end]);
    // Lines below a cut would look like neighbours of what stands above it.
    let whole = before_left_out == 0 && after_left_out == 0;
    let below = if whole { same_below.min(CONTEXT_LINES) } else { 0 };
    let context = String::from_utf8_lossy(&old[old_end..old_end + below].concat()).into_owned();
    Change {
        path: path.to_owned(),
        created: before.is_none(),
        deleted: after.is_none(),
        first: first as u64 + 1,
        before: before_text + &context,
        after: after_text + &context,
        context_above: u32::try_from(above).unwrap_or(u32::MAX),
        context_below: u32::try_from(below).unwrap_or(u32::MAX),
        before_left_out,
        after_left_out,
        total_lines: new.len() as u64,
    }
}

/// The text of some lines as far as it fits, and how many lines do not.
fn side(lines: &[&[u8]]) -> (String, u64) {
    let mut bytes = 0;
    let fit = lines.iter().take_while(|line| {
        bytes += line.len();
        bytes <= SIDE_BYTES_MAX
    });
    let fit = fit.count();
    (String::from_utf8_lossy(&lines[..fit].concat()).into_owned(), (lines.len() - fit) as u64)
}
