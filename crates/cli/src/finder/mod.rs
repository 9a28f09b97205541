//! A full-screen picker: a list that is filtered while typing, with a preview of the selected
//! row.
//!
//! The rows come from a [`FinderSource`]; this module does not know what they are.

mod hits;
mod screen;
mod sessions;

use std::io::IsTerminal;

use anyhow::Result;

use crate::error_report::UserError;

pub(crate) use hits::search_interactively;
pub(crate) use sessions::choose_session;

/// A row of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its title.
    pub(crate) title: String,
    /// Details, aligned right.
    pub(crate) detail: String,
}

/// The source of rows for the finder.
pub(crate) trait FinderSource {
    /// Returns the key help shown below the list.
    fn key_help(&self) -> &'static str;

    /// Returns the rows that match the query, best first.
    async fn find(&mut self, typed: &str) -> Result<Vec<Row>>;

    /// Returns the preview of a row.
    async fn preview(&mut self, row: usize, width: usize) -> Result<String>;
}

/// The user's choice, with the row's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinderAction {
    /// Enter.
    Open(usize),
    /// Ctrl-F.
    Fork(usize),
    /// Ctrl-S.
    Show(usize),
}

/// Runs the finder; returns `None` if nothing was chosen.
pub(crate) async fn choose(source: &mut impl FinderSource) -> Result<Option<FinderAction>> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(UserError::invalid("choosing from a list needs a terminal")
            .with_hint("specify it on the command line")
            .into());
    }
    screen::run(source).await
}
