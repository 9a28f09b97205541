//! What summaries and turns leave in memory.
//!
//! None of it is worth failing for: what was said is saved, and the person is told.

use throughline::format::pluralize;
use throughline::{Entry, Error, ProposalReport, Seq, Session, TurnOutcome};

use crate::app::App;

/// Proposes what a summary found, by its entry, and says so in a line.
pub(crate) async fn propose_facts(app: &App, session: &Session, summary: &Entry) {
    report_proposals(
        app,
        session.propose_facts(summary, app.config.memory()).await,
    );
}

/// Counts which facts a turn made use of, and proposes what compactions in it found.
pub(crate) async fn remember_turn(app: &App, session: &Session, turned: &TurnOutcome) {
    report_proposals(
        app,
        session.remember_turn(turned, app.config.memory()).await,
    );
}

fn report_proposals(app: &App, proposed: Result<ProposalReport, Error>) {
    match proposed {
        Ok(proposed) => {
            let line = |facts: &[Seq], what: &str, how: &str| {
                if !facts.is_empty() {
                    let facts = pluralize(facts.len() as u64, "fact");
                    app.ui
                        .status(format_args!("{facts} {what}: tl memory list{how}"));
                }
            };
            line(&proposed.accepted, "remembered", "");
            line(&proposed.pending, "proposed for memory", " --proposed");
        }
        Err(error) => app
            .ui
            .warn(format_args!("nothing of it was kept in memory: {error}")),
    }
}
