//! The ids of facts on the command line, and how facts are displayed.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use throughline::format::{abbreviate, format_age};
use throughline::{Fact, MemoryScope, ProjectId, Seq};

use super::MemoryTarget;
use crate::app::App;
use crate::ui::{Table, truncate};

/// The id of a fact on the command line: `7`, or `o7` if owner-wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FactId {
    pub(super) owner_wide: bool,
    pub(super) seq: Seq,
}

impl FromStr for FactId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (owner_wide, number) = match text.strip_prefix('o') {
            Some(number) => (true, number),
            None => (false, text),
        };
        match number.parse() {
            Ok(seq) => Ok(Self { owner_wide, seq }),
            Err(_) => Err(format!(
                "{text:?} is not a fact's id: use 7, or o7 for an owner-wide fact; \
                 `tl memory list` shows them"
            )),
        }
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = if self.owner_wide { "o" } else { "" };
        f.pad(&format!("{start}{}", self.seq))
    }
}

/// A fact with its scope, as printed in JSON.
#[derive(Serialize)]
pub(super) struct FactView<'a> {
    pub(super) id: String,
    scope: &'static str,
    project: Option<&'a ProjectId>,
    #[serde(flatten)]
    pub(super) fact: &'a Fact,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
}

impl<'a> FactView<'a> {
    pub(super) fn new(scope: &'a MemoryScope, fact: &'a Fact) -> Self {
        let owner_wide = *scope == MemoryScope::Owner;
        let seq = fact.seq;
        Self {
            id: FactId { owner_wide, seq }.to_string(),
            scope: if owner_wide { "owner" } else { "project" },
            project: scope.project(),
            fact,
            score: None,
        }
    }

    /// Sets the search score.
    pub(super) fn with_score(self, score: f32) -> Self {
        Self {
            score: Some(score),
            ..self
        }
    }

    /// Returns the state, or an empty text for a fact in effect.
    fn state(&self) -> String {
        match (
            self.fact.superseded_by,
            self.fact.forgotten,
            self.fact.proposed,
        ) {
            (Some(seq), _, _) => {
                let owner_wide = self.project.is_none();
                format!("replaced by {}", FactId { owner_wide, seq })
            }
            (None, true, _) => "forgotten".to_owned(),
            (None, false, true) => "proposed".to_owned(),
            (None, false, false) => String::new(),
        }
    }
}

/// Renders facts as a table that fits the screen.
pub(super) fn render_table(app: &App, target: &MemoryTarget, facts: &[FactView<'_>]) -> String {
    let now = throughline::Environment::now(&throughline::SystemEnvironment);
    let head = ["ID", "FACT", "FILES", "BY", "STATE", "USES", "AGE"];
    let mut table = Table::new(&head, &[0, 5, 6], 1);
    for shown in facts {
        let fact = shown.fact;
        table.push_row(vec![
            shown.id.clone(),
            one_line(&fact.text),
            truncate(&fact.files.join(" "), 20),
            match (&fact.author, fact.is_by_person()) {
                (Some(author), true) => truncate(author, 16),
                (None, true) => String::new(),
                (_, false) => truncate(&fact.by, 16),
            },
            shown.state(),
            match fact.uses {
                0 => String::new(),
                uses => abbreviate(uses),
            },
            format_age(fact.at, now, &app.zone),
        ]);
    }
    let title = format!("Memory of {}", target.project.name);
    format!(
        "{}\n{}",
        app.ui.bold(&crate::markdown::sanitize(&title)),
        table.render(&app.ui)
    )
}

/// Joins a text into one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_facts_id_tells_where_it_is() {
        for text in ["7", "o7"] {
            assert_eq!(text.parse::<FactId>().unwrap().to_string(), text);
        }
        for wrong in ["", "o", "x7", "-1", "7o"] {
            assert!(wrong.parse::<FactId>().is_err(), "{wrong:?}");
        }
    }
}
