//! What summaries and turns leave in memory.
//!
//! None of it is worth failing for: what was said is saved, and the person is told.

use throughline::glance::counted;
use throughline::{Entry, Error, Proposed, Seq, Session, Turned};

use crate::app::App;

/// Proposes what a summary found, by its entry, and says so in a line.
pub(crate) async fn propose(app: &App, session: &Session, summary: &Entry) {
    tell(
        app,
        session.propose_facts(summary, app.config.memory()).await,
    );
}

/// Counts which facts a turn made use of, and proposes what compactions in it found.
pub(crate) async fn after_turn(app: &App, session: &Session, turned: &Turned) {
    tell(
        app,
        session.remember_turn(turned, app.config.memory()).await,
    );
}

fn tell(app: &App, proposed: Result<Proposed, Error>) {
    match proposed {
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
            .warn(format_args!("nothing of it was kept in memory: {error}")),
    }
}
