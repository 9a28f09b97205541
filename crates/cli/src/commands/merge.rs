//! `tl merge`: merges a fork into another session.

use anyhow::Result;
use serde_json::json;
use throughline::{Error, MergeOutcome, MergeStyle, Seq, Session, SessionSpec};

use crate::app::App;

/// Merge a fork into its origin
///
/// If that session has no newer entries, it fast-forwards to the fork. Otherwise choose
/// --append or --summary. Repeating a merge changes nothing.
#[derive(clap::Args, Debug)]
pub(crate) struct MergeArgs {
    /// The fork
    fork: SessionSpec,
    /// The session to merge into [default: the one it was forked from]
    #[arg(long, value_name = "SESSION")]
    into: Option<SessionSpec>,
    /// Append the fork's messages after the existing entries
    #[arg(long, conflicts_with = "summary")]
    append: bool,
    /// Append one entry that summarizes the fork
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
}

/// The target of a merge and its outcome.
pub(crate) struct MergeReport {
    pub(crate) into: Session,
    merged: MergeOutcome,
    head: Seq,
}

impl MergeReport {
    /// Describes the outcome for the terminal.
    pub(crate) fn describe(&self) -> String {
        let head = self.head;
        match self.merged {
            MergeOutcome::UpToDate => "Already up to date".to_owned(),
            MergeOutcome::FastForwarded { entries } => {
                format!("Fast-forwarded by {entries} to entry {head}")
            }
            MergeOutcome::Appended { entries } => format!("Appended {entries}, up to entry {head}"),
            MergeOutcome::Summarized => format!("Added the summary as entry {head}"),
        }
    }
}

pub(crate) async fn run(app: &App, args: MergeArgs) -> Result<()> {
    let outcome = merge(app, args).await?;
    let into = outcome.into.id();
    if app.ui.json {
        let (how, entries) = match outcome.merged {
            MergeOutcome::UpToDate => ("up_to_date", 0),
            MergeOutcome::FastForwarded { entries } => ("fast_forwarded", entries),
            MergeOutcome::Appended { entries } => ("appended", entries),
            MergeOutcome::Summarized => ("summarized", 1),
        };
        let head = outcome.head;
        app.ui
            .json(&json!({"id": into, "how": how, "entries": entries, "head": head}))?;
        return Ok(());
    }
    app.ui.status(outcome.describe());
    app.ui.data(into)?;
    Ok(())
}

/// Merges without printing anything.
pub(crate) async fn merge(app: &App, args: MergeArgs) -> Result<MergeReport> {
    let fork = app.session(&args.fork).await?;
    let into = match &args.into {
        Some(spec) => app.session(spec).await?,
        None => {
            let info = fork.record().await?.info;
            let Some(parent) = info.lineage.parent() else {
                return Err(Error::NoOrigin(info.id).into());
            };
            app.tl().await?.session(parent).await?
        }
    };
    let style = match (args.append, args.summary) {
        (true, _) => MergeStyle::Append,
        (false, Some(summary)) => MergeStyle::Summary(summary),
        (false, None) => MergeStyle::FastForward,
    };
    let merged = into.merge(&fork, &style).await?;
    let head = into.record().await?.info.head;
    Ok(MergeReport { into, merged, head })
}
