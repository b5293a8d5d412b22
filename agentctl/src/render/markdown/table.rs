//! Tables: columns aligned, cells broken where the terminal is narrow; where it is too narrow for columns, one value a
//! line.

use pulldown_cmark::Alignment;

use crate::render::{Line, Style};

/// Between two columns.
const GAP: usize = 3;

/// Fewest columns a cell is broken at; with less there is no table.
const CELL_MIN: usize = 6;

/// The rows as lines; the first one is the head.
pub(super) fn table(rows: &[Vec<Line>], alignments: &[Alignment], columns: usize) -> Vec<Line> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    if count == 0 {
        return Vec::new();
    }
    let natural: Vec<usize> =
        (0..count).map(|at| rows.iter().filter_map(|row| row.get(at)).map(Line::width).max().unwrap_or(0)).collect();
    let Some(widths) = fit(natural, columns.saturating_sub(GAP * (count - 1))) else { return records(rows, columns) };
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        lines.extend(table_row(row, &widths, alignments));
        if at == 0 {
            let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
            lines.push(Line::new().text(Style::Dim, &rule.join("─┼─")));
        }
    }
    lines
}

/// The widths in which the columns fit, the widest made narrower first.
fn fit(mut widths: Vec<usize>, columns: usize) -> Option<Vec<usize>> {
    while widths.iter().sum::<usize>() > columns {
        let widest = widths.iter_mut().max_by_key(|width| **width)?;
        if *widest <= CELL_MIN {
            return None;
        }
        *widest -= 1;
    }
    Some(widths)
}

fn table_row(row: &[Line], widths: &[usize], alignments: &[Alignment]) -> Vec<Line> {
    let cells: Vec<Vec<Line>> = widths
        .iter()
        .enumerate()
        .map(|(at, &width)| row.get(at).cloned().unwrap_or_default().wrap(width.max(1)))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    (0..height)
        .map(|line| {
            let mut whole = Line::new();
            for (at, (cell, &width)) in cells.iter().zip(widths).enumerate() {
                if at > 0 {
                    whole = whole.lit(Style::Dim, " │ ");
                }
                let text = cell.get(line).cloned().unwrap_or_default();
                let free = width.saturating_sub(text.width());
                let left = match alignments.get(at) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    Some(Alignment::Left | Alignment::None) | None => 0,
                };
                let last = at + 1 == widths.len();
                let right = if last { 0 } else { free - left };
                whole = whole.text(Style::Plain, &" ".repeat(left)).join(text).text(Style::Plain, &" ".repeat(right));
            }
            whole
        })
        .collect()
}

/// Each row as `head: value` lines.
fn records(rows: &[Vec<Line>], columns: usize) -> Vec<Line> {
    let Some((head, rows)) = rows.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            lines.push(Line::new());
        }
        for (name, value) in head.iter().zip(row) {
            let line = name.clone().lit(Style::Dim, ": ").join(value.clone());
            lines.extend(line.wrap(columns));
        }
    }
    lines
}
