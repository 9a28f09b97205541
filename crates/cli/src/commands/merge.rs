//! `tl merge`

use anyhow::Result;
use serde_json::json;
use throughline::{Error, MergeStyle, Merged, Seq, Session, SessionSpec};

use crate::app::App;

/// Merge a fork into the session it came from
///
/// If that session has not moved since, the fork's entries become its own, number by
/// number. Otherwise say what to do: --append or --summary. Merging the same again
/// changes nothing.
#[derive(clap::Args, Debug)]
pub(crate) struct MergeArgs {
    /// The fork
    fork: SessionSpec,
    /// The session to merge into [default: the one it was forked from]
    #[arg(long, value_name = "SESSION")]
    into: Option<SessionSpec>,
    /// Append the fork's messages after what is there
    #[arg(long, conflicts_with = "summary")]
    append: bool,
    /// Append one entry that tells what came of the fork
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
}

/// What was merged into, and what became of it.
pub(crate) struct Outcome {
    pub(crate) into: Session,
    merged: Merged,
    head: Seq,
}

impl Outcome {
    /// What a person is told.
    pub(crate) fn told(&self) -> String {
        let head = self.head;
        match self.merged {
            Merged::UpToDate => "It has everything already".to_owned(),
            Merged::FastForwarded { entries } => {
                format!("Fast-forwarded by {entries} to entry {head}")
            }
            Merged::Appended { entries } => format!("Appended {entries}, up to entry {head}"),
            Merged::Summarized => format!("Noted as entry {head}"),
        }
    }
}

pub(crate) async fn run(app: &App, args: MergeArgs) -> Result<()> {
    let outcome = merge(app, args).await?;
    let into = outcome.into.id();
    if app.ui.json {
        let (how, entries) = match outcome.merged {
            Merged::UpToDate => ("up_to_date", 0),
            Merged::FastForwarded { entries } => ("fast_forwarded", entries),
            Merged::Appended { entries } => ("appended", entries),
            Merged::Summarized => ("summarized", 1),
        };
        let head = outcome.head;
        app.ui
            .json(&json!({"id": into, "how": how, "entries": entries, "head": head}))?;
        return Ok(());
    }
    app.ui.status(outcome.told());
    app.ui.data(into)?;
    Ok(())
}

/// Merges, without a word.
pub(crate) async fn merge(app: &App, args: MergeArgs) -> Result<Outcome> {
    let fork = app.session(&args.fork).await?;
    let into = match &args.into {
        Some(spec) => app.session(spec).await?,
        None => {
            let card = fork.record().await?.card;
            let Some(parent) = card.lineage.parent() else {
                return Err(Error::NoOrigin(card.id).into());
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
    let head = into.record().await?.card.head;
    Ok(Outcome { into, merged, head })
}
