//! Renders results as a Markdown section.

use std::fmt::Write as _;

use crate::chart::Chart;
use crate::machine::Machine;
use crate::table::{HEADINGS, Table};

/// Renders a section: how it was measured, the table, and the charts.
///
/// The charts are text bars, or `picture` if there is one.
pub(crate) fn render_section(
    title: &str,
    command: &str,
    machine: &Machine,
    notes: &[String],
    table: &Table,
    charts: &[Chart],
    picture: Option<&str>,
) -> String {
    let mut text = format!("## {title}\n\n```sh\n{command}\n```\n\nOn {machine}.\n");
    for note in notes {
        let _ = writeln!(text, "\n{note}");
    }
    let _ = writeln!(text, "\n| {} |", HEADINGS.join(" | "));
    let _ = writeln!(text, "|---|--:|---|--:|--:|--:|---|");
    for row in &table.0 {
        let cells = row.cells().map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    match picture {
        Some(file) => {
            let _ = writeln!(text, "\n![The same numbers as a chart]({file})");
        }
        None => {
            for chart in charts {
                let lines = chart.text_lines().join("\n");
                let _ = writeln!(text, "\n**{}**\n\n```text\n{lines}\n```", chart.title);
            }
        }
    }
    text
}
