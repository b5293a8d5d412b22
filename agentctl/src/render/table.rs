//! Aligned columns.

use super::{Line, Style};

/// A cell: how it looks and its text, of any origin.
pub type Cell = (Style, String);

/// At which side of its column a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Lines with aligned columns, two spaces apart, each column's texts at its left side. The last column is cut to fit the
/// terminal, the others never.
#[must_use]
pub fn table(header: &[&'static str], rows: &[Vec<Cell>], columns: usize) -> Vec<Line> {
    let header: Vec<(Side, &'static str)> = header.iter().map(|name| (Side::Left, *name)).collect();
    sided(&header, rows, columns)
}

/// As [`table`], with a side for each column.
#[must_use]
pub fn sided(header: &[(Side, &'static str)], rows: &[Vec<Cell>], columns: usize) -> Vec<Line> {
    let names: Vec<Cell> = header.iter().map(|&(_, name)| (Style::Dim, name.to_owned())).collect();
    let all: Vec<Vec<Line>> = std::iter::once(&names).chain(rows).map(|row| row.iter().map(cell).collect()).collect();
    let width = |at: usize| all.iter().filter_map(|row| row.get(at)).map(Line::width).max().unwrap_or(0);
    let columns_of: Vec<(Side, usize)> = header.iter().enumerate().map(|(at, (side, _))| (*side, width(at))).collect();
    all.into_iter()
        .map(|row| {
            let mut line = Line::new();
            let last = row.len().saturating_sub(1);
            for (at, (text, (side, width))) in row.into_iter().zip(&columns_of).enumerate() {
                let free = " ".repeat(width.saturating_sub(text.width()));
                line = match side {
                    Side::Left if at == last => line.join(text),
                    Side::Left => line.join(text).text(Style::Plain, &free),
                    Side::Right => line.text(Style::Plain, &free).join(text),
                };
                if at < last {
                    line = line.lit(Style::Plain, "  ");
                }
            }
            line.fit(columns)
        })
        .collect()
}

fn cell((style, text): &Cell) -> Line {
    Line::new().text(*style, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_also_with_wide_characters() {
        let cell = |text: &str| (Style::Plain, text.to_owned());
        let rows = vec![vec![cell("日本"), cell("x")], vec![cell("a"), cell("long text here")]];
        let lines: Vec<String> = table(&["NAME", "TITLE"], &rows, 14).iter().map(|line| line.paint(false)).collect();
        assert_eq!(lines, ["NAME  TITLE", "日本  x", "a     long te…"]);
    }

    #[test]
    fn numbers_stand_at_the_right_side() {
        let cell = |text: &str| (Style::Plain, text.to_owned());
        let rows = vec![vec![cell("a"), cell("7"), cell("x")], vec![cell("b"), cell("1,200"), cell("y")]];
        let header = [(Side::Left, "DAY"), (Side::Right, "READ"), (Side::Left, "MODEL")];
        let lines: Vec<String> = sided(&header, &rows, 40).iter().map(|line| line.paint(false)).collect();
        assert_eq!(lines, ["DAY   READ  MODEL", "a        7  x", "b    1,200  y"]);
    }
}
