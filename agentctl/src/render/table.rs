//! Aligned columns.

use super::{Line, Style};

/// A cell: how it looks and its text, of any origin.
pub type Cell = (Style, String);

/// Lines with aligned columns, two spaces apart. The last column is cut to fit the terminal, the others never.
#[must_use]
pub fn table(header: &[&'static str], rows: &[Vec<Cell>], columns: usize) -> Vec<Line> {
    let header: Vec<Cell> = header.iter().map(|&name| (Style::Dim, name.to_owned())).collect();
    let count = header.len();
    let all: Vec<Vec<Line>> = std::iter::once(&header).chain(rows).map(|row| row.iter().map(cell).collect()).collect();
    let widths: Vec<usize> =
        (0..count).map(|at| all.iter().filter_map(|row| row.get(at)).map(Line::width).max().unwrap_or(0)).collect();
    all.into_iter()
        .map(|row| {
            let mut line = Line::new();
            for (at, text) in row.into_iter().enumerate() {
                let gap = if at + 1 == count { 0 } else { widths[at].saturating_sub(text.width()) + 2 };
                line = line.join(text).text(Style::Plain, &" ".repeat(gap));
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
}
