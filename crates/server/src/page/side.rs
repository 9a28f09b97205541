//! What the model keeps in mind, beside what was said.

use axum::response::Response;
use maud::{Markup, html};

use super::entry::summary;
use super::layout::part as part_of;
use super::visitor::{Fault, Opened};
use super::words::{beginning, entry_place, place, since};

/// Entries after the checkpoint that are looked at.
const WINDOW: usize = 200;

pub(super) async fn part(opened: Opened) -> Result<Response, Fault> {
    Ok(part_of(&shown(&opened).await?))
}

/// The checkpoint in force and the working set.
pub(super) async fn shown(opened: &Opened) -> Result<Markup, Fault> {
    let session = &opened.session;
    let checkpoint = session.checkpoint().await?;
    let set = session.working_set(0, 0, WINDOW).await?;
    let standing = &opened.record.standing;
    let here = place(session.id());
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.serving.zone,
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
                        a href=(entry_place(session.id(), checkpoint.covers)) { "#" (checkpoint.covers) }
                        " · by " (checkpoint.by) " · " (since(entry.at, now, zone))
                    }
                    (summary(&checkpoint.summary))
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
                        a href=(entry_place(session.id(), pin.seq)) { (beginning(&pin.text, 400)) }
                        form method="post" action={ (here) "/unpin" } {
                            input type="hidden" name="pin" value=(pin.seq);
                            button.plain type="submit" aria-label={ "Take back the pin " (beginning(&pin.text, 60)) } { "×" }
                        }
                    }
                }
            }
        }
        (items("Facts", &besides(&set.pinned_facts)))
        (items("Decisions", &besides(&set.decisions)))
        (items("Open tasks", &besides(&set.open_tasks)))
        (items("Files touched", &besides(&set.files_touched)))
        @if !standing.context.is_empty() {
            section {
                h2 { "Context documents" }
                ul { @for (name, seq) in &standing.context {
                    li { a href=(entry_place(session.id(), *seq)) { (beginning(name, 80)) } }
                } }
            }
        }
    })
}

fn items(name: &str, items: &[String]) -> Markup {
    const MOST: usize = 20;
    html! {
        @if !items.is_empty() {
            section {
                h2 { (name) }
                ul { @for item in items.iter().take(MOST) { li { (beginning(item, 300)) } } }
                @if items.len() > MOST {
                    p.muted { "and " (items.len() - MOST) " more" }
                }
            }
        }
    }
}
