//! Proposes facts from summaries and records which facts a turn used.
//!
//! Errors are reported as warnings only, because the messages themselves are already saved.

use throughline::format::pluralize;
use throughline::{Entry, Error, ProposalReport, Seq, Session, TurnOutcome};

use crate::app::App;

/// Proposes the facts of a summary entry and reports them in a line.
pub(crate) async fn propose_facts(app: &App, session: &Session, summary: &Entry) {
    report_proposals(
        app,
        session.propose_facts(summary, app.config.memory()).await,
    );
}

/// Counts the facts a turn used and proposes the facts of its compactions.
pub(crate) async fn remember_turn(app: &App, session: &Session, outcome: &TurnOutcome) {
    report_proposals(
        app,
        session.remember_turn(outcome, app.config.memory()).await,
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
        Err(error) => app.ui.warn(format_args!("memory was not updated: {error}")),
    }
}
