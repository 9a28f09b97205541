//! Renders a summary as titled lists, without empty ones.

use throughline::Summary;

use crate::markdown::wrap_plain;
use crate::ui::Ui;

/// Renders all lists of a summary.
pub(crate) fn render_summary(ui: &Ui, summary: &Summary) -> String {
    let background: Vec<_> = Some(summary.background.clone())
        .filter(|text| !text.is_empty())
        .into_iter()
        .collect();
    render_lists(
        ui,
        &[
            ("Background", &background),
            ("Topics", &summary.topics),
            ("Done", &summary.completed),
            ("In progress", &summary.in_progress),
            ("Pending", &summary.pending),
            ("Blocked", &summary.blockers),
            ("Decisions", &summary.decisions),
            ("Facts", &summary.facts),
            ("Files touched", &summary.files_touched),
            ("Open", &summary.open_tasks),
        ],
    )
}

/// Renders lists under their titles, skipping empty ones.
pub(crate) fn render_lists(ui: &Ui, lists: &[(&str, &Vec<String>)]) -> String {
    let mut text = String::new();
    for (title, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        text.push_str(&format!("{}\n", ui.bold(title)));
        for item in *items {
            let lines = wrap_plain(item, ui.width.saturating_sub(4));
            let lines = lines.trim_end().replace('\n', "\n    ");
            text.push_str(&format!("  • {lines}\n"));
        }
    }
    text
}
