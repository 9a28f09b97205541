//! What summaries and turns leave in memory.
//!
//! None of it is worth failing for: what was said is saved, and the person is told.

use throughline::{Entry, Read, Seq, Session, Turned};

use crate::app::App;
use crate::ui::counted;

/// Proposes what a summary found, by its entry, and says so in a line.
pub(crate) async fn propose(app: &App, session: &Session, summary: &Entry) {
    match session.propose_facts(summary, app.config.memory()).await {
        Ok(proposed) => {
            let line = |facts: &[Seq], what: &str, how: &str| {
                if !facts.is_empty() {
                    let facts = counted(facts.len() as u64, "fact");
                    app.ui
                        .status(format_args!("{facts} {what}: tl memory list{how}"));
                }
            };
            line(&proposed.accepted, "remembered", "");
            line(&proposed.waiting, "proposed for memory", " --proposed");
        }
        Err(error) => app
            .ui
            .warn(format_args!("nothing was proposed for memory: {error}")),
    }
}

/// Counts which facts a turn made use of, and proposes what a compaction in it found.
pub(crate) async fn after_turn(
    app: &App,
    session: &Session,
    turned: &Turned,
    checkpoint: Option<Seq>,
) {
    if let Err(error) = session.note_memory_used(turned).await {
        app.ui.warn(format_args!(
            "which facts were of use was not kept: {error}"
        ));
    }
    let Some(seq) = checkpoint else {
        return;
    };
    match session.read(Read::between(seq, seq, 1)).await {
        Ok(entries) => {
            for entry in &entries {
                propose(app, session, entry).await;
            }
        }
        Err(error) => app
            .ui
            .warn(format_args!("nothing was proposed for memory: {error}")),
    }
}
