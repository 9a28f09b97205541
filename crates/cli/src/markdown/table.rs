//! Tables: columns that line up, in the width there is.

use anstyle::Style as Look;
use pulldown_cmark::Alignment;

use super::inline::{Inline, paint};

/// Columns narrower than this tell nothing; the rows are listed instead.
const NARROWEST: usize = 4;
const RULE: &str = " │ ";
const RULE_COLUMNS: usize = 3;

/// A table being gathered, then laid out.
#[derive(Debug, Default)]
pub(super) struct Table {
    aligned: Vec<Alignment>,
    head: Vec<Inline>,
    rows: Vec<Vec<Inline>>,
    row: Vec<Inline>,
}

impl Table {
    pub(super) fn new(aligned: Vec<Alignment>) -> Self {
        Table {
            aligned,
            ..Table::default()
        }
    }

    pub(super) fn cell(&mut self, mut cell: Inline) {
        cell.flatten();
        self.row.push(cell);
    }

    pub(super) fn end_head(&mut self) {
        self.head = std::mem::take(&mut self.row);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// The lines of the table, none wider than `room`.
    pub(super) fn lines(&self, room: usize, color: bool) -> Vec<String> {
        match self.columns(room) {
            Some(columns) => self.grid(&columns, color),
            None => self.list(room, color),
        }
    }

    /// How wide each column is, the widest giving way first; none if they
    /// cannot all be shown side by side.
    fn columns(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.aligned.len();
        let room = room.checked_sub(count.saturating_sub(1) * RULE_COLUMNS)?;
        let mut wanted = vec![1; count];
        for row in std::iter::once(&self.head).chain(&self.rows) {
            for (column, cell) in wanted.iter_mut().zip(row) {
                *column = cell.width().max(*column);
            }
        }
        let fits = |cap: usize| wanted.iter().map(|&column| column.min(cap)).sum::<usize>() <= room;
        let cap = (1..=room).rev().find(|&cap| fits(cap))?;
        let cut = wanted.iter().any(|&column| column > cap);
        if cut && cap < NARROWEST {
            return None;
        }
        Some(wanted.into_iter().map(|column| column.min(cap)).collect())
    }

    fn grid(&self, columns: &[usize], color: bool) -> Vec<String> {
        let dim = Look::new().dimmed();
        let rule = columns
            .iter()
            .map(|&column| "─".repeat(column))
            .collect::<Vec<_>>()
            .join("─┼─");
        let mut under = String::new();
        paint(&rule, dim, color, &mut under);
        let mut lines = vec![self.grid_row(&self.head, columns, color), under];
        lines.extend(
            self.rows
                .iter()
                .map(|row| self.grid_row(row, columns, color)),
        );
        lines
    }

    fn grid_row(&self, row: &[Inline], columns: &[usize], color: bool) -> String {
        let mut line = String::new();
        for (i, ((cell, &column), aligned)) in
            row.iter().zip(columns).zip(&self.aligned).enumerate()
        {
            if i > 0 {
                paint(RULE, Look::new().dimmed(), color, &mut line);
            }
            let mut shown = String::new();
            let spare = column.saturating_sub(cell.write_cut(column, color, &mut shown));
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

    /// Every row as lines of `column: cell`, for a table too wide for a grid.
    fn list(&self, room: usize, color: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let blank: &[Inline] = &[];
        // A table of nothing but a head still has something to say.
        let rows = self.rows.iter().map(Vec::as_slice);
        let rows: Vec<&[Inline]> = if self.rows.is_empty() {
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
                if !self.rows.is_empty() && cell.is_none_or(Inline::is_blank) {
                    continue;
                }
                let mut both = Inline::default();
                both.append(head);
                both.push(": ", Look::new());
                if let Some(cell) = cell {
                    both.append(cell);
                }
                for part in both.lines(room) {
                    let mut line = String::new();
                    both.write(part, color, &mut line);
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
