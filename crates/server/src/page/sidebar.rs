//! What the model keeps in mind, beside what was said.

use axum::response::Response;
use maud::{Markup, html};

use super::entry::render_summary;
use super::layout::fragment as part_of;
use super::page_format::{entry_path, relative_time_phrase, session_path, truncate_line};
use super::visitor::{PageError, VisitorSession};

/// Entries after the checkpoint that are looked at.
const ENTRY_WINDOW: usize = 200;

pub(super) async fn sidebar_fragment(opened: VisitorSession) -> Result<Response, PageError> {
    Ok(part_of(&render_sidebar(&opened).await?))
}

/// The checkpoint in force and the working set.
pub(super) async fn render_sidebar(opened: &VisitorSession) -> Result<Markup, PageError> {
    let session = &opened.session;
    let checkpoint = session.checkpoint().await?;
    let set = session.working_set(0, 0, ENTRY_WINDOW).await?;
    let standing = &opened.record.state;
    let here = session_path(session.id());
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.config.time_zone,
    );
    // What the checkpoint or a pin says is not said again.
    let told = checkpoint
        .as_ref()
        .map(|(_, checkpoint)| &checkpoint.summary);
    let told: Vec<&String> = told.map_or_else(Vec::new, |told| {
        let lists = [
            &told.facts,
            &told.decisions,
            &told.open_tasks,
            &told.pending,
            &told.files_touched,
        ];
        lists.into_iter().flatten().collect()
    });
    let besides = |items: &'_ [String]| -> Vec<String> {
        let pinned = |text: &String| standing.pins.iter().any(|pin| pin.text == *text);
        let new = |text: &&String| !told.contains(text) && !pinned(text);
        items.iter().filter(new).cloned().collect()
    };
    Ok(html! {
        section {
            h2 { "Checkpoint" }
            @match &checkpoint {
                Some((entry, checkpoint)) => {
                    p.muted {
                        "Stands for everything up to "
                        a href=(entry_path(session.id(), checkpoint.covers)) { "#" (checkpoint.covers) }
                        " · by " (checkpoint.by) " · " (relative_time_phrase(entry.at, now, zone))
                    }
                    (render_summary(&checkpoint.summary))
                },
                None => p.muted { "None: the model sees messages as they were said." },
            }
        }
        section {
            h2 { "Pins" }
            @if standing.pins.is_empty() { p.muted { "Nothing is pinned." } }
            ul.pins {
                @for pin in &standing.pins {
                    li {
                        a href=(entry_path(session.id(), pin.seq)) { (truncate_line(&pin.text, 400)) }
                        form method="post" action={ (here) "/unpin" } {
                            input type="hidden" name="pin" value=(pin.seq);
                            button.plain type="submit" aria-label={ "Take back the pin " (truncate_line(&pin.text, 60)) } { "×" }
                        }
                    }
                }
            }
        }
        (render_items("Facts", &besides(&set.pinned_facts)))
        (render_items("Decisions", &besides(&set.decisions)))
        (render_items("Open tasks", &besides(&set.open_tasks)))
        (render_items("Files touched", &besides(&set.files_touched)))
        @if !standing.context.is_empty() {
            section {
                h2 { "Context documents" }
                ul { @for (name, seq) in &standing.context {
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
