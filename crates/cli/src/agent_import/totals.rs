//! Totals of an import per agent, and their table.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throughline::ImportReport;
use throughline::format::{abbreviate, format_thousands, pluralize};
use throughline_formats::SourceFormat;

use super::SourceOutcome;
use crate::app::App;
use crate::ui::Table;

/// Maximum number of damaged records reported individually.
const MAX_REPORTED: usize = 10;

/// Totals of one agent's sources.
#[derive(Debug, Default)]
pub(crate) struct ImportTotals {
    pub(crate) sources: u64,
    pub(crate) bytes: u64,
    pub(crate) sessions: u64,
    pub(crate) messages: u64,
    /// Messages that were already known.
    pub(crate) known: u64,
    pub(crate) report: ImportReport,
    /// Unreadable sources and damaged or rejected records: path, record number and error.
    pub(crate) problems: Vec<(String, u64, String)>,
    pub(crate) failed: u64,
}

impl ImportTotals {
    /// Groups outcomes by agent.
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
        for (record, error) in std::mem::take(&mut outcome.report.failed) {
            self.failed += 1;
            self.problems
                .push((path.clone(), record, error.to_string()));
        }
        for (record, what) in std::mem::take(&mut outcome.report.damaged) {
            self.problems.push((path.clone(), record, what));
        }
        self.report.add(outcome.report);
    }

    fn to_json(&self, agent: SourceFormat) -> Value {
        let wrong = self
            .problems
            .iter()
            .map(|(path, record, error)| json!({"path": path, "line": record, "error": error}));
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

/// Prints the totals. Returns whether everything succeeded.
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
    let head = ["AGENT", "SESSIONS", "MESSAGES", "SIZE", "KNOWN", "NEW"];
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
        for (path, record, error) in totals.problems.iter().take(MAX_REPORTED) {
            match record {
                0 => app.ui.warn(format_args!("{path}: {error}")),
                record => app
                    .ui
                    .warn(format_args!("{path}, record {record}: {error}")),
            }
        }
        if totals.problems.len() > MAX_REPORTED {
            let more = pluralize((totals.problems.len() - MAX_REPORTED) as u64, "more record");
            app.ui
                .warn(format_args!("{agent}: and {more}; --json lists them all"));
        }
    }
    let sum = |of: fn(&ImportTotals) -> u64| all.values().map(of).sum::<u64>();
    if dry {
        app.ui.status("Nothing was changed.");
        return Ok(ok);
    }
    let forks = match sum(|totals| totals.report.forked) {
        0 => String::new(),
        forks => format!(", {} of rewritten sessions", pluralize(forks, "fork")),
    };
    app.ui.status(format_args!(
        "{} imported, {} already known, {} created{forks}",
        pluralize(sum(|totals| totals.report.appended), "message"),
        pluralize(sum(|totals| totals.known), "message"),
        pluralize(sum(|totals| totals.report.created), "session"),
    ));
    Ok(ok)
}
