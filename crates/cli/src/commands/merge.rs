//! `tl merge`

use anyhow::Result;
use serde_json::json;
use throughline::{Error, MergeStyle, Merged, SessionSpec};

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

pub(crate) async fn run(app: &App, args: MergeArgs) -> Result<()> {
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
    let (how, entries) = match merged {
        Merged::UpToDate => ("up_to_date", 0),
        Merged::FastForwarded { entries } => ("fast_forwarded", entries),
        Merged::Appended { entries } => ("appended", entries),
        Merged::Summarized => ("summarized", 1),
    };
    let head = into.record().await?.card.head;
    if app.ui.json {
        app.ui
            .json(&json!({"id": into.id(), "how": how, "entries": entries, "head": head}))?;
        return Ok(());
    }
    let told = match merged {
        Merged::UpToDate => "It has everything already".to_owned(),
        Merged::FastForwarded { entries } => format!("Fast-forwarded by {entries} to entry {head}"),
        Merged::Appended { entries } => format!("Appended {entries}, up to entry {head}"),
        Merged::Summarized => format!("Noted as entry {head}"),
    };
    app.ui.status(told);
    app.ui.data(into.id())?;
    Ok(())
}
