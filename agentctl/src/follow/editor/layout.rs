//! An input as rows of a terminal, and where its cursor stands. Pure.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::Editor;
use crate::render::{Line, Style, sanitize};

/// Bytes of a line that are looked at on each side of the cursor: far more than a screen shows.
const AROUND: usize = 4096;

/// The rows, and the cursor's row and column.
pub(super) struct Rows {
    pub(super) lines: Vec<Line>,
    pub(super) cursor: (usize, usize),
}

/// Lays an input out in so many columns and at most so many rows around the cursor.
pub(super) fn rows(editor: &Editor, columns: usize, rows_max: usize) -> Rows {
    let columns = columns.max(2);
    let rows_max = rows_max.max(1);
    let text = editor.text();
    let before = text[..editor.cursor].matches('\n').count();
    let first = before.saturating_sub(rows_max);
    let mut lines: Vec<Line> = Vec::new();
    let mut cursor = (0, 0);
    let mut offset = text.split('\n').take(first).map(|line| line.len() + 1).sum::<usize>();
    for logical in text.split('\n').skip(first).take(before - first + rows_max + 1) {
        let inside = editor.cursor.checked_sub(offset).filter(|at| *at <= logical.len());
        let (from, to) = bounds(logical, inside.unwrap_or(0));
        let mut row = String::new();
        let mut used = 0;
        for (at, piece) in logical[from..to].grapheme_indices(true) {
            let shown = sanitize::line(piece);
            let width = shown.width();
            // One column stays free for the cursor behind the last character.
            if used + width >= columns {
                lines.push(Line::new().text(Style::Plain, &std::mem::take(&mut row)));
                used = 0;
            }
            if inside == Some(from + at) {
                cursor = (lines.len(), used);
            }
            row.push_str(&shown);
            used += width;
        }
        if inside == Some(logical.len()) {
            cursor = (lines.len(), used);
        }
        lines.push(Line::new().text(Style::Plain, &row));
        offset += logical.len() + 1;
    }
    let start = (cursor.0 + 1).saturating_sub(rows_max).max(lines.len().min(cursor.0 + 1).saturating_sub(rows_max));
    let end = lines.len().min(start + rows_max);
    Rows { lines: lines[start..end].to_vec(), cursor: (cursor.0 - start, cursor.1) }
}

/// The part of a very long line that can be seen from the cursor.
fn bounds(line: &str, at: usize) -> (usize, usize) {
    let mut from = at.saturating_sub(AROUND);
    while !line.is_char_boundary(from) {
        from -= 1;
    }
    let mut to = (at + AROUND).min(line.len());
    while !line.is_char_boundary(to) {
        to += 1;
    }
    (from, to)
}
