//! What an import came to, agent by agent.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throughline::ImportReport;
use throughline::format::{abbreviate, format_thousands, pluralize};
use throughline_formats::SourceFormat;

use super::SourceOutcome;
use crate::app::App;
use crate::ui::Table;

/// Damaged records told one by one.
const MAX_REPORTED: usize = 10;

/// What the sources of one agent came to.
#[derive(Debug, Default)]
pub(crate) struct ImportTotals {
    pub(crate) sources: u64,
    pub(crate) bytes: u64,
    pub(crate) sessions: u64,
    pub(crate) messages: u64,
    /// Messages that were here already.
    pub(crate) known: u64,
    pub(crate) report: ImportReport,
    /// Sources that could not be read, and damaged or refused records: where, and why.
    pub(crate) problems: Vec<(String, u64, String)>,
    pub(crate) failed: u64,
}

impl ImportTotals {
    /// The outcomes by agent.
    pub(crate) fn by_agent(outcomes: Vec<SourceOutcome>) -> BTreeMap<SourceFormat, Self> {
        let mut all: BTreeMap<SourceFormat, Self> = BTreeMap::new();
        for outcome in outcomes {
            all.entry(outcome.agent).or_default().add(outcome);
        }
        all
    }

    fn add(&mut self, mut outcome: SourceOutcome) {
        self.sources += 1;
        self.bytes += outcome.bytes;
        self.sessions += outcome.sessions;
        self.messages += outcome.messages;
        self.known += outcome.known_before + outcome.report.already_stored;
        let path = outcome.path.display().to_string();
        if let Some(error) = outcome.error {
            self.failed += 1;
            self.problems.push((path.clone(), 0, error));
        }
        for (place, error) in std::mem::take(&mut outcome.report.failed) {
            self.failed += 1;
            self.problems.push((path.clone(), place, error.to_string()));
        }
        for (place, what) in std::mem::take(&mut outcome.report.damaged) {
            self.problems.push((path.clone(), place, what));
        }
        self.report.add(outcome.report);
    }

    fn to_json(&self, agent: SourceFormat) -> Value {
        let wrong = self
            .problems
            .iter()
            .map(|(path, place, error)| json!({"path": path, "line": place, "error": error}));
        json!({
            "agent": agent.name(),
            "sources": self.sources,
            "bytes": self.bytes,
            "sessions": self.sessions,
            "messages": self.messages,
            "known": self.known,
            "appended": self.report.appended,
            "created": self.report.created,
            "forked": self.report.forked,
            "passed": self.report.skipped,
            "wrong": wrong.collect::<Vec<_>>(),
        })
    }
}

/// Shows what there is and what was done with it. Whether nothing failed.
pub(crate) fn print_table(
    app: &App,
    all: &BTreeMap<SourceFormat, ImportTotals>,
    dry: bool,
) -> anyhow::Result<bool> {
    let ok = all.values().all(|totals| totals.failed == 0);
    if app.ui.json {
        let agents: Vec<_> = all
            .iter()
            .map(|(agent, totals)| totals.to_json(*agent))
            .collect();
        app.ui
            .json(&json!({"ok": ok, "dry_run": dry, "agents": agents}))?;
        return Ok(ok);
    }
    if all.is_empty() {
        app.ui.status("No sessions of other agents were found.");
        return Ok(ok);
    }
    let head = [
        "AGENT",
        "SESSIONS",
        "MESSAGES",
        "SIZE",
        "HERE ALREADY",
        "NEW",
    ];
    let mut table = Table::new(&head, &[1, 2, 3, 4, 5], 0);
    for (agent, totals) in all {
        let new = if dry {
            totals.messages.saturating_sub(totals.known)
        } else {
            totals.report.appended
        };
        table.push_row(vec![
            agent.name().to_owned(),
            format_thousands(totals.sessions),
            format_thousands(totals.messages),
            format!("{}B", abbreviate(totals.bytes)),
            format_thousands(totals.known),
            format_thousands(new),
        ]);
    }
    app.ui.page(&table.render(&app.ui))?;
    for (agent, totals) in all {
        for (path, place, error) in totals.problems.iter().take(MAX_REPORTED) {
            match place {
                0 => app.ui.warn(format_args!("{path}: {error}")),
                place => app.ui.warn(format_args!("{path}, record {place}: {error}")),
            }
        }
        if totals.problems.len() > MAX_REPORTED {
            let more = pluralize((totals.problems.len() - MAX_REPORTED) as u64, "more record");
            app.ui
                .warn(format_args!("{agent}: and {more}; --json tells them all"));
        }
    }
    let sum = |of: fn(&ImportTotals) -> u64| all.values().map(of).sum::<u64>();
    if dry {
        app.ui.status("Nothing was changed.");
        return Ok(ok);
    }
    let forks = match sum(|totals| totals.report.forked) {
        0 => String::new(),
        forks => format!(
            ", {} of sources that went another way",
            pluralize(forks, "fork")
        ),
    };
    app.ui.status(format_args!(
        "{} in, {} there already, {} made{forks}",
        pluralize(sum(|totals| totals.report.appended), "message"),
        pluralize(sum(|totals| totals.known), "message"),
        pluralize(sum(|totals| totals.report.created), "session"),
    ));
    Ok(ok)
}
