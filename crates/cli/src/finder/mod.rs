//! A full-screen list to choose from: it narrows as one types, and shows what is under
//! the cursor.
//!
//! What is listed comes from a [`Source`]; nothing here knows what it is.

mod hits;
mod screen;
mod sessions;

use std::io::IsTerminal;

use anyhow::Result;

use crate::error_report::UserError;

pub(crate) use hits::search_interactively;
pub(crate) use sessions::choose_session;

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What it is.
    pub(crate) title: String,
    /// More about it, to the right.
    pub(crate) detail: String,
}

/// Something to choose from.
pub(crate) trait FinderSource {
    /// What is listed under the list: how to choose, and what else can be done.
    fn key_help(&self) -> &'static str;

    /// What fits what was typed, the best first.
    async fn find(&mut self, typed: &str) -> Result<Vec<Row>>;

    /// What the row of this number is about.
    async fn preview(&mut self, row: usize, width: usize) -> Result<String>;
}

/// How the person chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinderAction {
    /// Enter.
    Open(usize),
    /// Ctrl-F.
    Fork(usize),
    /// Ctrl-S.
    Show(usize),
}

/// Lets the person choose; none if they chose nothing.
pub(crate) async fn choose(source: &mut impl FinderSource) -> Result<Option<FinderAction>> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(UserError::invalid("there is no terminal to choose on")
            .with_hint("name what you mean on the command line")
            .into());
    }
    screen::run(source).await
}
