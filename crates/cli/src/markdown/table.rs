//! Lays out Markdown tables within the available width.

use anstyle::Style as Look;
use pulldown_cmark::Alignment;

use super::inline::{StyledText, paint};

/// Minimum useful column width; narrower tables are shown as lists.
const MIN_COLUMN_WIDTH: usize = 4;
const COLUMN_SEPARATOR: &str = " │ ";
const SEPARATOR_WIDTH: usize = 3;

/// A table that is collected row by row and then laid out.
#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    head: Vec<StyledText>,
    rows: Vec<Vec<StyledText>>,
    row: Vec<StyledText>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Table {
            alignments,
            ..Table::default()
        }
    }

    pub(super) fn push_cell(&mut self, mut cell: StyledText) {
        cell.flatten();
        self.row.push(cell);
    }

    pub(super) fn end_head(&mut self) {
        self.head = std::mem::take(&mut self.row);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Renders the table into lines of at most `room` columns.
    pub(super) fn render(&self, room: usize, color: bool) -> Vec<String> {
        match self.column_widths(room) {
            Some(columns) => self.render_grid(&columns, color),
            None => self.render_list(room, color),
        }
    }

    /// Returns the column widths, shrinking the widest first; `None` if the columns do not fit
    /// side by side.
    fn column_widths(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let room = room.checked_sub(count.saturating_sub(1) * SEPARATOR_WIDTH)?;
        let mut wanted = vec![1; count];
        for row in std::iter::once(&self.head).chain(&self.rows) {
            for (column, cell) in wanted.iter_mut().zip(row) {
                *column = cell.width().max(*column);
            }
        }
        let fits = |cap: usize| wanted.iter().map(|&column| column.min(cap)).sum::<usize>() <= room;
        let cap = (1..=room).rev().find(|&cap| fits(cap))?;
        let cut = wanted.iter().any(|&column| column > cap);
        if cut && cap < MIN_COLUMN_WIDTH {
            return None;
        }
        Some(wanted.into_iter().map(|column| column.min(cap)).collect())
    }

    fn render_grid(&self, columns: &[usize], color: bool) -> Vec<String> {
        let dim = Look::new().dimmed();
        let rule = columns
            .iter()
            .map(|&column| "─".repeat(column))
            .collect::<Vec<_>>()
            .join("─┼─");
        let mut under = String::new();
        paint(&rule, dim, color, &mut under);
        let mut lines = vec![self.render_grid_row(&self.head, columns, color), under];
        lines.extend(
            self.rows
                .iter()
                .map(|row| self.render_grid_row(row, columns, color)),
        );
        lines
    }

    fn render_grid_row(&self, row: &[StyledText], columns: &[usize], color: bool) -> String {
        let mut line = String::new();
        for (i, ((cell, &column), aligned)) in
            row.iter().zip(columns).zip(&self.alignments).enumerate()
        {
            if i > 0 {
                paint(COLUMN_SEPARATOR, Look::new().dimmed(), color, &mut line);
            }
            let mut shown = String::new();
            let spare = column.saturating_sub(cell.write_truncated(column, color, &mut shown));
            let before = match aligned {
                Alignment::None | Alignment::Left => 0,
                Alignment::Center => spare / 2,
                Alignment::Right => spare,
            };
            line.extend(std::iter::repeat_n(' ', before));
            line.push_str(&shown);
            if i + 1 < columns.len() {
                line.extend(std::iter::repeat_n(' ', spare - before));
            }
        }
        line
    }

    /// Renders every row as lines of `column: cell`, for a table too wide for a grid.
    fn render_list(&self, room: usize, color: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let blank: &[StyledText] = &[];
        // A table with a header only is still shown.
        let rows = self.rows.iter().map(Vec::as_slice);
        let rows: Vec<&[StyledText]> = if self.rows.is_empty() {
            vec![blank]
        } else {
            rows.collect()
        };
        for row in rows {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            for (i, head) in self.head.iter().enumerate() {
                let cell = row.get(i);
                if !self.rows.is_empty() && cell.is_none_or(StyledText::is_blank) {
                    continue;
                }
                let mut both = StyledText::default();
                both.append(head);
                both.push(": ", Look::new());
                if let Some(cell) = cell {
                    both.append(cell);
                }
                for part in both.wrap(room) {
                    let mut line = String::new();
                    both.write_range(part, color, &mut line);
                    lines.push(line);
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plain;

    #[test]
    fn columns_line_up() {
        assert_eq!(
            plain(
                "| Name | Cost | Note |\n|---|--:|:-:|\n| tea | 3 | ok |\n| 日本 | 12 | fine |\n",
                80
            ),
            "Name │ Cost │ Note\n─────┼──────┼─────\ntea  │    3 │  ok\n日本 │   12 │ fine\n"
        );
    }

    #[test]
    fn the_widest_column_gives_way() {
        assert_eq!(
            plain("|a|b|\n|-|-|\n|one|a rather long cell indeed|\n", 20),
            "a   │ b\n────┼───────────────\none │ a rather long…\n"
        );
    }

    #[test]
    fn a_table_with_too_many_columns_is_listed() {
        assert_eq!(
            plain(
                "|aaa|bbb|ccc|ddd|\n|-|-|-|-|\n|1111|2222|3333|4444|\n|5||7|8|\n",
                20
            ),
            "aaa: 1111\nbbb: 2222\nccc: 3333\nddd: 4444\n\naaa: 5\nccc: 7\nddd: 8\n"
        );
    }
}
