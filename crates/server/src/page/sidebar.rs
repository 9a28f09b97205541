//! Sidebar of a session: the current checkpoint and the working set.

use axum::response::Response;
use maud::{Markup, html};

use super::entry::render_summary;
use super::layout::fragment as part_of;
use super::page_format::{
    author_name, entry_path, relative_time_phrase, session_path, truncate_line,
};
use super::visitor::{PageError, VisitorSession};

/// Entries after the checkpoint that are considered.
const ENTRY_WINDOW: usize = 200;

pub(super) async fn sidebar_fragment(opened: VisitorSession) -> Result<Response, PageError> {
    Ok(part_of(&render_sidebar(&opened).await?))
}

/// Renders the current checkpoint and the working set.
pub(super) async fn render_sidebar(opened: &VisitorSession) -> Result<Markup, PageError> {
    let session = &opened.session;
    let checkpoint = session.checkpoint().await?;
    let set = session.working_set(0, 0, ENTRY_WINDOW).await?;
    let state = &opened.record.state;
    let here = session_path(session.id());
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.config.time_zone,
    );
    // Skip what the checkpoint or a pin already contains.
    let covered = checkpoint
        .as_ref()
        .map(|(_, checkpoint)| &checkpoint.summary);
    let covered: Vec<&String> = covered.map_or_else(Vec::new, |covered| {
        let lists = [
            &covered.facts,
            &covered.decisions,
            &covered.open_tasks,
            &covered.pending,
            &covered.files_touched,
        ];
        lists.into_iter().flatten().collect()
    });
    let uncovered = |items: &'_ [String]| -> Vec<String> {
        let pinned = |text: &String| state.pins.iter().any(|pin| pin.text == *text);
        let new = |text: &&String| !covered.contains(text) && !pinned(text);
        items.iter().filter(new).cloned().collect()
    };
    Ok(html! {
        section {
            h2 { "Checkpoint" }
            @match &checkpoint {
                Some((entry, checkpoint)) => {
                    p.muted {
                        "Covers everything up to "
                        a href=(entry_path(session.id(), checkpoint.covers)) { "#" (checkpoint.covers) }
                        " · written by " (author_name(&checkpoint.by)) " · " (relative_time_phrase(entry.at, now, zone))
                    }
                    (render_summary(&checkpoint.summary))
                },
                None => p.muted { "None. The model sees all messages in full." },
            }
        }
        section {
            h2 { "Pins" }
            @if state.pins.is_empty() { p.muted { "No pins." } }
            ul.pins {
                @for pin in &state.pins {
                    li {
                        a href=(entry_path(session.id(), pin.seq)) { (truncate_line(&pin.text, 400)) }
                        form method="post" action={ (here) "/unpin" } {
                            input type="hidden" name="pin" value=(pin.seq);
                            button.plain type="submit" aria-label={ "Unpin " (truncate_line(&pin.text, 60)) } { "×" }
                        }
                    }
                }
            }
        }
        (render_items("Facts", &uncovered(&set.pinned_facts)))
        (render_items("Decisions", &uncovered(&set.decisions)))
        (render_items("Open tasks", &uncovered(&set.open_tasks)))
        (render_items("Files touched", &uncovered(&set.files_touched)))
        @if !state.context.is_empty() {
            section {
                h2 { "Context documents" }
                ul { @for (name, seq) in &state.context {
                    li { a href=(entry_path(session.id(), *seq)) { (truncate_line(name, 80)) } }
                } }
            }
        }
    })
}

fn render_items(name: &str, items: &[String]) -> Markup {
    const MOST: usize = 20;
    html! {
        @if !items.is_empty() {
            section {
                h2 { (name) }
                ul { @for item in items.iter().take(MOST) { li { (truncate_line(item, 300)) } } }
                @if items.len() > MOST {
                    p.muted { "and " (items.len() - MOST) " more" }
                }
            }
        }
    }
}
